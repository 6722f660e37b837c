import math
import struct
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import pytest

from aoabridge.codecs.wpistruct import Encoded, Limits, SchemaRegistry, StructCodec
from aoabridge.errors import DecodeError, EncodeError, SchemaError, TruncatedError

SCHEMAS = {
    "Angle": "double value",
    "State": "double speed;Angle angle",
    "All": "bool flag;int8 i8;uint64 u64;float f;double d;char c;char text[4];State modules[2];int16 three[3];"
    "enum {off=0, on=1, twin=2, twin=3} uint8 mode;int8 bits:3;bool bit:1;uint8 rest:4;int32 single[1];Angle one[1]",
}


def registry() -> SchemaRegistry:
    made = SchemaRegistry()
    for name, schema in SCHEMAS.items():
        made.add(name, schema)
    return made


def codec(schema: str) -> StructCodec:
    made = registry()
    made.add("t", schema)
    return made.codec("t")


def everything(**changed: Any) -> dict[str, Any]:
    value: dict[str, Any] = {
        "flag": True,
        "i8": -1,
        "u64": 2**64 - 1,
        "f": 0.5,
        "d": 0.1,
        "c": "c",
        "text": "abc",
        "modules": [{"speed": 1.0, "angle": {"value": 2.0}}, {"speed": 3.0, "angle": {"value": 4.0}}],
        "three": [1, -2, 3],
        "mode": 1,
        "bits": -4,
        "bit": False,
        "rest": 15,
        "single": 7,
        "one": {"value": 0.0},
    }
    value.update(changed)
    return value


def encoders(made: StructCodec) -> tuple[Callable[[Any], bytes], ...]:
    """Every way to encode one value."""
    return (
        made.encode,
        lambda value: made.encode_checked(value).data,
        lambda value: made.encode_array([value]),
        lambda value: made.encode_array_checked((value,)).data,
    )


def refused(value: Any, made: StructCodec) -> EncodeError:
    for encode in encoders(made)[:2]:
        with pytest.raises(EncodeError) as caught:
            encode(value)
    field = caught.value.field
    for encode in encoders(made)[2:]:
        with pytest.raises(EncodeError) as in_array:
            encode(value)
        assert in_array.value.field == (f"[0].{field}" if field else "[0]")
    return caught.value


def test_round_trip_of_everything() -> None:
    made = registry().codec("All")
    value = everything()
    data = made.encode(value)
    assert len(data) == made.size
    assert made.decode(data) == value
    assert list(made.decode(data)) == list(value)
    for encode in encoders(made):
        assert encode(value) == data
        assert encode(dict(reversed(value.items()))) == data
    assert value == everything()


@pytest.mark.parametrize(
    ("schema", "given", "same_as"),
    [
        ("double x", 2, 2.0),
        ("double x", 2**53, float(2**53)),
        ("double x", 2**60, float(2**60)),
        ("double x", -0.0, -0.0),
        ("float x", 16_777_217, 16_777_216.0),
        ("float x", 0.1, struct.unpack("<f", struct.pack("<f", 0.1))[0]),
        ("float x", 3.4028235e38, 3.4028234663852886e38),
        ("float x", math.inf, math.inf),
        ("double x", -math.inf, -math.inf),
        ("int8 x", 42.0, 42),
        ("int8 x", -0.0, 0),
        ("int64 x", 2.0**53, 2**53),
        ("int64 x", -(2.0**53), -(2**53)),
        ("uint8 x:3", 7.0, 7),
        ("int8 x:3", -4.0, -4),
        ("int8 x[1]", [5], 5),
        ("int8 x[1]", (5,), 5),
        ("Angle x[1]", [{"value": 1.0}], {"value": 1.0}),
        ("int8 x[2]", (1, 2.0), [1, 2]),
        ("bool x[2]", (True, False), [True, False]),
        ("Angle x[2]", ({"value": 1}, {"value": 2}), [{"value": 1.0}, {"value": 2.0}]),
        ("enum {a=1,b=2} int8 x", "b", 2),
        ("enum {a=1,a=2} int8 x", "a", 2),
        ("enum {a=1} int8 x", 9, 9),
        ("enum {a=-1} int8 x:3", "a", -1),
        ("enum {a=1} int8 x[2]", ["a", 3], [1, 3]),
        ("enum {a=1} int8 x[1]", ["a"], 1),
        ("char x[4]", "", ""),
        ("char x[4]", "a\0b", "a\0b"),
        ("char x[4]", "é€", "é"),
        ("char x", "é", ""),
    ],
)
def test_accepted(schema: str, given: Any, same_as: Any) -> None:
    made = codec(schema)
    for encode in encoders(made):
        data = encode({"x": given})
        assert repr(made.decode(data)["x"]) == repr(same_as)
        assert data == made.encode({"x": same_as})


