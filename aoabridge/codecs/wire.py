"""How a field of a packet class looks on the wire: the words that annotations of ``codecs.packets`` are written in."""

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Annotated, Any, ClassVar, Self, overload

import msgspec

from aoabridge.errors import EncodeError

__all__ = [
    "F32",
    "F64",
    "I8",
    "I16",
    "I32",
    "I64",
    "NUMBER",
    "RAW_AND_NAME",
    "U8",
    "U16",
    "U32",
    "U64",
    "Bit",
    "Bits",
    "Choice",
    "FlagByte",
    "Form",
    "KeepDatagram",
    "Raw",
    "Wire",
    "WireInt",
    "expect_int",
    "member_or_int",
]


class Form(msgspec.Struct, frozen=True):
    """JSON form of one value: ``write(value)`` and its inverse ``read(json, path, type)``, which raises EncodeError."""

    write: Callable[[Any], object]
    read: Callable[[object, str, Any], Any]


class Wire(msgspec.Struct, frozen=True):
    """One field: ``format`` is a code of ``struct`` (``B b H h I i Q q f d``, or ``s`` for bytes and text).

    ``count`` repeats it: octets of ``s``, elements of a tuple, or (rows, columns) of a tuple of tuples; 0 = a single
    value. ``scale`` is the physical value of one count of an integer code. ``form`` replaces the JSON form.
    """

    format: str
    count: int | tuple[int, int] = 0
    scale: float | None = None
    unit: str = ""
    form: Form | None = None


class KeepDatagram(msgspec.Struct, frozen=True):
    """Marks the one field that keeps the octets a packet was decoded from."""


Raw = Annotated[bytes, KeepDatagram()]
"""Type of a last field ``raw: Raw = b""``: the datagram; no part of the wire table, of equality or of the hash."""

U8, U16, U32, U64 = Wire("B"), Wire("H"), Wire("I"), Wire("Q")
I8, I16, I32, I64 = Wire("b"), Wire("h"), Wire("i"), Wire("q")
F32, F64 = Wire("f"), Wire("d")


