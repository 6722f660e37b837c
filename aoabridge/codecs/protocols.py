"""Every protocol that the commands ``decode`` and ``encode`` know: one table from id to codec and to its ports.

The codecs are imported only when their protocol is opened.
"""

from importlib import import_module
from typing import Literal

import msgspec

from aoabridge.codecs.line_codecs.base import LineCodec, Options

__all__ = ["PROTOCOLS", "CaptureRule", "Protocol", "open_protocol"]

TELEOP_PORT_KINDS = {10010: ("uplink",), 10012: ("uplink",), 10013: ("home_trigger",), 10015: ("home_ctrl",)}


class CaptureRule(msgspec.Struct, frozen=True):
    """Which packets of a capture belong to a protocol: those whose port on that ``side`` is one of ``ports``."""

    transport: Literal["udp", "tcp"]
    side: Literal["src", "dst"]
    ports: tuple[int, ...]


class Protocol(msgspec.Struct, frozen=True):
    """One row: the module of ``line_codecs`` that reads it, and where it is found in captures (None: in none)."""

    module: str
    capture: CaptureRule | None


PROTOCOLS: dict[str, Protocol] = {
    "fms2ds-udp": Protocol("frc", CaptureRule("udp", "dst", (1121, 1120))),
    "fms2ds-tcp": Protocol("frc", CaptureRule("tcp", "src", (1750,))),
    "ds2fms-udp": Protocol("frc", CaptureRule("udp", "dst", (1160,))),
    "ds2fms-tcp": Protocol("frc", CaptureRule("tcp", "dst", (1750,))),
    "ds2rio-udp": Protocol("frc", CaptureRule("udp", "dst", (1110, 1115, 1164))),
    "ds2rio-tcp": Protocol("frc", CaptureRule("tcp", "dst", (1740,))),
    "rio2ds-udp": Protocol("frc", CaptureRule("udp", "dst", (1150, 1166))),
    "rio2ds-tcp": Protocol("frc", CaptureRule("tcp", "src", (1740,))),
    "ds2dash-tcp": Protocol("frc", CaptureRule("tcp", "dst", (1741,))),
    "j519-to-robot": Protocol("j519", CaptureRule("udp", "dst", (60015,))),
    "j519-from-robot": Protocol("j519", CaptureRule("udp", "src", (60015,))),
    "teleop": Protocol("teleop", CaptureRule("udp", "dst", tuple(TELEOP_PORT_KINDS))),
    "struct": Protocol("struct", None),
}


def open_protocol(protocol: str, options: Options, port: int | None = None) -> LineCodec:
    """The codec of one protocol; ``port``: of a capture, where the port tells what is expected.

    ValueError: unknown protocol. SchemaError: a schema that cannot be used.
    """
    if protocol not in PROTOCOLS:
        raise ValueError(f"unknown protocol {protocol!r}, one of {', '.join(PROTOCOLS)}")
    if protocol == "teleop" and options.kinds is None and port in TELEOP_PORT_KINDS:
        options = msgspec.structs.replace(options, kinds=TELEOP_PORT_KINDS[port])
    module = import_module(f"aoabridge.codecs.line_codecs.{PROTOCOLS[protocol].module}")
    codec: LineCodec = module.open_lines(protocol, options)
    return codec
