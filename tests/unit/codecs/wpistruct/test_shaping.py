import struct

import pytest

from aoabridge.codecs.wpistruct import SchemaRegistry, StructCodec
from aoabridge.codecs.wpistruct.shaping import text_of


def codec(schema: str, *, enum_names: bool = False, **others: str) -> StructCodec:
    registry = SchemaRegistry()
    for name, text in others.items():
        registry.add(name, text)
    registry.add("t", schema)
    return registry.codec("t", enum_names=enum_names)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", ""),
        (b"\0\0", ""),
        (b"a\0b\0", "a\0b"),
        (b"1\x80\x80", "1\ufffd\ufffd"),
        (b"\x80", ""),
        (b"\xc3\xa9\xa9", "é\ufffd"),
        (b"\xf0\x9f\x98", ""),
        (b"\xe2\x82\xac\xe2\x82", "€"),
        (b"\xff", "\ufffd"),
        (b"\xf8\x80", "\ufffd\ufffd"),
        (b"\xc0", ""),
        (b"a\xffb", "a\ufffdb"),
        (b"\xc3\0\xa9", "\ufffd\0\ufffd"),
    ],
)
def test_text(raw: bytes, text: str) -> None:
    assert text_of(raw) == text


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("kind", ["plain", "mixed"])
def test_every_number_of_fields(count: int, kind: str) -> None:
    declaration = "int8 f{}" if kind == "plain" else "int8 f{}[2]"
    made = codec(";".join(declaration.format(i) for i in range(count)))
    data = bytes(range(made.size))
    values = list(range(made.size))
    want = values if kind == "plain" else [values[2 * i : 2 * i + 2] for i in range(count)]
    assert made.decode(data) == {f"f{i}": want[i] for i in range(count)}
    assert list(made.decode(data)) == [f"f{i}" for i in range(count)]
    nested = codec("int16 x;T y;T z[2]", T=";".join(declaration.format(i) for i in range(count)))
    element = made.decode(data)
    assert nested.decode(b"\1\0" + 3 * data) == {"x": 1, "y": element, "z": [element, element]}
    assert nested.encode(nested.decode(b"\1\0" + 3 * data)) == b"\1\0" + 3 * data


def test_bit_fields_of_one_unit() -> None:
    made = codec("int16 a:3;bool b:1;uint16 c:12;int16 d:4")
    data = struct.pack("<HH", 0b111_1_101 | 0b101010101010 << 4 & 0xFFFF, 0x000C)
    value = made.decode(data)
    assert value == {"a": -3, "b": True, "c": (data[0] >> 4) | data[1] << 4, "d": -4}
    assert value["b"] is True
    assert made.decode(b"\xf7\xff\xff\xff")["b"] is False


def test_enum_names() -> None:
    schema = "enum {a=1, b=2, one=1, min=-4} int8 v:3;enum {x=0} uint8 w[3];enum {y=7} double z"
    made = codec(schema, enum_names=True)
    data = bytes([1, 0, 5, 0]) + struct.pack("<d", 7)
    assert made.decode(data) == {"v": "a", "w": ["x", 5, "x"], "z": 7.0}
    assert made.decode(b"\4" + data[1:])["v"] == "min"
    assert made.decode(b"\3" + data[1:])["v"] == 3
    assert codec(schema).decode(data) == {"v": 1, "w": [0, 5, 0], "z": 7.0}
    assert made.encode(made.decode(data)) == data


def test_decoded_values_share_nothing() -> None:
    made = codec("T a[2];E e[3];int8 x[2]", T="int8 v", E="")
    first, second = made.decode(bytes(4)), made.decode(bytes(4))
    first["a"][0]["v"] = 9
    first["e"][0]["new"] = 1
    first["x"].append(1)
    assert second == {"a": [{"v": 0}, {"v": 0}], "e": [{}, {}, {}], "x": [0, 0]}
    assert first["e"][1] == {}
