"""Captures (classic pcap and pcapng) as bytes -> UDP datagrams and TCP streams in order, in order of time.

Link layers: Ethernet with VLAN tags, raw IP, Linux cooked (both versions), loopback (both forms); IPv4 and IPv6.
TCP bytes come in sequence order; retransmissions are dropped; what lies behind a hole is never delivered.
Sources: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng, the link type registry of tcpdump.org.
"""

from collections.abc import Container, Iterator
from typing import TypeAlias

import msgspec

from aoabridge.codecs.pcap_records import Record, read_records
from aoabridge.errors import TruncatedError

__all__ = ["Address", "Capture", "Datagram", "StreamData"]

Address: TypeAlias = tuple[str, int]

LINK_NULL, LINK_ETHERNET, LINK_LOOP, LINK_COOKED, LINK_COOKED_V2 = 0, 1, 108, 113, 276
LINK_RAW = frozenset({12, 14, 101, 228, 229})  # 12 and 14: the values of old BSD files
ETHERTYPE_IPV4, ETHERTYPE_IPV6 = 0x0800, 0x86DD
VLAN_ETHERTYPES = frozenset({0x8100, 0x88A8, 0x9100})
UDP, TCP = 17, 6
IPV6_EXTENSIONS = frozenset({0, 43, 60})  # hop-by-hop, routing, destination options: length in units of 8 octets
IPV6_FRAGMENT = 44
FIN, SYN, RST = 0x01, 0x02, 0x04
HALF_SEQUENCE_SPACE = 1 << 31
MAX_HELD_SEGMENTS = 256  # out-of-order segments kept per stream; more than a receive window of these links holds
MIN_FILE_BYTES = 24  # below this there is not even a file header


class Datagram(msgspec.Struct, frozen=True, gc=False):
    """A UDP payload; ``frame`` is the 1-based number of its record, ``time_s`` Unix seconds."""

    frame: int
    time_s: float
    src: Address
    dst: Address
    data: bytes


class StreamData(msgspec.Struct, frozen=True, gc=False):
    """The next bytes of one direction of a TCP connection, or its end (``end``, then ``data`` is empty)."""

    frame: int
    time_s: float
    src: Address
    dst: Address
    stream: int
    data: bytes
    end: bool = False


class _Stream:
    """One direction of one connection: the next sequence number and what arrived ahead of it."""

    def __init__(self, number: int, next_sequence: int) -> None:
        self.number = number
        self.first_sequence = self.next_sequence = next_sequence
        self.held: dict[int, bytes] = {}
        self.finish_at: int | None = None
        self.ended = False

    def take(self, sequence: int, data: bytes) -> bytes:
        """Return the bytes that are now in order."""
        if len(data) > len(self.held.get(sequence, b"")):
            self.held[sequence] = data
        out = []
        while ready := [start for start in self.held if self._distance(start) <= 0]:
            start = min(ready, key=self._distance)
            fresh = self.held.pop(start)[-self._distance(start) :]
            out.append(fresh)
            self.next_sequence = (self.next_sequence + len(fresh)) & 0xFFFFFFFF
        return b"".join(out)

    def finished(self) -> bool:
        return self.finish_at is not None and self._distance(self.finish_at) <= 0

    def _distance(self, sequence: int) -> int:
        """Return how far ``sequence`` lies ahead of the next one, negative if behind; wraps at 2**32."""
        ahead = (sequence - self.next_sequence) & 0xFFFFFFFF
        return ahead - (1 << 32) if ahead >= HALF_SEQUENCE_SPACE else ahead


class _Segment(msgspec.Struct, frozen=True, gc=False):
    src: Address
    dst: Address
    sequence: int
    flags: int
    data: bytes


