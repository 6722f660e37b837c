"""Packet classes compiled to codecs: every kind of field, both byte orders, every error."""

import math
import struct
from enum import IntEnum
from typing import Annotated, ClassVar

import pytest

from aoabridge.codecs.packets import Packet, PacketCodec
from aoabridge.codecs.wire import (
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    RAW_AND_NAME,
    U8,
    U16,
    U32,
    U64,
    Bit,
    Bits,
    Choice,
    FlagByte,
    Raw,
    Wire,
    WireInt,
)
from aoabridge.errors import DecodeError, EncodeError, TruncatedError


class Level(IntEnum):
    LOW = 0
    HIGH = 3


class Flags(FlagByte):
    mode = Choice(0x03, "teleop", "test", "autonomous", "invalid")
    enabled = Bit(0x04)
    estop = Bit(0x80)
    reserved = Bits(0x38)


class Station(WireInt):
    @property
    def alliance(self) -> str | None:
        return ("red", "blue")[self // 3] if self < 6 else None

    def to_fields(self) -> object:
        return {"raw": int(self), "alliance": self.alliance}

    @classmethod
    def from_fields(cls, value: object, path: str) -> "Station":
        if not isinstance(value, dict):
            raise EncodeError(path, path)
        return cls(value["raw"])


class Date(Packet, frozen=True, gc=False):
    microseconds: Annotated[int, U32]
    month: Annotated[int, U8]


class Everything(Packet, frozen=True, gc=False):
    magic: ClassVar[Annotated[int, U16]] = 0x0AAA
    u8: Annotated[int, U8]
    i8: Annotated[int, I8]
    i16: Annotated[int, I16]
    i32: Annotated[int, I32]
    i64: Annotated[int, I64]
    u64: Annotated[int, U64]
    level: Annotated[Level | int, U8]
    wide_level: Annotated[Level | int, Wire("H", form=RAW_AND_NAME)]
    flags: Annotated[Flags, U8]
    station: Annotated[Station, U8]
    wide_station: Annotated[Station, U16]
    volts: Annotated[float, Wire("H", scale=1 / 256, unit="V")]
    f32: Annotated[float, F32]
    f64: Annotated[float, F64]
    floats: Annotated[tuple[float, ...], Wire("f", count=3)]
    levels: Annotated[tuple[Level | int, ...], Wire("B", count=2)]
    rows: Annotated[tuple[tuple[int, ...], ...], Wire("I", count=(2, 2))]
    name: Annotated[str, Wire("s", count=8)]
    blob: Annotated[bytes, Wire("s", count=4)]
    date: Date
    tags: tuple[int, ...] = ()
    raw: Raw = b""


CODEC = PacketCodec(Everything)
LITTLE = PacketCodec(Everything, "little")
SAMPLE = Everything(
    200, -5, -300, -70_000, -(1 << 40), 1 << 63, Level.HIGH, Level.HIGH, Flags(0x85), Station(4), Station(500), 12.5,
    0.5, math.pi, (1.0, -2.0, 0.25), (Level.LOW, 77), ((1, 2), (3, 0xFFFFFFFF)), "grüß", b"\0\1\2\3", Date(999_999, 11),
)  # fmt: skip
FIELDS = {
    "magic": 0x0AAA, "u8": 200, "i8": -5, "i16": -300, "i32": -70_000, "i64": -(1 << 40), "u64": 1 << 63, "level": 3,
    "wide_level": {"raw": 3, "name": "high"},
    "flags": {"raw": 0x85, "mode": "test", "enabled": True, "estop": True, "reserved": 0},
    "station": {"raw": 4, "alliance": "blue"}, "wide_station": {"raw": 500, "alliance": None},
    "volts": 12.5, "f32": 0.5, "f64": math.pi, "floats": [1.0, -2.0, 0.25], "levels": [0, 77],
    "rows": [[1, 2], [3, 0xFFFFFFFF]], "name": "grüß", "blob_hex": "00010203",
    "date": {"microseconds": 999_999, "month": 11},
}  # fmt: skip


def changed(**values: object) -> Everything:
    return Everything(**{name: values.get(name, getattr(SAMPLE, name)) for name in Everything.__struct_fields__})  # type: ignore[arg-type]


def test_the_class_is_the_table() -> None:
    assert CODEC.format == ">HBbhiqQBHBBHHfd3f2B4I8s4sIB"
    assert CODEC.size == struct.calcsize(CODEC.format) == LITTLE.size
    assert [(field.name, field.offset) for field in CODEC.fields[:4]] == [
        ("magic", 0),
        ("u8", 2),
        ("i8", 3),
        ("i16", 4),
    ]
    assert next(field for field in CODEC.fields if field.name == "volts").wire.unit == "V"


@pytest.mark.parametrize("codec", [CODEC, LITTLE])
def test_round_trip_in_both_orders(codec: PacketCodec[Everything]) -> None:
    data = codec.encode(SAMPLE)
    packet = codec.decode(data)
    assert packet == SAMPLE and hash(packet) == hash(SAMPLE)
    assert packet.raw == data and codec.encode(packet) == data
    assert isinstance(packet.level, Level) and isinstance(packet.wide_level, Level)
    assert packet.levels == (Level.LOW, 77) and type(packet.levels[1]) is int
    assert isinstance(packet.flags, Flags) and packet.flags.mode == "test" and packet.flags.enabled
    assert packet.station.alliance == "blue" and packet.wide_station == 500
    assert packet.name == "grüß"


def test_the_orders_are_mirror_images() -> None:
    assert CODEC.encode(SAMPLE)[:2] == b"\x0a\xaa" and LITTLE.encode(SAMPLE)[:2] == b"\xaa\x0a"


def test_json_form_round_trips() -> None:
    assert CODEC.to_fields(SAMPLE) == FIELDS
    assert list(CODEC.to_fields(SAMPLE)) == list(FIELDS)
    assert CODEC.from_fields(FIELDS) == SAMPLE
    assert CODEC.from_fields({**FIELDS, "size": 1}, (7,), ignored=("size",)).tags == (7,)


def test_header_with_a_tail() -> None:
    data = b"xx" + CODEC.encode(SAMPLE) + b"tail"
    packet = CODEC.decode_from(data, 2, (1, 2))
    assert packet == changed(tags=(1, 2)) and packet.raw == data[2:]
    with pytest.raises(TruncatedError) as caught:
        CODEC.decode_from(data[:20], 2)
    assert (caught.value.needed, caught.value.got, caught.value.offset) == (CODEC.size + 2, 20, 20)


@pytest.mark.parametrize("length", range(CODEC.size))
def test_cut_at_every_length(length: int) -> None:
    with pytest.raises(TruncatedError) as caught:
        CODEC.decode(CODEC.encode(SAMPLE)[:length])
    assert (caught.value.needed, caught.value.got, caught.value.offset) == (CODEC.size, length, length)


def test_too_long_and_wrong_constant() -> None:
    data = CODEC.encode(SAMPLE)
    with pytest.raises(DecodeError) as caught:
        CODEC.decode(data + b"\0")
    assert caught.value.offset == CODEC.size
    with pytest.raises(DecodeError, match="magic cannot be 43530") as wrong:
        LITTLE.decode(data)
    assert wrong.value.offset == 0
    with pytest.raises(DecodeError) as shifted:
        LITTLE.decode_from(b"xxx" + data, 3)
    assert shifted.value.offset == 3


def test_arrays_survive_any_values() -> None:
    packet = changed(floats=(math.inf, -0.0, math.nan))
    again = CODEC.decode(CODEC.encode(packet))
    assert again.floats[0] == math.inf and math.copysign(1, again.floats[1]) == -1 and math.isnan(again.floats[2])


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"u8": 256}, "u8"),
        ({"u8": -1}, "u8"),
        ({"u8": 1.5}, "u8"),
        ({"i8": -129}, "i8"),
        ({"u64": 1 << 64}, "u64"),
        ({"level": 256}, "level"),
        ({"f32": 1e39}, "f32"),
        ({"f32": "x"}, "f32"),
        ({"floats": (1.0, 2.0)}, "floats"),
        ({"floats": (1.0, 2.0, 1e300)}, "floats[2]"),
        ({"floats": 5}, "floats"),
        ({"levels": (0, -1)}, "levels[1]"),
        ({"rows": ((1, 2), (3,))}, "rows[1]"),
        ({"rows": ((1, 2), (3, 1 << 32))}, "rows[1][1]"),
        ({"volts": 256.0}, "volts"),
        ({"volts": -0.01}, "volts"),
        ({"volts": math.nan}, "volts"),
        ({"volts": math.inf}, "volts"),
        ({"name": "123456789"}, "name"),
        ({"name": 5}, "name"),
        ({"blob": b"123"}, "blob"),
        ({"blob": b"12345"}, "blob"),
        ({"date": Date(1 << 32, 1)}, "date.microseconds"),
        ({"date": None}, "date"),
    ],
)
def test_encode_names_the_field(values: dict[str, object], field: str) -> None:
    with pytest.raises(EncodeError) as caught:
        CODEC.encode(changed(**values))
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"u8": None}, "u8"),
        ({"u8": True}, "u8"),
        ({"u8": 1.0}, "u8"),
        ({"magic": 1}, "magic"),
        ({"typo": 1}, "typo"),
        ({"f32": "1"}, "f32"),
        ({"floats": [1, 2]}, "floats"),
        ({"floats": [1, 2, "3"]}, "floats[2]"),
        ({"rows": [[1, 2], 3]}, "rows[1]"),
        ({"blob_hex": "0x"}, "blob_hex"),
        ({"name": 1}, "name"),
        ({"date": 5}, "date."),
        ({"date": {"microseconds": 1}}, "date.month"),
        ({"flags": {"raw": 0x85, "enabled": False}}, "flags.enabled"),
        ({"flags": {"raw": 0x85, "mode": "teleop"}}, "flags.mode"),
        ({"flags": {"enabled": 1}}, "flags.enabled"),
        ({"flags": {"mode": "x"}}, "flags.mode"),
        ({"flags": {"reserved": 1}}, "flags.reserved"),
        ({"flags": {"unknown": True}}, "flags.unknown"),
        ({"flags": {}}, "flags"),
        ({"flags": 5}, "flags"),
        ({"wide_level": {"raw": 3, "name": "low"}}, "wide_level.name"),
        ({"wide_level": {"name": "none"}}, "wide_level.name"),
        ({"wide_level": 3}, "wide_level"),
    ],
)
def test_from_fields_names_the_path(values: dict[str, object], field: str) -> None:
    with pytest.raises(EncodeError) as caught:
        CODEC.from_fields({**FIELDS, **values})
    assert caught.value.field == field


