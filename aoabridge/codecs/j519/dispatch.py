"""Stream Motion datagrams to packets and back, by (direction, type); the protocol id carries the direction."""

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

from aoabridge.codecs.j519.packets import (
    EXT_STYLE_JOINT,
    Ack,
    Capability,
    CmdPosRequest,
    CmdPosResponse,
    ExtCommand,
    ExtStart,
    ExtStatusV3,
    ExtStatusV4,
    ForceConfig,
    GpioConfig,
    GpioResult,
    J519Packet,
    LittleEndianDatagram,
    Motion,
    MotionF64,
    Request,
    Start,
    Status,
    Stop,
    VersionRequest,
    VersionResponse,
)
from aoabridge.codecs.packets import ByteOrder, PacketCodec
from aoabridge.errors import DecodeError, EncodeError, TruncatedError, UnknownPacketError

__all__ = [
    "FROM_ROBOT",
    "NAMES",
    "PACKETS",
    "TO_ROBOT",
    "AnyOrder",
    "Codec",
    "codec_of",
    "decode",
    "encode",
    "exact_bytes",
    "fitting_order",
    "packet_name",
]

AnyOrder: TypeAlias = Literal["big", "little", "auto"]
Codec: TypeAlias = PacketCodec[Any]

TO_ROBOT: Final = "j519-to-robot"
FROM_ROBOT: Final = "j519-from-robot"

HEADER_BYTES = 8
GET_CAPABILITY, SET_CAPABILITY = 7, 8
NAN_BITS_F32, NAN_BITS_F64 = 0x7F800000, 0x7FF0000000000000  # above, without the sign: not a number

PACKETS: Mapping[str, Mapping[int, type[J519Packet]]] = {
    TO_ROBOT: {
        0: Start,
        1: Motion,
        2: Stop,
        3: Request,
        4: CmdPosRequest,
        5: MotionF64,
        6: VersionRequest,
        GET_CAPABILITY: Capability,
        SET_CAPABILITY: Capability,
        200: ExtStart,
        201: ExtCommand,
        203: GpioConfig,
        205: ForceConfig,
    },
    FROM_ROBOT: {
        0: Status,
        3: Ack,
        4: CmdPosResponse,
        6: VersionResponse,
        GET_CAPABILITY: Capability,
        SET_CAPABILITY: Capability,
        202: ExtStatusV3,
        204: ExtStatusV4,
        203: GpioResult,
    },
}
"""(direction, type) -> packet; the same type means different packets in the two directions."""

NAMES: Mapping[type[J519Packet], str] = {
    Start: "start",
    Motion: "motion",
    Stop: "stop",
    Request: "request",
    CmdPosRequest: "cmd_pos_request",
    MotionF64: "motion_f64",
    VersionRequest: "version_request",
    Capability: "capability",
    ExtStart: "ext_start",
    ExtCommand: "ext_command",
    GpioConfig: "gpio_config",
    ForceConfig: "force_config",
    Status: "status",
    Ack: "ack",
    CmdPosResponse: "cmd_pos_response",
    VersionResponse: "version_response",
    ExtStatusV3: "ext_status_v3",
    ExtStatusV4: "ext_status_v4",
    GpioResult: "gpio_result",
}

CLASSIC_SIX = (Start, Motion, Stop, Request, Status, Ack)
"""The packets of the older document, the only ones that exist little-endian."""

_CODECS: dict[ByteOrder, dict[type[J519Packet], Codec]] = {
    "big": {packet_class: PacketCodec(packet_class) for packet_class in NAMES},
    "little": {packet_class: PacketCodec(packet_class, "little") for packet_class in CLASSIC_SIX},
}


def codec_of(packet_class: type[J519Packet], byte_order: ByteOrder = "big") -> Codec:
    """The compiled codec; EncodeError for a packet that does not exist in this byte order."""
    codec = _CODECS[byte_order].get(packet_class)
    if codec is None:
        raise EncodeError(f"{packet_name(packet_class)}: exists big-endian only")
    return codec


def packet_name(packet: J519Packet | type[J519Packet]) -> str:
    """Name in JSON, ``ext_status_v3`` for an ExtStatusV3."""
    return NAMES[packet if isinstance(packet, type) else type(packet)]


