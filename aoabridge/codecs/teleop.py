"""Datagrams of the remote-driving centre: four little-endian packets, told apart by header, id and length.

Source: the teams' remote-driving datagram document (two naturally aligned and two packed C structs, no holes).
A downlink is a driving command; nothing in here sends anything. Uplink and downlink share header and id: an uplink cut
to 20 octets is a valid downlink, so a listening port passes the ``kinds`` it expects.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, ClassVar, TypeAlias

from aoabridge.codecs.packets import Packet, PacketCodec
from aoabridge.codecs.wire import I16, I32, U16, U32
from aoabridge.errors import DecodeError, EncodeError, TruncatedError, UnknownPacketError

__all__ = [
    "DEFAULT_VEHICLES",
    "KINDS",
    "LABELS",
    "Downlink",
    "HomeCtrl",
    "HomeTrigger",
    "TeleopPacket",
    "Uplink",
    "check",
    "decode",
    "encode",
    "from_fields",
    "is_known",
    "kind_of",
    "label",
    "to_fields",
]

DEFAULT_VEHICLES = (0x00A, 0x00B, 0x00C)
HEADER_OCTETS = 4
MAX_PEDAL_PERCENT = 100


class Uplink(Packet, frozen=True):
    """Vehicle to centre, 32 octets; the units of position, heading, speed and steering are not stated."""

    gram_header: ClassVar[Annotated[int, I16]] = 0xAAA
    gram_id: ClassVar[Annotated[int, I16]] = 0xAF1
    vehicle_id: Annotated[int, I16]
    vehicle_state: Annotated[int, I16]
    longitude: Annotated[int, U32]
    latitude: Annotated[int, U32]
    heading: Annotated[int, U16]
    speed: Annotated[int, I16]
    steering: Annotated[int, I32]
    ctrl_sign: Annotated[int, I16]
    ctrl_info: Annotated[int, I16]
    rpm: Annotated[int, I16]
    unused0: Annotated[int, I16]


class Downlink(Packet, frozen=True):
    """Centre to vehicle, 20 octets: a driving command; same header and id as the uplink."""

    gram_header: ClassVar[Annotated[int, I16]] = 0xAAA
    gram_id: ClassVar[Annotated[int, I16]] = 0xAF1
    vehicle_id: Annotated[int, I16]
    rc_speed: Annotated[int, I16]
    rc_acc_pedal: Annotated[int, I16]
    rc_brake_pedal: Annotated[int, I16]
    ctrl_sign: Annotated[int, I16]
    unused: Annotated[int, I16]
    rc_steer: Annotated[int, I32]


class HomeCtrl(Packet, frozen=True):
    """Cockpit to centre, 18 octets, sent all the time; ``vehicle_id`` 0 = no vehicle is observed."""

    gram_header: ClassVar[Annotated[int, I16]] = 0xA00
    gram_id: ClassVar[Annotated[int, I16]] = 0xA01
    vehicle_id: Annotated[int, I16]
    rc_steering: Annotated[int, I32]
    rc_speed: Annotated[int, I16]
    rc_acc_pedal: Annotated[int, I16]
    rc_brk_pedal: Annotated[int, I16]
    ping_time: Annotated[int, I16]


class HomeTrigger(Packet, frozen=True):
    """Cockpit to centre, 6 octets, sent on key events only."""

    gram_header: ClassVar[Annotated[int, I16]] = 0x010
    gram_id: ClassVar[Annotated[int, I16]] = 0x011
    ctrl_state: Annotated[int, I16]


TeleopPacket: TypeAlias = Uplink | Downlink | HomeCtrl | HomeTrigger

_CODECS: dict[str, PacketCodec[Any]] = {
    "uplink": PacketCodec(Uplink, "little"),
    "downlink": PacketCodec(Downlink, "little"),
    "home_ctrl": PacketCodec(HomeCtrl, "little"),
    "home_trigger": PacketCodec(HomeTrigger, "little"),
}
KINDS = tuple(_CODECS)
_KIND_OF_CLASS = {codec.packet_class: kind for kind, codec in _CODECS.items()}


def _magic(codec: PacketCodec[Any]) -> bytes:
    first, second = codec.fields[:2]
    return b"".join(int(field.constant or 0).to_bytes(2, "little") for field in (first, second))


_BY_LENGTH: dict[int, tuple[bytes, str, Callable[[bytes], TeleopPacket]]] = {
    codec.size: (_magic(codec), kind, codec.decode) for kind, codec in _CODECS.items()
}
_LENGTHS = {
    magic: sorted(size for size, (other, *_) in _BY_LENGTH.items() if other == magic)
    for magic, *_ in _BY_LENGTH.values()
}
_ENCODERS: dict[type, Callable[[Any], bytes]] = {codec.packet_class: codec.encode for codec in _CODECS.values()}

_SIBLING_ID = b"\xaa\x0a\xf2\x0a"
_OLD_LAYOUTS = {  # (magic, length) of programs of the same family with older layouts
    (_magic(_CODECS["uplink"]), 64): "uplink of an older sibling program",
    (_magic(_CODECS["uplink"]), 60): "uplink of an older sibling program",
    (_magic(_CODECS["uplink"]), 28): "downlink of an older sibling program",
    (_magic(_CODECS["home_ctrl"]), 76): "control datagram of an older sibling program",
}

LABELS: dict[str, tuple[str, ...]] = {
    "vehicle_state": ("normal", "fault"),
    "ctrl_sign": ("auto", "remote"),
    "ctrl_info": ("none", "takeover_request", "vehicle_fault"),
    "ctrl_state": ("nothing", "remote", "sync"),
}
"""Names of the numbers 0, 1, … of each enumeration; ``none`` of ctrl_info is not in the document."""


def decode(data: bytes, kinds: Collection[str] | None = None) -> TeleopPacket:
    """The packet of one datagram; no value of a field is ever an error.

    TruncatedError: shorter than header and id, or than the next legal length. UnknownPacketError: header and id of no
    packet, or a packet that is not in ``kinds``. DecodeError: longer than the longest legal length.
    """
    try:
        _, kind, decode_packet = _BY_LENGTH[len(data)]
        packet = decode_packet(data)  # compares header and id: they are constants of the class
    except (KeyError, DecodeError):
        raise _refusal(bytes(data)) from None
    if kinds is not None and kind not in kinds:
        expected = ", ".join(sorted(kinds)) or "nothing"
        raise UnknownPacketError(f"{kind} ({len(data)} octets) not expected here ({expected})", kind, 0)
    return packet


def _refusal(data: bytes) -> DecodeError:
    size = len(data)
    if size < HEADER_OCTETS:
        return TruncatedError(f"{size} octets, no header and id", needed=HEADER_OCTETS, got=size, offset=size)
    magic = data[:HEADER_OCTETS]
    lengths = _LENGTHS.get(magic)
    if lengths is None:
        return _unknown(magic)
    old = _OLD_LAYOUTS.get((magic, size))
    remark = f": {old}?" if old else ""
    needed = next((length for length in lengths if length > size), None)
    if needed is None:
        return DecodeError(f"{size} octets instead of {lengths[-1]}{remark}", lengths[-1])
    return TruncatedError(f"{size} of {needed} octets{remark}", needed=needed, got=size, offset=size)


def _unknown(magic: bytes) -> UnknownPacketError:
    header, number = (int.from_bytes(part, "little") for part in (magic[:2], magic[2:]))
    message = f"header {header:#05x}, id {number:#05x}: no packet"
    if magic[1::-1] + magic[:1:-1] in _LENGTHS:
        message += "; big-endian sender?"
    if magic == _SIBLING_ID:
        message += "; id 0xAF2: sibling program"
    return UnknownPacketError(message, (header, number), 0)


def kind_of(packet: TeleopPacket) -> str:
    """``uplink``, ``downlink``, ``home_ctrl`` or ``home_trigger``."""
    return _KIND_OF_CLASS[type(packet)]


def encode(packet: TeleopPacket) -> bytes:
    """The datagram; EncodeError names the field outside its integer type."""
    try:
        return _ENCODERS[packet.__class__](packet)  # without a call of type(): a tenth of the time
    except KeyError:
        raise EncodeError(f"{type(packet).__name__} is no packet of this protocol") from None


def to_fields(packet: TeleopPacket) -> dict[str, Any]:
    """All fields as integers, header and id included."""
    return _CODECS[kind_of(packet)].to_fields(packet)


def from_fields(packet_name: str, fields: Mapping[str, Any]) -> TeleopPacket:
    """Inverse of ``to_fields``; header and id may be left out, but must be the packet's if they are there."""
    codec = _CODECS.get(packet_name)
    if codec is None:
        raise EncodeError(f"packet: one of {', '.join(KINDS)} expected, got {packet_name!r:.40}", "packet")
    if not isinstance(fields, Mapping):
        raise EncodeError(f"fields: object expected, got {fields!r:.40}", "fields")
    own = {field.name: field.constant for field in codec.fields if field.constant is not None}
    packet: TeleopPacket = codec.from_fields({**own, **fields})
    return packet


