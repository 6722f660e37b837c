import math

import pytest

from aoabridge.codecs.wpistruct.schema_file import read_schema_file, struct_form
from aoabridge.errors import DecodeError, EncodeError, SchemaError

LINES = """
Pose: Point at;double heading

struct:Point: int8 x;int8 y:4;
"""


@pytest.mark.parametrize(
    "text", [LINES, LINES.replace("\n", "\r\n"), "struct Pose {struct Point {int8 x; int8 y:4;} at; double heading;}\n"]
)
def test_both_forms_of_a_file(text: str) -> None:
    registry = read_schema_file(text)
    form = struct_form(registry, "Pose")
    assert (form.packet, form.is_array) == ("Pose", False)
    data = bytes.fromhex("ff07000000000000f03f")
    fields = {"at": {"x": -1, "y": 7}, "heading": 1.0}
    assert form.decode(data) == fields
    assert form.encode(fields) == data
    array = struct_form(registry, "struct:Pose[]")
    assert (array.packet, array.is_array) == ("Pose[]", True)
    assert array.decode(2 * data) == [fields, fields]
    assert array.encode([fields, fields]) == 2 * data
    assert array.decode(b"") == []


def test_null_stands_for_nan() -> None:
    registry = read_schema_file("A: double x")
    assert math.isnan(struct_form(registry, "A").decode(struct_form(registry, "A").encode({"x": None}))["x"])
    assert len(struct_form(registry, "A[]").encode([{"x": None}])) == 8


def test_enum_names() -> None:
    registry = read_schema_file("A: enum {on=1} int8 x")
    assert struct_form(registry, "A", enum_names=True).decode(b"\1") == {"x": "on"}


def test_a_struct_called_struct_is_a_line() -> None:
    assert struct_form(read_schema_file("struct: {a=1} int8 x"), "struct").decode(b"\1") == {"x": 1}


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("A: int8 x\nB", "syntax", "line 2: expected 'Name: schema text'"),
        ("\nA: int8\n", "syntax", "line 2: 5: expected a field name"),
        ("A: int8 x\nB: C c\nC: B b", "circular", "line 3"),
        (": int8 x", "limit_name", "line 1"),
        ("struct A {Nobody n;}", "unresolved", "Nobody"),
    ],
)
def test_faults_of_a_file(text: str, code: str, words: str) -> None:
    with pytest.raises(SchemaError, match=words) as caught:
        read_schema_file(text)
    assert caught.value.code == code


def test_an_unknown_type() -> None:
    for name in ("B", "B[]", "A[][]", ""):
        with pytest.raises(SchemaError) as caught:
            struct_form(read_schema_file("A: int8 x"), name)
        assert caught.value.code == "unresolved"


def test_wrong_data_raises_the_documented_family() -> None:
    form = struct_form(read_schema_file("A: int8 x"), "A")
    with pytest.raises(DecodeError):
        form.decode(b"")
    with pytest.raises(EncodeError):
        form.encode([])
