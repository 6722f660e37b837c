import pytest

from aoabridge.codecs.wpistruct import Limits, SchemaRegistry
from aoabridge.codecs.wpistruct.inline import parse_inline
from aoabridge.codecs.wpistruct.schema import Declaration, schema_text
from aoabridge.errors import SchemaError

POSE2D = "struct Pose2d {struct Translation2d {double x; double y;} translation; struct Rotation2d {double value;} rotation;}"  # noqa: E501  # the client's example, byte-exact


def texts(inline: str) -> dict[str, str]:
    parsed = parse_inline(inline)
    assert parsed.type_name == next(reversed(parsed.types))
    return {name: schema_text(declarations) for name, declarations in parsed.types.items()}


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("struct E {}", {"E": ""}),
        ("struct E{};", {"E": ""}),
        ("\n struct\tE\r{ ; ;} ; ", {"E": ""}),
        ("struct T{int8 x}", {"T": "int8 x"}),
        ("struct T {;;int8 x;;int8 y;;}", {"T": "int8 x;int8 y"}),
        ("struct A{struct B{int8 x}b}", {"B": "int8 x", "A": "B b"}),
        ("struct A {B b; struct B c; struct B {int8 x;} d; struct B {int8 x} e;}",
         {"B": "int8 x", "A": "B b;B c;B d;B e"}),
        ("struct A {struct B {int8 x;} b[4]; double d[3]; int8 f:4;}",
         {"B": "int8 x", "A": "B b[4];double d[3];int8 f:4"}),
        ("struct A {enum {a=1,b=2} int8 v:2; {c=3} uint8 w;}", {"A": "enum {a=1, b=2} int8 v:2;enum {c=3} uint8 w"}),
        ("struct A {{a=1} struct B {int8 x;} b; enum {a=1} struct B c;}", {"B": "int8 x", "A": "B b;B c"}),
        ("struct A {int8 struct; int8 enum; int8 int8;}", {"A": "int8 struct;int8 enum;int8 int8"}),
        ("struct A {struct B {int8 x;} struct;}", {"B": "int8 x", "A": "B struct"}),
        ("struct structA {int8 x;}", {"structA": "int8 x"}),
        ("struct é {float32 \N{ROCKET};}", {"é": "float \N{ROCKET}"}),
        ("struct A {{} enum e;}", {"A": "enum {} enum e"}),
    ],
)  # fmt: skip
def test_accepted(text: str, types: dict[str, str]) -> None:
    assert texts(text) == types


@pytest.mark.parametrize(
    ("text", "code", "position"),
    [
        ("", "syntax", 0),
        ("Pose2d {}", "syntax", 0),
        ("double x;", "syntax", 0),
        ("struct {}", "syntax", 7),
        ("struct A", "syntax", 8),
        ("struct A;", "syntax", 8),
        ("struct A {", "syntax", 10),
        ("struct A {int8 x;", "syntax", 17),
        ("struct A {int8 x", "syntax", 16),
        ("struct A {} struct B {}", "syntax", 12),
        ("struct A {};;", "syntax", 12),
        ("struct A {}; ;", "syntax", 13),
        ("struct A {}; x", "syntax", 13),
        ("struct A {}}", "syntax", 11),
        ("struct A {struct {int8 x;} b;}", "syntax", 17),
        ("struct A {struct B {int8 x;};}", "syntax", 28),
        ("struct A {struct B {int8 x;}}", "syntax", 28),
        ("struct A {struct B;}", "syntax", 18),
        ("struct double {}", "syntax", 7),
        ("struct float32 {}", "syntax", 7),
        ("struct struct {}", "syntax", 7),
        ("struct enum {}", "syntax", 7),
        ("struct A {struct int8 {int8 x;} b;}", "syntax", 17),
        ("struct A {struct enum b;}", "syntax", 17),
        ("struct A {struct double b;}", "syntax", 17),
        ("struct A {int8 a b;}", "syntax", 17),
        ("struct A {é x; %}", "syntax", 16),
        ("struct A {enum struct B {} b;}", "syntax", 15),
        ("struct A {struct B {int8 x;} b:3;}", "bit_field_type", 10),
        ("struct A {int8 x[0];}", "array_size", 17),
        ("struct A {int8 x; struct B {int8 y:9;} b;}", "bit_width", 35),
        ("struct A {struct B {int8 x; int8 x;} b;}", "duplicate_field", 33),
        ("struct A {struct B {} a; int8 a;}", "duplicate_field", 30),
        ("struct A {A a;}", "recursive", 10),
        ("struct A {struct A {} a;}", "recursive", 17),
        ("struct A {struct B {struct A {} a;} b;}", "circular", 27),
        ("struct A {struct B {} b; struct B {int8 x;} c;}", "conflict", None),
        ("struct \ud800 {}", "encoding", 7),
    ],
)
def test_refused(text: str, code: str, position: int | None) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_inline(text)
    assert (caught.value.code, caught.value.position) == (code, position)


