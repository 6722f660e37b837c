"""Where every field of a struct lies: offsets, bit-field storage units, sizes. Packed, little-endian, no padding.

Two views: ``measure`` and ``extent`` are numbers alone, cheap for any schema; ``lay_out`` builds what a codec needs.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache

import msgspec

from aoabridge.codecs.wpistruct.limits import Limits
from aoabridge.codecs.wpistruct.schema import PRIMITIVES, Declaration, Declarations
from aoabridge.errors import SchemaError

__all__ = [
    "Extent",
    "Field",
    "Measure",
    "Member",
    "Record",
    "extent",
    "flat_fields",
    "integer_range",
    "lay_out",
    "measure",
]

_UNSIGNED_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}


class Field(msgspec.Struct, frozen=True):
    """One leaf of a laid-out struct, for people and tests.

    ``path`` as in ``modules[2].angle``; ``size`` of one element in bytes, for a bit-field that of its storage unit;
    ``shift`` and ``bits`` are None if the field has whole bytes of its own (a bit-field as wide as its unit has).
    """

    path: str
    type: str
    offset: int
    size: int
    count: int = 1
    shift: int | None = None
    bits: int | None = None
    enum: dict[str, int] | None = None


class Measure(msgspec.Struct, frozen=True):
    """A struct's own part of its numbers: bytes and values outside nested structs, and how many of each are nested."""

    size: int
    values: int
    nested: dict[str, int]


class Extent(msgspec.Struct, frozen=True, gc=False):
    """Bytes, values (leaves and dicts) and levels of one value; a lower bound while not ``complete``."""

    size: int
    values: int
    depth: int
    complete: bool


class Member(msgspec.Struct, frozen=True):
    """A field in its place: ``unit_bytes`` 0 = no bit-field; ``slot`` is its first place in the struct's flat tuple."""

    field: Declaration
    offset: int
    size: int
    slot: int
    shift: int = 0
    unit_bytes: int = 0
    record: "Record | None" = None


class Record(msgspec.Struct, frozen=True):
    """A laid-out struct. ``width`` = entries of its flat tuple, ``code`` = its format without byte order."""

    type_name: str
    members: tuple[Member, ...]
    size: int
    width: int
    code: str


def _places(declarations: Declarations) -> Iterator[tuple[Declaration, int, int, int]]:
    """Yield (declaration, unit bytes, shift, bytes to step over before it); no bit-field has unit 0.

    What is stepped over is the storage unit open before; the caller adds the one that is open at the end.
    """
    unit = shift = 0
    for field in declarations:
        if not field.bits:
            yield field, 0, 0, unit
            unit = shift = 0
            continue
        size = PRIMITIVES[field.type].size
        if field.type == "bool" and unit and shift < 8 * unit:
            advance = 0
        elif size != unit or shift + field.bits > 8 * size:
            advance, unit, shift = unit, size, 0
        else:
            advance = 0
        yield field, unit, shift, advance
        shift += field.bits


def measure(declarations: Declarations) -> Measure:
    """Count what the struct needs by itself."""
    size = 0
    values = 1
    open_unit = 0
    nested: dict[str, int] = {}
    for field, unit, _, advance in _places(declarations):
        size += advance
        open_unit = unit
        if unit:
            values += 1
            continue
        primitive = PRIMITIVES.get(field.type)
        if primitive is None:
            nested[field.type] = nested.get(field.type, 0) + field.count
        else:
            size += primitive.size * field.count
            values += 1 if field.type == "char" else field.count
    return Measure(size + open_unit, values, nested)


def extent(type_name: str, own: Measure, known: Mapping[str, Extent], limits: Limits) -> Extent:
    """Add up the numbers of a struct from those of its nested ones; SchemaError if one is above its limit."""
    size, values, depth, complete = own.size, own.values, 0, True
    unknown = sum(own.nested.values())
    for name in own.nested.keys() & known.keys():
        inner = known[name]
        count = own.nested[name]
        unknown -= count
        size += count * inner.size
        values += count * inner.values
        depth = max(depth, inner.depth)
        if not inner.complete:
            complete = False
    if unknown:  # the least that any struct needs: no byte, a dict, a level
        values, depth, complete = values + unknown, max(depth, 1), False
    for number, limit, code, what in (
        (depth + 1, limits.depth, "limit_depth", "levels of structs"),
        (size, limits.size_bytes, "limit_size", "bytes"),
        (values, limits.values, "limit_values", "values"),
    ):
        if number > limit:
            raise SchemaError(f"struct {type_name} has more than {limit} {what}", code, type_name)
    return Extent(size, values, depth + 1, complete)


def lay_out(type_name: str, declarations: Declarations, records: Mapping[str, Record]) -> Record:
    """Place every field; ``records`` holds the nested structs, laid out before."""
    members: list[Member] = []
    codes: list[str] = []
    offset = slot = open_unit = 0
    for field, unit, shift, advance in _places(declarations):
        offset += advance
        open_unit = unit
        if unit:
            if not shift:
                codes.append(_UNSIGNED_CODES[unit])
                slot += 1
            members.append(Member(field, offset, unit, slot - 1, shift, unit))
            continue
        record = None if field.type in PRIMITIVES else records[field.type]
        if record is not None:
            size, width, code = record.size, field.count * record.width, record.code * field.count
        else:
            primitive = PRIMITIVES[field.type]
            size, width = primitive.size, 1 if field.type == "char" else field.count
            code = primitive.code if field.count == 1 else f"{field.count}{primitive.code}"
        members.append(Member(field, offset, size, slot, record=record))
        codes.append(code)
        offset += size * field.count
        slot += width
    return Record(type_name, tuple(members), offset + open_unit, slot, "".join(codes))


@lru_cache(maxsize=1_024)
def integer_range(type_name: str, bits: int) -> tuple[int, int]:
    """Return the smallest and largest value of an integer or bool field of this bit width (0 = whole bytes)."""
    if type_name == "bool":
        return 0, 1
    primitive = PRIMITIVES[type_name]
    if not bits:
        return primitive.low, primitive.high
    if primitive.low:
        return -(1 << bits - 1), (1 << bits - 1) - 1
    return 0, (1 << bits) - 1


def flat_fields(record: Record, path: str = "", offset: int = 0) -> Iterator[Field]:
    """Yield the leaves in order, each element of an array of structs on its own."""
    for member in record.members:
        field = member.field
        name = path + field.name
        if member.record is None:
            partial = bool(field.bits) and field.bits != 8 * member.unit_bytes
            shift, bits = (member.shift, field.bits) if partial else (None, None)
            enum = dict(field.enum) if field.enum else None
            yield Field(name, field.type, offset + member.offset, member.size, field.count, shift, bits, enum)
        elif field.count == 1:
            yield from flat_fields(member.record, f"{name}.", offset + member.offset)
        else:
            for index in range(field.count):
                start = offset + member.offset + index * member.size
                yield from flat_fields(member.record, f"{name}[{index}].", start)
