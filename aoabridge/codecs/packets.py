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
                                                  # and ``raw`` keeps everything from ``offset`` on
    datagram = DS_STATUS.encode(packet)
    DS_STATUS.from_fields(DS_STATUS.to_fields(packet)) == packet   # JSON: plain dicts, lists, numbers, texts

Wire fields have no defaults: nothing is invented.
Errors: ``decode`` raises TruncatedError (needed, got, offset = got) and DecodeError (offset = size, or where a constant
has another value); ``encode`` and ``from_fields`` raise EncodeError with the path of the field (``axes[2]``,
``date.month``): integers never wrap, floats never become infinite, arrays and octets have exactly their length. A NaN
in a scaled field is refused; with ``PacketCodec(…, finite=True)`` encode refuses every float that is not finite.
Scaled floats: value = count * scale; encode takes the nearest count, half to even.
JSON forms: a WireInt writes its own, octets are ``<name>_hex``, a ``Form`` of the field overrides; all else is plain.
"""

import struct
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, ClassVar, Generic, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from aoabridge.codecs.compiler import BYTE_ORDERS, ByteOrder, compile_functions, wire_format
from aoabridge.codecs.fields import Field, from_json, problem_of, to_json
from aoabridge.codecs.wire import KeepDatagram, Wire
from aoabridge.errors import DecodeError, EncodeError, TruncatedError

__all__ = ["ByteOrder", "Field", "Packet", "PacketCodec"]


class Packet(msgspec.Struct, frozen=True, gc=False):
    """Base of all packet classes; equality and hash leave out the ``Raw`` field.

    ``derived`` names properties that JSON shows behind the wire fields and that ``from_fields`` passes over.
    """

    derived: ClassVar[tuple[str, ...]] = ()

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
    functions. ``size`` in octets, ``format`` for ``struct``, ``fields`` in wire order, ``keeps_datagram``, ``finite``.
    """

    decode: Callable[[bytes], P]
    decode_from: Callable[..., P]
    encode: Callable[[P], bytes]

    def __init__(self, packet_class: type[P], byte_order: ByteOrder = "big", *, finite: bool = False) -> None:
        self.packet_class = packet_class
        self.finite = finite
        self.byte_order: ByteOrder = byte_order
        hints = get_type_hints(packet_class, include_extras=True)
        self.keeps_datagram = KeepDatagram() in getattr(hints.get("raw"), "__metadata__", ())
        if "raw" in hints and not self.keeps_datagram:
            raise TypeError(f"{packet_class.__name__}.raw: the name is taken by the datagram")
        self.fields = tuple(_fields(packet_class, hints, byte_order))
        self.format = BYTE_ORDERS[byte_order] + "".join(wire_format(field) for field in self.fields)
        self.size = struct.calcsize(self.format)
        self.decode, self.decode_from, self.encode = compile_functions(self)

    def to_fields(self, packet: P) -> dict[str, Any]:
        """The wire fields as JSON values, in wire order, then the derived ones."""
        shown = {field.key: to_json(field, getattr(packet, field.name)) for field in self.fields}
        return shown | {name: getattr(packet, name) for name in self.packet_class.derived}

    def from_fields(self, fields: Mapping[str, Any], *rest: object, path: str = "", ignored: Iterable[str] = ()) -> P:
        """Inverse of ``to_fields``; ``rest`` fills the fields without wire form, ``ignored`` keys are passed over.

        A missing key, an unknown key, a wrong JSON type or another value of a constant is an EncodeError; ranges are
        judged by ``encode``.
        """
        if not isinstance(fields, Mapping):
            raise EncodeError(f"{path or 'fields'}: object expected, got {fields!r:.40}", path or None)
        unknown = set(fields) - {field.key for field in self.fields} - {*ignored, *self.packet_class.derived}
        if unknown:
            name = path + min(str(key) for key in unknown)
            raise EncodeError(f"{name}: no such field in {self.packet_class.__name__}", name)
        values = [from_json(field, fields, path) for field in self.fields]
        return self.packet_class(
            *[v for v, field in zip(values, self.fields, strict=True) if field.constant is None], *rest
        )

    def length_error(self, data: bytes, offset: int = 0) -> DecodeError:
        """Why ``data`` from ``offset`` on does not have the length of this class."""
        name, end = self.packet_class.__name__, offset + self.size
        if len(data) < end:
            return TruncatedError(f"{name}: {len(data)} of {end} octets", needed=end, got=len(data), offset=len(data))
        return DecodeError(f"{name}: {len(data)} octets instead of {end}", end)

    def constant_error(self, name: str, value: int, offset: int) -> DecodeError:
        """Another ``value`` at ``offset`` than the class has for its constant ``name``."""
        return DecodeError(f"{self.packet_class.__name__}: {name} cannot be {value}", offset)

    def encode_error(self, packet: P) -> EncodeError:
        """The first field that does not fit the wire."""
        for field in self.fields:
            problem = problem_of(field, getattr(packet, field.name, None), field.name, self.finite)
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
