"""``aoabridge doctor``: one line per check, and under each complaint the command that cures it."""

import argparse
import importlib
from pathlib import Path
from typing import Any

from aoabridge.cli.checks.result import Check, Outcome
from aoabridge.cli.client import connect
from aoabridge.cli.exits import CommandError, Exit
from aoabridge.cli.output import coloured, red, say, say_json
from aoabridge.config import config_path, load_config

__all__ = ["add_parser", "run"]


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "doctor",
        help="check this machine and print the command that cures each fault",
        description="Works without daemon, root and configuration. Exit 1 if any check fails.",
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="only what concerns this phone or port")
    parser.add_argument("--bundle", metavar="FILE.zip", help="also collect what somebody who helps would ask for")
    parser.add_argument("--with-values", action="store_true", help="put topic values into the bundle")


def run(args: argparse.Namespace) -> int:
    """0 if nothing fails, 1 if anything does, 73 if the bundle cannot be written."""
    root = Path("/")
    loaded = load_config(_config_in_use(args.config, args.socket))
    look = importlib.import_module("aoabridge.cli.checks.order")  # loads the USB part: not for a completion script
    checks: list[Check] = look.all_checks(root, loaded, args.socket)
    if args.name:
        wanted = _also_called(args.name, args.socket)
        checks = [check for check in checks if not check.subject or check.subject in wanted]
    good = all(check.outcome is not Outcome.FAIL for check in checks)
    if args.json:
        shown = [{"code": c.code, "result": c.outcome.value, "text": c.text, "fix": c.fix} for c in checks]
        say_json({"checks": shown, "ok": good})
    else:
        _print(args, checks)
    if args.bundle:
        bundle = importlib.import_module("aoabridge.cli.checks.bundle")
        try:
            names = bundle.write_bundle(Path(args.bundle), root, loaded, checks, _asker(args))
        except OSError as error:
            raise CommandError(f"{args.bundle}: {error.strerror}", Exit.CANNOT_CREATE) from None
        if not args.json:
            say(f"{args.bundle}: {', '.join(names)}; serials hashed")
    return int(Exit.OK if good else Exit.NEGATIVE)


def _config_in_use(given: str | None, socket: str | None) -> Path:
    """The file given, else that of the running daemon, else the one that a start would use."""
    if given is None:
        try:
            with connect(socket) as daemon:
                return Path(daemon.request("status")["config"]["path"])
        except (CommandError, KeyError):
            pass
    return config_path(given)


def _also_called(name: str, socket: str | None) -> set[str]:
    """A phone's name and its port, whichever of both was given."""
    try:
        with connect(socket) as daemon:
            phones = daemon.request("status").get("phones", ())
    except CommandError:
        return {name}
    return {name}.union(*({phone["name"], phone["port"]} for phone in phones if name in (phone["name"], phone["port"])))


def _asker(args: argparse.Namespace) -> Any:
    """Asks a daemon, None without one: ``ask(request, **arguments)``."""

    def ask(name: str, **arguments: object) -> dict[str, Any] | None:
        if name == "topics":
            arguments["values"] = bool(args.with_values)
        try:
            with connect(args.socket) as daemon:
                return daemon.request(name, **arguments)
        except CommandError:
            return None

    return ask


def _print(args: argparse.Namespace, checks: list[Check]) -> None:
    colour = coloured(args)
    for check in checks:
        if args.quiet and check.outcome is Outcome.PASS:
            continue
        say(red(f"{check.outcome.value}  {check.text}", colour and check.outcome is Outcome.FAIL))
        if check.fix and check.outcome is not Outcome.PASS:
            say(f"      fix: {check.fix}")
