"""Lines of Stream Motion."""

from typing import Any

from aoabridge.codecs import j519
from aoabridge.codecs.line_codecs.base import Decoded, LineCodec, Options

__all__ = ["open_lines"]


def open_lines(protocol: str, options: Options) -> LineCodec:
    """The codec of one direction in the byte order of ``options``."""

    def decode(data: bytes) -> Decoded:
        packet = j519.decode(protocol, data, byte_order=options.byte_order)
        return Decoded(j519.packet_name(packet), j519.to_fields(packet), {"suspect": True} if packet.suspect else {})

    def encode(packet: str | None, fields: Any) -> bytes:
        read = j519.from_fields(protocol, packet or "", fields)
        return j519.encode(read, byte_order=options.byte_order, allow_nonfinite=True, allow_data_style=True)

    return LineCodec(decode, encode)
