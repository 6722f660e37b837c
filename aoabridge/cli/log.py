"""``aoabridge log``: the daemon's lines in memory, or the journal if no daemon runs."""

import argparse
from collections.abc import Iterable
from typing import Any

from aoabridge.adapters.journal_reader import JournalMissingError, lines
from aoabridge.cli.client import connect
from aoabridge.cli.exits import CommandError, Exit
from aoabridge.cli.output import drop_output, printable, say, say_json, until_end

__all__ = ["add_parser", "run"]

LEVELS = ("debug", "info", "warning", "error")


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "log",
        help="show the daemon's log",
        description="The lines that the daemon keeps in memory; without a daemon, those of the journal.",
    )
    parser.add_argument("-f", "--follow", action="store_true", help="go on with new lines")
    parser.add_argument("--level", choices=LEVELS, default="debug", help="only lines at least so serious")
    parser.add_argument("--device", metavar="NAME", help="only lines about this phone")


def run(args: argparse.Namespace) -> int:
    """0; 2 if neither a daemon nor a journal is there."""
    wanted = {"level": args.level, "device": args.device}
    try:
        with connect(args.socket) as daemon:
            if args.follow:
                _print(args, until_end(daemon.stream("follow-log", **wanted)))
            else:
                _print(args, daemon.request("log", **wanted).get("lines", ()))
    except CommandError as error:
        if error.status is not Exit.NO_DAEMON:
            raise
        _print(args, until_end(_journal(args, error)))
    return int(Exit.OK)


def _journal(args: argparse.Namespace, why: CommandError) -> Iterable[dict[str, Any]]:
    found = False
    try:
        for line in lines(level=args.level, device=args.device, follow=args.follow):
            found = True
            yield line
    except JournalMissingError:
        raise why from None
    if not found:
        raise why


def _print(args: argparse.Namespace, lines: Iterable[dict[str, Any]]) -> None:
    try:
        for line in lines:
            if args.json:
                say_json(line)
            else:
                device = f"  [{line['device']}]" if line.get("device") else ""
                say(printable(f"{line.get('time')}  {str(line.get('level')).upper():<7}{device}  {line.get('text')}"))
    except BrokenPipeError:
        drop_output()