class Level(IntEnum):
    HIGH = 3


def test_subclasses_of_plain_types() -> None:
    class Number(float):
        pass

    class Text(str):
        pass

    made = codec("int8 a;double b;char c[2];float d[2]")
    data = made.encode({"a": Level.HIGH, "b": Number(1.5), "c": Text("xy"), "d": [Number(1), 2]})
    assert made.decode(data) == {"a": 3, "b": 1.5, "c": "xy", "d": [1.0, 2.0]}


@pytest.mark.parametrize(
    ("changed", "field", "words"),
    [
        ({"flag": 1}, "flag", "expected a boolean, got 1"),
        ({"flag": None}, "flag", "null"),
        ({"i8": 128}, "i8", "-128..127, got 128"),
        ({"i8": -129}, "i8", "-128..127"),
        ({"i8": True}, "i8", "got true"),
        ({"i8": 1.5}, "i8", "got 1.5"),
        ({"i8": math.nan}, "i8", "got nan"),
        ({"i8": math.inf}, "i8", "got inf"),
        ({"i8": "1"}, "i8", "got '1'"),
        ({"i8": [1]}, "i8", "got an array"),
        ({"i8": None}, "i8", "got null"),
        ({"u64": -1}, "u64", "0..18446744073709551615"),
        ({"u64": 2**64}, "u64", "got 18446744073709551616"),
        ({"u64": 2.0**54}, "u64", "got"),
        ({"u64": 10**5000}, "u64", "bits"),
        ({"f": 3.5e38}, "f", "range of float"),
        ({"f": -1e39}, "f", "range of float"),
        ({"f": True}, "f", "expected a number, got true"),
        ({"f": 2**53 + 1}, "f", "exactly"),
        ({"d": None}, "d", "got null"),
        ({"d": "1"}, "d", "got '1'"),
        ({"d": 2**53 + 1}, "d", "exactly"),
        ({"d": 10**400}, "d", "range of double"),
        ({"d": False}, "d", "got false"),
        ({"c": 65}, "c", "expected a string"),
        ({"c": ["c"]}, "c", "got an array"),
        ({"text": ["a", "b", "c", "d"]}, "text", "expected a string"),
        ({"text": b"abc"}, "text", "got a bytes"),
        ({"text": "a\ud800"}, "text", "lone surrogate"),
        ({"text": "abcdefgh\udfff"}, "text", "lone surrogate"),
        ({"three": [1, 2]}, "three", "array of 3, got 2"),
        ({"three": [1, 2, 3, 4]}, "three", "array of 3, got 4"),
        ({"three": 1}, "three", "array of 3, got 1"),
        ({"three": "abc"}, "three", "array of 3"),
        ({"three": [1, 40000, 3]}, "three[1]", "got 40000"),
        ({"three": [1, 2, True]}, "three[2]", "got true"),
        ({"modules": {}}, "modules", "array of 2, got an object"),
        ({"modules": [{"speed": 1.0, "angle": {"value": 2.0}}]}, "modules", "got 1"),
        ({"modules": [{"speed": 1.0, "angle": {"value": 2.0}}, None]}, "modules[1]", "an object (State), got null"),
        ({"modules": [{"speed": 1.0, "angle": {"value": 2.0}}, {"speed": 1.0, "angle": {"value": "x"}}]},
         "modules[1].angle.value", "expected a number"),
        ({"modules": [{"speed": 1.0, "angle": {}}, {}]}, "modules[0].angle.value", "missing"),
        ({"mode": "ON"}, "mode", "'ON' is not one of off, on, twin"),
        ({"mode": 256}, "mode", "0..255"),
        ({"mode": True}, "mode", "got true"),
        ({"bits": 4}, "bits", "-4..3, got 4"),
        ({"bits": -5}, "bits", "-4..3"),
        ({"bits": False}, "bits", "got false"),
        ({"bit": 0}, "bit", "boolean"),
        ({"rest": 16}, "rest", "0..15"),
        ({"rest": -1}, "rest", "0..15"),
        ({"single": [1, 2]}, "single", "array of 1, got 2"),
        ({"single": []}, "single", "array of 1, got 0"),
        ({"one": [{"value": None}]}, "one.value", "null"),
        ({"one": 1.0}, "one", "an object (Angle), got 1.0"),
        ({"one": {"value": 1.0, "Value": 2.0}}, "one.Value", "nearest is value"),
        ({"tree": [1, 2, 3]}, "tree", "unknown field of All; nearest is three"),
        ({7: 1}, "7", "unknown field"),
        ({"x" * 100_000: 1}, "x" * 60, "unknown field"),
    ],
)  # fmt: skip
def test_refused(changed: dict[Any, Any], field: str, words: str) -> None:
    made = registry().codec("All")
    value = {**everything(), **changed}
    error = refused(value, made)
    assert error.field == field
    assert words in str(error)
    assert len(str(error)) < 300


