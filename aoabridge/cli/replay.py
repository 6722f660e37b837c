"""``aoabridge replay``: publishes a recording again, by default from a server of its own on this machine."""

import argparse
import importlib
import os
from pathlib import Path
from typing import Any

from aoabridge.cli.exits import CommandError, Exit
from aoabridge.cli.numbers import number, whole
from aoabridge.cli.output import printable, say, say_json, warn
from aoabridge.cli.simulate import is_loopback

__all__ = ["add_parser", "run"]


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "replay",
        help="publish a recording again",
        description="Serves the recorded topics on 127.0.0.1; commands to a robot are left out of other targets.",
    )
    parser.add_argument("file", metavar="FILE", help="WPILOG file")
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--server", metavar="HOST", help="publish to this server instead of being one")
    target.add_argument("--listen", type=whole(0, 65535), default=5810, metavar="PORT", help="own port (5810)")
    parser.add_argument("--speed", type=number(0.01, 1000), default=1.0, metavar="X", help="times real time (1)")
    parser.add_argument("--loop", action="store_true", help="begin again at the end")
    parser.add_argument("--topics", nargs="+", metavar="GLOB", help="only these topics")
    parser.add_argument("--force", action="store_true", help="allow a server that is not on this machine")


def run(args: argparse.Namespace) -> int:
    """0; 64 for a far server without ``--force``; 66 if the file cannot be read."""
    path = Path(args.file)
    if not (path.is_file() and os.access(path, os.R_OK)):
        raise CommandError(f"{path} cannot be read", Exit.NO_INPUT, f"ls -l {path}")
    if args.server is not None and not is_loopback(args.server):
        if not args.force:
            raise CommandError(
                f"{args.server} is another machine: old values could move a robot",
                Exit.USAGE,
                "add --force if this is your own bench",
            )
        warn(f"publishing to {args.server}: /RoboRoute and /SmartDashboard are left out unless named in --topics")
    return int(importlib.import_module("aoabridge.daemon.replay").run_replay(args, say_json if args.json else _say))


def _say(event: dict[str, Any]) -> None:
    if not event["published"] and event["type"] == "summary":
        say("nothing was published")
        return
    mark = "end" if event["type"] == "summary" else f"{event['position_s']:8.1f} s"
    say(printable(f"{mark}  {event['published']} values of {event['topics']} topics on {event['address']}"))