Reader: TypeAlias = Callable[[bytes], J519Packet]


def _reader(packet_class: type[J519Packet], order: ByteOrder) -> Reader:
    codec = _CODECS[order][packet_class]
    if packet_class is VersionResponse:
        return lambda data: codec.decode_from(data, 0, data[HEADER_BYTES:])
    if order == "little":
        return lambda data: codec.decode(LittleEndianDatagram(data))
    return codec.decode


def _refuse(data: bytes) -> J519Packet:
    raise DecodeError(f"no packet among {len(data)} octets by the plain way")


def _readers(protocol: str, order: ByteOrder) -> tuple[Reader, ...]:
    """One reader per lowest octet of the type word; the constant of the class is compared with the whole word.

    Capability has no constant type and is left to the careful way.
    """
    table = {kind: kls for kind, kls in PACKETS[protocol].items() if kls in _CODECS[order] and kls is not Capability}
    return tuple(_reader(table[octet], order) if octet in table else _refuse for octet in range(256))


_READERS = {protocol: _readers(protocol, "big") for protocol in PACKETS}


def decode(protocol: str, data: bytes, byte_order: AnyOrder = "big") -> J519Packet:
    """The one packet that fills the datagram.

    TruncatedError below 8 octets or below the packet's size, UnknownPacketError for a type that this direction does not
    have, DecodeError (offset = size) for octets too many. No value of a field is an error. ``auto``: ``fitting_order``.
    """
    if byte_order == "big":
        try:
            return _READERS[protocol][data[3]](data)
        except (KeyError, IndexError, DecodeError):
            pass
    return _decode_with_care(protocol, bytes(data), byte_order)


def _decode_with_care(protocol: str, data: bytes, byte_order: AnyOrder) -> J519Packet:
    """Everything but the plain case: ``auto``, other buffers than bytes, and the reason of a refusal."""
    if protocol not in PACKETS:
        raise ValueError(f"unknown protocol {protocol!r}")
    if byte_order not in ("big", "little", "auto"):
        raise ValueError(f"unknown byte order {byte_order!r}")
    order: ByteOrder = fitting_order(protocol, data) if byte_order == "auto" else byte_order
    problem = _problem(protocol, data, order)
    if problem is not None:
        raise problem
    return _read(protocol, data, order)


def _read(protocol: str, data: bytes, order: ByteOrder) -> J519Packet:
    return _reader(PACKETS[protocol][int.from_bytes(data[:4], order)], order)(data)


def _problem(protocol: str, data: bytes, order: ByteOrder) -> DecodeError | None:
    """Why the datagram is no packet, None if it is one."""
    size = len(data)
    if size < HEADER_BYTES:
        return TruncatedError(f"{size} octets, the header alone has 8", needed=HEADER_BYTES, got=size, offset=size)
    kind = int.from_bytes(data[:4], order)
    packet_class = PACKETS[protocol].get(kind)
    codec = None if packet_class is None else _CODECS[order].get(packet_class)
    if packet_class is None or codec is None:
        return UnknownPacketError(f"type {kind} is unknown in {protocol}{_hint(protocol, kind, size)}", kind, 0)
    if size == codec.size or (packet_class is VersionResponse and size > codec.size):
        return None
    return codec.length_error(data)


def _hint(protocol: str, kind: int, size: int) -> str:
    other = FROM_ROBOT if protocol == TO_ROBOT else TO_ROBOT
    packet_class = PACKETS[other].get(kind)
    if packet_class is None:
        return ""
    needed = _CODECS["big"][packet_class].size
    if size != needed and not (packet_class is VersionResponse and size > needed):
        return ""
    return f"; it is a {packet_name(packet_class)} of {other}"


def fitting_order(protocol: str, data: bytes) -> ByteOrder:
    """The byte order that a datagram is in: big if (type, length) and a version up to 65535 fit, else little if those
    fit, else the order that at least dispatches, else big.
    """
    orders: tuple[ByteOrder, ...] = ("big", "little")
    dispatching: list[ByteOrder] = [order for order in orders if _problem(protocol, data, order) is None]
    fitting: list[ByteOrder] = [order for order in dispatching if not _read(protocol, data, order).suspect]
    best = fitting or dispatching
    return best[0] if best else "big"


