"""Schemas from a file, as the commands ``decode struct`` and ``encode struct`` read them."""

import re
from typing import Any

import msgspec

from aoabridge.codecs.wpistruct.compiler import Buffer, StructCodec
from aoabridge.codecs.wpistruct.limits import DEFAULT_LIMITS, Limits
from aoabridge.codecs.wpistruct.names import STRUCT_PREFIX
from aoabridge.codecs.wpistruct.registry import SchemaRegistry
from aoabridge.errors import SchemaError

__all__ = ["StructForm", "read_schema_file", "struct_form"]

_INLINE = re.compile(r"[ \t\r\n]*struct[ \t\r\n][^:;{]*\{")
_PREFIX = re.compile(r"^struct:(?=[^ \t])")  # as in struct:Pose2d; a type called struct has a blank after its colon
_BLANKS = " \t\r"  # other characters that Unicode calls blank may be part of a name


class StructForm(msgspec.Struct, frozen=True):
    """How the hex of one ``--type`` is read and written; ``packet`` is that type, with ``[]`` for an array."""

    packet: str
    codec: StructCodec
    is_array: bool

    def decode(self, data: Buffer) -> Any:
        """Return the fields: a dict, or a list of dicts for an array; DecodeError."""
        return self.codec.decode_array(data) if self.is_array else self.codec.decode(data)

    def encode(self, fields: Any) -> bytes:
        """Return the bytes of what ``decode`` returned; null is NaN, as JSON writes it. EncodeError."""
        if self.is_array:
            return self.codec.encode_array(fields, null_is_nan=True)
        return self.codec.encode(fields, null_is_nan=True)


def read_schema_file(text: str, limits: Limits = DEFAULT_LIMITS) -> SchemaRegistry:
    """Read one inline text, or lines ``Name: schema text`` in any order; empty lines mean nothing.

    Raises SchemaError, which for the line form names the line; its position counts from the start of the schema text.
    """
    registry = SchemaRegistry(limits)
    if _INLINE.match(text):
        registry.add_inline(text)
        return registry
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip(_BLANKS)
        if not line:
            continue
        name, colon, schema = _PREFIX.sub("", line).partition(":")
        if not colon:
            raise SchemaError(f"line {number}: expected 'Name: schema text'", "syntax")
        try:
            registry.add(name.strip(_BLANKS), schema)
        except SchemaError as error:
            raise SchemaError(f"line {number}: {error}", error.code, error.type_name, error.position) from None
    return registry


def struct_form(registry: SchemaRegistry, type_name: str, *, enum_names: bool = False) -> StructForm:
    """Return the form of ``Name``, ``Name[]``, or either with a leading ``struct:``; SchemaError ``unresolved``."""
    packet = type_name.removeprefix(STRUCT_PREFIX)
    codec = registry.codec(packet.removesuffix("[]"), enum_names=enum_names)
    return StructForm(packet, codec, packet.endswith("[]"))
