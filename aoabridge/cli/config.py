"""``aoabridge config``: every error of a file at once, the values in use and where they come from."""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from aoabridge.cli.exits import CommandError, Exit
from aoabridge.cli.output import printable, say, say_json, warn
from aoabridge.config import changes, config_path, last_good_path, load_config, rendered, restart_needed
from aoabridge.config.loader import LoadResult
from aoabridge.config.show import as_toml, origins
from aoabridge.errors import ConfigError

__all__ = ["add_parser", "run"]


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "config",
        help="check or show the configuration",
        description="The configuration file: checked as a whole, shown with the origin of each value.",
    )
    actions = parser.add_subparsers(dest="config_action", metavar="ACTION", title="actions", required=True)
    check = actions.add_parser("check", help="name every error of the file", description="Every error at once.")
    check.add_argument("file", nargs="?", metavar="FILE", help="file to check instead of the one in use")
    show = actions.add_parser("show", help="show the values", description="TOML that reads back as itself.")
    show.add_argument("--effective", action="store_true", help="defaults too, each value with its origin")
    actions.add_parser("path", help="show which files are used", description="The file and the last good copy.")


def run(args: argparse.Namespace) -> int:
    """0; 66 if the file cannot be read; 78 if it is refused."""
    return {"check": _check, "show": _show, "path": _path}[args.config_action](args)


def _load(path: Path, named: bool) -> LoadResult:
    """The file; one that was named must be there."""
    if (named or path.exists()) and not (path.is_file() and os.access(path, os.R_OK)):
        raise CommandError(f"{path} cannot be read", Exit.NO_INPUT, f"ls -l {path}")
    return load_config(path)


def _check(args: argparse.Namespace) -> int:
    named = args.file or args.config
    path = config_path(named)
    result = _load(path, named is not None)
    good = last_good_path()
    before = load_config(good).config if good is not None and good.exists() else None
    waiting = restart_needed(changes(before, result.config)) if before and result.config else []
    if args.json:
        errors = [_as_json(error) for error in result.errors]
        say_json({"ok": not errors, "errors": errors, "restart_needed": waiting})
    elif result.errors:
        for error in result.errors:
            print(printable(rendered(error)), file=sys.stderr)
            if error.hint:
                print(f"  {printable(error.hint)}", file=sys.stderr)
    elif not args.quiet:
        source = "no file, the defaults apply" if result.source == "defaults" else f"{path}: ok"
        say(source + (f"; needs a restart: {', '.join(waiting)}" if waiting else ""))
    return int(Exit.CONFIG if result.errors else Exit.OK)


def _as_json(error: ConfigError) -> dict[str, object]:
    return {
        "file": error.file,
        "line": error.line,
        "column": error.column,
        "key": error.key,
        "message": str(error),
        "hint": error.hint,
    }


def _show(args: argparse.Namespace) -> int:
    path = config_path(args.config)
    result = _load(path, args.config is not None)
    if result.config is None:
        for error in result.errors:
            warn(printable(rendered(error)))
        return int(Exit.CONFIG)
    text = as_toml(result.config, result.given, effective=args.effective)
    if args.json:
        say_json({"path": str(path), "toml": text, "origins": origins(result.config, result.given)})
    else:
        print(text, end="")
    return int(Exit.OK)


def _path(args: argparse.Namespace) -> int:
    path, good = config_path(args.config), last_good_path()
    kept = good if good is not None and good.exists() else None
    if args.json:
        say_json({"path": str(path), "exists": path.exists(), "last_good": None if kept is None else str(kept)})
    else:
        say(f"{path}" + ("" if path.exists() else "  (missing: the defaults apply)"))
        say(f"last good: {kept or 'none'}")
    return int(Exit.OK)
