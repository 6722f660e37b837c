import ctypes
import json
from pathlib import Path

import pytest

from aoabridge.codecs import teleop
from aoabridge.errors import DecodeError, EncodeError, TruncatedError, UnknownPacketError

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "teleop_vectors.json").read_text())
VALID = [vector for vector in VECTORS if vector["valid"]]
BY_KIND = {vector["packet"]: bytes.fromhex(vector["hex"]) for vector in VALID}


def named(vectors):
    return pytest.mark.parametrize("vector", vectors, ids=[vector["name"] for vector in vectors])


@named(VALID)
def test_valid(vector):
    data = bytes.fromhex(vector["hex"])
    packet = teleop.decode(data, vector.get("kinds"))
    assert teleop.kind_of(packet) == vector["packet"]
    assert teleop.to_fields(packet) == vector["fields"]
    assert teleop.encode(packet) == data
    assert teleop.from_fields(vector["packet"], vector["fields"]) == packet
    assert teleop.check(packet) == vector["check"]
    for field, name in vector["labels"].items():
        value = vector["fields"][field]
        assert teleop.label(field, value) == (f"unknown({value})" if name is None else name)
    assert teleop.decode(data, {vector["packet"]}) == packet
    assert teleop.decode(bytearray(data)) == teleop.decode(memoryview(data)) == packet


@named([vector for vector in VECTORS if not vector["valid"]])
def test_malformed(vector):
    data = bytes.fromhex(vector["hex"])
    with pytest.raises(DecodeError) as caught:
        teleop.decode(data, vector.get("kinds"))
    error = caught.value
    found = {"type": type(error).__name__, "offset": error.offset}
    if isinstance(error, TruncatedError):
        found["needed"] = error.needed
        assert error.got == len(data)
    assert found == vector["error"]


@pytest.mark.parametrize("kind", teleop.KINDS)
def test_cut_at_every_length(kind):
    data = BY_KIND[kind]
    for length in range(len(data)):
        if kind == "uplink" and length == 20:
            assert teleop.kind_of(teleop.decode(data[:length])) == "downlink"
            with pytest.raises(UnknownPacketError):
                teleop.decode(data[:length], {"uplink"})
            continue
        with pytest.raises(TruncatedError) as caught:
            teleop.decode(data[:length])
        error = caught.value
        assert (error.offset, error.got) == (length, length)
        if length < 4:
            assert error.needed == 4
        elif kind in ("uplink", "downlink"):
            assert error.needed == (20 if length < 20 else 32)
        else:
            assert error.needed == len(data)


@pytest.mark.parametrize("kind", teleop.KINDS)
def test_longer_than_the_longest_legal_length(kind):
    longest = 32 if kind == "downlink" else len(BY_KIND[kind])
    for extra in (1, 2, 100):
        with pytest.raises(DecodeError) as caught:
            teleop.decode(BY_KIND[kind][:longest] + bytes(longest - len(BY_KIND[kind]) + extra))
        assert not isinstance(caught.value, TruncatedError | UnknownPacketError)
        assert caught.value.offset == longest


def message_of(data, kinds=None):
    with pytest.raises(DecodeError) as caught:
        teleop.decode(data, kinds)
    return str(caught.value)


def test_messages_name_what_the_sender_may_be():
    uplink, downlink, ctrl = BY_KIND["uplink"], BY_KIND["downlink"], BY_KIND["home_ctrl"]
    assert "0xbaa" in message_of(b"\xaa\x0b\xf1\x0a" + bytes(28)) and "0xaf1" in message_of(b"\xaa\x0b\xf1\x0a")
    assert "big-endian sender?" in message_of(b"\x0a\xaa\x0a\xf1" + bytes(28))
    assert "big-endian sender?" in message_of(b"\x00\x10\x00\x11" + bytes(2))
    assert "big-endian" not in message_of(b"\x10\x00\x10\x00" + bytes(2))
    assert "id 0xAF2: sibling program" in message_of(b"\xaa\x0a\xf2\x0a" + bytes(28))
    assert "uplink of an older sibling program" in message_of(uplink + bytes(32))
    assert "uplink of an older sibling program" in message_of(uplink + bytes(28))
    assert "downlink of an older sibling program" in message_of(downlink + bytes(8))
    assert "control datagram of an older sibling program" in message_of(ctrl + bytes(58))
    assert "older" not in message_of(uplink + bytes(1))
    assert message_of(uplink, {"downlink"}) == "uplink (32 octets) not expected here (downlink)"
    assert message_of(ctrl, {"uplink", "downlink"}) == "home_ctrl (18 octets) not expected here (downlink, uplink)"


def test_length_is_judged_before_kinds():
    with pytest.raises(TruncatedError):
        teleop.decode(BY_KIND["home_ctrl"][:-1], {"uplink"})


class UplinkC(ctypes.LittleEndianStructure):
    _fields_ = [(name, ctypes.c_int16) for name in ("gram_header", "gram_id", "vehicle_id", "vehicle_state")] + [
        ("longitude", ctypes.c_uint32),
        ("latitude", ctypes.c_uint32),
        ("heading", ctypes.c_uint16),
        ("speed", ctypes.c_int16),
        ("steering", ctypes.c_int32),
        ("ctrl_sign", ctypes.c_int16),
        ("ctrl_info", ctypes.c_int16),
        ("rpm", ctypes.c_int16),
        ("unused0", ctypes.c_int16),
    ]


