"""Writes and compiles the functions of a packet codec: straight lines without choices, one per packet class."""

import math
import struct
from collections.abc import Callable, Iterable
from enum import IntEnum
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias

from aoabridge.codecs.fields import REFUSED, Field, octets, padded, text
from aoabridge.codecs.wire import member_or_int
from aoabridge.errors import DecodeError, EncodeError

__all__ = ["BYTE_ORDERS", "ByteOrder", "Compilable", "compile_functions", "wire_format"]

ByteOrder: TypeAlias = Literal["big", "little"]

BYTE_ORDERS: dict[ByteOrder, str] = {"big": ">", "little": "<"}

_TABLE_SIZE = 256  # one-octet codes are looked up, wider ones are converted by call


class Compilable(Protocol):
    """What the compiler needs to know of a codec."""

    packet_class: Any
    byte_order: ByteOrder
    fields: tuple[Field, ...]
    format: str
    finite: bool
    keeps_datagram: bool

    def length_error(self, data: bytes, offset: int = 0) -> DecodeError:
        """Why the length is wrong."""
        ...

    def constant_error(self, name: str, value: int, offset: int) -> DecodeError:
        """Why a constant is wrong."""
        ...

    def encode_error(self, packet: Any) -> EncodeError:
        """Why a packet cannot be packed."""
        ...


def compile_functions(codec: Compilable) -> tuple[Callable[..., Any], Callable[..., Any], Callable[[Any], bytes]]:
    """The functions ``decode(data)``, ``decode_from(data, offset=0, *rest)`` and ``encode(packet)`` of a codec."""
    names: dict[str, Any] = {
        "Packet": codec.packet_class,
        "pack": struct.Struct(codec.format).pack,
        "struct_error": struct.error,
        "refused": REFUSED,
        "length_error": codec.length_error,
        "constant_error": codec.constant_error,
        "encode_error": codec.encode_error,
        "isfinite": math.isfinite,
        "octets": octets,
        "text": text,
        "padded": padded,
    }
    source = "\n".join(
        [
            "def decode(data):",
            *_Reading(codec, names, "unpack(data)", "").lines([]),
            "def decode_from(data, offset=0, *rest):",
            *_Reading(codec, names, "unpack_from(data, offset)", "offset + ").lines(["*rest"]),
            "def encode(packet):",
            *_Writing(codec).lines(),
        ]
    )
    exec(compile(source, f"<codec of {codec.packet_class.__name__}>", "exec"), names)
    return names["decode"], names["decode_from"], names["encode"]


def wire_format(field: Field) -> str:
    """The field in the language of ``struct``, without byte order."""
    if field.nested is not None:
        return field.nested.format[1:]
    if field.wire.format == "s":
        return f"{field.size}s"
    return field.wire.format if field.slots == 1 else f"{field.slots}{field.wire.format}"


def _is_plain_array(field: Field) -> bool:
    """True for a row of numbers that stay as they are: read with one call, straight into a tuple."""
    wire = field.wire
    return field.kind in (int, float) and wire.scale is None and isinstance(wire.count, int) and wire.count > 0


