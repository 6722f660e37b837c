"""``aoabridge record``: starts and stops the daemon's recording."""

import argparse
from pathlib import Path
from typing import Any

from aoabridge.cli.client import connect
from aoabridge.cli.exits import Exit
from aoabridge.cli.output import printable, say, say_json

__all__ = ["add_parser", "run"]


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "record",
        help="start or stop recording to a WPILOG file",
        description="Recording happens in the daemon and never delays the relay.",
    )
    actions = parser.add_subparsers(dest="record_action", metavar="ACTION", title="actions", required=True)
    start = actions.add_parser("start", help="begin a file", description="Begin a file.")
    start.add_argument("--out", metavar="FILE", help="file to write, instead of one named by time and match")
    start.add_argument("--topics", nargs="+", metavar="GLOB", help="only these topics")
    actions.add_parser("stop", help="end the file", description="End the file.")
    actions.add_parser("status", help="show the running recording", description="File, size, duration, losses.")


def run(args: argparse.Namespace) -> int:
    """0; 2 without daemon; 73 if the file cannot be made; 77 without the right."""
    with connect(args.socket) as daemon:
        if args.record_action == "start":
            out = None if args.out is None else str(Path(args.out).absolute())
            found = daemon.request("record-start", out=out, topics=args.topics)
        else:
            found = daemon.request(f"record-{args.record_action}")
    if args.json:
        say_json(found)
    elif not args.quiet:
        say(_shown(found))
    return int(Exit.OK)


def _shown(found: dict[str, Any]) -> str:
    if not found.get("file"):
        return "no recording"
    parts = [
        "recording" if found.get("active") else "recorded",
        printable(str(found["file"])),
        f"{found['size_bytes'] / 2**20:.1f} MiB" if found.get("size_bytes") is not None else None,
        f"{found['duration_s']:.0f} s" if found.get("duration_s") is not None else None,
        f"dropped {found.get('dropped', 0)}",
    ]
    return "  ".join(part for part in parts if part)