def test_errors_about_fields_name_their_struct() -> None:
    with pytest.raises(SchemaError) as caught:
        parse_inline("struct A {struct B {int8 x:9;} b;}")
    assert caught.value.type_name == "B"


def test_limits() -> None:
    limits = Limits(inline_bytes=30)
    assert parse_inline("struct A {int8 x;}".ljust(30), limits)
    for text in ("struct A {int8 x;}".ljust(31), "struct é {int8 x;}".ljust(30)):
        with pytest.raises(SchemaError) as caught:
            parse_inline(text, limits)
        assert caught.value.code == "limit_inline"


def test_depth_is_bounded_while_reading() -> None:
    def nest(levels: int) -> str:
        return "".join(f"struct L{i} {{" for i in range(levels)) + "} a;" * (levels - 1) + "}"

    assert len(parse_inline(nest(16)).types) == 16
    with pytest.raises(SchemaError) as caught:
        parse_inline(nest(17))
    assert caught.value.code == "limit_depth"


def test_a_type_must_have_a_schema_text_within_its_limit() -> None:
    fields = "".join(f"int8 {'x' * 250}{i:03};" for i in range(70))
    with pytest.raises(SchemaError) as caught:
        parse_inline(f"struct A {{struct B {{{fields}}} b;}}")
    assert (caught.value.code, caught.value.type_name) == ("limit_text", "B")


def test_the_declarations_are_those_of_the_wpilib_text() -> None:
    parsed = parse_inline("struct A {enum {a=1} uint8 m:3; float32 f[1]; struct B {} b[2];}")
    assert parsed.types["A"] == (
        Declaration("uint8", "m", bits=3, enum=(("a", 1),)),
        Declaration("float", "f"),
        Declaration("B", "b", 2),
    )


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (POSE2D, POSE2D),
        ("struct E { ; } ;", "struct E {}"),
        ("struct A{struct T{int8 x}a,}".replace(",", ""), "struct A {struct T {int8 x;} a;}"),
        ("struct A{struct T{int8 x}a;T b;T m[4]}",
         "struct A {struct T {int8 x;} a; struct T {int8 x;} b; struct T {int8 x;} m[4];}"),
        ("struct A{{off=0,on=1,}uint8 mode : 2;bool b:1;int8 a:4}",
         "struct A {enum {off=0, on=1} uint8 mode:2; bool b:1; int8 a:4;}"),
        ("struct A{float32 z;float64 d[ 3 ];char c[1];{x=1}double e}",
         "struct A {float z; double d[3]; char c; double e;}"),
    ],
)  # fmt: skip
def test_canonical_text_is_byte_exact(text: str, canonical: str) -> None:
    registry = SchemaRegistry()
    assert registry.codec(registry.add_inline(text)).inline_schema == canonical
    again = SchemaRegistry()
    assert again.codec(again.add_inline(canonical)).inline_schema == canonical
