import pytest

from aoabridge.codecs.wpistruct.limits import Limits
from aoabridge.codecs.wpistruct.schema import Declaration, first_difference, parse_schema, schema_text
from aoabridge.errors import SchemaError


def refused(text: str | bytes, name: str = "test", limits: Limits | None = None) -> SchemaError:
    with pytest.raises(SchemaError) as caught:
        parse_schema(name, text, limits or Limits())
    assert caught.value.type_name == name
    return caught.value


@pytest.mark.parametrize(
    ("text", "declarations"),
    [
        ("", ()),
        (";;; ;", ()),
        (";;double x;; ;double y;", (Declaration("double", "x"), Declaration("double", "y"))),
        ("float32 a;float64 b", (Declaration("float", "a"), Declaration("double", "b"))),
        ("int8 a[1]", (Declaration("int8", "a"),)),
        ("int8 a[0003]", (Declaration("int8", "a", 3),)),
        ("int8 a:04", (Declaration("int8", "a", bits=4),)),
        ("Int8 a;int b;boolean c", (Declaration("Int8", "a"), Declaration("int", "b"), Declaration("boolean", "c"))),
        ("enum{a=-1,b=2,}int8 v:3", (Declaration("int8", "v", bits=3, enum=(("a", -1), ("b", 2))),)),
        ("{a=1} enum v", (Declaration("enum", "v"),)),
        ("int8 enum;int8 int8", (Declaration("int8", "enum"), Declaration("int8", "int8"))),
        ("\r\n\tint8\na\r[\t2 ]\n", (Declaration("int8", "a", 2),)),
        ("enum {a=-9223372036854775808,b=9223372036854775807} int64 v", None),
        ("enum {} int8 v", (Declaration("int8", "v"),)),
        ("enum {a=1} float v;{b=2} bool w;{c=3} T x;{d=4} char y", None),
    ],
)
def test_accepted(text: str, declarations: tuple[Declaration, ...] | None) -> None:
    parsed = parse_schema("test", text)
    if declarations is not None:
        assert parsed == declarations
    assert parse_schema("test", text.encode()) == parsed
    assert parse_schema("test", schema_text(parsed)) == parsed


@pytest.mark.parametrize(
    ("text", "code", "position"),
    [
        ("enum int8 v", "syntax", 5),
        ("int8[2] a", "syntax", 4),
        ("int8 a,b", "syntax", 6),
        ("a::b c", "syntax", 1),
        ("a.b c", "syntax", 1),
        ("int8 *a", "syntax", 5),
        ("int8 a\x0b", "syntax", 6),
        ("int8 a\x0c;", "syntax", 6),
        ("int8 a[]", "syntax", 7),
        ("int8 a[x]", "syntax", 7),
        ("int8 a[2", "syntax", 8),
        ("int8 a[2;", "syntax", 8),
        ("int8 a: 2 2", "syntax", 10),
        ("int8 a:4[2]", "syntax", 8),
        ("int8 -", "syntax", 5),
        ("-", "syntax", 0),
        ("[", "syntax", 0),
        ("{a=1}", "syntax", 5),
        ("{a}", "syntax", 2),
        ("{a=}int8 v", "syntax", 3),
        ("{a=b}int8 v", "syntax", 3),
        ("{=1}int8 v", "syntax", 1),
        ("{a=1 b=2}int8 v", "syntax", 5),
        ("{a=1", "syntax", 4),
        ("{a=1,", "syntax", 5),
        ("{a=1;}int8 v", "syntax", 4),
        ("enum", "syntax", 4),
        ("int8 é=1", "syntax", 7),  # bytes, not characters
        ("int8 \U0001f600 \U0001f600", "syntax", 10),
        ("int8 a\N{ARABIC-INDIC DIGIT ONE} b", "syntax", 9),
        ("int8 a[\N{ARABIC-INDIC DIGIT ONE}]", "syntax", 7),
        ("int8 a[0]", "array_size", 7),
        ("int8 a[-]", "array_size", 7),
        ("int8 a[00]", "array_size", 7),
        ("int8 a:-", "bit_width", 7),
        ("int8 a:9", "bit_width", 7),
        ("int8 a:" + "9" * 5000, "bit_width", 7),
        ("bool a:2", "bit_width", 7),
        ("float a:1", "bit_field_type", 0),
        ("char a:8", "bit_field_type", 0),
        ("T a:1", "bit_field_type", 0),
        ("{a=-}int8 v", "enum_value", 3),
        ("{a=9223372036854775808}int8 v", "enum_value", 3),
        ("{a=-9223372036854775809}int8 v", "enum_value", 3),
        ("{a=00000000000000000001}int8 v", "", None),
        ("{a=000000000000000000001}int8 v", "enum_value", 3),
        ("{é=1,a=99999999999999999999}int8 v", "enum_value", 8),
        ("int8 a;int16 a", "duplicate_field", 13),
        ("int8 é;test a", "recursive", 8),
        ("test a[2]", "recursive", 0),
        ("int8 a[4097]", "limit_array", 7),
        ("T a[4097]", "limit_array", 4),
        ("int8 a[" + "1" * 16_000 + "]", "limit_array", 7),
        ("int8 a:9;%", "syntax", 9),  # rules about types come after reading
    ],
)
def test_refused(text: str, code: str, position: int | None) -> None:
    if not code:
        assert parse_schema("test", text)
        return
    for form in (text, text.encode("utf-8")):
        error = refused(form)
        assert (error.code, error.position) == (code, position)


