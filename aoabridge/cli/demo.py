"""``aoabridge demo``: robot, bridge and phone in one place, without any of the three."""

import argparse
import importlib
from typing import Any

from aoabridge.cli.numbers import number, whole
from aoabridge.cli.output import human_terminal
from aoabridge.config import DemoOptions

__all__ = ["add_parser", "run"]


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "demo",
        help="show the bridge at work, without phone, robot or root",
        description="A simulated robot and a simulated phone, joined by the real bridge. Writes no file.",
    )
    parser.add_argument("--seconds", type=number(0.5, 86_400), metavar="N", help="end after N seconds")
    parser.add_argument("--phones", type=whole(1, 8), default=1, metavar="N", help="simulated phones (1)")
    parser.add_argument("--topics", type=whole(1, 5000), default=300, metavar="N", help="topics of the robot (300)")
    parser.add_argument("--rate", type=number(0.1, 1000), default=50.0, metavar="HZ", help="updates per topic (50)")
    parser.add_argument("--web", type=whole(0, 65535), metavar="PORT", help="port of the status page (any free one)")


def run(args: argparse.Namespace) -> int:
    """0 if data flowed both ways without error, else 1."""
    options = DemoOptions(
        seconds=args.seconds,
        phones=args.phones,
        topics=args.topics,
        rate_hz=args.rate,
        web=args.web,
        json=args.json,
        live=human_terminal() and not args.json and not args.quiet,
        verbose=args.verbose,
    )
    return int(importlib.import_module("aoabridge.daemon.demo").run_demo(options))
