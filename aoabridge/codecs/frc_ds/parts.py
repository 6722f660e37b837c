"""Fields of a payload of variable size: how each is read, written and shown; and the annotations that ask for them."""

import struct
from collections.abc import Callable, Mapping
from enum import IntEnum
from functools import partial
from typing import Any, Protocol, cast, get_args

import msgspec

from aoabridge.codecs.fields import Field, from_json, problem_of, to_json
from aoabridge.codecs.frc_ds.values import (
    TextValue,
    hex_octets,
    text_from_json,
    text_octets,
    text_of,
    text_to_json,
)
from aoabridge.codecs.packets import Packet, PacketCodec
from aoabridge.codecs.wire import expect_int, member_or_int
from aoabridge.errors import EncodeError, TruncatedError

__all__ = ["Codec", "Counted", "Part", "Rest", "Text", "part_of"]


class Text(msgspec.Struct, frozen=True):
    """Annotation: UTF-8 behind a length of this code, ``""`` = to the end."""

    prefix: str = ""


class Counted(msgspec.Struct, frozen=True):
    """Annotation: a count of code ``prefix``, then that many numbers of code ``element`` (or packets, if empty)."""

    prefix: str
    element: str = ""


class Rest(msgspec.Struct, frozen=True):
    """Annotation: all octets that are left, JSON key ``raw_hex``."""


class Codec(Protocol):
    """Codec of one payload class. ``path`` is the prefix of every field name in an EncodeError."""

    def decode(self, data: bytes, /) -> Any:
        """The payload; DecodeError unless ``data`` is exactly one."""
        ...

    def read(self, data: bytes, at: int) -> tuple[Any, int]:
        """One payload at ``at`` and where it ends."""
        ...

    def write(self, packet: Any, path: str = "") -> bytes:
        """The octets; EncodeError for what does not fit."""
        ...

    def to_fields(self, packet: Any) -> dict[str, Any]:
        """JSON form."""
        ...

    def from_fields(self, fields: Any, path: str = "") -> Any:
        """Inverse of ``to_fields``."""
        ...


def _short(data: bytes, needed: int) -> TruncatedError:
    return TruncatedError(f"{len(data)} of {needed} bytes", needed=needed, got=len(data), offset=len(data))


class Part(Protocol):
    """One field: its place in the payload and its JSON form."""

    key: str

    def read(self, data: bytes, at: int) -> tuple[Any, int]:
        """The value at ``at`` and where it ends; TruncatedError if it is not all there."""
        ...

    def write(self, value: Any, path: str) -> bytes:
        """The octets of a value; EncodeError if it does not fit."""
        ...

    def to_json(self, value: Any) -> object:
        """JSON form of a value."""
        ...

    def from_json(self, fields: Mapping[str, Any], path: str) -> Any:
        """The value under ``key``; EncodeError if it is missing or no JSON form."""
        ...


def _converter(kind: Any) -> Callable[[int], Any] | None:
    if kind is int:
        return None
    return partial(member_or_int, kind) if issubclass(kind, IntEnum) else kind


class _FieldPart:
    """A field of fixed size, as ``codecs.packets`` knows it."""

    def __init__(self, field: Field) -> None:
        self._field = field
        self._layout = struct.Struct(">" + field.wire.format)
        self._convert = _converter(field.kind)
        self.key = field.key

    def read(self, data: bytes, at: int) -> tuple[Any, int]:
        end = at + self._layout.size
        if end > len(data):
            raise _short(data, end)
        (value,) = self._layout.unpack_from(data, at)
        return value if self._convert is None else self._convert(value), end

    def write(self, value: Any, path: str) -> bytes:
        problem = problem_of(self._field, value, path)
        if problem is not None:
            raise problem
        return self._layout.pack(value)

    def to_json(self, value: Any) -> object:
        return to_json(self._field, value)

    def from_json(self, fields: Mapping[str, Any], path: str) -> Any:
        return from_json(self._field, fields, path)


class _VariablePart:
    """What parts with a prefix have in common."""

    def __init__(self, key: str, prefix: str) -> None:
        self.key = key
        self._prefix = struct.Struct(">" + prefix)
        self._limit = 256**self._prefix.size - 1 if prefix else 1 << 32

    def _count(self, data: bytes, at: int) -> tuple[int, int]:
        end = at + self._prefix.size
        if end > len(data):
            raise _short(data, end)
        return (self._prefix.unpack_from(data, at)[0] if self._prefix.size else len(data) - at), end

    def _counted(self, count: int, path: str) -> bytes:
        if count > self._limit:
            raise EncodeError(f"{path}: {count} do not fit a count up to {self._limit}", path)
        return self._prefix.pack(count) if self._prefix.size else b""

    def _value(self, fields: Mapping[str, Any], path: str) -> Any:
        if self.key not in fields:
            raise EncodeError(f"{path}{self.key}: missing", path + self.key)
        return fields[self.key]