def test_a_syntax_error_says_what_was_expected_and_found() -> None:
    assert str(refused("int8 a=1")) == "6: expected ';', got '='"
    assert str(refused("int8")) == "4: expected a field name, got end of text"
    assert len(str(refused("int8 a " + "b" * 200))) < 120


@pytest.mark.parametrize(
    ("text", "position"), [(b"int8 \xff", 5), (b"\xc3", 0), (b"int8 a\xed\xa0\x80", 6), ("é \ud800", 3)]
)
def test_encoding(text: str | bytes, position: int) -> None:
    error = refused(text)
    assert (error.code, error.position) == ("encoding", position)


def test_a_struct_may_have_the_name_of_a_primitive_because_nobody_can_name_it() -> None:
    assert parse_schema("int8", "int8 a") == (Declaration("int8", "a"),)


def test_limits_are_exact() -> None:
    limits = Limits(text_bytes=20, name_bytes=6, fields=3)
    assert parse_schema("test", "int8 a" + " " * 14, limits)
    assert refused("int8 a" + " " * 15, limits=limits).code == "limit_text"
    assert refused("int8 " + "é" * 8, limits=limits).code == "limit_text"
    assert parse_schema("test", "int8 abcdef", limits)
    assert refused("int8 abcdefg", limits=limits).code == "limit_name"
    assert parse_schema("test", "A a;A b;A c;;;", limits)
    error = refused("A a;A b;A c;A d", limits=limits)
    assert (error.code, error.position) == ("limit_fields", 12)


@pytest.mark.parametrize("text", ["int8 {0}", "{0} a", "{{{0}=1}} int8 a", "{{a=1,{0}=99999999999999999}} int8 a"])
def test_names_are_bounded_in_bytes(text: str) -> None:
    assert parse_schema("test", text.format("é" * 127))
    error = refused(text.format("é" * 128))
    assert error.code == "limit_name"
    assert error.position == text.format("@").index("@")


def test_the_array_limit_is_not_for_text() -> None:
    assert parse_schema("test", "char a[60000]")
    assert parse_schema("test", "int8 a[4096]")


def test_canonical_text() -> None:
    text = "float32 f; {off=0,on=1} uint8 mode : 2;int8 a[1];double\ndata[ 3 ];Inner b;{x=1}double y;{}int8 z;"
    canonical = "float f;enum {off=0, on=1} uint8 mode:2;int8 a;double data[3];Inner b;double y;int8 z"
    assert schema_text(parse_schema("test", text)) == canonical


def test_a_struct_called_enum_stays_readable() -> None:
    parsed = parse_schema("test", "{} enum a")
    assert schema_text(parsed) == "enum {} enum a"


def strict_reader(text: str) -> list[tuple[str, ...]]:
    """Read as AdvantageScope does: split at semicolons, enum as the very first characters, tokens only at blanks."""
    found = []
    for declaration in text.split(";"):
        rest, values = declaration, ""
        if declaration.startswith("enum"):
            values = declaration[declaration.index("{") + 1 : declaration.index("}")]
            rest = declaration[declaration.index("}") + 1 :]
        found.append((*[token for token in rest.split(" ") if token], values))
    return found


def test_the_canonical_text_is_readable_by_a_strict_reader() -> None:
    text = schema_text(parse_schema("test", " enum{a=1,b=2,}int8 v:4;bool f:1;{}int8 w;double d[2]"))
    assert text == "enum {a=1, b=2} int8 v:4;bool f:1;int8 w;double d[2]"
    assert strict_reader(text) == [
        ("int8", "v:4", "a=1, b=2"),
        ("bool", "f:1", ""),
        ("int8", "w", ""),
        ("double", "d[2]", ""),
    ]


@pytest.mark.parametrize(
    ("known", "other", "field"),
    [
        ("int8 a;int8 b", "int8 a;int8 b;", None),
        ("float a[1]", "float32 a", None),
        ("{x=1}double a", "double a", None),
        ("int8 a;int8 b", "int8 a;int16 b", "b"),
        ("int8 a;int8 b", "int8 b;int8 a", "a"),
        ("int8 a", "int8 a;int8 c", "c"),
        ("int8 a;int8 c", "int8 a", "c"),
        ("", "int8 a", "a"),
        ("int8 a", "int8 a:8", "a"),
        ("{x=1}int8 a", "{x=2}int8 a", "a"),
    ],
)
def test_first_difference(known: str, other: str, field: str | None) -> None:
    assert first_difference(parse_schema("t", known), parse_schema("t", other)) == field
