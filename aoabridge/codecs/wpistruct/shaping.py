"""From the flat tuple that struct unpacks to the nested dict, by closures built once per type.

Measured: levels of plain numbers read the tuple by index, and the sizes that occur are written out.
"""

import itertools
from collections.abc import Callable
from operator import itemgetter
from typing import Any, TypeAlias

from aoabridge.codecs.wpistruct.layout import Member, Record
from aoabridge.codecs.wpistruct.schema import PRIMITIVES, Declaration

__all__ = ["Flat", "Shape", "shape_of", "text_of"]

Flat: TypeAlias = tuple[Any, ...]
Shape: TypeAlias = Callable[[Flat], dict[str, Any]]
_Pick: TypeAlias = Callable[[Flat], Any]
_Part: TypeAlias = Callable[[Flat, dict[str, Any]], None]
_BitRow: TypeAlias = tuple[str, type[int], int, int, int, int]  # key, bool or int, entry, shift, mask, sign bit

# Shared numbers: a row of a bit-field then costs 0.1 KB.
_MASKS = tuple([(1 << bits) - 1 for bits in range(65)])
_SIGNS = tuple([1 << bits >> 1 for bits in range(65)])


def text_of(raw: bytes) -> str:
    """Decode a char field: without trailing NULs and without an incomplete last character."""
    raw = raw.rstrip(b"\0")
    if raw and raw[-1] >= 0x80:
        lead = len(raw) - 1
        while lead and raw[lead] & 0xC0 == 0x80:
            lead -= 1
        if _character_bytes(raw[lead]) > len(raw) - lead:
            raw = raw[:lead]
    return raw.decode("utf-8", "replace")


def _character_bytes(lead: int) -> int:
    """Return the length that a first byte announces; a continuation byte without one announces what never comes."""
    if lead < 0x80:
        return 1
    if lead < 0xC0:
        return 1 << 32
    if lead < 0xE0:
        return 2
    if lead < 0xF0:
        return 3
    return 4 if lead < 0xF8 else 1


def shape_of(record: Record, *, enum_names: bool = False) -> Shape:
    """Build the function that makes a struct's dict from its flat tuple."""
    return _Builder(enum_names).shape(record, 0)


class _Builder:
    """Builds the functions of one codec. What does not depend on the place in the flat tuple is built once."""

    def __init__(self, enum_names: bool) -> None:
        self._enum_names = enum_names
        self._plain_keys: dict[str, list[str] | None] = {}
        self._placeless: dict[str, Shape] = {}  # elements of arrays start at 0, structs without entries anywhere

    def shape(self, record: Record, i: int) -> Shape:
        """Return the shape of a struct whose entries start at ``i``."""
        if i and record.width:
            return self._build(record, i)
        shape = self._placeless.get(record.type_name)
        if shape is None:
            shape = self._placeless[record.type_name] = self._build(record, 0)
        return shape

    def _build(self, record: Record, i: int) -> Shape:
        name = record.type_name
        if name not in self._plain_keys:
            plain = all(map(self._is_plain, record.members))
            self._plain_keys[name] = [member.field.name for member in record.members] if plain else None
        keys = self._plain_keys[name]
        if keys is not None:
            return _numbers(keys, i)
        if any(member.unit_bytes for member in record.members):
            return self._with_bits(record.members, i)
        return _mixed([(member.field.name, self._pick(member, i + member.slot)) for member in record.members])

    def _with_bits(self, members: tuple[Member, ...], i: int) -> Shape:
        """Shape a struct with bit-fields, which are rows of numbers: functions would cost five times the memory."""
        parts: list[_Part] = []
        for is_bits, group in itertools.groupby(members, lambda member: member.unit_bytes > 0):
            if is_bits:
                parts.append(_bits_part([_bit_row(member, i + member.slot) for member in group]))
            else:
                parts += [_pick_part(member.field.name, self._pick(member, i + member.slot)) for member in group]
        if self._enum_names:
            parts += [_names_part(m.field.name, _enum_of(m.field)) for m in members if m.unit_bytes and m.field.enum]
        return _in_parts(tuple(parts))

    def _is_plain(self, member: Member) -> bool:
        """True if the entry of the flat tuple is the value."""
        field = member.field
        named = self._enum_names and field.enum
        return member.record is None and field.count == 1 and not field.bits and field.type != "char" and not named

    def _pick(self, member: Member, i: int) -> _Pick:
        field = member.field
        if member.record is not None:
            return self._structs(member.record, field.count, i)
        if field.type == "char":
            return lambda t: text_of(t[i])
        stop = i + field.count
        if field.enum and self._enum_names:
            names = _enum_of(field)
            if field.count == 1:
                return lambda t: names.get(value := t[i], value)
            return lambda t: [names.get(value, value) for value in t[i:stop]]
        if field.count > 1:
            return lambda t: list(t[i:stop])
        return itemgetter(i)

    def _structs(self, record: Record, count: int, i: int) -> _Pick:
        if count == 1:
            return self.shape(record, i)
        # Elements share one shape: built for each place, an array of 4 096 would be 4 096 closures.
        shape, width = self.shape(record, 0), record.width
        starts = range(i, i + count * width, width) if width else (i,) * count
        return lambda t: [shape(t[start : start + width]) for start in starts]