def is_known(field: str, value: int) -> bool:
    """Whether this number of an enumeration has a name."""
    return 0 <= value < len(LABELS[field])


def label(field: str, value: int) -> str:
    """Name of an enumeration's number, ``unknown(n)`` if it has none."""
    return LABELS[field][value] if is_known(field, value) else f"unknown({value})"


def check(packet: TeleopPacket, vehicles: Collection[int] = DEFAULT_VEHICLES) -> list[str]:
    """What lies outside the documented ranges, as sorted ``code:field``; never an error."""
    return sorted(
        f"{code}:{field}"
        for field, code, is_fine in _CHECKS[type(packet)]
        if not is_fine(getattr(packet, field), vehicles)
    )


def _enumerated(field: str) -> Callable[[int, Collection[int]], bool]:
    return lambda value, _: is_known(field, value)


def _is_pedal(value: int, _: Collection[int]) -> bool:
    return 0 <= value <= MAX_PEDAL_PERCENT


def _is_zero(value: int, _: Collection[int]) -> bool:
    return value == 0


def _is_time(value: int, _: Collection[int]) -> bool:
    return value >= 0


def _is_listed(value: int, vehicles: Collection[int]) -> bool:
    return value in vehicles


def _is_listed_or_none(value: int, vehicles: Collection[int]) -> bool:
    return value == 0 or value in vehicles


