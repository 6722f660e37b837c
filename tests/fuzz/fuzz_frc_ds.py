"""Driver station protocols: the first byte chooses the protocol, the rest is its input."""

import json
from pathlib import Path

import orjson

from aoabridge.codecs import frc_ds
from aoabridge.errors import DecodeError

PROTOCOLS = list(frc_ds.PROTOCOLS)
LENGTH_FAULTS = {"tag_overrun", "zero_size_tag", "incomplete_frame"}


def run(data: bytes) -> None:
    """Decode, show as JSON, encode again; feed streams in halves."""
    if not data:
        return
    protocol, octets = PROTOCOLS[data[0] % len(PROTOCOLS)], data[1:]
    try:
        packet = frc_ds.decode(protocol, octets)
    except DecodeError:
        return
    fields = orjson.loads(orjson.dumps(frc_ds.to_fields(packet)))
    if not {fault.code for fault in packet.faults} & LENGTH_FAULTS:
        assert frc_ds.encode(protocol, packet) == octets
        assert frc_ds.encode(protocol, fields) == octets
    if protocol.endswith("-tcp"):
        reader = frc_ds.FrameReader(protocol)
        frames = reader.feed(octets[: len(octets) // 2]) + reader.feed(octets[len(octets) // 2 :])
        assert tuple(frame.tag for frame in frames) == packet.frames


def seeds() -> list[bytes]:
    """Every vector."""
    path = Path(__file__).parents[1] / "vectors" / "frc_ds_vectors.json"
    vectors = json.loads(path.read_text())
    return [bytes([PROTOCOLS.index(vector["protocol"])]) + bytes.fromhex(vector["hex"]) for vector in vectors]