class _TextPart(_VariablePart):
    def read(self, data: bytes, at: int) -> tuple[TextValue, int]:
        count, at = self._count(data, at)
        if at + count > len(data):
            raise _short(data, at + count)
        return text_of(data[at : at + count]), at + count

    def write(self, value: TextValue, path: str) -> bytes:
        octets = text_octets(value, path)
        return self._counted(len(octets), path) + octets

    def to_json(self, value: TextValue) -> object:
        return text_to_json(value)

    def from_json(self, fields: Mapping[str, Any], path: str) -> TextValue:
        return text_from_json(self._value(fields, path), path + self.key)


class _RestPart(_VariablePart):
    def __init__(self) -> None:
        super().__init__("raw_hex", "")

    def read(self, data: bytes, at: int) -> tuple[bytes, int]:
        return data[at:], len(data)

    def write(self, value: bytes, path: str) -> bytes:
        if not isinstance(value, bytes):
            raise EncodeError(f"{path}: bytes expected, got {value!r:.40}", path)
        return value

    def to_json(self, value: bytes) -> object:
        return value.hex()

    def from_json(self, fields: Mapping[str, Any], path: str) -> bytes:
        return hex_octets(self._value(fields, path), path + self.key)


class _NumbersPart(_VariablePart):
    def __init__(self, key: str, counted: Counted) -> None:
        super().__init__(key, counted.prefix)
        self._code = counted.element
        self._size = struct.calcsize(">" + counted.element)

    def read(self, data: bytes, at: int) -> tuple[tuple[int, ...], int]:
        count, at = self._count(data, at)
        end = at + count * self._size
        if end > len(data):
            raise _short(data, end)
        return struct.unpack_from(f">{count}{self._code}", data, at), end

    def write(self, value: tuple[int, ...], path: str) -> bytes:
        prefix = self._counted(len(value), path)
        try:
            return prefix + struct.pack(f">{len(value)}{self._code}", *value)
        except struct.error:
            self._refuse(value, path)
            raise

    def _refuse(self, value: tuple[int, ...], path: str) -> None:
        for index, number in enumerate(value):
            try:
                struct.pack(">" + self._code, number)
            except struct.error as error:
                raise EncodeError(f"{path}[{index}]: {number!r:.40}: {error}", f"{path}[{index}]") from None

    def to_json(self, value: tuple[int, ...]) -> object:
        return list(value)

    def from_json(self, fields: Mapping[str, Any], path: str) -> tuple[int, ...]:
        value, name = self._value(fields, path), path + self.key
        if not isinstance(value, list | tuple):
            raise EncodeError(f"{name}: list expected, got {value!r:.40}", name)
        return tuple(expect_int(number, f"{name}[{index}]") for index, number in enumerate(value))


class _PacketsPart(_VariablePart):
    def __init__(self, key: str, counted: Counted, codec: Codec) -> None:
        super().__init__(key, counted.prefix)
        self._codec = codec

    def read(self, data: bytes, at: int) -> tuple[tuple[Any, ...], int]:
        count, at = self._count(data, at)
        packets = []
        for _ in range(count):  # a lying count fails at the first element that is not there
            packet, at = self._codec.read(data, at)
            packets.append(packet)
        return tuple(packets), at

    def write(self, value: tuple[Any, ...], path: str) -> bytes:
        prefix = self._counted(len(value), path)
        return prefix + b"".join(self._codec.write(packet, f"{path}[{index}].") for index, packet in enumerate(value))

    def to_json(self, value: tuple[Any, ...]) -> object:
        return [self._codec.to_fields(packet) for packet in value]

    def from_json(self, fields: Mapping[str, Any], path: str) -> tuple[Any, ...]:
        value, name = self._value(fields, path), path + self.key
        if not isinstance(value, list | tuple):
            raise EncodeError(f"{name}: list expected, got {value!r:.40}", name)
        return tuple(self._codec.from_fields(item, f"{name}[{index}].") for index, item in enumerate(value))


def part_of(name: str, hint: Any, compile_codec: Callable[[Any], Codec]) -> Part | None:
    """The part that an annotated field asks for, None for a field without wire form."""
    extras = getattr(hint, "__metadata__", ())
    for extra in extras:
        if isinstance(extra, Text):
            return _TextPart(name, extra.prefix)
        if isinstance(extra, Rest):
            return _RestPart()
        if isinstance(extra, Counted):
            if extra.element:
                return _NumbersPart(name, extra)
            return _PacketsPart(name, extra, compile_codec(get_args(get_args(hint)[0])[0]))
    return _FieldPart(_scalar(name, hint)) if extras else None


def _scalar(name: str, hint: Any) -> Field:
    """Compile one fixed field by way of a packet class that has nothing else."""
    single = msgspec.defstruct("Scalar", [(name, hint)], bases=(Packet,), frozen=True)
    return PacketCodec(cast(type[Packet], single)).fields[0]