@pytest.mark.parametrize("missing", list(everything()))
def test_a_missing_field_is_named(missing: str) -> None:
    value = everything()
    del value[missing]
    error = refused(value, registry().codec("All"))
    assert error.field == missing
    assert "missing" in str(error)


@pytest.mark.parametrize("value", [None, 1, "x", [], [{}], True])
def test_a_struct_is_an_object(value: Any) -> None:
    assert refused(value, registry().codec("All")).field is None


@pytest.mark.parametrize("values", [None, {}, "x", 3, {"a": 1}])
def test_an_array_of_structs_is_a_list(values: Any) -> None:
    made = registry().codec("Angle")
    with pytest.raises(EncodeError) as caught:
        made.encode_array(values)
    assert caught.value.field is None
    with pytest.raises(EncodeError):
        made.encode_array_checked(values)


def test_paths_in_an_array_value_begin_with_the_index() -> None:
    with pytest.raises(EncodeError) as caught:
        registry().codec("State").encode_array(
            [{"speed": 1.0, "angle": {"value": 0.0}}, {"speed": 1.0, "angle": {"value": None}}]
        )
    assert caught.value.field == "[1].angle.value"


def test_null_is_nan_only_if_asked_for_and_only_for_floats() -> None:
    made = codec("double d;float f[2];Angle a")
    value = {"d": None, "f": [1.0, None], "a": {"value": None}}
    data = made.encode(value, null_is_nan=True)
    assert data.hex() == "000000000000f87f" + "0000803f" + "0000c07f" + "000000000000f87f"
    assert made.encode_array([value], null_is_nan=True) == data
    for encode in encoders(made):
        with pytest.raises(EncodeError):
            encode(value)
    for schema in ("int8 x", "bool x", "char x[2]", "Angle x", "double x[2]"):
        with pytest.raises(EncodeError):
            codec(schema).encode({"x": None}, null_is_nan=True)


