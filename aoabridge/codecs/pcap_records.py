"""The records of a capture file: classic pcap (both byte orders, micro- and nanoseconds) and pcapng.

Sources: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.
"""

import struct
from collections.abc import Iterator
from fractions import Fraction

import msgspec

from aoabridge.errors import DecodeError, TruncatedError

__all__ = ["Record", "read_records"]

CLASSIC_MAGICS = {  # first four octets -> byte order, ticks per second
    b"\xa1\xb2\xc3\xd4": (">", 10**6),
    b"\xd4\xc3\xb2\xa1": ("<", 10**6),
    b"\xa1\xb2\x3c\x4d": (">", 10**9),
    b"\x4d\x3c\xb2\xa1": ("<", 10**9),
}
SECTION_HEADER = b"\x0a\x0d\x0d\x0a"
BYTE_ORDER_MAGICS = {b"\x1a\x2b\x3c\x4d": ">", b"\x4d\x3c\x2b\x1a": "<"}
BLOCK_INTERFACE, BLOCK_OLD_PACKET, BLOCK_SIMPLE, BLOCK_ENHANCED = 1, 2, 3, 6
OPTION_END, OPTION_RESOLUTION, OPTION_OFFSET = 0, 9, 14


class Record(msgspec.Struct, frozen=True, gc=False):
    """One captured link-layer frame; ``number`` counts from 1 in the order of the file, ``time_s`` is Unix time.

    A simple packet block has no time: it gets that of the record before it.
    """

    number: int
    time_s: float
    link: int
    data: bytes


class _Interface(msgspec.Struct, frozen=True, gc=False):
    link: int
    ticks_per_s: int
    offset_s: int
    snap_bytes: int

    def time_s(self, ticks: int) -> float:
        return float(self.offset_s + Fraction(ticks, self.ticks_per_s))


def read_records(data: bytes) -> Iterator[Record]:
    """Yield the records in the order of the file.

    DecodeError: not a capture, or lengths that cannot be. TruncatedError, after the complete records: a file that ends
    inside one.
    """
    if data[:4] in CLASSIC_MAGICS:
        return _classic(data)
    if data[:4] == SECTION_HEADER:
        return _Sections(data).records()
    if len(data) < 4:
        raise _cut(0, 4, len(data))
    raise DecodeError(f"not a capture: begins with {data[:4].hex()}", 0)


def _cut(offset: int, length: int, size: int) -> TruncatedError:
    return TruncatedError(
        f"the capture ends inside an element of {length} bytes", needed=offset + length, got=size, offset=size
    )


def _classic(data: bytes) -> Iterator[Record]:
    order, ticks_per_s = CLASSIC_MAGICS[data[:4]]
    if len(data) < 24:
        raise _cut(0, 24, len(data))
    link = struct.unpack_from(order + "I", data, 20)[0] & 0xFFFF  # the upper half tells of frame check sequences
    header = struct.Struct(order + "IIII")
    at, number = 24, 0
    while at < len(data):
        if at + 16 > len(data):
            raise _cut(at, 16, len(data))
        seconds, ticks, captured, _original = header.unpack_from(data, at)
        if at + 16 + captured > len(data):
            raise _cut(at, 16 + captured, len(data))
        number += 1
        time_s = float(seconds + Fraction(ticks, ticks_per_s))
        yield Record(number, time_s, link, data[at + 16 : at + 16 + captured])
        at += 16 + captured


class _Sections:
    """The blocks of a pcapng file, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._order = "<"
        self._interfaces: list[_Interface] = []
        self._number = 0
        self._time_s = 0.0

    def records(self) -> Iterator[Record]:
        at, data = 0, self._data
        while at < len(data):
            if at + 12 > len(data):
                raise _cut(at, 12, len(data))
            if data[at : at + 4] == SECTION_HEADER:
                self._begin_section(at)
            kind, length = struct.unpack_from(self._order + "II", data, at)
            if length < 12 or length % 4:
                raise DecodeError(f"a block of {length} bytes cannot be", at + 4)
            if at + length > len(data):
                raise _cut(at, length, len(data))
            record = self._block(kind, data[at + 8 : at + length - 4], at)
            if record is not None:
                yield record
            at += length

    def _begin_section(self, at: int) -> None:
        order = BYTE_ORDER_MAGICS.get(self._data[at + 8 : at + 12])
        if order is None:
            raise DecodeError("a section without a byte order", at + 8)
        self._order = order
        self._interfaces = []

    def _block(self, kind: int, body: bytes, at: int) -> Record | None:
        if kind == BLOCK_INTERFACE:
            self._interfaces.append(self._interface(body, at))
        elif kind == BLOCK_ENHANCED:
            number, high, low, captured, _ = self._unpack("IIIII", body, at)
            return self._record(number, high << 32 | low, body[20:], captured, at)
        elif kind == BLOCK_OLD_PACKET:
            number, _, high, low, captured, _ = self._unpack("HHIIII", body, at)
            return self._record(number, high << 32 | low, body[20:], captured, at)
        elif kind == BLOCK_SIMPLE:
            (original,) = self._unpack("I", body, at)
            captured = min(original, len(body) - 4)
            if self._interfaces and self._interfaces[0].snap_bytes:
                captured = min(captured, self._interfaces[0].snap_bytes)
            return self._record(0, None, body[4:], captured, at)
        return None

    def _record(self, interface: int, ticks: int | None, data: bytes, captured: int, at: int) -> Record:
        if interface >= len(self._interfaces):
            raise DecodeError(f"a packet of interface {interface}, which was never described", at)
        if captured > len(data):
            raise DecodeError(f"a packet of {captured} bytes in a block that holds {len(data)}", at)
        described = self._interfaces[interface]
        if ticks is not None:
            self._time_s = described.time_s(ticks)
        self._number += 1
        return Record(self._number, self._time_s, described.link, data[:captured])

    def _interface(self, body: bytes, at: int) -> _Interface:
        link, _, snap_bytes = self._unpack("HHI", body, at)
        ticks_per_s, offset_s, begin = 10**6, 0, 8
        while begin + 4 <= len(body):
            code, length = self._unpack("HH", body[begin:], at)
            value = body[begin + 4 : begin + 4 + length]
            if code == OPTION_END:
                break
            if code == OPTION_RESOLUTION and len(value) == 1:
                ticks_per_s = 1 << (value[0] & 0x7F) if value[0] & 0x80 else 10 ** (value[0] & 0x7F)
            elif code == OPTION_OFFSET and len(value) == 8:
                (offset_s,) = struct.unpack(self._order + "q", value)
            begin += 4 + (length + 3 & ~3)
        return _Interface(link, ticks_per_s, offset_s, snap_bytes)

    def _unpack(self, codes: str, body: bytes, at: int) -> tuple[int, ...]:
        layout = struct.Struct(self._order + codes)
        if len(body) < layout.size:
            raise DecodeError(f"a block too short for its kind: {len(body)} bytes", at)
        return layout.unpack_from(body)
