"""Datagrams of the remote-driving centre."""

import json
from pathlib import Path

from aoabridge.codecs import teleop
from aoabridge.errors import DecodeError


def run(data: bytes) -> None:
    """Decode, check and encode again."""
    try:
        packet = teleop.decode(data)
    except DecodeError:
        return
    assert teleop.encode(packet) == data
    assert teleop.from_fields(teleop.kind_of(packet), teleop.to_fields(packet)) == packet
    teleop.check(packet)


def seeds() -> list[bytes]:
    """Every vector."""
    path = Path(__file__).parents[1] / "vectors" / "teleop_vectors.json"
    return [bytes.fromhex(vector["hex"]) for vector in json.loads(path.read_text())]
