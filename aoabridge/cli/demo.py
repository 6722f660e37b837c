"""``aoabridge demo``: robot, bridge and phone in one place, without any of the three."""

import argparse
import importlib
from typing import Any

from aoabridge.cli.numbers import number, whole
from aoabridge.cli.output import human_terminal, printable, say, say_json
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
    run_demo = importlib.import_module("aoabridge.daemon.demo").run_demo
    if options.live:
        with importlib.import_module("aoabridge.cli.live").DemoView() as view:
            status = int(run_demo(options, view.show))
        view.conclude()
        return status
    return int(run_demo(options, say_json if options.json else _say))


def _say(event: dict[str, Any]) -> None:
    """One line per second, and the summary."""
    if "error" in event:
        say(event["error"])
        return
    latency = event["latency_ms"]
    down, up = latency["robot_to_phone"], latency["phone_to_robot"]
    text = (
        f"{event['seconds']:6.1f} s  to phone {event['phone']['rx_lines']} lines"
        f" p50 {down['p50'] or 0:.2f} ms p99 {down['p99'] or 0:.2f} ms,"
        f" to robot {event['puts']['accepted']} puts p50 {up['p50'] or 0:.2f} ms p99 {up['p99'] or 0:.2f} ms,"
        f" errors {event['phone']['errors']}"
    )
    if event["type"] == "summary":
        text = f"{'OK' if event['ok'] else 'FAILED'} {text}, {event['topics']} topics, {event['rss_mib']} MiB"
    say(printable(text))
