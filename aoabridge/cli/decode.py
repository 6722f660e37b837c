"""``aoabridge decode``: packets in hex, or a capture, to JSON lines."""

import argparse
import re
from importlib import import_module
from typing import Any

from aoabridge.cli.exits import CommandError, Exit
from aoabridge.cli.lines import (
    add_common,
    error_line,
    input_lines,
    line_codec,
    open_input,
    options_of,
    show,
    show_decoded,
)
from aoabridge.errors import DecodeError

__all__ = ["add_parser", "run"]

KINDS = ("uplink", "downlink", "home_ctrl", "home_trigger")
HEX = re.compile(rb"(?:[0-9A-Fa-f]{2})*")


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "decode",
        help="packets in hex to JSON lines",
        description="One hex datagram (UDP) or run of frames (TCP) per line to one JSON line each.",
    )
    add_common(parser, ("big", "little", "auto"))
    parser.add_argument("--pcap", action="store_true", help="the input is a pcap or pcapng capture")
    parser.add_argument("--port", type=_port, nargs="+", action="extend", metavar="N", help="with --pcap: these ports")
    parser.add_argument("--kinds", type=_kinds, metavar="LIST", help=f"teleop: of {', '.join(KINDS)}")


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= 0xFFFF:
        raise argparse.ArgumentTypeError(f"{text!r} is no port, 1..65535")
    return int(text)


def _kinds(text: str) -> tuple[str, ...]:
    kinds = tuple(word.strip() for word in text.split(","))
    for kind in kinds:
        if kind not in KINDS:
            raise argparse.ArgumentTypeError(f"{kind!r} is none of {', '.join(KINDS)}")
    return kinds


def run(args: argparse.Namespace) -> int:
    """Decode every line or packet; 1 if any failed."""
    options = options_of(args, args.kinds)
    if args.port and not args.pcap:
        raise CommandError("--port belongs to --pcap", Exit.USAGE)
    if args.pcap:
        return int(import_module("aoabridge.cli.captures").decode_capture(args, options))
    codec = line_codec(args, options)
    status = Exit.OK
    with open_input(args.file) as stream:
        for line in input_lines(stream):
            try:
                octets = _octets(line)
            except DecodeError as error:
                show(error_line(args.proto, error))
                status = Exit.NEGATIVE
                continue
            if not show_decoded(args.proto, codec, octets):
                status = Exit.NEGATIVE
    return int(status)


def _octets(line: bytes) -> bytes:
    digits = line.replace(b" ", b"").replace(b"\t", b"")
    if not HEX.fullmatch(digits):
        raise DecodeError("the line is not pairs of hex digits")
    return bytes.fromhex(digits.decode())
