"""Packets as annotated frozen classes, compiled once into codecs: the class is the table of its wire format.

A packet class lists its fields in wire order. The annotation says how a field travels, the type what Python sees::

    class DsStatus(Packet, frozen=True, gc=False):
        magic: ClassVar[Annotated[int, U16]] = 0x0AAA            # constant: written, never a constructor argument
        sequence: Annotated[int, U16]
        level: Annotated[Level | int, U8]                        # IntEnum; unknown numbers stay plain ints
        status: Annotated[StatusFlags, U8]                       # a FlagByte or another WireInt
        battery_volts: Annotated[float, Wire("H", scale=1 / 256, unit="V")]
        axes: Annotated[tuple[float, ...], Wire("f", count=9)]   # fixed array; count=(32, 4): a tuple of rows
        name: Annotated[str, Wire("s", count=16)]                # fixed text: UTF-8, NUL-padded
        blob: Annotated[bytes, Wire("s", count=256)]             # exactly that many octets
        date: Date                                               # another packet class in place
        tags: tuple[Tag, ...] = ()                               # no wire form: caller's business, needs a default
        raw: Raw = b""                                           # last; the datagram it came from, not compared

    DS_STATUS = PacketCodec(DsStatus)             # big-endian; PacketCodec(DsStatus, "little") is the mirror image
    packet = DS_STATUS.decode(datagram)           # exactly ``size`` octets
    packet = DS_STATUS.decode_from(data, offset, tags)   # a header; further arguments fill the fields without wire form
    datagram = DS_STATUS.encode(packet)
    DS_STATUS.from_fields(DS_STATUS.to_fields(packet)) == packet   # JSON: plain dicts, lists, numbers, texts

Constants are not compared on decode: dispatch has done that. Wire fields have no defaults: nothing is invented.
Errors: ``decode`` raises TruncatedError (needed, got, offset = got) and DecodeError (offset = size); ``encode`` and
``from_fields`` raise EncodeError with the path of the field (``axes[2]``, ``date.month``): integers never wrap, floats
never become infinite, arrays and octets have exactly their length. A NaN in a scaled field is refused.
Scaled floats: value = count * scale; encode takes the nearest count, half to even.
JSON forms: a WireInt writes its own, octets are ``<name>_hex``, a ``Form`` of the field overrides; all else is plain.
"""

import struct
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from aoabridge.codecs.fields import REFUSED, Field, from_json, octets, padded, problem_of, text, to_json
from aoabridge.codecs.wire import KeepDatagram, Wire, member_or_int
from aoabridge.errors import DecodeError, EncodeError, TruncatedError

__all__ = ["ByteOrder", "Field", "Packet", "PacketCodec"]

ByteOrder: TypeAlias = Literal["big", "little"]

_PREFIX = {"big": ">", "little": "<"}
_TABLE_SIZE = 256  # one-octet codes are looked up, wider ones are converted by call


