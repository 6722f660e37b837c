"""Payloads of variable size: the same annotated classes as ``codecs.packets``, with counted and prefixed fields.

Beside ``Wire`` a field may be annotated ``Text("B")`` (length prefix, counting bytes; ``""`` = to the end),
``Counted("B", "h")`` (count prefix, then numbers; without a code: packets of the annotated class) or ``Rest()``
(octets to the end, ``raw_hex`` in JSON). A text is str if its bytes are UTF-8, else the bytes themselves.
"""

from collections.abc import Mapping
from typing import Any, Generic, TypeVar, get_type_hints

from aoabridge.codecs.frc_ds.parts import Codec, Counted, Rest, Text, part_of
from aoabridge.codecs.packets import Packet, PacketCodec
from aoabridge.errors import DecodeError, EncodeError

__all__ = ["PayloadCodec", "compile_codec"]

P = TypeVar("P", bound=Packet)


class _FixedCodec(Generic[P]):
    """A payload of fixed size: the packet codec itself."""

    def __init__(self, packet_class: type[P]) -> None:
        self._codec = PacketCodec(packet_class)
        self.decode = self._codec.decode
        self.to_fields = self._codec.to_fields

    def read(self, data: bytes, at: int) -> tuple[P, int]:
        return self._codec.decode_from(data, at), at + self._codec.size

    def write(self, packet: P, path: str = "") -> bytes:
        try:
            return self._codec.encode(packet)
        except EncodeError as error:
            raise EncodeError(f"{path}{error}", f"{path}{error.field}") from None

    def from_fields(self, fields: Any, path: str = "") -> P:
        return self._codec.from_fields(fields, path=path)


class PayloadCodec(Generic[P]):
    """A payload of variable size: its parts one after the other."""

    def __init__(self, packet_class: type[P]) -> None:
        self.packet_class = packet_class
        hints = get_type_hints(packet_class, include_extras=True)
        self._parts = [
            (name, part) for name, hint in hints.items() if (part := part_of(name, hint, compile_codec)) is not None
        ]
        self._keys = {part.key for _, part in self._parts} | set(packet_class.derived)

    def decode(self, data: bytes) -> P:
        """The payload; DecodeError unless ``data`` is exactly one."""
        packet, end = self.read(data, 0)
        if end != len(data):
            raise DecodeError(f"{len(data) - end} bytes behind the last field", end)
        return packet

    def read(self, data: bytes, at: int) -> tuple[P, int]:
        """One payload at ``at`` and where it ends."""
        values = []
        for _, part in self._parts:
            value, at = part.read(data, at)
            values.append(value)
        return self.packet_class(*values), at

    def write(self, packet: P, path: str = "") -> bytes:
        """The octets; EncodeError for what does not fit."""
        return b"".join([part.write(getattr(packet, name), path + part.key) for name, part in self._parts])

    def to_fields(self, packet: P) -> dict[str, Any]:
        """JSON form in wire order, then the derived keys."""
        shown = {part.key: part.to_json(getattr(packet, name)) for name, part in self._parts}
        return shown | {name: getattr(packet, name) for name in self.packet_class.derived}

    def from_fields(self, fields: Any, path: str = "") -> P:
        """Inverse of ``to_fields``; derived keys are passed over."""
        if not isinstance(fields, Mapping):
            name = path.rstrip(".")
            raise EncodeError(f"{name or 'fields'}: object expected, got {fields!r:.40}", name or None)
        for key in fields.keys() - self._keys:
            raise EncodeError(f"{path}{key}: no such field", f"{path}{key}")
        return self.packet_class(*[part.from_json(fields, path) for _, part in self._parts])


def compile_codec(packet_class: type[Packet]) -> Codec:
    """The codec of a payload class by its annotations."""
    hints = get_type_hints(packet_class, include_extras=True).values()
    extras = [extra for hint in hints for extra in getattr(hint, "__metadata__", ())]
    if any(isinstance(extra, Text | Counted | Rest) for extra in extras):
        return PayloadCodec(packet_class)
    return _FixedCodec(packet_class)
