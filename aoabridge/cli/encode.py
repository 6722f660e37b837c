"""``aoabridge encode``: JSON lines, as ``decode`` prints them, to packets in hex."""

import argparse
from typing import Any

import orjson

from aoabridge.cli.exits import Exit
from aoabridge.cli.lines import (
    add_common,
    error_line,
    input_lines,
    line_codec,
    open_input,
    options_of,
    print_line,
    show,
)
from aoabridge.codecs.line_codecs import LineCodec
from aoabridge.errors import DecodeError, EncodeError

__all__ = ["add_parser", "run"]


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "encode",
        help="JSON lines to packets in hex",
        description="JSON lines as decode prints them (packet and fields count) to one line of hex each.",
    )
    add_common(parser, ("big", "little"))


def run(args: argparse.Namespace) -> int:
    """Encode every line; 1 if any failed."""
    codec = line_codec(args, options_of(args))
    status = Exit.OK
    with open_input(args.file) as stream:
        for line in input_lines(stream):
            try:
                print_line(_encode(codec, line).hex())
            except (EncodeError, DecodeError) as error:
                show(error_line(args.proto, error))
                status = Exit.NEGATIVE
    return int(status)


def _encode(codec: LineCodec, line: bytes) -> bytes:
    try:
        read = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise EncodeError(f"the line is not JSON: {error}") from None
    if not isinstance(read, dict):
        raise EncodeError("the line is not a JSON object")
    if "fields" not in read:
        raise EncodeError("fields: missing", "fields")
    packet = read.get("packet")
    if packet is not None and not isinstance(packet, str):
        raise EncodeError(f"packet: text expected, got {packet!r:.40}", "packet")
    return codec.encode(packet, read["fields"])
