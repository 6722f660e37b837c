"""Lines of the driver station protocols."""

from typing import Any

import msgspec

from aoabridge.codecs import frc_ds
from aoabridge.codecs.line_codecs.base import Decoded, LineCodec, Options, expect_packet

__all__ = ["open_lines"]


def open_lines(protocol: str, options: Options) -> LineCodec:
    """The codec of one of the nine protocols."""

    name = frc_ds.packet_name(protocol)

    def decode(data: bytes) -> Decoded:
        packet = frc_ds.decode(protocol, data, strict=options.strict)
        faults = [msgspec.to_builtins(fault) for fault in packet.faults]
        fields = frc_ds.to_fields(packet, text=options.text)
        return Decoded(name, fields, {"faults": faults} if faults else {})

    def encode(packet: str | None, fields: Any) -> bytes:
        expect_packet(packet, name)
        return frc_ds.encode(protocol, frc_ds.from_fields(protocol, fields))

    return LineCodec(decode, encode)
