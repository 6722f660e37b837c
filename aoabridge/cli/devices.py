"""``aoabridge devices``: the phones, and what is plugged in but not taken."""

import argparse
from typing import Any

from aoabridge.cli.client import connect
from aoabridge.cli.exits import Exit
from aoabridge.cli.output import printable, say, say_json, table
from aoabridge.status.terminal import age_text

__all__ = ["add_parser", "run"]

_HEAD = ("NAME", "PORT", "SERIAL", "STATE", "APP", "RX/S", "TX/S", "LAST LINE")


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    subparsers.add_parser(
        "devices",
        help="list the phones, and USB devices that are not taken and why",
        description="Phones with their state and rates; below, USB devices that are not taken, with the reason.",
    )


def run(args: argparse.Namespace) -> int:
    """0, or 2 without daemon."""
    with connect(args.socket) as daemon:
        found = daemon.request("devices")
    if args.json:
        say_json(found)
        return int(Exit.OK)
    rows = [_row(device) for device in found.get("devices", ())]
    say("\n".join(table([_HEAD, *rows])) if rows else "no phone")
    ignored = found.get("ignored", ())
    if ignored and not args.quiet:
        say("")
        say("\n".join(table([("NOT TAKEN", "ID", "REASON"), *(_ignored(device) for device in ignored)])))
    return int(Exit.OK)


def _row(device: dict[str, Any]) -> tuple[str, ...]:
    app = " ".join(str(part) for part in (device.get("app"), device.get("app_version")) if part)
    age = device.get("last_line_age_s")
    return (
        *(printable(str(device.get(key) or "-")) for key in ("name", "port", "serial", "state")),
        printable(app) or "-",
        f"{device.get('rx_hz') or 0:.0f}",
        f"{device.get('tx_hz') or 0:.0f}",
        "never" if age is None else age_text(age),
    )


def _ignored(device: dict[str, Any]) -> tuple[str, ...]:
    return tuple(printable(str(device.get(key) or "-")) for key in ("port", "id", "reason"))