def test_cut_text_is_told() -> None:
    made = registry_with_text().codec("t")
    value = {"a": "abc", "b": [{"s": "é€"}, {"s": "ok"}], "c": "xy"}
    checked = made.encode_checked(value)
    assert checked == Encoded(made.encode(value), ("b[0].s", "c"))
    assert made.decode(checked.data) == {"a": "abc", "b": [{"s": "é"}, {"s": "ok"}], "c": "x"}
    fitting = {"a": "abc", "b": [{"s": "é"}, {"s": "ok"}], "c": "x"}
    assert made.encode_checked(fitting) == Encoded(checked.data, ())
    assert made.encode_array_checked([fitting, value]).truncated == ("[1].b[0].s", "[1].c")
    assert made.encode_array_checked([fitting]).truncated == ()


def registry_with_text() -> SchemaRegistry:
    made = SchemaRegistry()
    made.add("T", "char s[4]")
    made.add("t", "char a[3];T b[2];char c")
    return made


def test_values_after_a_cut_are_whole_characters() -> None:
    made = codec("char x[5]")
    for text in ("aaaaé", "aaa€", "aa\U0001f600", "a\U0001f600\U0001f600", "ééé", "€€"):
        decoded = made.decode(made.encode({"x": text}))["x"]
        assert text.startswith(decoded)
        assert len((decoded + text[len(decoded)]).encode()) > 5


def test_decode_array() -> None:
    made = registry().codec("Angle")
    data = struct.pack("<3d", 1, 2, 3)
    for raw in (data, bytearray(data), memoryview(data), memoryview(data).cast("d")):
        assert made.decode_array(raw) == [{"value": 1.0}, {"value": 2.0}, {"value": 3.0}]
    assert made.decode_array(b"") == []
    assert made.encode_array([]) == b""
    with pytest.raises(TruncatedError) as caught:
        made.decode_array(data[:-1])
    assert (caught.value.needed, caught.value.got) == (24, 23)


def test_an_array_of_empty_structs_is_empty() -> None:
    made = codec("")
    assert made.decode(b"") == {}
    assert made.encode({}) == b""
    assert made.decode_array(b"") == []
    with pytest.raises(DecodeError):
        made.decode_array(b"\0")
    with pytest.raises(DecodeError):
        made.decode(b"\0")
    with pytest.raises(EncodeError):
        made.encode({"a": 1})


def test_an_array_value_is_bounded_by_its_values() -> None:
    made = bounded_codec()
    assert made.max_elements == 3
    assert len(made.decode_array(bytes(6))) == 3
    with pytest.raises(DecodeError, match="at most 3") as caught:
        made.decode_array(bytes(8))
    assert not isinstance(caught.value, TruncatedError)


def bounded_codec() -> StructCodec:
    made = SchemaRegistry(Limits(array_values=10))
    made.add("t", "int8 a;int8 b")
    return made.codec("t")


def test_a_codec_is_immutable() -> None:
    made = registry().codec("All")
    with pytest.raises(AttributeError):
        made.__setattr__("size", 1)
    assert made.fields is made.fields
    assert made.inline_schema is made.inline_schema
    assert "All" in repr(made)


def test_a_wide_memoryview_counts_bytes() -> None:
    made = registry().codec("Angle")
    assert made.decode(memoryview(struct.pack("<d", 2.0)).cast("i")) == {"value": 2.0}
    with pytest.raises(TruncatedError) as caught:
        made.decode(memoryview(bytes(4)).cast("i"))
    assert caught.value.got == 4


def test_the_inline_text_has_a_limit() -> None:
    made = SchemaRegistry(Limits(inline_bytes=40))
    made.add("A", "int8 x;int8 yyyyyyyyyyyyyy")
    assert len(made.codec("A").inline_schema) == 39
    made.add("B", "int8 x;int8 " + "y" * 15)
    assert len(made.codec("B").inline_schema) == 40
    made.add("C", "int8 x;int8 " + "y" * 16)
    for _ in range(2):
        with pytest.raises(SchemaError) as caught:
            _ = made.codec("C").inline_schema
        assert caught.value.code == "limit_inline"
    assert made.codec("C").decode(b"\1\2")["x"] == 1
