"""StructCodec: one laid-out type turned into functions for bytes and dicts.

Nothing derived from a schema is ever compiled as source: names stay dict keys.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import msgspec

from aoabridge.codecs.wpistruct.flattening import Flattener, shown
from aoabridge.codecs.wpistruct.inline import inline_text
from aoabridge.codecs.wpistruct.layout import Field, Record, flat_fields
from aoabridge.codecs.wpistruct.limits import Limits
from aoabridge.codecs.wpistruct.packing import Gather, UnusualError, gather_of
from aoabridge.codecs.wpistruct.shaping import Flat, Shape, shape_of
from aoabridge.errors import DecodeError, EncodeError, SchemaError, TruncatedError

__all__ = ["Buffer", "Encoded", "StructCodec", "compile_codec"]

Buffer: TypeAlias = bytes | bytearray | memoryview


class Encoded(msgspec.Struct, frozen=True):
    """Encoded bytes, and the paths of the char fields whose text did not fit and was cut."""

    data: bytes
    truncated: tuple[str, ...] = ()


# What the fast path of encoding meets when the value is not of its plain form.
_UNUSUAL = (UnusualError, KeyError, struct.error, OverflowError, UnicodeEncodeError)


@dataclass(frozen=True, eq=False)
class StructCodec:
    """Bytes of one struct type to nested dicts and back. Immutable; keeps its layout whatever its registry learns.

    ``size`` is in bytes; ``max_elements`` bounds one ``struct:X[]`` value so that it decodes in bounded time.
    ``decode`` turns bytes into a dict in declaration order; it raises DecodeError unless they are exactly ``size``
    (TruncatedError if less).
    """

    type_name: str
    size: int
    max_elements: int
    decode: Callable[[Buffer], dict[str, Any]] = field(repr=False)
    _record: Record = field(repr=False)
    _limits: Limits = field(repr=False)
    _shape: Shape = field(repr=False)
    _gather: Gather = field(repr=False)
    _unpack_all: Callable[[Buffer], Iterator[Flat]] = field(repr=False)
    _pack: Callable[..., bytes] = field(repr=False)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The leaves in order, with paths and places."""
        return tuple(flat_fields(self._record))

    @property
    def inline_schema(self) -> str:
        """The canonical inline text; SchemaError ``limit_inline`` if it would be too long for a phone."""
        if self._inline is None:
            message = f"inline text of more than {self._limits.inline_bytes} bytes"
            raise SchemaError(message, "limit_inline", self.type_name)
        return self._inline

    @cached_property
    def _inline(self) -> str | None:
        return inline_text(self._record, self._limits)

    def decode_array(self, data: Buffer) -> list[dict[str, Any]]:
        """Return every struct of a ``struct:X[]`` payload; DecodeError for a partial element or too many of them."""
        length = memoryview(data).nbytes
        if not self.size:
            if length:
                raise DecodeError(f"{self.type_name}[]: {length} bytes for elements of size 0", 0)
            return []
        count, rest = divmod(length, self.size)
        if rest:
            needed = length - rest + self.size
            message = f"{self.type_name}[]: {length} bytes are no multiple of {self.size}"
            raise TruncatedError(message, needed=needed, got=length, offset=length)
        if count > self.max_elements:
            raise DecodeError(f"{self.type_name}[]: {count} elements, at most {self.max_elements}")
        shape = self._shape
        return [shape(flat) for flat in self._unpack_all(data)]

    def encode(self, value: dict[str, Any], *, null_is_nan: bool = False) -> bytes:
        """Return the bytes of one struct; EncodeError with the path of the first field that does not fit.

        ``null_is_nan`` lets None stand for NaN in float and double fields. Text too long for its char field is cut.
        """
        try:
            return self._pack(*self._gather(value))
        except _UNUSUAL:
            return self._encode_carefully(value, null_is_nan=null_is_nan).data

    def encode_checked(self, value: dict[str, Any]) -> Encoded:
        """Encode as ``encode`` does, and say which char fields were cut."""
        try:
            return Encoded(self._pack(*self._gather(value)))
        except _UNUSUAL:
            return self._encode_carefully(value)

    def encode_array(self, values: Sequence[dict[str, Any]], *, null_is_nan: bool = False) -> bytes:
        """Return the payload of ``struct:X[]``; paths in errors begin with the index, as in ``[2].angle``."""
        try:
            return self._encode_plain_array(values)
        except _UNUSUAL:
            return self._encode_array_carefully(values, null_is_nan=null_is_nan).data

    def encode_array_checked(self, values: Sequence[dict[str, Any]]) -> Encoded:
        """Encode as ``encode_array`` does, and say which char fields were cut."""
        try:
            return Encoded(self._encode_plain_array(values))
        except _UNUSUAL:
            return self._encode_array_carefully(values)

    def _encode_plain_array(self, values: Sequence[dict[str, Any]]) -> bytes:
        if type(values) is not list:
            raise UnusualError
        pack, gather = self._pack, self._gather
        return b"".join([pack(*gather(value)) for value in values])

    def _encode_carefully(self, value: object, *, null_is_nan: bool = False) -> Encoded:
        flattener = Flattener(null_is_nan=null_is_nan)
        data = self._pack(*flattener.flatten(self._record, value))
        return Encoded(data, tuple(flattener.truncated))

    def _encode_array_carefully(self, values: object, *, null_is_nan: bool = False) -> Encoded:
        if not isinstance(values, list | tuple):
            raise EncodeError(f"expected an array of {self.type_name}, got {shown(values)}")
        flattener = Flattener(null_is_nan=null_is_nan)
        parts = [self._pack(*flattener.flatten(self._record, value, f"[{i}]")) for i, value in enumerate(values)]
        return Encoded(b"".join(parts), tuple(flattener.truncated))


def compile_codec(record: Record, values: int, limits: Limits, *, enum_names: bool = False) -> StructCodec:
    """Compile a laid-out type whose single value holds ``values`` leaves and dicts."""
    layout = struct.Struct("<" + record.code)
    shape = shape_of(record, enum_names=enum_names)
    return StructCodec(
        type_name=record.type_name,
        size=record.size,
        max_elements=limits.array_values // values,
        decode=_decoder(record, layout, shape),
        _record=record,
        _limits=limits,
        _shape=shape,
        _gather=gather_of(record),
        _unpack_all=layout.iter_unpack,
        _pack=layout.pack,
    )


def _decoder(record: Record, layout: struct.Struct, shape: Shape) -> Callable[[Buffer], dict[str, Any]]:
    """Build ``StructCodec.decode`` as a closure: an attribute look-up less than a method, five times in 100."""
    unpack = layout.unpack

    def decode(data: Buffer) -> dict[str, Any]:
        try:
            return shape(unpack(data))
        except struct.error:
            raise _wrong_length(record, memoryview(data).nbytes) from None

    return decode


def _wrong_length(record: Record, got: int) -> DecodeError:
    message = f"{record.type_name}: needs {record.size} bytes, got {got}"
    if got < record.size:
        return TruncatedError(message, needed=record.size, got=got, offset=got)
    return DecodeError(message, record.size)
