"""``aoabridge status``: the verdict, and one imperative per fault."""

import argparse
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from aoabridge.cli.client import connect, socket_paths
from aoabridge.cli.exits import CommandError, Exit
from aoabridge.cli.output import coloured, drop_output, human_terminal, red, say, say_json, until_end, warn
from aoabridge.status.terminal import status_lines, without_daemon

__all__ = ["add_parser", "run"]

_EXITS = {"ok": Exit.OK, "down": Exit.NO_DAEMON}
PIPED_WIDTH = 80


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "status",
        help="say in one line whether it works, and what to do if not",
        description="Verdict, phones and robot, broken links first. Exit 0 ready, 1 waiting or problem, 2 no daemon.",
    )
    parser.add_argument("--watch", action="store_true", help="go on, one snapshot per change")


def run(args: argparse.Namespace) -> int:
    """Exit status by the verdict last seen."""
    try:
        with connect(args.socket) as daemon:
            if args.watch:
                return _watch(args, daemon.stream("watch"))
            snapshot = daemon.request("status")
    except CommandError as error:
        if error.status is not Exit.NO_DAEMON:
            raise
        snapshot = without_daemon(*_last_written(args.socket))
        _show(args, snapshot)
        if not args.quiet:
            warn(str(error))
            print(f"  fix: {error.cure}", file=sys.stderr)
        return int(Exit.NO_DAEMON)
    _show(args, snapshot)
    return _exit(snapshot)


def _watch(args: argparse.Namespace, snapshots: Any) -> int:
    status = int(Exit.NO_DAEMON)
    try:
        for snapshot in until_end(snapshots):
            status = _exit(snapshot)
            if human_terminal() and not args.json:
                print("\x1b[H\x1b[2J", end="")
            _show(args, snapshot)
    except BrokenPipeError:
        drop_output()
    return status


def _exit(snapshot: dict[str, Any]) -> int:
    return int(_EXITS.get(str(snapshot.get("verdict")), Exit.NEGATIVE))


def _show(args: argparse.Namespace, snapshot: dict[str, Any]) -> None:
    if args.json:
        say_json(snapshot)
        return
    width = shutil.get_terminal_size().columns if human_terminal() else PIPED_WIDTH
    lines = status_lines(snapshot, max(width, 40))
    if args.quiet:
        lines = lines[:1]
    colour = coloured(args)
    say("\n".join(red(line, colour) if line.startswith((" X", "PROBLEM", "DOWN")) else line for line in lines))


def _last_written(given: str | None) -> tuple[dict[str, Any] | None, float | None]:
    """The newest snapshot that a daemon left beside its socket, and its age in seconds."""
    found: list[tuple[float, Path]] = []
    for path in socket_paths(given):
        written = path.with_name("status.json")
        try:
            found.append((written.stat().st_mtime, written))
        except OSError:
            continue
    for modified, path in sorted(found, reverse=True):
        try:
            value = json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(value, dict) and "version" in value:
            return value, round(max(time.time() - modified, 0.0), 1)
    return None, None