_Check: TypeAlias = tuple[str, str, Callable[[int, Collection[int]], bool]]
_CHECKS: dict[type, tuple[_Check, ...]] = {
    Uplink: (
        ("vehicle_id", "unknown_vehicle", _is_listed),
        ("vehicle_state", "unknown_enum", _enumerated("vehicle_state")),
        ("ctrl_sign", "unknown_enum", _enumerated("ctrl_sign")),
        ("ctrl_info", "undocumented", _enumerated("ctrl_info")),
        ("unused0", "reserved_nonzero", _is_zero),
    ),
    Downlink: (
        ("vehicle_id", "unknown_vehicle", _is_listed),
        ("rc_acc_pedal", "out_of_range", _is_pedal),
        ("rc_brake_pedal", "out_of_range", _is_pedal),
        ("ctrl_sign", "unknown_enum", _enumerated("ctrl_sign")),
        ("unused", "reserved_nonzero", _is_zero),
    ),
    HomeCtrl: (
        ("vehicle_id", "unknown_vehicle", _is_listed_or_none),
        ("rc_acc_pedal", "out_of_range", _is_pedal),
        ("rc_brk_pedal", "out_of_range", _is_pedal),
        ("ping_time", "out_of_range", _is_time),
    ),
    HomeTrigger: (("ctrl_state", "unknown_enum", _enumerated("ctrl_state")),),
}
