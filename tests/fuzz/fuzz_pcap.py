"""Capture files."""

import struct

from aoabridge.codecs.pcap import Capture, StreamData
from aoabridge.errors import DecodeError


def run(data: bytes) -> None:
    """Read every packet; a stream never goes on after its end."""
    try:
        capture = Capture(data)
    except DecodeError:
        return
    ended = set()
    for packet in capture.packets():
        if isinstance(packet, StreamData):
            assert packet.stream not in ended
            if packet.end:
                ended.add(packet.stream)


def seeds() -> list[bytes]:
    """One datagram and one connection, in both formats."""
    udp = _ip(17, struct.pack(">HHHH", 1160, 1121, 12, 0) + b"data")
    tcp = [
        _ip(6, struct.pack(">HHIIBBHHH", 5000, 1750, sequence, 0, 0x50, flags, 0, 0, 0) + data)
        for sequence, flags, data in ((9, 2, b""), (10, 16, b"ab"), (14, 16, b"ef"), (12, 16, b"cd"), (16, 17, b""))
    ]
    frames = [bytes(12) + b"\x08\x00" + packet for packet in (udp, *tcp)]
    classic = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    classic += b"".join(struct.pack("<IIII", 1, at, len(f), len(f)) + f for at, f in enumerate(frames))
    blocks = _block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) + _block(1, struct.pack("<HHI", 1, 0, 0))
    blocks += b"".join(_block(6, struct.pack("<IIIII", 0, 0, at, len(f), len(f)) + f) for at, f in enumerate(frames))
    return [classic, blocks]


def _ip(protocol: int, body: bytes) -> bytes:
    return (
        struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 0, 0, 64, protocol, 0, b"\x7f\0\0\1", b"\x7f\0\0\1")
        + body
    )


def _block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))