def test_a_missing_key_is_an_error() -> None:
    for key in FIELDS:
        with pytest.raises(EncodeError) as caught:
            CODEC.from_fields({name: value for name, value in FIELDS.items() if name != key})
        assert caught.value.field == key


def test_flags_from_parts_and_enumerations_by_name() -> None:
    flags = {"mode": "autonomous", "estop": True, "reserved": 0x10}
    packet = CODEC.from_fields({**FIELDS, "flags": flags, "wide_level": {"name": "low"}})
    assert packet.flags == 0x92 and packet.wide_level is Level.LOW
    assert CODEC.from_fields({**FIELDS, "wide_level": {"raw": 9, "name": None}}).wide_level == 9


def test_volts_round_half_to_even() -> None:
    for volts, count in ((0.5 / 256, 0), (1.5 / 256, 2), (65535 / 256, 65535)):
        data = CODEC.encode(changed(volts=volts))
        assert CODEC.decode(data).volts == count / 256


def test_text_that_is_not_utf8_survives() -> None:
    data = bytearray(CODEC.encode(SAMPLE))
    at = next(field for field in CODEC.fields if field.name == "name").offset
    data[at : at + 8] = b"\xff\0\xfeabc\0\0"
    assert CODEC.encode(CODEC.decode(bytes(data))) == bytes(data)


