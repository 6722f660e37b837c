"""Every recorded and derived datagram, exact in both directions, with the exact error where it is none."""

import json
import math
import struct
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aoabridge.codecs.j519 import FROM_ROBOT, TO_ROBOT, decode, encode, from_fields, packet_name, to_fields
from aoabridge.codecs.j519.dispatch import NAMES, PACKETS, codec_of, fitting_order
from aoabridge.codecs.j519.packets import (
    ExtCommand,
    GpioResult,
    LittleEndianDatagram,
    Motion,
    MotionF64,
    Request,
    Start,
    Status,
    VersionResponse,
)
from aoabridge.errors import DecodeError, EncodeError, TruncatedError, UnknownPacketError

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parents[3] / "vectors" / "j519_vectors.json").read_text())
VALID = [case for case in CASES if case["valid"]]
MALFORMED = [case for case in CASES if not case["valid"]]
ENCODABLE = [case for case in VALID if case["packet"] != "motion_f64"]
ANYTHING = {"allow_nonfinite": True, "allow_data_style": True}

# The table of the protocol: direction, type, octets, name, struct form.
TABLE = [
    (TO_ROBOT, 0, 8, "start", ">II"),
    (TO_ROBOT, 1, 64, "motion", ">IIIBBHHBBHHHH9f"),
    (TO_ROBOT, 2, 8, "stop", ">II"),
    (TO_ROBOT, 3, 16, "request", ">IIII"),
    (TO_ROBOT, 4, 8, "cmd_pos_request", ">II"),
    (TO_ROBOT, 5, 104, "motion_f64", ">IIIBBHHBBHHH3H9d"),
    (TO_ROBOT, 6, 8, "version_request", ">II"),
    (TO_ROBOT, 7, 28, "capability", ">7I"),
    (TO_ROBOT, 8, 28, "capability", ">7I"),
    (TO_ROBOT, 200, 8, "ext_start", ">II"),
    (TO_ROBOT, 201, 344, "ext_command", ">IIIBBH9d256s"),
    (TO_ROBOT, 203, 520, "gpio_config", ">II128I"),
    (TO_ROBOT, 205, 16, "force_config", ">IIII"),
    (FROM_ROBOT, 0, 132, "status", ">IIIBBHHHI27f"),
    (FROM_ROBOT, 3, 184, "ack", ">IIIIII40f"),
    (FROM_ROBOT, 4, 84, "cmd_pos_response", ">III18f"),
    (FROM_ROBOT, 6, 8, "version_response", ">II"),
    (FROM_ROBOT, 7, 28, "capability", ">7I"),
    (FROM_ROBOT, 8, 28, "capability", ">7I"),
    (FROM_ROBOT, 202, 388, "ext_status_v3", ">IIIBBBBI27ff256s"),
    (FROM_ROBOT, 204, 416, "ext_status_v4", ">IIIBBBBI27ff6fI256s"),
    (FROM_ROBOT, 203, 12, "gpio_result", ">III"),
]


def named(cases: list[dict[str, Any]]) -> Any:
    return pytest.mark.parametrize("case", cases, ids=[case["name"] for case in cases])


def octets(name: str) -> bytes:
    return bytes.fromhex(next(case["hex"] for case in CASES if case["name"] == name))


def test_the_table_is_complete() -> None:
    rows = [
        (protocol, kind, codec_of(packet_class).size, NAMES[packet_class], packet_class)
        for protocol, table in PACKETS.items()
        for kind, packet_class in table.items()
    ]
    assert sorted(row[:4] for row in rows) == sorted(row[:4] for row in TABLE)
    for protocol, kind, size, name, form in TABLE:
        codec = codec_of(PACKETS[protocol][kind])
        assert _flat(codec.format) == _flat(form) and struct.calcsize(form) == size, name
        assert {case["packet"] for case in VALID} >= {name}


def _flat(form: str) -> str:
    flat, count = "", ""
    for char in form:
        if char.isdigit():
            count += char
        else:
            flat += count + char if char == "s" else char * int(count or 1)
            count = ""
    return flat


