"""What ``decode`` and ``encode`` share: their options, their input, and how an error becomes a line."""

import argparse
import difflib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import orjson

from aoabridge.cli.exits import CommandError, Exit
from aoabridge.codecs.line_codecs import LineCodec, Options
from aoabridge.codecs.protocols import PROTOCOLS, open_protocol
from aoabridge.errors import DecodeError, SchemaError

__all__ = [
    "add_common",
    "error_line",
    "input_lines",
    "line_codec",
    "open_input",
    "options_of",
    "print_line",
    "show",
    "show_decoded",
]


def add_common(parser: argparse.ArgumentParser, byte_orders: tuple[str, ...]) -> None:
    """Add what both commands take."""
    parser.add_argument("proto", metavar="PROTO", help=f"protocol: {', '.join(PROTOCOLS)}")
    parser.add_argument("file", metavar="FILE", nargs="?", default="-", help="input, - = standard input")
    parser.add_argument("--byte-order", choices=byte_orders, default="big", help="of J519 packets (default: big)")
    parser.add_argument("--schema", metavar="FILE", help="struct: an inline schema, or lines 'Name: schema text'")
    parser.add_argument("--type", metavar="NAME", help="struct: the type, NAME[] for an array")
    parser.add_argument("--strict", action="store_true", help="driver station: the first fault fails the line")
    parser.add_argument("--text", choices=("exact", "replace"), default="exact", help="driver station: bad UTF-8")


def options_of(args: argparse.Namespace, kinds: tuple[str, ...] | None = None) -> Options:
    """The options of the codec; CommandError for an unknown protocol or an option that is not of this protocol."""
    if args.proto not in PROTOCOLS:
        near = difflib.get_close_matches(args.proto, PROTOCOLS, n=1, cutoff=0.4)
        hint = f'did you mean "{near[0]}"?' if near else f"one of {', '.join(PROTOCOLS)}"
        raise CommandError(f"there is no protocol {args.proto!r}", Exit.USAGE, hint)
    if args.byte_order != "big" and not args.proto.startswith("j519-"):
        raise CommandError("--byte-order belongs to j519-to-robot and j519-from-robot", Exit.USAGE)
    if kinds is not None and args.proto != "teleop":
        raise CommandError("--kinds belongs to teleop", Exit.USAGE)
    if args.proto != "struct":
        if args.schema is not None or args.type is not None:
            raise CommandError("--schema and --type belong to struct", Exit.USAGE)
        return Options(strict=args.strict, text=args.text, byte_order=args.byte_order, kinds=kinds)
    if args.schema is None or args.type is None:
        raise CommandError("struct needs --schema FILE and --type NAME", Exit.USAGE)
    with open_input(args.schema) as stream:
        try:
            return Options(schema=stream.read().decode(), type_name=args.type)
        except UnicodeDecodeError as error:
            raise CommandError(f"{args.schema}: not UTF-8: {error}", Exit.NO_INPUT) from None


def line_codec(args: argparse.Namespace, options: Options, port: int | None = None) -> LineCodec:
    """The codec; CommandError for a schema that cannot be used."""
    try:
        return open_protocol(args.proto, options, port)
    except SchemaError as error:
        raise CommandError(f"{args.schema}: {error} ({error.code})", Exit.NO_INPUT) from None


def open_input(name: str) -> BinaryIO:
    """Open a file, or standard input for ``-``; CommandError if it cannot be read."""
    if name == "-":
        return sys.stdin.buffer
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}", Exit.NO_INPUT) from None


def input_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines without their ends, as soon as each is complete."""
    while line := stream.readline():
        yield line.removesuffix(b"\n").removesuffix(b"\r")


def error_line(protocol: str, error: Exception) -> dict[str, Any]:
    """The line that stands for one that failed: ``offset`` of a DecodeError, ``field`` of an EncodeError."""
    place = "offset" if isinstance(error, DecodeError) else "field"
    said = {"type": type(error).__name__, "message": str(error), place: getattr(error, place, None)}
    return {"protocol": protocol, "error": said}


def show(value: dict[str, Any]) -> None:
    """Print one JSON line; numbers that are not finite become null."""
    try:
        text = orjson.dumps(value).decode()
    except TypeError:  # a lone surrogate, out of an error message that quotes its input
        text = orjson.dumps(_printable(value)).decode()
    print_line(text)


def show_decoded(
    protocol: str, codec: LineCodec, octets: bytes, beside: Mapping[str, Any] = MappingProxyType({})
) -> bool:
    """Print what the octets mean, or the error; True if they are good. ``beside``: further keys of the line."""
    try:
        decoded = codec.decode(octets)
    except DecodeError as error:
        show({**error_line(protocol, error), **beside})
        return False
    show({"protocol": protocol, "packet": decoded.packet, "fields": decoded.fields, **decoded.beside, **beside})
    return True


def print_line(text: str) -> None:
    """Print a line and deliver it at once."""
    print(text, flush=True)


def _printable(value: Any) -> Any:
    if isinstance(value, dict):
        return {_printable(key): _printable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_printable(item) for item in value]
    return value.encode(errors="replace").decode() if isinstance(value, str) else value