class Capture:
    """One capture file; iterate ``packets()`` once.

    ``ports``: only packets from or to one of these are looked at (None = all). After the iteration: ``gaps`` streams
    that ended at a hole, ``fragments`` and ``cut_packets`` that were left out, ``cut`` = the error of a file that ends
    inside a record, else None. DecodeError: not a capture, or not a valid one.
    """

    def __init__(self, data: bytes, ports: Container[int] | None = None) -> None:
        self.gaps = 0
        self.fragments = 0
        self.cut_packets = 0
        self.cut: TruncatedError | None = None
        self._ports = ports
        self._streams: dict[tuple[Address, Address], _Stream] = {}
        self._opened = 0
        records: list[Record] = []
        try:
            for record in read_records(data):
                records.append(record)
        except TruncatedError as error:
            if len(data) < MIN_FILE_BYTES:
                raise
            self.cut = error
        self._records = sorted(records, key=lambda record: record.time_s)

    def packets(self) -> Iterator[Datagram | StreamData]:
        """Yield datagrams and stream bytes in order of time, at last the end of every stream still open."""
        last: Record | None = None
        for record in self._records:
            last = record
            yield from self._packet(record)
        for (src, dst), stream in self._streams.items():
            if last is not None and not stream.ended:
                yield self._end(stream, last, src, dst)

    def _packet(self, record: Record) -> Iterator[Datagram | StreamData]:
        internet = _internet_layer(record)
        if internet is None:
            return
        parsed = self._ipv4(internet) if internet[0] >> 4 == 4 else self._ipv6(internet)
        if parsed is None:
            return
        protocol, src_host, dst_host, body, whole_length = parsed
        if len(body) < 8 or protocol not in (UDP, TCP):
            return
        src = (src_host, int.from_bytes(body[0:2]))
        dst = (dst_host, int.from_bytes(body[2:4]))
        if self._ports is not None and src[1] not in self._ports and dst[1] not in self._ports:
            return
        if protocol == UDP:
            yield from self._udp(record, src, dst, body)
        else:
            yield from self._tcp(record, src, dst, body)
        if len(body) < whole_length:
            self.cut_packets += 1

    def _ipv4(self, packet: bytes) -> tuple[int, str, str, bytes, int] | None:
        header = (packet[0] & 0x0F) * 4
        if len(packet) < 20 or header < 20 or len(packet) < header:
            return None
        total = int.from_bytes(packet[2:4]) or len(packet)  # 0 = left to the card's segmentation
        if int.from_bytes(packet[6:8]) & 0x3FFF:
            self.fragments += 1
            return None
        src, dst = (".".join(str(octet) for octet in packet[at : at + 4]) for at in (12, 16))
        return packet[9], src, dst, packet[header:total], max(0, total - header)

    def _ipv6(self, packet: bytes) -> tuple[int, str, str, bytes, int] | None:
        if len(packet) < 40 or packet[0] >> 4 != 6:
            return None
        protocol, at = packet[6], 40
        total = 40 + (int.from_bytes(packet[4:6]) or len(packet) - 40)
        while protocol in IPV6_EXTENSIONS and len(packet) >= at + 8:
            protocol, at = packet[at], at + 8 + packet[at + 1] * 8
        if protocol == IPV6_FRAGMENT:
            self.fragments += 1
            return None
        src, dst = (_ipv6_text(packet[begin : begin + 16]) for begin in (8, 24))
        return protocol, src, dst, packet[at:total], max(0, total - at)

    def _udp(self, record: Record, src: Address, dst: Address, body: bytes) -> Iterator[Datagram]:
        length = int.from_bytes(body[4:6]) or len(body)
        if 8 <= length <= len(body):  # a payload cut by the capture's snap length is not a datagram
            yield Datagram(record.number, record.time_s, src, dst, body[8:length])

    def _tcp(self, record: Record, src: Address, dst: Address, body: bytes) -> Iterator[StreamData]:
        header = (body[12] >> 4) * 4 if len(body) >= 20 else 0
        if header < 20 or len(body) < header:
            return
        segment = _Segment(src, dst, int.from_bytes(body[4:8]), body[13], body[header:])
        stream = self._streams.get((src, dst))
        if segment.flags & SYN:
            start = (segment.sequence + 1) & 0xFFFFFFFF
            if stream is None or stream.first_sequence != start:  # else a repeated SYN
                if stream is not None and not stream.ended:
                    yield self._end(stream, record, src, dst)
                stream = self._open(segment, start)
            return
        if stream is None:
            if not segment.data:  # a bare ACK says nothing about where a stream begins
                return
            stream = self._open(segment, segment.sequence)
        if not stream.ended:
            yield from self._feed(stream, record, segment)

    def _open(self, segment: _Segment, next_sequence: int) -> _Stream:
        self._opened += 1
        stream = self._streams[segment.src, segment.dst] = _Stream(self._opened, next_sequence)
        return stream

    def _feed(self, stream: _Stream, record: Record, segment: _Segment) -> Iterator[StreamData]:
        data = stream.take(segment.sequence, segment.data)
        if data:
            yield StreamData(record.number, record.time_s, segment.src, segment.dst, stream.number, data)
        if segment.flags & FIN:
            stream.finish_at = (segment.sequence + len(segment.data)) & 0xFFFFFFFF
        if segment.flags & RST or stream.finished() or len(stream.held) > MAX_HELD_SEGMENTS:
            yield self._end(stream, record, segment.src, segment.dst)

    def _end(self, stream: _Stream, record: Record, src: Address, dst: Address) -> StreamData:
        stream.ended = True
        self.gaps += bool(stream.held)
        stream.held.clear()
        return StreamData(record.number, record.time_s, src, dst, stream.number, b"", end=True)


def _ipv6_text(octets: bytes) -> str:
    """Return the canonical text of RFC 5952: lower case, the first longest run of zero groups (2 or more) as ``::``."""
    groups = [int.from_bytes(octets[at : at + 2]) for at in range(0, 16, 2)]
    begin, length, at = 0, 0, 0
    while at < 8:
        run = 0
        while at + run < 8 and groups[at + run] == 0:
            run += 1
        if run > length:
            begin, length = at, run
        at += max(run, 1)
    words = [format(group, "x") for group in groups]
    if length < 2:
        return ":".join(words)
    return ":".join(words[:begin]) + "::" + ":".join(words[begin + length :])


def _internet_layer(record: Record) -> bytes | None:
    """Return the IP packet inside a link-layer frame, None if it carries none."""
    data, link = record.data, record.link
    if link in LINK_RAW:
        begin = 0
    elif link in (LINK_NULL, LINK_LOOP):
        begin = 4  # the address family is told by the IP version as well, without its byte order
    elif link == LINK_ETHERNET:
        begin = _after_ethertype(data, 12)
    elif link == LINK_COOKED:
        begin = _after_ethertype(data, 14)
    elif link == LINK_COOKED_V2:
        begin = 20 if data[:2] in (b"\x08\x00", b"\x86\xdd") else -1
    else:
        begin = -1
    packet = data[begin:] if begin >= 0 else b""
    return packet if packet and packet[0] >> 4 in (4, 6) else None


def _after_ethertype(data: bytes, at: int) -> int:
    """Return where the payload begins, behind the type at ``at`` and any VLAN tags; -1 if it is not IP."""
    while int.from_bytes(data[at : at + 2]) in VLAN_ETHERTYPES:
        at += 4
    return at + 2 if int.from_bytes(data[at : at + 2]) in (ETHERTYPE_IPV4, ETHERTYPE_IPV6) else -1
