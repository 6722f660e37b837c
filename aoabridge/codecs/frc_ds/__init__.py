"""Driver station protocols of FRC, 2015 to 2027: nine directions between FMS, driver station, roboRIO and dashboard.

``decode`` never invents: unknown numbers stay as they are, broken tags stay as octets beside a Fault.
"""

from typing import Any, TypeAlias

from aoabridge.codecs.frc_ds.dash import DS2DASH_TCP
from aoabridge.codecs.frc_ds.datagrams import TaggedPacket, UdpProtocol
from aoabridge.codecs.frc_ds.date import Date
from aoabridge.codecs.frc_ds.ds_rio import DS2RIO_TCP, DS2RIO_UDP, RIO2DS_TCP, RIO2DS_UDP, DsControl, RioStatus
from aoabridge.codecs.frc_ds.fms_ds import DS2FMS_TCP, DS2FMS_UDP, FMS2DS_TCP, FMS2DS_UDP, DsStatus, FmsControl
from aoabridge.codecs.frc_ds.frames import MAX_FRAME, Frame, StreamReader, TcpFrames, TcpProtocol
from aoabridge.codecs.frc_ds.tags import Fault, Keepalive, Tag, TagTable, UnknownTag

__all__ = [
    "PROTOCOLS",
    "Date",
    "DsControl",
    "DsStatus",
    "Fault",
    "FmsControl",
    "Frame",
    "FrameReader",
    "FrcPacket",
    "Keepalive",
    "RioStatus",
    "Tag",
    "TcpFrames",
    "UnknownTag",
    "decode",
    "encode",
    "from_fields",
    "packet_name",
    "to_fields",
]

FrcPacket: TypeAlias = FmsControl | DsStatus | DsControl | RioStatus | TcpFrames

PROTOCOLS: dict[str, UdpProtocol[Any] | TcpProtocol] = {
    protocol.name: protocol
    for protocol in (
        FMS2DS_UDP,
        FMS2DS_TCP,
        DS2FMS_UDP,
        DS2FMS_TCP,
        DS2RIO_UDP,
        DS2RIO_TCP,
        RIO2DS_UDP,
        RIO2DS_TCP,
        DS2DASH_TCP,
    )
}

_BY_CLASS = {protocol.packet_class: protocol for protocol in PROTOCOLS.values() if isinstance(protocol, UdpProtocol)}


def _protocol(name: str) -> UdpProtocol[Any] | TcpProtocol:
    if name not in PROTOCOLS:
        raise ValueError(f"unknown protocol {name!r}, one of {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name]


def decode(protocol: str, data: bytes, *, strict: bool = False) -> Any:
    """One datagram, or a run of frames for a TCP protocol, as a FrcPacket.

    TruncatedError: less than a header. ``strict``: the first fault is raised instead of kept in ``faults``.
    ValueError: unknown protocol.
    """
    return _protocol(protocol).decode(data, strict=strict)


def encode(protocol: str, packet: FrcPacket | dict[str, Any]) -> bytes:
    """The bytes of a packet or of its ``fields``; EncodeError names the path of what does not fit."""
    codec: Any = _protocol(protocol)
    data: bytes = codec.encode(codec.from_fields(packet) if isinstance(packet, dict) else packet)
    return data


def packet_name(protocol: str) -> str:
    """Name of the packet that this protocol carries."""
    return _protocol(protocol).packet_name


def to_fields(packet: FrcPacket | Frame, *, text: str = "exact") -> dict[str, Any]:
    """JSON form. ``text`` ``replace`` shows bytes that are not UTF-8 as U+FFFD: for display only."""
    if text not in ("exact", "replace"):
        raise ValueError(f"text is exact or replace, not {text!r}")
    fields = _plain_fields(packet)
    if text == "replace":
        fields = _replaced(fields)
    return fields


def _plain_fields(packet: FrcPacket | Frame) -> dict[str, Any]:
    if isinstance(packet, TaggedPacket):
        return _BY_CLASS[type(packet)].to_fields(packet)
    if isinstance(packet, Frame):
        fields: dict[str, Any] = _table_of(packet.tag).to_fields(packet.tag)
        return fields
    return {"frames": [_table_of(tag).to_fields(tag) for tag in packet.frames]}


def _table_of(tag: Tag) -> TagTable:
    """Any table that knows the class of this frame: their JSON forms are the same."""
    tables = [protocol.table for protocol in PROTOCOLS.values() if protocol.table.stream]
    return next((table for table in tables if type(tag) in table.classes.values()), tables[0])


def _replaced(value: Any) -> Any:
    if isinstance(value, list):
        return [_replaced(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"raw_hex"}:  # a text; every other raw_hex stands beside id, size and name
        return bytes.fromhex(value["raw_hex"]).decode(errors="replace")
    return {key: _replaced(item) for key, item in value.items()}


def from_fields(protocol: str, fields: dict[str, Any]) -> Any:
    """The packet of this protocol with these fields; EncodeError names the path of what is missing or wrong."""
    return _protocol(protocol).from_fields(fields)


class FrameReader(StreamReader):
    """Puts the frames of one stream of a TCP protocol together.

    ``feed(chunk) -> list[Frame]``, ``pending``, ``close()`` (TruncatedError if bytes are pending).
    """

    def __init__(self, protocol: str, *, max_frame: int = MAX_FRAME) -> None:
        codec = _protocol(protocol)
        if not isinstance(codec, TcpProtocol):
            raise ValueError(f"{protocol} has no stream")
        super().__init__(codec.table, max_frame=max_frame)
