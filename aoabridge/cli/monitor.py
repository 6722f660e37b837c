"""``aoabridge monitor``: the messages of one phone, or the values of one topic, as they pass."""

import argparse
import json
import time
from collections import Counter
from typing import Any

from aoabridge.cli.client import connect
from aoabridge.cli.exits import CommandError, Exit
from aoabridge.cli.output import drop_output, printable, say, say_json, warn

__all__ = ["add_parser", "run"]


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "monitor",
        help="show the messages of a phone or the values of a topic",
        description="One line per message. A topic begins with a slash, everything else is a phone's name.",
    )
    parser.add_argument("target", metavar="DEVICE|TOPIC", help="a phone's name, or a topic")
    parser.add_argument("--hex", action="store_true", help="raw chunks instead of lines")
    parser.add_argument("--rate", action="store_true", help="one line per second with the rates")
    parser.add_argument("--count", type=_positive, metavar="N", help="end after N messages")
    parser.add_argument("--timeout", type=_seconds, metavar="S", help="end with exit 1 if nothing comes for S seconds")


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value <= 86_400:
        raise ValueError(text)
    return value


def run(args: argparse.Namespace) -> int:
    """0; 1 if nothing came within the timeout; 2 without daemon."""
    seen = dropped = 0
    rates = _Rates()
    kind = "topic" if args.target.startswith("/") else "device"
    with connect(args.socket) as daemon:
        events = daemon.stream("monitor", idle_s=args.timeout, **{kind: args.target}, hex=args.hex)
        try:
            for event in events:
                if "dropped" in event:
                    dropped += int(event["dropped"])
                    continue
                seen += 1
                if args.rate:
                    rates.count(event, args.json)
                else:
                    _show(event, args.json)
                if args.count is not None and seen >= args.count:
                    break
        except TimeoutError:
            if not seen:
                raise CommandError(
                    f"nothing from {args.target} within {args.timeout:g} s", Exit.NEGATIVE, "aoabridge status"
                ) from None
        except KeyboardInterrupt:
            pass
        except BrokenPipeError:
            drop_output()
    if dropped and not args.quiet:
        warn(f"{seen} shown, {dropped} left out: more than a terminal can take")
    return int(Exit.OK)


def _show(event: dict[str, Any], as_json: bool) -> None:
    if as_json:
        say_json(event)
        return
    when = f"{event.get('time') or 0:.3f}"
    if "topic" in event:
        say(
            f"{when}  {printable(str(event['topic']))}  {printable(json.dumps(event.get('value'), ensure_ascii=False))}"
        )
        return
    text = event.get("line", event.get("hex", ""))
    say(f"{when}  {printable(str(event.get('device')))}  {event.get('dir')}  {printable(str(text))}")


class _Rates:
    """Messages per second by direction or topic, said once per second."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._since = time.monotonic()

    def count(self, event: dict[str, Any], as_json: bool) -> None:
        """Take one message; says the rates of the second that has passed."""
        self._counts[str(event.get("dir") or event.get("topic"))] += 1
        passed = time.monotonic() - self._since
        if passed < 1:
            return
        rates = {name: round(count / passed, 1) for name, count in sorted(self._counts.items())}
        if as_json:
            say_json({"time": event.get("time"), "hz": rates})
        else:
            say("  ".join(f"{printable(name)} {rate:g}/s" for name, rate in rates.items()))
        self._counts.clear()
        self._since += passed
