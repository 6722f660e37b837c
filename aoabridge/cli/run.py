"""``aoabridge run``: the bridge itself, in the foreground."""

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

from aoabridge.cli.exits import CommandError, Exit
from aoabridge.cli.output import printable
from aoabridge.config import Flags, RunOptions, choose, config_path, last_good_path, rendered
from aoabridge.errors import ConfigError

__all__ = ["add_parser", "run"]

MAX_SIMULATED = 8  # as many as real ones


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "run",
        help="run the bridge in the foreground",
        description="The bridge. Ends with exit 0 on SIGTERM or SIGINT; SIGHUP reads the configuration again.",
    )
    parser.add_argument("--simulate", type=int, default=0, metavar="N", help="play N phones inside the daemon")
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--team", type=int, metavar="N", help="team number, instead of the file's target")
    target.add_argument("--server", metavar="HOST", help="robot's host or address, instead of the file's target")
    parser.add_argument("--log-level", metavar="LEVEL", help="debug, info, warning or error")
    parser.add_argument("--strict", action="store_true", help="exit 78 instead of running on with a refused file")


def run(args: argparse.Namespace) -> int:
    """The daemon's exit status; 78 for a refused file with ``--strict``; 64 for a bad flag."""
    if not 0 <= args.simulate <= MAX_SIMULATED:
        raise CommandError(f"--simulate takes 0 to {MAX_SIMULATED} phones", Exit.USAGE)
    flags = Flags(args.team, args.server, args.log_level, args.simulate)
    options = RunOptions(
        path=config_path(args.config),
        last_good=last_good_path(),
        flags=flags,
        socket=None if args.socket is None else Path(args.socket),
        json=args.json,
        quiet=args.quiet,
        verbose=args.verbose,
    )
    try:
        start = choose(options.path, options.last_good, flags)
    except ConfigError as error:
        raise CommandError(f"{error.key}: {error}", Exit.USAGE, error.hint) from None
    if args.strict and start.errors:
        for fault in start.errors:
            print(printable(rendered(fault)), file=sys.stderr)
        return int(Exit.CONFIG)
    daemon = importlib.import_module("aoabridge.daemon.run")  # only now: ntcore and libusb take their time
    return int(daemon.run_daemon(options, start))