@named(VALID)
def test_decode_is_exact(case: dict[str, Any]) -> None:
    packet = decode(case["protocol"], bytes.fromhex(case["hex"]), byte_order=case["byte_order"])
    assert packet_name(packet) == case["packet"]
    assert json.dumps(to_fields(packet)) == json.dumps(case["fields"])  # as text: -0.0 and the order count, too
    assert packet.suspect == case.get("suspect", False)


@named(ENCODABLE)
def test_encode_is_exact(case: dict[str, Any]) -> None:
    data = bytes.fromhex(case["hex"])
    order = case["byte_order"]
    packet = from_fields(case["protocol"], case["packet"], case["fields"])
    assert encode(packet, byte_order=order, **ANYTHING) == data
    again = decode(case["protocol"], data, byte_order=order)
    assert encode(again, byte_order=order, **ANYTHING) == data
    bits_only = {key: value for key, value in case["fields"].items() if f"{key}_bits" not in case["fields"]}
    assert encode(from_fields(case["protocol"], case["packet"], bits_only), byte_order=order, **ANYTHING) == data


@named(VALID)
def test_auto_chooses_the_order(case: dict[str, Any]) -> None:
    data = bytes.fromhex(case["hex"])
    assert fitting_order(case["protocol"], data) == case["auto"]
    packet = decode(case["protocol"], data, byte_order="auto")
    assert to_fields(packet) == to_fields(decode(case["protocol"], data, byte_order=case["auto"]))


@named([case for case in VALID if "as_big" in case])
def test_little_endian_read_as_big(case: dict[str, Any]) -> None:
    data, expected = bytes.fromhex(case["hex"]), case["as_big"]
    if "error" in expected:
        with pytest.raises(DecodeError) as caught:
            decode(case["protocol"], data)
        assert type(caught.value).__name__ == expected["error"]["type"]
        assert caught.value.offset == expected["error"]["offset"]
        return
    packet = decode(case["protocol"], data)
    assert packet.suspect
    assert (packet_name(packet), packet.version_no) == (expected["packet"], expected["version_no"])  # type: ignore[attr-defined]


@named(MALFORMED)
def test_malformed_raises_exactly(case: dict[str, Any]) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(case["protocol"], bytes.fromhex(case["hex"]), byte_order=case["byte_order"])
    error = caught.value
    assert type(error).__name__ == case["error"]["type"]
    assert error.offset == case["error"]["offset"]
    if isinstance(error, TruncatedError):
        assert error.needed == case["error"]["needed"] and error.got == case["length"]


@named(VALID)
def test_cut_at_every_length_and_glued(case: dict[str, Any]) -> None:
    data, order = bytes.fromhex(case["hex"]), case["byte_order"]
    size = 8 if case["packet"] == "version_response" else len(data)
    for length in range(size):
        with pytest.raises(TruncatedError) as caught:
            decode(case["protocol"], data[:length], byte_order=order)
        assert (caught.value.offset, caught.value.needed) == (length, 8 if length < 8 else size)
    if case["packet"] != "version_response":
        for longer in (data + b"\0", data + data):
            with pytest.raises(DecodeError) as too_long:
                decode(case["protocol"], longer, byte_order=order)
            assert type(too_long.value) is DecodeError and too_long.value.offset == size


@named([case for case in VALID if case["byte_order"] == "big"])
def test_little_endian_has_the_classic_six_only(case: dict[str, Any]) -> None:
    data = bytes.fromhex(case["hex"])
    swapped = data[3::-1] + data[7:3:-1] + data[8:]
    if case["packet"] in ("start", "motion", "stop", "request", "status", "ack"):
        assert packet_name(decode(case["protocol"], swapped, byte_order="little")) == case["packet"]
        return
    with pytest.raises(UnknownPacketError):
        decode(case["protocol"], swapped, byte_order="little")
    if case["packet"] != "motion_f64":
        with pytest.raises(EncodeError):
            encode(decode(case["protocol"], data), byte_order="little", **ANYTHING)


def test_the_other_direction_is_named() -> None:
    with pytest.raises(UnknownPacketError, match="motion of j519-to-robot") as caught:
        decode(FROM_ROBOT, octets("capture_motion_seq2"))
    assert (caught.value.kind, caught.value.offset) == (1, 0)
    with pytest.raises(UnknownPacketError) as unknown:
        decode(FROM_ROBOT, octets("capture_motion_seq2")[:60])
    assert "motion" not in str(unknown.value)


