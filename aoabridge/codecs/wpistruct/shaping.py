"""From the flat tuple that struct unpacks to the nested dict, by closures built once per type.

Measured: levels of plain numbers read the tuple by index, and the sizes that occur are written out.
"""

from collections.abc import Callable
from operator import itemgetter
from typing import Any, TypeAlias

from aoabridge.codecs.wpistruct.layout import Member, Record
from aoabridge.codecs.wpistruct.schema import PRIMITIVES

__all__ = ["Flat", "Shape", "shape_of", "text_of"]

Flat: TypeAlias = tuple[Any, ...]
Shape: TypeAlias = Callable[[Flat], dict[str, Any]]
_Pick: TypeAlias = Callable[[Flat], Any]


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
        return _mixed([(member.field.name, self._pick(member, i + member.slot)) for member in record.members])

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
        read = _bits_pick(member, i) if field.bits else itemgetter(i)
        stop = i + field.count
        if field.enum and self._enum_names:
            names = {value: name for name, value in reversed(field.enum)}
            if field.count == 1:
                return lambda t: names.get(value := read(t), value)
            return lambda t: [names.get(value, value) for value in t[i:stop]]
        if field.count > 1:
            return lambda t: list(t[i:stop])
        return read

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


def _bits_pick(member: Member, i: int) -> _Pick:
    shift, mask = member.shift, (1 << member.field.bits) - 1
    if member.field.type == "bool":
        flag = 1 << shift
        return lambda t: t[i] & flag != 0
    if PRIMITIVES[member.field.type].low == 0:
        return lambda t: t[i] >> shift & mask
    sign = 1 << member.field.bits - 1
    return lambda t: ((t[i] >> shift & mask) ^ sign) - sign
