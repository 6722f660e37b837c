"""``aoabridge topics``: what the bridge sees on NetworkTables and publishes itself."""

import argparse
from typing import Any

from aoabridge.cli.client import connect
from aoabridge.cli.exits import Exit
from aoabridge.cli.output import printable, say, say_json, table
from aoabridge.status.terminal import age_text

__all__ = ["add_parser", "run"]

_HEAD = ("TOPIC", "TYPE", "HZ", "AGE", "SOURCE", "PHONES")


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "topics",
        help="list the topics the bridge sees",
        description="Topics with type, rate, age, origin and the phones that subscribed them.",
    )
    parser.add_argument("prefix", nargs="?", default="", metavar="PREFIX", help="only topics that begin so")


def run(args: argparse.Namespace) -> int:
    """0, or 2 without daemon."""
    with connect(args.socket) as daemon:
        found = daemon.request("topics", prefix=args.prefix)
    if args.json:
        say_json(found)
        return int(Exit.OK)
    rows = [_row(topic) for topic in found.get("topics", ())]
    say("\n".join(table([_HEAD, *rows])) if rows else "no topics")
    return int(Exit.OK)


def _row(topic: dict[str, Any]) -> tuple[str, ...]:
    age, hz = topic.get("age_s"), topic.get("hz")
    return (
        printable(str(topic.get("name"))),
        printable(str(topic.get("type"))),
        "-" if hz is None else f"{hz:.0f}",
        "-" if age is None else age_text(age) + ("  STALE" if topic.get("stale") else ""),
        printable(str(topic.get("source") or "-")),
        printable(", ".join(str(name) for name in topic.get("subscribers", ()))) or "-",
    )
