"""Fuzz harness of the Stream Motion decoders: any octets, both directions, every byte order, both sessions."""

import json
from contextlib import suppress
from pathlib import Path

from aoabridge.codecs.j519 import FROM_ROBOT, TO_ROBOT, decode, encode, from_fields, packet_name, to_fields
from aoabridge.codecs.j519.packets import J519Packet, MotionF64
from aoabridge.codecs.j519.pc_events import PcConfig
from aoabridge.codecs.j519.pc_session import PcSession
from aoabridge.codecs.j519.robot_model import RobotConfig
from aoabridge.codecs.j519.robot_session import RobotSession
from aoabridge.errors import DecodeError

VECTORS = Path(__file__).parents[1] / "vectors" / "j519_vectors.json"


def run(data: bytes) -> None:
    """Feed one input; only the documented errors may come out, and what decodes must encode to the same octets."""
    for protocol in (TO_ROBOT, FROM_ROBOT):
        for order in ("big", "little"):
            try:
                packet = decode(protocol, data, byte_order=order)
            except DecodeError:
                continue
            _check(protocol, packet, data, order)
        with suppress(DecodeError):
            decode(protocol, data, byte_order="auto")
    _feed_sessions(data)


def _check(protocol: str, packet: J519Packet, data: bytes, order: str) -> None:
    fields = to_fields(packet)
    if isinstance(packet, MotionF64):
        return
    again = from_fields(protocol, packet_name(packet), json.loads(json.dumps(fields)))
    for one in (packet, again):
        octets = encode(one, byte_order=order, allow_nonfinite=True, allow_data_style=True)  # type: ignore[arg-type]
        assert octets == data, f"{octets.hex()} instead of {data.hex()}"


def _feed_sessions(data: bytes) -> None:
    session = PcSession(PcConfig(control=True, request_limits=False, max_step=1.0))
    session.open(0)
    session.on_tick(100_000)
    robot = RobotSession(RobotConfig(generation="driver", version=4))
    for now_us in (101_000, 109_000):
        session.on_datagram(data, now_us)
        session.offer_setpoint((0.0,) * 6)
        robot.on_datagram(data, ("192.0.2.1", 1), now_us)
        robot.set_ready(True)
        robot.on_tick(now_us)


def seeds() -> list[bytes]:
    """Every recorded datagram."""
    return [bytes.fromhex(case["hex"]) for case in json.loads(VECTORS.read_text())]
