"""The fast path of encoding: from a nested dict to the flat entries that struct packs, by closures built once per type.

It takes only values of exactly the expected Python types; ``flattening`` takes the rest, or explains it.
"""

import itertools
from collections.abc import Callable
from typing import Any, TypeAlias

from aoabridge.codecs.wpistruct.layout import Member, Record, integer_range
from aoabridge.codecs.wpistruct.schema import PRIMITIVES, Declaration

__all__ = ["Gather", "UnusualError", "gather_of"]

Gather: TypeAlias = Callable[[Any], tuple[Any, ...]]


class UnusualError(Exception):
    """The value is not of the plain form that the fast path takes; it may still be legal."""


def gather_of(record: Record) -> Gather:
    """Build the fast path of one struct."""
    return _Builder().gather(record)


class _Builder:
    """Builds the function of each struct once, however often it is nested."""

    def __init__(self) -> None:
        self._done: dict[str, Gather] = {}

    def gather(self, record: Record) -> Gather:
        gather = self._done.get(record.type_name)
        if gather is None:
            gather = self._done[record.type_name] = self._build(record.members)
        return gather

    def _build(self, members: tuple[Member, ...]) -> Gather:
        if any(member.unit_bytes for member in members):
            return self._with_bits(members)
        if members and all(m.record is None and m.field.count == 1 and m.field.type != "char" for m in members):
            return _numbers([(m.field.name, _plain_type(m.field)) for m in members])
        return _mixed([(m.field.name, self._cell(m)) for m in members])

    def _with_bits(self, members: tuple[Member, ...]) -> Gather:
        """Gather a struct with bit-fields: runs of fields that share a storage unit become one entry."""
        parts: list[Gather] = []
        for _, group in itertools.groupby(members, lambda member: (member.slot, member.unit_bytes, member.offset)):
            run = list(group)
            if run[0].unit_bytes:
                parts.append(_unit_part(run))
            else:
                parts += [_cell_part(member.field.name, self._cell(member)) for member in run]
        return _parts(len(members), tuple(parts))

    def _cell(self, member: Member) -> Gather:
        """Return the fast path of one field that is not a bit-field: its value to its entries."""
        field, count = member.field, member.field.count
        if member.record is not None:
            inner = self.gather(member.record)
            return inner if count == 1 else _structs_cell(inner, count)
        if field.type == "char":
            return _char_cell(count)
        kind = _plain_type(field)
        return _number_cell(kind) if count == 1 else _number_array_cell(kind, count)


def _plain_type(field: Declaration) -> type:
    if field.type == "bool":
        return bool
    return int if PRIMITIVES[field.type].is_integer else float


def _numbers(fields: list[tuple[str, type]]) -> Gather:
    """Gather a struct that holds nothing but single numbers and booleans."""
    count = len(fields)
    match fields:
        case [(a, kind)]:

            def one(value: Any) -> tuple[Any, ...]:
                if type(value) is dict and len(value) == 1 and type(x := value[a]) is kind:
                    return (x,)
                raise UnusualError

            return one
        case [(a, kind), (b, kind_b)]:

            def two(value: Any) -> tuple[Any, ...]:
                if (
                    type(value) is dict
                    and len(value) == 2
                    and type(x := value[a]) is kind
                    and type(y := value[b]) is kind_b
                ):
                    return (x, y)
                raise UnusualError

            return two
    keys = tuple([name for name, _ in fields])
    kinds = [kind for _, kind in fields]

    def many(value: Any) -> tuple[Any, ...]:
        if type(value) is not dict or len(value) != count:
            raise UnusualError
        entries = tuple([value[key] for key in keys])
        if [*map(type, entries)] != kinds:
            raise UnusualError
        return entries

    return many


def _mixed(cells: list[tuple[str, Gather]]) -> Gather:
    """Gather a struct whose fields each have a function of their own."""
    count = len(cells)
    if count == 2:
        (a, f), (b, g) = cells

        def two(value: Any) -> tuple[Any, ...]:
            if type(value) is dict and len(value) == 2:
                return f(value[a]) + g(value[b])
            raise UnusualError

        return two
    fixed = tuple(cells)

    def many(value: Any) -> tuple[Any, ...]:
        if type(value) is not dict or len(value) != count:
            raise UnusualError
        entries: list[Any] = []
        for key, cell in fixed:
            entries += cell(value[key])
        return tuple(entries)

    return many


def _parts(count: int, parts: tuple[Gather, ...]) -> Gather:
    def gather(value: Any) -> tuple[Any, ...]:
        if type(value) is not dict or len(value) != count:
            raise UnusualError
        entries: list[Any] = []
        for part in parts:
            entries += part(value)
        return tuple(entries)

    return gather


def _cell_part(key: str, cell: Gather) -> Gather:
    return lambda value: cell(value[key])


def _unit_part(members: list[Member]) -> Gather:
    fields: list[tuple[str, type[int], int, int, int]] = []
    for member in members:
        low, high = integer_range(member.field.type, member.field.bits)
        fields.append((member.field.name, bool if member.field.type == "bool" else int, low, high, member.shift))

    def part(value: Any) -> tuple[Any, ...]:
        unit = 0
        for key, kind, low, high, shift in fields:
            x = value[key]
            if type(x) is not kind or not low <= x <= high:
                raise UnusualError
            unit |= (x & (high - low)) << shift
        return (unit,)

    return part


def _number_cell(kind: type) -> Gather:
    def gather(value: Any) -> tuple[Any, ...]:
        if type(value) is kind:
            return (value,)
        raise UnusualError

    return gather


def _number_array_cell(kind: type, count: int) -> Gather:
    kinds = [kind] * count

    def gather(value: Any) -> tuple[Any, ...]:
        if type(value) is list and [*map(type, value)] == kinds:
            return tuple(value)
        raise UnusualError

    return gather


def _structs_cell(inner: Gather, count: int) -> Gather:
    def gather(value: Any) -> tuple[Any, ...]:
        if type(value) is not list or len(value) != count:
            raise UnusualError
        entries: list[Any] = []
        for element in value:
            entries += inner(element)
        return tuple(entries)

    return gather


def _char_cell(size: int) -> Gather:
    def gather(value: Any) -> tuple[Any, ...]:
        if type(value) is str and len(raw := value.encode("utf-8")) <= size:
            return (raw,)
        raise UnusualError

    return gather
