import pytest

from aoabridge.codecs.wpistruct import Field, SchemaRegistry
from aoabridge.codecs.wpistruct.layout import Extent, extent, measure
from aoabridge.codecs.wpistruct.limits import Limits
from aoabridge.codecs.wpistruct.schema import parse_schema
from aoabridge.errors import SchemaError


def sizes(text: str) -> int:
    return measure(parse_schema("t", text)).size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("bool a:1;int16 b:5", 3),
        ("int8 a:4;uint8 b:4;int8 c:1", 2),
        ("int8 a:8;int8 b:1", 2),
        ("int8 a:7;bool b:1;bool c:1", 2),
        ("bool a:1;int8 b:7", 1),
        ("bool a:1;int8 b:8", 2),
        ("int64 a:1;bool b:1;int8 c:1", 9),
        ("int16 a:15;bool b:1;bool c:1;int8 d:7", 3),
        ("int8 a:1;int16 b;int8 c:1", 4),
        ("int16 a:1;T b;int16 c:1", 4),
        ("uint16 a:9;int16 b:8", 4),
        ("", 0),
        ("char a[7];double b[3]", 31),
    ],
)
def test_size(text: str, size: int) -> None:
    assert sizes(text) == size


def test_values_count_leaves_and_the_dict() -> None:
    own = measure(parse_schema("t", "int8 a:1;int8 b:1;double c[5];char d[9];T e;T f[3];U g"))
    assert own.values == 1 + 2 + 5 + 1
    assert own.nested == {"T": 4, "U": 1}


def test_extent_adds_up_and_bounds_from_below() -> None:
    own = measure(parse_schema("t", "T a[3];U b;int8 c"))
    known = {"T": Extent(2, 5, 2, True)}
    assert extent("t", own, known, Limits()) == Extent(7, 2 + 15 + 1, 3, False)
    known["U"] = Extent(8, 2, 1, True)
    assert extent("t", own, known, Limits()) == Extent(15, 2 + 15 + 2, 3, True)
    for limits, code in (
        (Limits(size_bytes=14), "limit_size"),
        (Limits(values=18), "limit_values"),
        (Limits(depth=2), "limit_depth"),
    ):
        with pytest.raises(SchemaError) as caught:
            extent("t", own, known, limits)
        assert (caught.value.code, caught.value.type_name) == (code, "t")
    assert extent("t", own, known, Limits(size_bytes=15, values=19, depth=3)).complete


def test_fields_are_flat() -> None:
    registry = SchemaRegistry()
    registry.add("State", "double speed;Angle angle")
    registry.add("Angle", "double value")
    registry.add("Drive", "{off=0,on=1}uint8 mode:2;bool ready:1;State modules[2];Angle gyro[1];char name[4];int8 n:8")
    assert registry.codec("Drive").fields == (
        Field("mode", "uint8", 0, 1, 1, 0, 2, {"off": 0, "on": 1}),
        Field("ready", "bool", 0, 1, 1, 2, 1),
        Field("modules[0].speed", "double", 1, 8),
        Field("modules[0].angle.value", "double", 9, 8),
        Field("modules[1].speed", "double", 17, 8),
        Field("modules[1].angle.value", "double", 25, 8),
        Field("gyro.value", "double", 33, 8),
        Field("name", "char", 41, 1, 4),
        Field("n", "int8", 45, 1),
    )
