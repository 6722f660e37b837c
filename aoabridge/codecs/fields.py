"""One compiled field of a packet class: its place on the wire, its JSON form, and why a value does not fit it."""

import math
import struct
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Protocol

import msgspec

from aoabridge.codecs.wire import Wire, WireInt, expect_int, member_or_int
from aoabridge.errors import EncodeError

__all__ = ["REFUSED", "Field", "NestedCodec", "from_json", "octets", "padded", "problem_of", "text", "to_json"]

REFUSED = (struct.error, OverflowError, TypeError, ValueError, AttributeError)
"""What packing a value that does not fit can raise."""

_FLOAT_CODES = frozenset("fd")


class NestedCodec(Protocol):
    """What a field needs of the codec of a packet that stands in its place."""

    fields: "tuple[Field, ...]"
    format: str
    size: int

    def to_fields(self, packet: Any) -> dict[str, Any]:
        """JSON form of the packet in place."""
        ...

    def from_fields(self, fields: Mapping[str, Any], *rest: object, path: str = "") -> Any:
        """Inverse of ``to_fields``."""
        ...


class Field(msgspec.Struct, frozen=True):
    """One compiled wire field at ``offset``: ``slots`` values of ``code`` in ``size`` octets.

    ``kind`` is the plain Python type behind the annotation (int, an IntEnum, a WireInt, float, bytes, str, or the
    nested packet class); ``constant`` is the value of a ClassVar, else None; ``nested`` the codec of a packet in place.
    """

    name: str
    kind: Any
    wire: Wire
    offset: int
    size: int
    slots: int
    constant: int | None
    nested: NestedCodec | None

    @property
    def is_float(self) -> bool:
        """True for values that travel as IEEE floats."""
        return self.wire.format in _FLOAT_CODES

    @property
    def key(self) -> str:
        """Name in JSON."""
        return f"{self.name}_hex" if self.kind is bytes else self.name


def octets(value: bytes, size: int) -> bytes:
    """The octets themselves; ValueError unless there are exactly ``size``."""
    if len(value) != size:
        raise ValueError(f"{len(value)} octets instead of {size}")
    return value


def text(value: bytes) -> str:
    """Text before the padding; octets that are not UTF-8 survive as surrogates, so that encoding restores them."""
    return value.rstrip(b"\0").decode("utf-8", "surrogateescape")


def padded(value: str, size: int) -> bytes:
    """Inverse of ``text``; ValueError if it is longer than ``size`` octets."""
    return octets(value.encode("utf-8", "surrogateescape").ljust(size, b"\0"), size)


def problem_of(field: Field, value: Any, path: str, finite: bool = False) -> EncodeError | None:
    """Why this value does not fit its field, None if it does."""
    if field.constant is not None:
        return None
    if field.nested is not None:
        return _nested_problem(field.nested, field.kind, value, path, finite)
    if field.wire.format != "s" and field.wire.count:
        return _array_problem(field, value, path, field.wire.count, finite)
    return _value_problem(field, value, path, finite)


def _nested_problem(codec: NestedCodec, kind: type, value: Any, path: str, finite: bool) -> EncodeError | None:
    if not isinstance(value, kind):
        return EncodeError(f"{path}: {kind.__name__} expected, got {value!r:.40}", path)
    problems = (problem_of(f, getattr(value, f.name), f"{path}.{f.name}", finite) for f in codec.fields)
    return next((problem for problem in problems if problem is not None), None)


def _array_problem(
    field: Field, value: Any, path: str, count: int | tuple[int, int], finite: bool
) -> EncodeError | None:
    length, inner = (count[0], count[1]) if isinstance(count, tuple) else (count, 0)
    if not isinstance(value, tuple | list) or len(value) != length:
        size = f"{len(value)} values" if isinstance(value, tuple | list) else f"{value!r:.40}"
        return EncodeError(f"{path}: {length} values expected, got {size}", path)
    for index, item in enumerate(value):
        place = f"{path}[{index}]"
        problem = (
            _array_problem(field, item, place, inner, finite) if inner else _value_problem(field, item, place, finite)
        )
        if problem is not None:
            return problem
    return None


def _value_problem(field: Field, value: Any, path: str, finite: bool) -> EncodeError | None:
    try:
        if field.wire.format == "s":
            (octets if field.kind is bytes else padded)(value, field.size)
        else:
            struct.pack(f">{field.wire.format}", value if field.wire.scale is None else round(value / field.wire.scale))
    except REFUSED as error:
        return EncodeError(f"{path}: {value!r:.40} does not fit: {error}", path)
    if finite and field.is_float and not math.isfinite(value):
        return EncodeError(f"{path}: {value} is not finite", path)
    return None


def to_json(field: Field, value: Any) -> Any:
    """The value of a packet's attribute as JSON."""
    if field.nested is not None:
        return field.nested.to_fields(value)
    if field.constant is not None:
        return field.constant
    if field.kind is bytes:
        return value.hex()
    if isinstance(field.wire.count, tuple):
        return [[_item_to_json(field, item) for item in row] for row in value]
    if field.wire.count and field.kind is not str:
        return [_item_to_json(field, item) for item in value]
    return _item_to_json(field, value)


def _item_to_json(field: Field, value: Any) -> Any:
    if field.wire.form is not None:
        return field.wire.form.write(value)
    if isinstance(value, WireInt):
        return value.to_fields()
    return int(value) if isinstance(value, IntEnum) else value


def from_json(field: Field, fields: Mapping[str, Any], path: str) -> Any:
    """The attribute's value out of the JSON object; EncodeError names ``path`` + key."""
    name = path + field.key
    if field.key not in fields:
        raise EncodeError(f"{name}: missing", name)
    value = fields[field.key]
    if field.nested is not None:
        return field.nested.from_fields(value, path=f"{name}.")
    if field.wire.format != "s" and field.wire.count:
        return _array_from_json(field, value, name, field.wire.count)
    item = _item_from_json(field, value, name)
    if field.constant is not None and item != field.constant:
        raise EncodeError(f"{name}: must be {field.constant}, got {item}", name)
    return item


def _array_from_json(field: Field, value: Any, path: str, count: int | tuple[int, int]) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise EncodeError(f"{path}: list expected, got {value!r:.40}", path)
    length, inner = (count[0], count[1]) if isinstance(count, tuple) else (count, 0)
    if len(value) != length:
        raise EncodeError(f"{path}: {length} values expected, got {len(value)}", path)
    if inner:
        return tuple(_array_from_json(field, row, f"{path}[{i}]", inner) for i, row in enumerate(value))
    return tuple(_item_from_json(field, item, f"{path}[{i}]") for i, item in enumerate(value))


def _item_from_json(field: Field, value: Any, path: str) -> Any:
    kind = field.kind
    if field.wire.form is not None:
        return field.wire.form.read(value, path, kind)
    if kind is float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise EncodeError(f"{path}: number expected, got {value!r:.40}", path)
        return value
    if kind in (bytes, str):
        if not isinstance(value, str):
            raise EncodeError(f"{path}: text expected, got {value!r:.40}", path)
        return value if kind is str else _from_hex(value, path)
    if issubclass(kind, WireInt):
        return kind.from_fields(value, path)
    number = expect_int(value, path)
    return member_or_int(kind, number) if issubclass(kind, IntEnum) else number


def _from_hex(value: str, path: str) -> bytes:
    try:
        return bytes.fromhex(value)
    except ValueError:
        raise EncodeError(f"{path}: hex digits expected", path) from None
