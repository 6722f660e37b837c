"""Lines of one struct type."""

from typing import Any

from aoabridge.codecs.line_codecs.base import Decoded, LineCodec, Options, expect_packet
from aoabridge.codecs.wpistruct.schema_file import read_schema_file, struct_form

__all__ = ["open_lines"]


def open_lines(_protocol: str, options: Options) -> LineCodec:
    """The codec of the type of ``options``; SchemaError."""

    form = struct_form(read_schema_file(options.schema), options.type_name)

    def decode(data: bytes) -> Decoded:
        return Decoded(form.packet, form.decode(data))

    def encode(packet: str | None, fields: Any) -> bytes:
        expect_packet(packet, form.packet)
        return form.encode(fields)

    return LineCodec(decode, encode)