@pytest.mark.parametrize("kind", [0x01000007, 0x000000CC00, 0x80000000, 9, 255, 256])
def test_the_whole_type_word_counts(kind: int) -> None:
    for protocol in PACKETS:
        for size in (8, 28, 132, 416):
            data = (kind & 0xFFFFFFFF).to_bytes(4, "big") + bytes(size - 4)
            with pytest.raises(UnknownPacketError) as caught:
                decode(protocol, data)
            assert caught.value.kind == kind & 0xFFFFFFFF


def test_wrong_calls_are_plain_value_errors() -> None:
    for call in (
        lambda: decode("j519", bytes(8)),
        lambda: decode(TO_ROBOT, bytes(8), byte_order="middle"),  # type: ignore[arg-type]
        lambda: from_fields("j519", "start", {}),
    ):
        with pytest.raises(ValueError) as caught:
            call()
        assert type(caught.value) is ValueError


def test_other_buffers_are_taken() -> None:
    data = octets("capture_motion_seq2")
    for buffer in (bytearray(data), memoryview(data)):
        packet = decode(TO_ROBOT, buffer)  # type: ignore[arg-type]
        assert packet == decode(TO_ROBOT, data)
        assert encode(packet) == data


def test_sending_never_guesses() -> None:
    packet = decode(TO_ROBOT, octets("capture_motion_seq2"))
    with pytest.raises(EncodeError, match="never guessed"):
        encode(packet, byte_order="auto")


def motion(axes: tuple[float, ...] = (0.0,) * 9, **values: Any) -> Motion:
    base = Motion(1, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, axes)
    return msgspec.structs.replace(base, **values)


@pytest.mark.parametrize("order", ["big", "little"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_commands_that_are_not_finite(value: float, order: Any) -> None:
    axes = (0.0, 1.0, value, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    with pytest.raises(EncodeError) as caught:
        encode(motion(axes), byte_order=order)
    assert caught.value.field == "axes[2]"
    assert len(encode(motion(axes), byte_order=order, allow_nonfinite=True)) == 64
    if order == "big":
        command = ExtCommand(3, 1, 0, 1, 0xFFFF, axes, bytes(256))
        with pytest.raises(EncodeError) as ext:
            encode(command)
        assert ext.value.field == "axes[2]"
        assert len(encode(command, allow_nonfinite=True)) == 344


def test_huge_but_finite_doubles_are_fine_in_binary64_only() -> None:
    axes = (1.7e308,) * 9
    assert len(encode(ExtCommand(3, 1, 0, 1, 0xFFFF, axes, bytes(256)))) == 344
    for nonfinite in (False, True):
        with pytest.raises(EncodeError) as caught:
            encode(motion(axes), allow_nonfinite=nonfinite)
        assert caught.value.field == "axes[0]"


def test_a_style_that_makes_the_arm_slew() -> None:
    command = ExtCommand(3, 1, 0, 1, 0, (0.0,) * 9, bytes(256))
    with pytest.raises(EncodeError) as caught:
        encode(command)
    assert caught.value.field == "data_style"
    with pytest.raises(EncodeError):
        encode(command, allow_nonfinite=True)
    assert len(encode(command, allow_data_style=True)) == 344


def test_the_experimental_command_is_never_encoded() -> None:
    packet = MotionF64(2, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, (0, 0, 0), (0.0,) * 9)
    with pytest.raises(EncodeError, match="experimental: decode only"):
        encode(packet, **ANYTHING)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"sequence_no": 1 << 32}, "sequence_no"),
        ({"sequence_no": -1}, "sequence_no"),
        ({"last_data": 256}, "last_data"),
        ({"write_io_value": 65536}, "write_io_value"),
        ({"axes": (0.0,) * 8}, "axes"),
        ({"axes": (0.0,) * 10}, "axes"),
        ({"axes": (0.0,) * 8 + (3.5e38,)}, "axes[8]"),
        ({"axes": (0.0,) * 8 + ("x",)}, "axes[8]"),
    ],
)
@pytest.mark.parametrize("order", ["big", "little"])
def test_encode_names_the_field(values: dict[str, Any], field: str, order: Any) -> None:
    with pytest.raises(EncodeError) as caught:
        encode(motion(**values), byte_order=order)
    assert caught.value.field == field


