"""Every vector, decoded and encoded exactly; streams in any chunking."""

import json
from pathlib import Path

import msgspec
import orjson
import pytest

from aoabridge.codecs import frc_ds
from aoabridge.errors import DecodeError, TruncatedError

VECTORS = json.loads((Path(__file__).parents[3] / "vectors" / "frc_ds_vectors.json").read_text())
STREAMS = [vector for vector in VECTORS if vector["transport"] == "tcp_stream"]


def named(vectors):
    return pytest.mark.parametrize("vector", vectors, ids=[vector["name"] for vector in vectors])


def error_of(error):
    found = {"type": type(error).__name__, "offset": error.offset}
    return found | ({"needed": error.needed} if isinstance(error, TruncatedError) else {})


@named(VECTORS)
def test_decode(vector):
    data = bytes.fromhex(vector["hex"])
    if vector["error"]:
        with pytest.raises(DecodeError) as caught:
            frc_ds.decode(vector["protocol"], data)
        assert error_of(caught.value) == vector["error"]
        return
    packet = frc_ds.decode(vector["protocol"], data)
    fields = frc_ds.to_fields(packet)
    assert fields == vector["fields"]
    assert orjson.loads(orjson.dumps(fields)) == vector["fields"]
    assert json.dumps(fields, sort_keys=True) == json.dumps(
        vector["fields"], sort_keys=True
    )  # 1 is not 1.0, -0.0 is not 0
    assert [msgspec.to_builtins(fault) for fault in packet.faults] == vector["faults"]
    assert frc_ds.packet_name(vector["protocol"]) == vector["packet"]


@named(VECTORS)
def test_strict_decode(vector):
    data = bytes.fromhex(vector["hex"])
    if vector["strict_error"] is None:
        frc_ds.decode(vector["protocol"], data, strict=True)
        return
    with pytest.raises(DecodeError) as caught:
        frc_ds.decode(vector["protocol"], data, strict=True)
    assert error_of(caught.value) == vector["strict_error"]


@named([vector for vector in VECTORS if vector["roundtrip"]])
def test_encode(vector):
    data = bytes.fromhex(vector["hex"])
    assert frc_ds.encode(vector["protocol"], vector["fields"]) == data
    packet = frc_ds.decode(vector["protocol"], data)
    assert frc_ds.encode(vector["protocol"], packet) == data
    assert frc_ds.to_fields(frc_ds.from_fields(vector["protocol"], vector["fields"])) == vector["fields"]


@named([vector for vector in VECTORS if vector["valid"]])
def test_cut_at_every_length(vector):
    data = bytes.fromhex(vector["hex"])
    for length in range(len(data)):
        try:
            frc_ds.to_fields(frc_ds.decode(vector["protocol"], data[:length]))
        except TruncatedError as error:
            assert (error.offset, error.got) == (length, length)
            assert error.needed > length


def feed_all(vector, chunks):
    reader = frc_ds.FrameReader(vector["protocol"])
    frames = [frame for chunk in chunks for frame in reader.feed(chunk)]
    assert [frame.data.hex() for frame in frames] == vector["frame_hex"]
    assert [frc_ds.to_fields(frame) for frame in frames] == vector["fields"]["frames"]
    left = [fault for fault in vector["faults"] if fault["code"] == "incomplete_frame"]
    assert reader.pending == (left[0]["have"] if left else 0)
    assert [msgspec.to_builtins(frame.fault) for frame in frames if frame.fault] == [
        fault for fault in vector["faults"] if fault not in left
    ]
    if not left:
        reader.close()
        return
    with pytest.raises(TruncatedError) as caught:
        reader.close()
    assert (caught.value.offset, caught.value.needed) == (
        vector["length"],
        left[0]["offset"] + left[0]["need"],
    )


@named(STREAMS)
def test_streams_whole_byte_by_byte_and_at_every_split(vector):
    data = bytes.fromhex(vector["hex"])
    feed_all(vector, [data])
    feed_all(vector, [data[at : at + 1] for at in range(len(data))])
    for split in range(len(data) + 1):
        feed_all(vector, [data[:split], data[split:]])


@named([vector for vector in VECTORS if vector["transport"] == "tcp"])
def test_every_run_of_frames_as_a_stream(vector):
    data = bytes.fromhex(vector["hex"])
    reader = frc_ds.FrameReader(vector["protocol"])
    frames = [frame for at in range(len(data)) for frame in reader.feed(data[at : at + 1])]
    assert [frc_ds.to_fields(frame) for frame in frames] == vector["fields"]["frames"]