def encode(
    packet: J519Packet,
    byte_order: AnyOrder = "big",
    allow_nonfinite: bool = False,
    allow_data_style: bool = False,
) -> bytes:
    """The datagram of a packet.

    EncodeError names the field that does not fit; also for an axis of a command that is not finite, for an ExtCommand
    that is not joint style (each unless allowed), for MotionF64, and for ``auto``. A NaN of a decoded packet keeps the
    bits that it had.
    """
    try:
        return _WRITERS[byte_order][packet.__class__](packet)  # without a call of type()
    except (KeyError, EncodeError):
        pass
    return _encode_with_care(packet, byte_order, allow_nonfinite, allow_data_style)


_CAREFUL = (Capability, ExtCommand, MotionF64, VersionResponse)  # need more than their table says

_FINITE_CODECS: dict[ByteOrder, dict[type[J519Packet], Codec]] = {
    "big": {kls: PacketCodec(kls, finite=True) for kls in NAMES},
    "little": {kls: PacketCodec(kls, "little", finite=True) for kls in CLASSIC_SIX},
}

_WRITERS: dict[str, dict[type[J519Packet], Callable[[Any], bytes]]] = {
    order: {kls: codec.encode for kls, codec in codecs.items() if kls not in _CAREFUL}
    for order, codecs in _FINITE_CODECS.items()
}


def _encode_with_care(packet: J519Packet, byte_order: AnyOrder, allow_nonfinite: bool, allow_data_style: bool) -> bytes:
    if byte_order not in ("big", "little"):
        raise EncodeError(f"byte order {byte_order!r}: what is sent is never guessed, choose big or little")
    if isinstance(packet, MotionF64):
        raise EncodeError("experimental: decode only")
    if isinstance(packet, ExtCommand) and packet.data_style != EXT_STYLE_JOINT and not allow_data_style:
        raise EncodeError(f"data_style: {packet.data_style} may make the arm slew, 65535 is joint", "data_style")
    if isinstance(packet, Motion | ExtCommand) and not allow_nonfinite:
        codec_of(type(packet), byte_order)
        return _FINITE_CODECS[byte_order][type(packet)].encode(packet)
    return exact_bytes(packet, byte_order)


def exact_bytes(packet: J519Packet, byte_order: ByteOrder = "big") -> bytes:
    """The datagram without the checks of what may be sent; the bits of a NaN come from ``raw`` if it has one there."""
    if isinstance(packet, Capability) and packet.packet_type not in (GET_CAPABILITY, SET_CAPABILITY):
        raise EncodeError(f"packet_type: 7 or 8, not {packet.packet_type}", "packet_type")
    codec = codec_of(type(packet), byte_order)
    data: bytes = codec.encode(packet)
    if isinstance(packet, VersionResponse):
        return data + packet.extra
    raw: bytes = getattr(packet, "raw", b"")
    return data if not raw or raw == data else _with_nan_bits(codec, data, raw)


def _with_nan_bits(codec: Codec, data: bytes, raw: bytes) -> bytes:
    """Copy the bits of every NaN out of the datagram that the packet came from; packing made them quiet."""
    raw_order: ByteOrder = "little" if isinstance(raw, LittleEndianDatagram) else "big"
    result = bytearray(data)
    for field in codec.fields:
        if field.is_float:
            size = struct.calcsize(field.wire.format)
            for offset in range(field.offset, field.offset + field.size, size):
                old = raw[offset : offset + size]
                if _is_nan(data[offset : offset + size], codec.byte_order) and _is_nan(old, raw_order):
                    result[offset : offset + size] = old if raw_order == codec.byte_order else old[::-1]
    return bytes(result)


def _is_nan(bits: bytes, order: ByteOrder) -> bool:
    number = int.from_bytes(bits, order)
    if len(bits) == 4:
        return number & 0x7FFFFFFF > NAN_BITS_F32
    return number & 0x7FFFFFFFFFFFFFFF > NAN_BITS_F64