class _Reading:
    """Lines of one decode function. Values become variables v0, v1, …; plain arrays are read in place."""

    def __init__(self, codec: Compilable, names: dict[str, Any], call: str, base: str) -> None:
        self._codec = codec
        self._names = names
        self._call = call
        self._base = base  # what to add to an offset
        self._prefix = BYTE_ORDERS[codec.byte_order]
        self._variables = 0
        self._format = self._prefix  # of the variables, with gaps where the plain arrays are
        self._comparisons: list[str] = []

    def lines(self, rest: list[str]) -> list[str]:
        """The body of the function; ``rest`` are further arguments of the packet class."""
        arguments = self._build(self._codec.fields, 0) + rest
        if self._codec.keeps_datagram:
            fields = self._codec.packet_class.__struct_fields__
            name = "raw=" if rest or fields[len(arguments)] != "raw" else ""  # by position where it is next: faster
            arguments.append(name + ("data[offset:]" if self._base else "data"))
        function, _, parameters = self._call.partition("(")
        call = self._bind(getattr(struct.Struct(self._format), function))
        error_parameters = parameters.removesuffix(")")
        return [
            "    try:",
            f"        ({''.join(f'v{i},' for i in range(self._variables))}) = {call}({parameters}",
            "    except struct_error:",
            f"        raise length_error({error_parameters}) from None",
            *self._comparisons,
            f"    return Packet({', '.join(arguments)})",
        ]

    def _build(self, fields: Iterable[Field], base: int) -> list[str]:
        """Constructor arguments of a packet whose first octet is at ``base``."""
        arguments = []
        for field in fields:
            offset = base + field.offset
            if field.nested is not None:
                inner = ", ".join(self._build(field.nested.fields, offset))
                arguments.append(f"{self._bind(field.kind)}({inner})")
            elif field.constant is not None:
                self._compare(field, self._next(field)[0], offset)
            elif _is_plain_array(field):
                self._format += f"{field.size}x"
                read = self._bind(struct.Struct(self._prefix + wire_format(field)).unpack_from)
                arguments.append(f"{read}(data, {self._base}{offset})")
            else:
                convert = self._converter(field)
                count = 0 if field.wire.format == "s" else field.wire.count
                arguments.append(_grouped([convert(name) for name in self._next(field)], count))
        return arguments

    def _next(self, field: Field) -> list[str]:
        first = self._variables
        self._variables += field.slots
        self._format += wire_format(field)
        return [f"v{i}" for i in range(first, self._variables)]

    def _bind(self, value: object) -> str:
        name = f"n{len(self._names)}"
        self._names[name] = value
        return name

    def _compare(self, field: Field, variable: str, offset: int) -> None:
        self._comparisons += [
            f"    if {variable} != {field.constant}:",
            f"        raise constant_error({field.name!r}, {variable}, {self._base}{offset})",
        ]

    def _converter(self, field: Field) -> Callable[[str], str]:
        """Expression of one value, given its variable."""
        wire, kind = field.wire, field.kind
        if wire.format == "s":
            return (lambda name: name) if kind is bytes else (lambda name: f"text({name})")
        if wire.scale is not None:
            return lambda name: f"{name} * {wire.scale!r}"
        if kind in (int, float):
            return lambda name: name
        call: Callable[[int], int] = partial(member_or_int, kind) if issubclass(kind, IntEnum) else kind
        if wire.format == "B":
            table = self._bind(tuple(call(number) for number in range(_TABLE_SIZE)))
            return lambda name: f"{table}[{name}]"
        function = self._bind(call)
        return lambda name: f"{function}({name})"


class _Writing:
    """Lines of the encode function. Arrays are unpacked into variables first, which checks their length."""

    def __init__(self, codec: Compilable) -> None:
        self._codec = codec
        self._variables = 0
        self._loads: list[str] = []
        self._values: list[str] = []
        self._floats: list[tuple[str, str]] = []  # (expression, code)

    def lines(self) -> list[str]:
        """The body of the function."""
        self._take("packet", self._codec.fields)
        return [
            "    try:",
            *self._loads,
            *(self._finite_check() if self._codec.finite and self._floats else []),
            f"        return pack({', '.join(self._values)})",
            "    except refused:",
            "        raise encode_error(packet) from None",
        ]

    def _take(self, owner: str, fields: Iterable[Field]) -> None:
        for field in fields:
            source = f"{owner}.{field.name}"
            if field.nested is not None:
                self._take(source, field.nested.fields)
            elif field.constant is not None:
                self._values.append(repr(int(field.constant)))
            elif field.wire.format == "s":
                self._values.append(f"{'octets' if field.kind is bytes else 'padded'}({source}, {field.size})")
            else:
                self._take_numbers(field, source)

    def _take_numbers(self, field: Field, source: str) -> None:
        expressions = [source]
        if field.wire.count:
            first = self._variables
            self._variables += field.slots
            expressions = [f"v{i}" for i in range(first, self._variables)]
            self._loads.append(f"        {_grouped(expressions, field.wire.count)} = {source}")
        self._floats += [(expression, field.wire.format) for expression in expressions if field.is_float]
        scale = field.wire.scale
        self._values += expressions if scale is None else [f"round({one} / {scale!r})" for one in expressions]

    def _finite_check(self) -> list[str]:
        """One sum for binary32, whose finite values cannot add up to infinity in binary64; binary64 one by one."""
        checks = [f"isfinite({expression})" for expression, code in self._floats if code == "d"]
        singles = [expression for expression, code in self._floats if code == "f"]
        checks += [f"isfinite({' + '.join(singles)})"] if singles else []
        return [f"        if not ({' and '.join(checks)}):", "            raise ValueError"]


def _grouped(names: list[str], count: int | tuple[int, int]) -> str:
    """The names as a single value, a tuple or a tuple of tuples."""
    if not count:
        return names[0]
    if isinstance(count, tuple):
        width = count[1]
        names = [_grouped(names[i : i + width], width) for i in range(0, len(names), width)]
    return f"({', '.join(names)},)"
