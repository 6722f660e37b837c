"""The careful path of encoding: every legal value to the flat entries that struct packs, every other explained."""

import difflib
import math
import struct
from typing import Any

from aoabridge.codecs.wpistruct.layout import Member, Record, integer_range
from aoabridge.codecs.wpistruct.names import listed
from aoabridge.codecs.wpistruct.schema import PRIMITIVES, Declaration
from aoabridge.errors import EncodeError

__all__ = ["Flattener", "shown"]

_MAX_EXACT = 2**53  # up to here every integral float stands for one integer
_FLOAT32 = struct.Struct("<f")
_SHOWN_CHARS = 60  # of a foreign key or value in a message
_MAX_COMPARED_NAMES = 32  # difflib is quadratic: a hint must not cost more than the put
_MAX_COMPARED_CHARS = 32
_KINDS = {
    dict: "an object",
    list: "an array",
    tuple: "an array",
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    type(None): "null",
}


def shown(value: object) -> str:
    """Describe a foreign value for a message, briefly whatever its size."""
    if isinstance(value, bool | float):
        return str(value).lower()
    if isinstance(value, int):
        return str(value) if value.bit_length() <= 128 else f"an integer of {value.bit_length()} bits"
    if isinstance(value, str):
        return ascii(value[:_SHOWN_CHARS])
    return _KINDS.get(type(value), f"a {type(value).__name__}")


class Flattener:
    """Flattens one value after the other; ``truncated`` collects the paths of char fields that were cut."""

    def __init__(self, *, null_is_nan: bool = False) -> None:
        self.null_is_nan = null_is_nan
        self.truncated: list[str] = []

    def flatten(self, record: Record, value: object, path: str = "") -> list[Any]:
        """Return the entries of one struct; EncodeError names the first field that does not fit.

        ``path`` leads to the struct: empty at the top, ``[3]`` for an element of an array value.
        """
        fields = _fields_of(record, value, path)
        entries: list[Any] = []
        for member in record.members:
            field = member.field
            where = _join(path, field.name)
            item = fields[field.name]
            if not member.unit_bytes:
                entries += self._member(member, item, where)
                continue
            if not member.shift:
                entries.append(0)
            low, high = integer_range(field.type, field.bits)
            entries[-1] |= (self._scalar(field, _single(field, item, where), where) & (high - low)) << member.shift
        return entries

    def _member(self, member: Member, item: object, where: str) -> list[Any]:
        field = member.field
        if field.type == "char":
            return [self._text(item, field.count, where)]
        if field.count == 1:
            item = _single(field, item, where)
            return (
                [self._scalar(field, item, where)]
                if member.record is None
                else self.flatten(member.record, item, where)
            )
        if not isinstance(item, list | tuple):
            raise _wrong(where, f"an array of {field.count}", item)
        if len(item) != field.count:
            raise EncodeError(f"{where}: expected an array of {field.count}, got {len(item)}", where)
        if member.record is None:
            return [self._scalar(field, element, f"{where}[{i}]") for i, element in enumerate(item)]
        entries: list[Any] = []
        for i, element in enumerate(item):
            entries += self.flatten(member.record, element, f"{where}[{i}]")
        return entries

    def _text(self, item: object, size: int, where: str) -> bytes:
        if not isinstance(item, str):
            raise _wrong(where, "a string", item)
        try:
            raw = item.encode("utf-8")
        except UnicodeEncodeError as error:
            raise EncodeError(f"{where}: lone surrogate at character {error.start}", where) from None
        if len(raw) <= size:
            return raw
        self.truncated.append(where)
        while raw[size] & 0xC0 == 0x80:  # the cut would fall inside a character
            size -= 1
        return raw[:size]

    def _scalar(self, field: Declaration, item: object, where: str) -> Any:
        if field.type == "bool":
            if isinstance(item, bool):
                return item
            raise _wrong(where, "a boolean", item)
        if PRIMITIVES[field.type].is_integer:
            return _integer(field, item, where)
        if item is None and self.null_is_nan:
            return math.nan
        return _floating(field, item, where)


def _fields_of(record: Record, value: object, path: str) -> dict[str, Any]:
    """Return the value as a dict that has exactly the fields of the struct."""
    if not isinstance(value, dict):
        raise _wrong(path, f"an object ({record.type_name})", value)
    names = [member.field.name for member in record.members]
    known = set(names)
    for key in value:
        if key not in known:
            text = key[:_SHOWN_CHARS] if isinstance(key, str) else shown(key)
            raise EncodeError(
                f"{_join(path, shown(key))}: unknown field of {record.type_name}{_hint(key, names)}", _join(path, text)
            )
    for name in names:
        if name not in value:
            where = _join(path, name)
            raise EncodeError(f"{where}: missing field of {record.type_name}", where)
    return value


def _hint(key: object, names: list[str]) -> str:
    if not isinstance(key, str) or len(key) > _MAX_COMPARED_CHARS:
        return ""
    candidates = [name for name in names[:_MAX_COMPARED_NAMES] if len(name) <= _MAX_COMPARED_CHARS]
    close = difflib.get_close_matches(key, candidates, 1, 0.0)
    return f"; nearest is {close[0]}" if close else ""


def _single(field: Declaration, item: object, where: str) -> object:
    """Unwrap the list of one that a field declared with ``[1]`` may be given as."""
    if not field.single or not isinstance(item, list | tuple):
        return item
    if len(item) != 1:
        raise EncodeError(f"{where}: expected an array of 1, got {len(item)}", where)
    return item[0]


def _integer(field: Declaration, item: object, where: str) -> int:
    low, high = integer_range(field.type, field.bits)
    if isinstance(item, str) and field.enum:
        numbers = dict(field.enum)
        if item not in numbers:
            raise EncodeError(f"{where}: {shown(item)} is not one of {listed(list(numbers))}", where)
        item = numbers[item]
    if isinstance(item, bool) or not isinstance(item, int | float):
        raise _wrong(where, f"an integer in {low}..{high}", item)
    if isinstance(item, float):
        if not item.is_integer() or abs(item) > _MAX_EXACT:
            raise _wrong(where, f"an integer in {low}..{high}", item)
        item = int(item)
    if not low <= item <= high:
        raise _wrong(where, f"an integer in {low}..{high}", item)
    return item


def _floating(field: Declaration, item: object, where: str) -> float:
    if isinstance(item, bool) or not isinstance(item, int | float):
        raise _wrong(where, "a number", item)
    try:
        number = float(item)
        if field.type == "float":
            _FLOAT32.pack(number)
    except OverflowError:
        raise _wrong(where, f"a number in the range of {field.type}", item) from None
    if isinstance(item, int) and int(number) != item:
        raise _wrong(where, f"an integer that {field.type} holds exactly", item)
    return number


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _wrong(where: str, expected: str, got: object) -> EncodeError:
    prefix = f"{where}: " if where else ""
    return EncodeError(f"{prefix}expected {expected}, got {shown(got)}", where or None)