def test_capability_has_two_types() -> None:
    packet = decode(FROM_ROBOT, octets("set_capability_result"))
    assert encode(packet)[:4] == b"\0\0\0\x08"
    with pytest.raises(EncodeError) as caught:
        encode(msgspec.structs.replace(packet, packet_type=9))
    assert caught.value.field == "packet_type"


def test_nan_bits_survive_a_change_of_order_and_of_other_fields() -> None:
    data = bytearray(octets("capture_motion_seq2"))
    data[28:32] = bytes.fromhex("7f800001")
    packet = decode(TO_ROBOT, bytes(data))
    little = encode(packet, byte_order="little", allow_nonfinite=True)
    assert little[28:32] == bytes.fromhex("0100807f")
    from_little = decode(TO_ROBOT, little, byte_order="little")
    assert isinstance(from_little.raw, LittleEndianDatagram)  # type: ignore[attr-defined]
    assert encode(from_little, allow_nonfinite=True) == bytes(data)
    assert to_fields(from_little) == to_fields(packet)
    assert to_fields(packet)["axes_bits"][0] == "7f800001"
    other = msgspec.structs.replace(packet, axes=(math.nan, math.nan, *(0.0,) * 7))
    assert encode(other, allow_nonfinite=True)[28:36] == bytes.fromhex("7f8000017fc00000")


def test_changed_numbers_are_what_is_written() -> None:
    packet = decode(TO_ROBOT, octets("capture_motion_seq2"))
    other = msgspec.structs.replace(packet, axes=(1.0,) * 9)
    assert to_fields(other)["axes_bits"] == ["3f800000"] * 9


def test_version_response_keeps_what_follows() -> None:
    packet = decode(FROM_ROBOT, b"\0\0\0\x06\0\0\0\x03\xab\xcd")
    assert packet == VersionResponse(3, b"\xab\xcd") and to_fields(packet)["extra_hex"] == "abcd"
    assert encode(packet) == b"\0\0\0\x06\0\0\0\x03\xab\xcd"
    assert from_fields(FROM_ROBOT, "version_response", to_fields(packet)) == packet
    assert "extra_hex" not in to_fields(VersionResponse(3))


def test_suspect_by_version() -> None:
    assert Start(0x10000).suspect and not Start(0xFFFF).suspect
    assert not GpioResult(0xFFFFFFFF, 0xFFFFFFFF).suspect


def test_auto_prefers_big_and_reports_its_error() -> None:
    for data in (bytes(3), b"\0\0\0\x09" + bytes(4), b"\0\0\0\x01" + bytes(30)):
        with pytest.raises(DecodeError) as auto:
            decode(TO_ROBOT, data, byte_order="auto")
        with pytest.raises(DecodeError) as big:
            decode(TO_ROBOT, data)
        assert str(auto.value) == str(big.value)
    assert decode(TO_ROBOT, bytes(8), byte_order="auto") == Start(0)
    assert fitting_order(TO_ROBOT, bytes(4) + b"\xff\xff\xff\xff") == "big"
    assert fitting_order(TO_ROBOT, b"\x02\0\0\0\xff\xff\xff\xff") == "little"


def test_enumerations_stay_visible() -> None:
    packet = decode(FROM_ROBOT, encode(Status(1, 5, 0x9F, 99, 1, 2, 3, 4, *((0.0,) * 9,) * 3)))
    assert isinstance(packet, Status)
    assert packet.read_io_type == 99 and type(packet.read_io_type) is int
    assert packet.ready and packet.command_received and packet.sysrdy and packet.in_motion and packet.packet_rate == 9
    assert type(Request(1, 1, 2).threshold_type) is int
    assert repr(decode(TO_ROBOT, encode(Request(1, 1, 2))).threshold_type).startswith("<ThresholdType.JERK")  # type: ignore[attr-defined]
