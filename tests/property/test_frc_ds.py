"""Any bytes: only the documented errors, JSON without NaN, and encode(decode(b)) == b unless a length lies."""

import json
import time
from pathlib import Path

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aoabridge.codecs import frc_ds
from aoabridge.errors import DecodeError, EncodeError, TruncatedError

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "frc_ds_vectors.json").read_text())
PROTOCOLS = sorted(frc_ds.PROTOCOLS)
LENGTH_FAULTS = {"tag_overrun", "zero_size_tag", "incomplete_frame"}


@st.composite
def elements(draw, protocol, damage=True):
    """Tags or frames with known ids more often than not, and now and then a size that lies."""
    table = frc_ds.PROTOCOLS[protocol].table
    out = b""
    for _ in range(draw(st.integers(0, 6))):
        number = draw(st.one_of(st.sampled_from(sorted(table.classes) or [0]), st.integers(0, 255)))
        data = draw(st.binary(max_size=40))
        size = 1 + len(data)
        if damage and draw(st.integers(0, 19)) == 0:
            size = draw(st.integers(0, 255))
        out += size.to_bytes(2 if table.stream else 1) + bytes([number]) + data
    return out


@st.composite
def inputs(draw, protocol):
    header = b""
    if protocol.endswith("-udp"):
        size = {"fms2ds-udp": 22, "ds2fms-udp": 8, "ds2rio-udp": 6, "rio2ds-udp": 8}[protocol]
        header = draw(st.binary(min_size=size, max_size=size))
    vectors = [bytes.fromhex(vector["hex"]) for vector in VECTORS if vector["protocol"] == protocol]
    return draw(st.one_of(st.binary(max_size=80), elements(protocol).map(lambda tail: header + tail), mutated(vectors)))


def mutated(vectors):
    def change(parts):
        data, place, value = parts
        return data[: place % (len(data) + 1)] + value + data[place % (len(data) + 1) + 1 :]

    return st.tuples(st.sampled_from(vectors), st.integers(0, 400), st.binary(max_size=3)).map(change)


def check(protocol, data):
    try:
        packet = frc_ds.decode(protocol, data)
    except TruncatedError as error:
        assert error.offset == error.got == len(data) < error.needed
        return
    fields = frc_ds.to_fields(packet)
    text = orjson.dumps(fields)
    json.dumps(fields, allow_nan=False)
    assert packet.unknown_tags >= 0 and packet.unknown_values >= 0
    orjson.dumps(frc_ds.to_fields(packet, text="replace"))
    if not {fault.code for fault in packet.faults} & LENGTH_FAULTS:
        assert frc_ds.encode(protocol, packet) == data
        assert frc_ds.encode(protocol, orjson.loads(text)) == data
        assert frc_ds.encode(protocol, json.loads(json.dumps(fields))) == data
    try:
        strict = frc_ds.decode(protocol, data, strict=True)
        assert not packet.faults
        assert strict == packet
    except DecodeError as error:
        assert packet.faults
        assert (error.offset, type(error)) == (packet.faults[0].error().offset, type(packet.faults[0].error()))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_any_bytes(protocol, data):
    check(protocol, data.draw(inputs(protocol)))


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name.endswith("-tcp")])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_chunking(protocol, data):
    stream = data.draw(elements(protocol, damage=False)) + data.draw(st.binary(max_size=4))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    whole, pieces = frc_ds.FrameReader(protocol), frc_ds.FrameReader(protocol)
    expected = whole.feed(stream)
    found = []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += pieces.feed(stream[begin:end])
        assert pieces.pending <= 65_537
    assert found == expected
    assert pieces.pending == whole.pending
    assert b"".join(map(bytes, found)) == stream[: len(stream) - pieces.pending]
    assert frc_ds.decode(protocol, stream).frames == tuple(frame.tag for frame in expected)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def changed_fields(draw, vectors):
    """The fields of a vector with one value somewhere replaced, removed or added."""
    fields = json.loads(json.dumps(draw(st.sampled_from(vectors))["fields"]))
    place = fields
    while True:
        keys = sorted(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            break
        key = draw(st.sampled_from(keys))
        if isinstance(place[key], dict | list) and draw(st.booleans()):
            place = place[key]
            continue
        action = draw(st.integers(0, 2))
        if action == 0 and isinstance(place, dict):
            del place[key]
        elif action == 1 and isinstance(place, dict):
            place[draw(st.text(max_size=5))] = draw(JSON)
        else:
            place[key] = draw(JSON)
        break
    return fields


@pytest.mark.parametrize("protocol", PROTOCOLS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_fields(protocol, data):
    vectors = [v for v in VECTORS if v["protocol"] == protocol and v["fields"]]
    fields = data.draw(changed_fields(vectors))
    try:
        octets = frc_ds.encode(protocol, fields)
    except EncodeError as error:
        assert error.field is None or isinstance(error.field, str)
        return
    packet = frc_ds.decode(protocol, octets)
    assert frc_ds.encode(protocol, packet) == octets


@settings(max_examples=300, deadline=None)
@given(volts=st.floats(0, 256, exclude_max=True) | st.floats())
@example(volts=0.001953125)
@example(volts=0.005859375)
@example(volts=255.998046875)
@example(volts=255.99804687499997)
def test_volts_are_rounded_half_to_even_and_never_wrap(volts):
    status = {"raw": 0}
    fields = {"sequence": 0, "comm_version": 0, "status": status, "team": 1, "battery_volts": volts, "tags": []}
    try:
        data = frc_ds.encode("ds2fms-udp", fields)
    except EncodeError as error:
        assert error.field == "battery_volts"
        assert not -0.001 < volts * 256 < 65535.4  # true for NaN as well
        return
    assert int.from_bytes(data[6:8]) == round(volts * 256)


def cpu_seconds(frame, total):
    """CPU time of feeding ``total`` bytes, one by one."""
    reader, count = frc_ds.FrameReader("rio2ds-tcp"), 0
    octets = [bytes([octet]) for octet in frame]
    begin = time.process_time()
    for _ in range(total // len(frame)):
        for octet in octets:
            count += len(reader.feed(octet))
    spent = time.process_time() - begin
    assert (count, reader.pending) == (total // len(frame), 0)
    return spent


def test_byte_by_byte_is_linear():
    """A byte of a large frame costs what a byte of a small one costs: nothing is copied again and again."""
    small, large = ((size - 2).to_bytes(2) + bytes(size - 2) for size in (600, 60_000))
    assert cpu_seconds(large, 300_000) < 3 * cpu_seconds(small, 300_000)


def test_ten_megabytes_at_once():
    frame = (60_001).to_bytes(2) + b"\x00" + bytes(60_000)
    reader = frc_ds.FrameReader("rio2ds-tcp")
    assert len(reader.feed(frame * 170 + b"\x00")) == 170
    assert reader.pending == 1
