"""Stream Motion: garbage raises only what is documented, every datagram survives bit for bit, moves stay in bounds."""

import json
import random
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aoabridge.codecs.j519 import FROM_ROBOT, TO_ROBOT, decode, encode, from_fields, packet_name, to_fields
from aoabridge.codecs.j519.dispatch import PACKETS, codec_of
from aoabridge.codecs.j519.packets import AnyStatus, MotionF64, VersionResponse
from aoabridge.codecs.j519.pc_events import PcState
from aoabridge.codecs.j519.pose import quaternion_to_wpr, wpr_to_quaternion
from aoabridge.errors import DecodeError, EncodeError
from fakes.j519 import wire

CASES = json.loads((Path(__file__).parents[1] / "vectors" / "j519_vectors.json").read_text())
ORDERS = st.sampled_from(["big", "little", "auto"])
PROTOCOLS = st.sampled_from([TO_ROBOT, FROM_ROBOT])
KINDS = [(protocol, kind) for protocol, table in PACKETS.items() for kind in table]
ANYTHING = {"allow_nonfinite": True, "allow_data_style": True}
WORDS = st.one_of(
    st.integers(0, 0xFFFFFFFF), st.sampled_from([0x7F800001, 0xFFC00001, 0x7F800000, 0xFF800000, 0x80000000, 1])
)


@given(PROTOCOLS, ORDERS, st.binary(max_size=600))
def test_garbage(protocol: str, order: Any, data: bytes) -> None:
    try:
        packet = decode(protocol, data, byte_order=order)
    except DecodeError as error:
        assert error.offset is not None and 0 <= error.offset <= max(len(data), 1)
        return
    assert len(to_fields(packet)) >= 2


@st.composite
def datagrams(draw: st.DrawFn) -> tuple[str, bytes]:
    """A datagram of the right type and length, and words as they come: signalling NaNs, infinities, everything."""
    protocol, kind = draw(st.sampled_from(KINDS))
    size = codec_of(PACKETS[protocol][kind]).size
    words = draw(st.lists(WORDS, min_size=size // 4 - 1, max_size=size // 4 - 1))
    return protocol, struct.pack(f">{size // 4}I", kind, *words)


@given(datagrams())
def test_every_bit_survives(item: tuple[str, bytes]) -> None:
    protocol, data = item
    packet = decode(protocol, data)
    fields = json.loads(json.dumps(to_fields(packet)))
    if isinstance(packet, MotionF64):
        with pytest.raises(EncodeError):
            encode(packet, **ANYTHING)
        return
    assert encode(packet, **ANYTHING) == data
    assert encode(from_fields(protocol, packet_name(packet), fields), **ANYTHING) == data


@given(datagrams(), st.data())
def test_cut_and_glued(item: tuple[str, bytes], data: st.DataObject) -> None:
    protocol, octets = item
    if isinstance(decode(protocol, octets), VersionResponse):
        return
    length = data.draw(st.integers(0, len(octets) - 1))
    for broken in (octets[:length], octets + b"\0"):
        with pytest.raises(DecodeError):
            decode(protocol, broken)


@given(st.sampled_from([case for case in CASES if case["valid"]]), st.data())
def test_flipped_bits(case: dict[str, Any], data: st.DataObject) -> None:
    octets = bytearray(bytes.fromhex(case["hex"]))
    for _ in range(data.draw(st.integers(1, 4))):
        octets[data.draw(st.integers(0, len(octets) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        packet = decode(case["protocol"], bytes(octets), byte_order=case["byte_order"])
        if not isinstance(packet, MotionF64):
            assert encode(packet, byte_order=case["byte_order"], **ANYTHING) == bytes(octets)
    except DecodeError:
        pass


ANGLES = st.floats(-180, 180)


@given(ANGLES, st.floats(-90, 90), ANGLES)
def test_angles(w: float, p: float, r: float) -> None:
    quaternion = wpr_to_quaternion(w, p, r)
    again = wpr_to_quaternion(*quaternion_to_wpr(*quaternion))
    assert abs(abs(sum(a * b for a, b in zip(quaternion, again, strict=True))) - 1) < 1e-9


@pytest.mark.parametrize("cycle_us", [8000, 4000, 2000])
@settings(max_examples=3, deadline=None)
@given(st.integers(0, 1000))
def test_a_random_walk_that_the_guard_admits_raises_no_alarm(cycle_us: int, seed: int) -> None:
    """Random jerk on every axis: whatever passes the guard, the controller accepts."""
    pair = wire(cycle_us)
    pair.make_ready()
    chance = random.Random(seed)
    period_s = cycle_us / 1_000_000
    state = [[0.0, 0.0, 0.0] for _ in range(6)]
    refused = 0

    def walk(status: AnyStatus) -> None:
        nonlocal refused
        if pair.pc.state not in (PcState.READY, PcState.STREAMING):
            return
        for axis in state if pair.pc.state is PcState.STREAMING else ():
            position, velocity, acceleration = axis
            wanted = chance.uniform(-1, 1) * 900 - 2 * acceleration - 1.2 * velocity
            acceleration += max(-1100.0, min(1100.0, wanted)) * period_s
            velocity += acceleration * period_s
            axis[:] = [position + velocity * period_s, velocity, acceleration]
        refused += bool(pair.pc.offer_setpoint([axis[0] for axis in state]))

    pair.run(3.0, walk)
    assert not pair.robot.alarms and refused == 0 and pair.pc.state is PcState.STREAMING
    assert max(abs(axis[1]) for axis in state) > 0.01