def test_only_finite_values_if_asked_for() -> None:
    strict = PacketCodec(Everything, finite=True)
    assert strict.encode(SAMPLE) == CODEC.encode(SAMPLE)
    for values, field in (
        ({"floats": (0.0, math.nan, 0.0)}, "floats[1]"),
        ({"floats": (math.inf, 0.0, -math.inf)}, "floats[0]"),
        ({"f64": math.inf}, "f64"),
        ({"f32": -math.inf}, "f32"),
    ):
        with pytest.raises(EncodeError) as caught:
            strict.encode(changed(**values))
        assert caught.value.field == field


def test_another_object_is_refused() -> None:
    with pytest.raises(EncodeError):
        CODEC.encode(Date(1, 2))  # type: ignore[arg-type]


def test_equality_leaves_out_the_datagram() -> None:
    assert changed(raw=b"1") == changed(raw=b"2") and changed(u8=1) != changed(u8=2)
    assert Date(1, 2) != object()


def test_a_class_that_breaks_the_rules() -> None:
    class Late(Packet, frozen=True):
        extra: int
        number: Annotated[int, U8]

    class Named(Packet, frozen=True):
        raw: Annotated[int, U8]

    for broken in (Late, Named):
        with pytest.raises(TypeError):
            PacketCodec(broken)
    with pytest.raises(TypeError):
        Choice(0x03, "one")