def _numbers(keys: list[str], i: int) -> Shape:
    """Shape a struct whose values are taken as they are, one entry each."""
    match keys:
        case []:
            return lambda t: {}  # noqa: ARG005  # every shape takes the tuple
        case [a]:
            return lambda t: {a: t[i]}
        case [a, b]:
            j = i + 1
            return lambda t: {a: t[i], b: t[j]}
        case [a, b, c]:
            j, k = i + 1, i + 2
            return lambda t: {a: t[i], b: t[j], c: t[k]}
        case [a, b, c, d]:
            j, k, m = i + 1, i + 2, i + 3
            return lambda t: {a: t[i], b: t[j], c: t[k], d: t[m]}
    names, stop = tuple(keys), i + len(keys)
    return lambda t: dict(zip(names, t[i:stop]))  # noqa: B905  # equal by construction; strict costs time


def _mixed(picks: list[tuple[str, _Pick]]) -> Shape:
    """Shape a struct of which each value is made by a function."""
    match picks:
        case [(a, f)]:
            return lambda t: {a: f(t)}
        case [(a, f), (b, g)]:
            return lambda t: {a: f(t), b: g(t)}
        case [(a, f), (b, g), (c, h)]:
            return lambda t: {a: f(t), b: g(t), c: h(t)}
        case [(a, f), (b, g), (c, h), (d, k)]:
            return lambda t: {a: f(t), b: g(t), c: h(t), d: k(t)}
    fixed = tuple(picks)
    return lambda t: {key: pick(t) for key, pick in fixed}


def _in_parts(parts: tuple[_Part, ...]) -> Shape:
    def shape(t: Flat) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for part in parts:
            part(t, value)
        return value

    return shape


def _pick_part(key: str, pick: _Pick) -> _Part:
    def part(t: Flat, value: dict[str, Any]) -> None:
        value[key] = pick(t)

    return part


def _names_part(key: str, names: dict[int, str]) -> _Part:
    def part(_: Flat, value: dict[str, Any]) -> None:
        value[key] = names.get(value[key], value[key])

    return part


def _bits_part(rows: list[_BitRow]) -> _Part:
    fixed = tuple(rows)

    def part(t: Flat, value: dict[str, Any]) -> None:
        for key, kind, i, shift, mask, sign in fixed:
            value[key] = kind(((t[i] >> shift & mask) ^ sign) - sign)

    return part


def _bit_row(member: Member, i: int) -> _BitRow:
    field = member.field
    if field.type == "bool":
        return field.name, bool, i, member.shift, 1, 0
    signed = PRIMITIVES[field.type].low < 0
    return field.name, int, i, member.shift, _MASKS[field.bits], _SIGNS[field.bits] if signed else 0


def _enum_of(field: Declaration) -> dict[int, str]:
    """Return the first name of each value."""
    return {value: name for name, value in reversed(field.enum)}
