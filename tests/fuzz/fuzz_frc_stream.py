"""Driver station streams: the first two bytes choose protocol and cuts; cuts never change what is heard."""

from aoabridge.codecs import frc_ds
from aoabridge.errors import DecodeError
from fuzz.fuzz_frc_ds import seeds as datagrams

PROTOCOLS = [protocol for protocol in frc_ds.PROTOCOLS if protocol.endswith("-tcp")]
MAX_PENDING = 1 << 16  # a length prefix of two bytes


def run(data: bytes) -> None:
    """Feed whole and in pieces; the same frames, and never more held than one frame."""
    if len(data) < 3:
        return
    protocol, step, octets = PROTOCOLS[data[0] % len(PROTOCOLS)], 1 + data[1], data[2:]
    assert _frames(protocol, octets, len(octets)) == _frames(protocol, octets, step)


def _frames(protocol: str, octets: bytes, step: int) -> tuple[list[object], bool]:
    reader = frc_ds.FrameReader(protocol)
    frames: list[object] = []
    for at in range(0, len(octets), step):
        try:
            frames += reader.feed(octets[at : at + step])
        except DecodeError:
            return frames, False
        assert reader.pending <= MAX_PENDING
    return frames, True


def seeds() -> list[bytes]:
    """The stream vectors, cut in several ways, and two in a row."""
    names = list(frc_ds.PROTOCOLS)
    streams = [(names[seed[0]], seed[1:]) for seed in datagrams() if names[seed[0]] in PROTOCOLS]
    single = [bytes([PROTOCOLS.index(name), step]) + octets for name, octets in streams for step in (0, 6)]
    return single + [bytes([PROTOCOLS.index(name), 40]) + octets * 2 for name, octets in streams]