class DownlinkC(ctypes.LittleEndianStructure):
    _fields_ = [
        (name, ctypes.c_int16)
        for name in (
            "gram_header",
            "gram_id",
            "vehicle_id",
            "rc_speed",
            "rc_acc_pedal",
            "rc_brake_pedal",
            "ctrl_sign",
            "unused",
        )
    ] + [("rc_steer", ctypes.c_int32)]


class HomeCtrlC(ctypes.LittleEndianStructure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [
        ("gram_header", ctypes.c_int16),
        ("gram_id", ctypes.c_int16),
        ("vehicle_id", ctypes.c_int16),
        ("rc_steering", ctypes.c_int32),
        ("rc_speed", ctypes.c_int16),
        ("rc_acc_pedal", ctypes.c_int16),
        ("rc_brk_pedal", ctypes.c_int16),
        ("ping_time", ctypes.c_int16),
    ]


class HomeTriggerC(ctypes.LittleEndianStructure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [(name, ctypes.c_int16) for name in ("gram_header", "gram_id", "ctrl_state")]


@pytest.mark.parametrize(
    ("kind", "c_struct", "size"),
    [
        ("uplink", UplinkC, 32),
        ("downlink", DownlinkC, 20),
        ("home_ctrl", HomeCtrlC, 18),
        ("home_trigger", HomeTriggerC, 6),
    ],
)
def test_layout_is_that_of_the_c_structs(kind, c_struct, size):
    assert ctypes.sizeof(c_struct) == size == len(BY_KIND[kind])
    for vector in VALID:
        if vector["packet"] == kind:
            native = c_struct.from_buffer_copy(bytes.fromhex(vector["hex"]))
            assert {name: getattr(native, name) for name, _ in c_struct._fields_} == vector["fields"]
    for name, kind_of_field in c_struct._fields_:
        if name in ("gram_header", "gram_id"):
            continue
        blank = teleop.to_fields(teleop.decode(bytes.fromhex(next(v["hex"] for v in VALID if v["packet"] == kind))))
        blank = {key: value if key.startswith("gram") else 0 for key, value in blank.items()}
        data = teleop.encode(teleop.from_fields(kind, blank | {name: 1}))
        assert data[4:].index(1) + 4 == getattr(c_struct, name).offset
        assert getattr(c_struct, name).size == ctypes.sizeof(kind_of_field)


RANGES = {"I16": (-(1 << 15), (1 << 15) - 1), "U16": (0, (1 << 16) - 1)}
RANGES |= {"I32": (-(1 << 31), (1 << 31) - 1), "U32": (0, (1 << 32) - 1)}
WIDE = {
    "longitude": "U32",
    "latitude": "U32",
    "heading": "U16",
    "steering": "I32",
    "rc_steer": "I32",
    "rc_steering": "I32",
}


@pytest.mark.parametrize("kind", teleop.KINDS)
def test_encode_names_the_field_outside_its_type(kind):
    fields = teleop.to_fields(teleop.decode(BY_KIND[kind]))
    for name in fields:
        if name in ("gram_header", "gram_id"):
            with pytest.raises(EncodeError) as caught:
                teleop.from_fields(kind, fields | {name: 1})
            assert caught.value.field == name
            continue
        low, high = RANGES[WIDE.get(name, "I16")]
        for value in (low, high):
            packet = teleop.from_fields(kind, fields | {name: value})
            assert teleop.to_fields(teleop.decode(teleop.encode(packet)))[name] == value
        for value in (low - 1, high + 1, 10**30):
            with pytest.raises(EncodeError) as caught:
                teleop.encode(teleop.from_fields(kind, fields | {name: value}))
            assert caught.value.field == name
        for value in (True, 1.0, "1", None):
            with pytest.raises(EncodeError) as caught:
                teleop.from_fields(kind, fields | {name: value})
            assert caught.value.field == name


def test_header_and_id_are_filled_in():
    assert teleop.encode(teleop.HomeTrigger(1)) == bytes.fromhex("100011000100")
    assert teleop.from_fields("home_trigger", {"ctrl_state": 1}) == teleop.HomeTrigger(1)
    with pytest.raises(EncodeError) as caught:
        teleop.from_fields("home_trigger", {})
    assert caught.value.field == "ctrl_state"
    with pytest.raises(EncodeError) as caught:
        teleop.from_fields("uplnk", {})
    assert caught.value.field == "packet"
    with pytest.raises(EncodeError):
        teleop.encode("text")


def test_check_knows_its_vehicles():
    packet = teleop.HomeCtrl(0x00D, 0, 0, 0, 0, 0)
    assert teleop.check(packet) == ["unknown_vehicle:vehicle_id"]
    assert teleop.check(packet, (0x00D,)) == []
    assert teleop.check(teleop.HomeCtrl(0, 0, 0, 0, 0, 0), ()) == []
    assert teleop.check(teleop.Downlink(0, 0, 101, -1, 2, 3, 0)) == [
        "out_of_range:rc_acc_pedal",
        "out_of_range:rc_brake_pedal",
        "reserved_nonzero:unused",
        "unknown_enum:ctrl_sign",
        "unknown_vehicle:vehicle_id",
    ]
