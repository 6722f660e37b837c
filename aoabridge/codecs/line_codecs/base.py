"""What every line codec looks like, and what may be chosen beside the protocol."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from aoabridge.errors import EncodeError

__all__ = ["Decoded", "LineCodec", "Options", "expect_packet"]


class Options(msgspec.Struct, frozen=True):
    """What may be chosen beside the protocol; each protocol looks at its own.

    ``strict`` and ``text`` (exact, replace): driver station; ``byte_order`` (big, little, auto): J519; ``kinds``:
    teleop, None = all; ``schema`` text and ``type_name``: struct.
    """

    strict: bool = False
    text: str = "exact"
    byte_order: Literal["big", "little", "auto"] = "big"
    kinds: tuple[str, ...] | None = None
    schema: str = ""
    type_name: str = ""


class Decoded(msgspec.Struct, frozen=True):
    """One decoded datagram: ``beside`` are keys that stand beside ``fields``."""

    packet: str
    fields: Any
    beside: dict[str, Any] = {}


class LineCodec(msgspec.Struct, frozen=True):
    """``decode(data)`` raises the DecodeError family, ``encode(packet, fields)`` EncodeError; no packet = not said."""

    decode: Callable[[bytes], Decoded]
    encode: Callable[[str | None, Any], bytes]


def expect_packet(packet: str | None, name: str) -> None:
    """EncodeError if a packet is named and it is another one."""
    if packet not in (None, name):
        raise EncodeError(f"packet: {name} expected, got {packet!r:.40}", "packet")
