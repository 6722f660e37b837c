"""``aoabridge simulate``: plays the far ends, on this machine unless told otherwise twice."""

import argparse
import importlib
import ipaddress
from collections.abc import Callable
from typing import Any

from aoabridge.cli.client import connect
from aoabridge.cli.exits import CommandError, Exit
from aoabridge.cli.numbers import number, whole
from aoabridge.cli.output import printable, say, say_json, warn
from aoabridge.codecs.host_port import host_of

__all__ = ["add_parser", "is_loopback", "run"]

_TELEOP_FAULTS = "drop=0.05,dup=0.05,corrupt=0.01,short=0.01,old64=0.01,stall@3:2,takeover@5,fault@8"
_DATAGRAM_FAULTS = "loss dup reorder truncate zero-tag overrun unknown-tag bad-text bad-level station-6"
_FRC_FAULTS = f"all {_DATAGRAM_FAULTS} split merge half-close slow"


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command and one sub-command per kind."""
    parser = subparsers.add_parser(
        "simulate",
        help="play a phone, a robot or one of the UDP programs",
        description="Far ends for the bench. They talk to this machine; another target needs --force.",
    )
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", title="kinds", required=True)
    for add in (_phone, _robot, _fms, _ds, _j519, _teleop):
        add(kinds)


def run(args: argparse.Namespace) -> int:
    """0; 1 if nothing came back; 2 for ``phone`` without daemon; 64 for a far target without ``--force``."""
    for target in (args.to, getattr(args, "fms", None), getattr(args, "bind", None), *getattr(args, "copy", [])):
        _check_target(target, args.force)
    show = say_json if args.json else _say
    if args.kind == "phone":
        with connect(args.socket) as daemon:
            args.link = daemon.link("simulate-phone", name=args.name)
            return _play(args, show)
    return _play(args, show)


def _play(args: argparse.Namespace, show: Callable[[dict[str, Any]], None]) -> int:
    try:
        return int(importlib.import_module("aoabridge.daemon.simulate").run_simulation(args, show))
    except ValueError as error:  # a fault or station that does not exist
        raise CommandError(str(error), Exit.USAGE, f"aoabridge simulate {args.kind} --help") from None
    except PermissionError as error:
        raise CommandError(f"port refused: {error.strerror}", Exit.PERMISSION, "choose a port above 1023") from None
    except OSError as error:
        raise CommandError(f"port or address: {error.strerror}", Exit.NEGATIVE, "end the other program") from None


def _say(event: dict[str, Any]) -> None:
    """One line per event: its figures by name."""
    shown = (f"{key} {value}" for key, value in event.items() if key not in ("type", "seconds") and value is not None)
    mark = "end" if event["type"] == "summary" else f"{event['seconds']:6.1f} s"
    say(printable(f"{mark}  {'  '.join(shown)}"))


def _check_target(target: str | None, force: bool) -> None:
    if target is None or is_loopback(target):
        return
    if not force:
        raise CommandError(
            f"{target} is another machine: on a field only the official driver station may talk",
            Exit.USAGE,
            "add --force if this is your own bench",
        )
    warn(f"talking to {target}: never do this on a field")


def is_loopback(target: str) -> bool:
    """True if ``host``, ``host:port``, ``[v6]:port`` or ``protocol@host:port`` is this machine."""
    host = host_of(target.rpartition("@")[2])
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _kind(kinds: Any, name: str, text: str, *, faults: str, rate: float | None = None) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = kinds.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.add_argument("--to", metavar="HOST[:PORT]", help="target (this machine)")
    parser.add_argument("--rate", type=number(0.1, 1000), default=rate, metavar="HZ", help="sends per second")
    parser.add_argument("--seconds", type=number(0.1, 604_800), metavar="N", help="end after N seconds")
    parser.add_argument("--faults", default="", metavar="LIST", help=f"faults to play, of: {faults}")
    parser.add_argument("--seed", type=int, metavar="N", help="make a run repeatable")
    parser.add_argument("--force", action="store_true", help="allow a target that is not this machine")
    return parser


def _phone(kinds: Any) -> None:
    faults = "silent,no-read,garbage,restart@S,unplug@S"
    parser = _kind(kinds, "phone", "a phone with the known app, plugged into a running daemon", faults=faults)
    parser.add_argument("--name", default="simulated", metavar="NAME", help="name of the phone")
    parser.add_argument("--hello", action="store_true", help="an app that says hello and answers pings")
    parser.add_argument("--subscribe", action="append", default=[], metavar="KEY", help="further subscription")


def _robot(kinds: Any) -> None:
    parser = _kind(kinds, "robot", "an NT4 server with struct topics and a plan receiver", faults="restart@S", rate=50)
    parser.add_argument("--port", type=whole(0, 65535), default=5810, metavar="PORT", help="port to listen on (5810)")
    parser.add_argument("--topics", type=whole(1, 5000), default=300, metavar="N", help="number of topics (300)")


def _frc(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--udp-port", type=whole(1, 65535), metavar="PORT", help="own UDP port")
    parser.add_argument("--tcp-port", type=whole(1, 65535), metavar="PORT", help="TCP port of the field")
    parser.add_argument(
        "--copy", action="append", default=[], metavar="PROTO@HOST:PORT", help="copy of everything sent, to a listener"
    )


def _fms(kinds: Any) -> None:
    parser = _kind(kinds, "fms", "a field that runs one match", faults=_FRC_FAULTS)
    _frc(parser)
    parser.add_argument("--team", action="append", default=[], metavar="STATION=N", help="e.g. red1=1503, up to six")
    parser.add_argument("--level", default="practice", metavar="LEVEL", help="tournament level")
    parser.add_argument("--match", type=whole(0, 65535), default=1, metavar="N", help="match number")
    parser.add_argument("--play", type=whole(0, 255), default=1, metavar="N", help="play number")
    parser.add_argument("--event", default="", metavar="NAME", help="event name")
    parser.add_argument("--game-data", default="", metavar="TEXT", help="game specific message")
    parser.add_argument(
        "--game-data-at", type=number(0, 3600), metavar="S", help="when it is sent, seconds of the match"
    )
    parser.add_argument("--lite", action="store_true", help="the light field system: port 1120 and its flag")
    for name, default in (("auto", 20.0), ("pause", 3.0), ("teleop", 140.0), ("pre", 5.0), ("post", 5.0)):
        text = f"length of the period in seconds ({default:g})"
        parser.add_argument(f"--{name}", type=number(0, 3600), default=default, metavar="S", help=text)
    parser.add_argument("--speed", type=number(0.1, 1000), default=1.0, metavar="X", help="run the clock faster")
    parser.add_argument("--estop", action="append", default=[], metavar="ST@S", help="e-stop a station at second S")
    parser.add_argument("--astop", action="append", default=[], metavar="ST@S", help="a-stop a station at second S")
    parser.add_argument("--month-base", type=int, choices=(0, 1), default=0, help="first month of a year on the wire")
    parser.add_argument("--challenge", default="", metavar="TEXT", help="challenge text of the handshake")
    parser.add_argument("--versions", action="store_true", help="ask the driver stations for their versions")


def _ds(kinds: Any) -> None:
    parser = _kind(kinds, "ds", "a driver station, with --robot the robot too", faults=_FRC_FAULTS)
    _frc(parser)
    parser.add_argument("--team", type=whole(1, 25_599), default=1503, metavar="N", help="team number (1503)")
    parser.add_argument("--generation", choices=("ni", "2027"), default="ni", help="which program to play")
    parser.add_argument("--fms", default="127.0.0.1", metavar="HOST", help="the field (this machine)")
    parser.add_argument("--loss", type=number(0, 1), default=0.0, metavar="P", help="share of packets lost")
    parser.add_argument("--battery", type=number(0, 20), default=12.5, metavar="V", help="battery voltage (12.5)")
    parser.add_argument("--robot", action="store_true", help="play driver station and robot to each other")


def _j519(kinds: Any) -> None:
    faults = "drop=0.01,dup=0.01,reorder=0.01,jitter=2ms,estop@5,restart@8"
    parser = _kind(kinds, "j519", "a robot arm that speaks Stream Motion", faults=faults)
    parser.add_argument("--bind", default="127.0.0.1:60015", metavar="HOST:PORT", help="where to listen")
    parser.add_argument("--cycle-ms", type=int, choices=(8, 4, 2), default=8, help="cycle (8)")
    parser.add_argument("--axes", type=whole(1, 9), default=6, metavar="N", help="number of axes (6)")
    parser.add_argument("--generation", choices=("classic", "driver"), default="classic", help="packet generation")
    parser.add_argument("--version", type=whole(0, 0xFFFF), default=1, metavar="N", help="protocol version (1)")
    parser.add_argument("--byte-order", choices=("big", "little"), default="big", help="byte order (big)")
    parser.add_argument("--ready-after", type=number(0, 3600), default=1.0, metavar="S", help="when it becomes ready")
    parser.add_argument("--motion", choices=("none", "sine"), default="none", help="move by itself")


def _teleop(kinds: Any) -> None:
    parser = _kind(kinds, "teleop", "remotely driven vehicles and their cockpit", faults=_TELEOP_FAULTS, rate=50)
    parser.add_argument("--vehicles", default="00A,00B", metavar="IDS", help="ids in hex (00A,00B)")
    parser.add_argument("--role", choices=("vehicle", "cockpit", "both"), default="vehicle", help="what to play")
    parser.add_argument("--script", default="", metavar="KEYS", help="keys of the cockpit and when, e.g. r@2,n@8")
    for name, port, text in (("ctrl", 10015, "state"), ("trigger", 10013, "keys")):
        help_text = (
            f"where the cockpit's {text} go ({port})" if name == "trigger" else f"where its {text} goes ({port})"
        )
        parser.add_argument(f"--{name}-port", type=whole(1, 65535), default=port, metavar="PORT", help=help_text)
