"""Lines of the remote-driving centre."""

from typing import Any

from aoabridge.codecs import teleop
from aoabridge.codecs.line_codecs.base import Decoded, LineCodec, Options

__all__ = ["open_lines"]


def open_lines(_protocol: str, options: Options) -> LineCodec:
    """The codec for the kinds of ``options``."""

    def decode(data: bytes) -> Decoded:
        packet = teleop.decode(data, options.kinds)
        return Decoded(teleop.kind_of(packet), teleop.to_fields(packet))

    def encode(packet: str | None, fields: Any) -> bytes:
        return teleop.encode(teleop.from_fields(packet or "", fields))

    return LineCodec(decode, encode)