class Packet(msgspec.Struct, frozen=True, gc=False):
    """Base of all packet classes; equality and hash leave out the ``Raw`` field."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__struct_fields__ if name != "raw")

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, name) for name in self.__struct_fields__ if name != "raw")))


P = TypeVar("P", bound=Packet)


class PacketCodec(Generic[P]):
    """Codec of one packet class in one byte order; see the module for what it accepts and raises.

    ``decode(data) -> P``, ``decode_from(data, offset=0, *rest) -> P`` and ``encode(packet) -> bytes`` are compiled
    functions. ``size`` in octets, ``format`` for ``struct``, ``fields`` in wire order, ``keeps_datagram``.
    """

    decode: Callable[[bytes], P]
    decode_from: Callable[..., P]
    encode: Callable[[P], bytes]

    def __init__(self, packet_class: type[P], byte_order: ByteOrder = "big") -> None:
        self.packet_class = packet_class
        self.byte_order: ByteOrder = byte_order
        hints = get_type_hints(packet_class, include_extras=True)
        self.keeps_datagram = KeepDatagram() in getattr(hints.get("raw"), "__metadata__", ())
        self.fields = tuple(_fields(packet_class, hints, byte_order))
        self.format = _PREFIX[byte_order] + "".join(_format(field) for field in self.fields)
        layout = struct.Struct(self.format)
        self.size = layout.size
        source, names = _Compiler(self, layout).source()
        exec(compile(source, f"<codec of {packet_class.__name__}>", "exec"), names)
        self.decode, self.decode_from, self.encode = names["decode"], names["decode_from"], names["encode"]

    def to_fields(self, packet: P) -> dict[str, Any]:
        """The wire fields as JSON values, in wire order."""
        return {field.key: to_json(field, getattr(packet, field.name)) for field in self.fields}

    def from_fields(self, fields: Mapping[str, Any], *rest: object, path: str = "", ignored: Iterable[str] = ()) -> P:
        """Inverse of ``to_fields``; ``rest`` fills the fields without wire form, ``ignored`` keys are passed over.

        A missing key, an unknown key, a wrong JSON type or another value of a constant is an EncodeError; ranges are
        judged by ``encode``.
        """
        if not isinstance(fields, Mapping):
            raise EncodeError(f"{path or 'fields'}: object expected, got {fields!r:.40}", path or None)
        unknown = set(fields) - {field.key for field in self.fields} - set(ignored)
        if unknown:
            name = path + min(str(key) for key in unknown)
            raise EncodeError(f"{name}: no such field in {self.packet_class.__name__}", name)
        values = [from_json(field, fields, path) for field in self.fields]
        return self.packet_class(
            *[v for v, field in zip(values, self.fields, strict=True) if field.constant is None], *rest
        )

    def length_error(self, data: bytes, offset: int = 0) -> DecodeError:
        """Why ``data`` from ``offset`` on is not one packet of this class."""
        name, end = self.packet_class.__name__, offset + self.size
        if len(data) < end:
            return TruncatedError(f"{name}: {len(data)} of {end} octets", needed=end, got=len(data), offset=len(data))
        return DecodeError(f"{name}: {len(data)} octets instead of {end}", end)

    def encode_error(self, packet: P, path: str = "") -> EncodeError:
        """The first field that does not fit the wire."""
        for field in self.fields:
            problem = problem_of(field, getattr(packet, field.name, None), path + field.name)
            if problem is not None:
                return problem
        return EncodeError(f"{type(packet).__name__}: not a {self.packet_class.__name__}", None)


def _fields(packet_class: type[Packet], hints: Mapping[str, Any], byte_order: ByteOrder) -> Iterable[Field]:
    """Read the annotations; TypeError for a class that breaks the rules of the module."""
    offset = 0
    positional = list(packet_class.__struct_fields__)
    for name, hint in hints.items():
        field = _field(packet_class, name, hint, offset, byte_order)
        if field is None:
            continue
        if field.constant is None and (not positional or positional.pop(0) != name):
            raise TypeError(f"{packet_class.__name__}.{name}: wire fields come before all others")
        yield field
        offset += field.size


def _field(packet_class: type[Packet], name: str, hint: Any, offset: int, byte_order: ByteOrder) -> Field | None:
    """The compiled field, or None if the annotation has no wire form."""
    is_constant = get_origin(hint) is ClassVar
    hint = get_args(hint)[0] if is_constant else hint
    if isinstance(hint, type) and issubclass(hint, Packet):
        nested: PacketCodec[Any] = PacketCodec(hint, byte_order)
        slots = sum(field.slots for field in nested.fields)
        return Field(name, hint, Wire(""), offset, nested.size, slots, None, nested)
    wires = [extra for extra in getattr(hint, "__metadata__", ()) if isinstance(extra, Wire)]
    if not wires:
        return None
    wire = wires[0]
    rows, columns = wire.count if isinstance(wire.count, tuple) else (wire.count or 1, 1)
    size = struct.calcsize(f">{rows * columns}{wire.format}")
    constant = getattr(packet_class, name) if is_constant else None
    slots = 1 if wire.format == "s" else rows * columns
    return Field(name, _kind(get_args(hint)[0]), wire, offset, size, slots, constant, None)


def _kind(hint: Any) -> Any:
    """int for ``int``, the enumeration for ``Enum | int``, the element for a tuple."""
    if get_origin(hint) is tuple:
        return _kind(get_args(hint)[0])
    options = get_args(hint) or (hint,)
    return next((option for option in options if isinstance(option, type) and issubclass(option, IntEnum)), options[0])


def _format(field: Field) -> str:
    if field.nested is not None:
        return field.nested.format[1:]
    if field.wire.format == "s":
        return f"{field.size}s"
    return field.wire.format if field.slots == 1 else f"{field.slots}{field.wire.format}"


class _Compiler:
    """Writes the source of the three functions of one codec; every value of the wire is one local variable."""

    def __init__(self, codec: PacketCodec[Any], layout: struct.Struct) -> None:
        self._codec = codec
        self._names: dict[str, Any] = {
            "Packet": codec.packet_class,
            "unpack": layout.unpack,
            "unpack_from": layout.unpack_from,
            "pack": layout.pack,
            "struct_error": struct.error,
            "refused": REFUSED,
            "length_error": codec.length_error,
            "encode_error": codec.encode_error,
            "octets": octets,
            "text": text,
            "padded": padded,
        }
        self._count = 0

    def source(self) -> tuple[str, dict[str, Any]]:
        """The source text and the namespace to run it in."""
        arguments = self._build(self._codec.fields)
        variables = ", ".join(f"v{i}" for i in range(self._count)) + ","
        raw = ["data"] if self._codec.keeps_datagram else []
        raw_part = [f"data[offset:offset + {self._codec.size}]"] if raw else []
        self._count = 0
        loads, values = self._take("packet", self._codec.fields)
        lines = [
            "def decode(data):",
            *self._reading(variables, "unpack(data)", "length_error(data)"),
            f"    return Packet({', '.join(arguments + raw)})",
            "def decode_from(data, offset=0, *rest):",
            *self._reading(variables, "unpack_from(data, offset)", "length_error(data, offset)"),
            f"    return Packet({', '.join([*arguments, '*rest', *raw_part])})",
            "def encode(packet):",
            "    try:",
            *(f"        {load}" for load in loads),
            f"        return pack({', '.join(values)})",
            "    except refused:",
            "        raise encode_error(packet) from None",
        ]
        return "\n".join(lines), self._names

    @staticmethod
    def _reading(variables: str, call: str, error: str) -> list[str]:
        return [
            "    try:",
            f"        {variables} = {call}",
            "    except struct_error:",
            f"        raise {error} from None",
        ]

    def _next(self, slots: int) -> list[str]:
        first = self._count
        self._count += slots
        return [f"v{i}" for i in range(first, self._count)]

    def _bind(self, prefix: str, value: object) -> str:
        name = f"{prefix}{len(self._names)}"
        self._names[name] = value
        return name

    def _build(self, fields: Iterable[Field]) -> list[str]:
        """Constructor arguments of a packet, from the variables v0, v1, …"""
        arguments = []
        for field in fields:
            if field.nested is not None:
                inner = ", ".join(self._build(field.nested.fields))
                arguments.append(f"{self._bind('Nested', field.kind)}({inner})")
            elif field.constant is not None:
                self._next(field.slots)
            else:
                convert = self._converter(field)
                arguments.append(_grouped([convert(name) for name in self._next(field.slots)], field.wire.count))
        return arguments

    def _converter(self, field: Field) -> Callable[[str], str]:
        """Expression of one decoded value, given its variable."""
        wire, kind = field.wire, field.kind
        if wire.format == "s":
            return (lambda name: name) if kind is bytes else (lambda name: f"text({name})")
        if wire.scale is not None:
            return lambda name: f"{name} * {wire.scale!r}"
        if kind in (int, float):
            return lambda name: name
        if issubclass(kind, IntEnum):
            call: Callable[[int], int] = lambda number: member_or_int(kind, number)  # noqa: E731 — same shape as a class
        else:
            call = kind
        if wire.format == "B":
            table = self._bind("table", tuple(call(number) for number in range(_TABLE_SIZE)))
            return lambda name: f"{table}[{name}]"
        function = self._bind("convert", call)
        return lambda name: f"{function}({name})"

    def _take(self, owner: str, fields: Iterable[Field]) -> tuple[list[str], list[str]]:
        """Statements that load arrays into variables, and the arguments of ``pack``."""
        loads: list[str] = []
        values: list[str] = []
        for field in fields:
            source = f"{owner}.{field.name}"
            if field.nested is not None:
                inner_loads, inner_values = self._take(source, field.nested.fields)
                loads += inner_loads
                values += inner_values
            elif field.constant is not None:
                values.append(repr(int(field.constant)))
            elif field.wire.format == "s":
                values.append(f"{'octets' if field.kind is bytes else 'padded'}({source}, {field.size})")
            elif field.wire.count:
                names = self._next(field.slots)
                loads.append(f"{_grouped(names, field.wire.count)} = {source}")
                values += [_counted(name, field.wire.scale) for name in names]
            else:
                values.append(_counted(source, field.wire.scale))
        return loads, values


def _grouped(names: list[str], count: int | tuple[int, int]) -> str:
    """The names as a single value, a tuple or a tuple of tuples."""
    if not count:
        return names[0]
    if isinstance(count, tuple):
        width = count[1]
        names = [_grouped(names[i : i + width], width) for i in range(0, len(names), width)]
    return f"({', '.join(names)},)"


def _counted(expression: str, scale: float | None) -> str:
    return expression if scale is None else f"round({expression} / {scale!r})"