def expect_int(value: object, path: str) -> int:
    """The JSON value as an integer; a boolean, float or text is an EncodeError at ``path``."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise EncodeError(f"{path}: integer expected, got {value!r:.40}", path)
    return int(value)


class WireInt(int):
    """An integer of the wire that has more to say about itself; subclasses add properties and their JSON form."""

    __slots__ = ()

    def to_fields(self) -> object:
        """JSON form; here the plain number."""
        return int(self)

    @classmethod
    def from_fields(cls, value: object, path: str) -> Self:
        """Inverse of ``to_fields``; EncodeError names ``path``."""
        return cls(expect_int(value, path))


class Bits:
    """Bits of a FlagByte as an unshifted number (``reserved = Bits(0x38)``)."""

    def __init__(self, mask: int) -> None:
        self.mask = mask

    @overload
    def __get__(self, flags: None, owner: type) -> Self: ...
    @overload
    def __get__(self, flags: int, owner: type) -> int: ...
    def __get__(self, flags: int | None, owner: type) -> Self | int:
        return self if flags is None else int(flags) & self.mask

    def bits_of(self, value: object, path: str) -> int:
        """The bits that stand for this JSON value."""
        number = expect_int(value, path)
        if number & ~self.mask:
            raise EncodeError(f"{path}: {number} does not fit mask {self.mask:#04x}", path)
        return number


class Bit:
    """One bit of a FlagByte as a boolean (``enabled = Bit(0x04)``)."""

    def __init__(self, mask: int) -> None:
        self.mask = mask

    @overload
    def __get__(self, flags: None, owner: type) -> Self: ...
    @overload
    def __get__(self, flags: int, owner: type) -> bool: ...
    def __get__(self, flags: int | None, owner: type) -> Self | bool:
        return self if flags is None else int(flags) & self.mask != 0

    def bits_of(self, value: object, path: str) -> int:
        """The bits that stand for this JSON value."""
        if not isinstance(value, bool):
            raise EncodeError(f"{path}: boolean expected, got {value!r:.40}", path)
        return self.mask if value else 0


class Choice:
    """Low-order bits of a FlagByte as a name (``mode = Choice(0x03, "teleop", "test", "autonomous", "invalid")``)."""

    def __init__(self, mask: int, *names: str) -> None:
        if len(names) != mask + 1:
            raise TypeError(f"mask {mask:#04x} needs {mask + 1} names")
        self.mask = mask
        self.names = names

    @overload
    def __get__(self, flags: None, owner: type) -> Self: ...
    @overload
    def __get__(self, flags: int, owner: type) -> str: ...
    def __get__(self, flags: int | None, owner: type) -> Self | str:
        return self if flags is None else self.names[int(flags) & self.mask]

    def bits_of(self, value: object, path: str) -> int:
        """The bits that stand for this JSON value."""
        if not isinstance(value, str) or value not in self.names:
            raise EncodeError(f"{path}: one of {', '.join(self.names)} expected, got {value!r:.40}", path)
        return self.names.index(value)


class FlagByte(WireInt):
    """An octet of named bits; every one of the 256 values is valid and stays visible as the number itself.

    JSON: ``{"raw": n, <name>: value, …}`` in the order of declaration. Reading: ``raw`` decides if present, and named
    parts beside it must agree; without ``raw`` the parts are put together and bits without a part are 0.
    """

    __slots__ = ()
    parts: ClassVar[Mapping[str, Bit | Bits | Choice]] = {}

    def __init_subclass__(cls) -> None:
        """Collect the declared parts once."""
        cls.parts = {name: part for name, part in vars(cls).items() if isinstance(part, Bit | Bits | Choice)}

    def to_fields(self) -> dict[str, object]:
        """``raw`` and every named part."""
        return {"raw": int(self), **{name: getattr(self, name) for name in self.parts}}

    @classmethod
    def from_fields(cls, value: object, path: str) -> Self:
        """Inverse of ``to_fields``; EncodeError names the part that is unknown, missing or contradicts ``raw``."""
        if not isinstance(value, dict):
            raise EncodeError(f"{path}: object expected, got {value!r:.40}", path)
        given = {name: cls._part_bits(name, part, path) for name, part in value.items() if name != "raw"}
        if "raw" not in value:
            if not given:
                raise EncodeError(f"{path}: neither raw nor any part given", path)
            return cls(sum(given.values()))
        raw = expect_int(value["raw"], f"{path}.raw")
        for name, bits in given.items():
            if raw & cls.parts[name].mask != bits:
                raise EncodeError(f"{path}.{name}: contradicts raw {raw}", f"{path}.{name}")
        return cls(raw)

    @classmethod
    def _part_bits(cls, name: str, value: object, path: str) -> int:
        part = cls.parts.get(name)
        if part is None:
            raise EncodeError(f"{path}.{name}: unknown name", f"{path}.{name}")
        return part.bits_of(value, f"{path}.{name}")


def member_or_int(kind: type[IntEnum], number: int) -> int:
    """The member with this number, else the number itself: unknown numbers stay visible."""
    try:
        return kind(number)
    except ValueError:
        return int(number)


def _name_of(value: int) -> str | None:
    return value.name.lower() if isinstance(value, IntEnum) else None


def _write_named(value: int) -> dict[str, object]:
    return {"raw": int(value), "name": _name_of(value)}


def _read_named(value: object, path: str, kind: type[IntEnum]) -> int:
    """``raw`` if given (a name beside it must agree), else the member of that name."""
    if not isinstance(value, dict):
        raise EncodeError(f"{path}: object expected, got {value!r:.40}", path)
    name = value.get("name")
    if "raw" not in value:
        found = [member for member in kind if member.name.lower() == name]
        if not found:
            raise EncodeError(f"{path}.name: unknown name {name!r:.40}", f"{path}.name")
        return found[0]
    number = member_or_int(kind, expect_int(value["raw"], f"{path}.raw"))
    if "name" in value and name != _name_of(number):
        raise EncodeError(f"{path}.name: {name!r:.40} contradicts raw {int(number)}", f"{path}.name")
    return number


NUMBER = Form(int, lambda value, path, _kind: expect_int(value, path))
"""An enumeration or flag byte as the bare number."""

RAW_AND_NAME = Form(_write_named, _read_named)
"""An enumeration as ``{"raw": n, "name": lower-case member name or null}``; the field's type names the enumeration."""
