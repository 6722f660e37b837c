import itertools
from typing import Any

import pytest

from aoabridge.codecs.wpistruct import Conflict, InlineAdded, Limits, SchemaRegistry
from aoabridge.errors import SchemaError

POSE3D = {
    "Translation3d": "double x;double y;double z",
    "Quaternion": "double w;double x;double y;double z",
    "Rotation3d": "Quaternion q",
    "Pose3d": "Translation3d translation;Rotation3d rotation",
}
POSE2D_INLINE = (
    "struct Pose2d {struct Translation2d {double x; double y;} translation; "
    "struct Rotation2d {double value;} rotation;}"
)


def registry(**schemas: str) -> SchemaRegistry:
    made = SchemaRegistry()
    for name, schema in schemas.items():
        made.add(name, schema)
    return made


def state(made: SchemaRegistry) -> Any:
    """Everything a registry knows, to compare before and after."""
    names = ["Pose2d", "Translation2d", "Rotation2d", "A", "B", "C", "D", "E", "F", *POSE3D]
    known = {name: (made.schema(name), made.missing(name)) for name in names if name in made}
    codecs = {name: id(made.codec(name)) for name, (_, missing) in known.items() if not missing}
    return known, codecs, made._text_bytes, dict(made._extents), dict(made._definitions)


def code_of(made: SchemaRegistry, name: str, schema: str | bytes) -> str:
    """Add what must be refused, without any trace; return the code."""
    before = state(made)
    with pytest.raises(SchemaError) as caught:
        made.add(name, schema)
    assert state(made) == before
    return caught.value.code


@pytest.mark.parametrize("order", list(itertools.permutations(POSE3D)))
def test_any_order_of_arrival_ends_in_the_same_codec(order: tuple[str, ...]) -> None:
    made = SchemaRegistry()
    available: set[str] = set()
    for position, name in enumerate(order):
        reported = made.add(name, POSE3D[name])
        arrived = {known for known in POSE3D if known in made and not made.missing(known)}
        assert reported == arrived - available
        available = arrived
        assert len(available) <= position + 1
    codec = made.codec("Pose3d")
    assert codec.size == 56
    assert [(field.path, field.offset) for field in codec.fields] == [
        ("translation.x", 0),
        ("translation.y", 8),
        ("translation.z", 16),
        ("rotation.q.w", 24),
        ("rotation.q.x", 32),
        ("rotation.q.y", 40),
        ("rotation.q.z", 48),
    ]
    assert made.nested("Pose3d") == ("Translation3d", "Quaternion", "Rotation3d", "Pose3d")


def test_missing_names_every_missing_type() -> None:
    made = registry(A="B b;C c;B d", B="D d;E e")
    assert made.missing("A") == {"C", "D", "E"}
    assert made.missing("F") == {"F"}
    for ask in (made.codec, made.nested):
        with pytest.raises(SchemaError, match="C, D, E") as caught:
            ask("A")
        assert (caught.value.code, caught.value.type_name, caught.value.position) == ("unresolved", "A", None)
    with pytest.raises(SchemaError, match="F") as caught:
        made.schema("F")
    assert caught.value.code == "unresolved"
    assert made.schema("A") == "B b;C c;B d"


def test_the_prefix_may_be_given_anywhere_but_only_one_is_stripped() -> None:
    made = SchemaRegistry()
    assert made.add("struct:A", "int8 x") == {"A"}
    assert made.add("struct:struct:A", "int16 x") == {"struct:A"}
    assert made.codec("struct:A").size == made.codec("A").size == 1
    assert made.codec("struct:struct:A").size == 2
    assert made.schema("struct:A") == "int8 x"
    assert made.nested("struct:A") == ("A",)
    assert made.missing("struct:A") == frozenset()
    assert "struct:A" in made
    assert made.difference("struct:A", "int16 x") == "x"
    assert made.discard("struct:A") == {"A"}


def test_adding_the_same_again_reports_nothing_and_keeps_the_codec() -> None:
    made = registry(A="float x;int8 y[1]")
    codec = made.codec("A")
    for text in ("float x;int8 y[1]", b"float x;int8 y[1]", " float32 x; int8 y;", "{a=1} float x;int8 y"):
        assert made.add("A", text) == frozenset()
        assert made.codec("A") is codec
    assert made._text_bytes == len("{a=1} float x;int8 y")


def test_a_redefinition_lays_out_everything_that_contains_the_type() -> None:
    made = registry(A="int8 x", B="A a;int8 b", C="B b[2]", D="int8 d")
    before = {name: made.codec(name) for name in "ABCD"}
    named = made.codec("C", enum_names=True)
    assert made.add("A", "int32 x") == {"A", "B", "C"}
    assert [made.codec(name).size for name in "ABCD"] == [4, 5, 10, 1]
    assert made.codec("D") is before["D"]
    assert made.codec("C", enum_names=True) is not named
    assert before["B"].size == 2
    assert before["B"].decode(b"\1\2") == {"a": {"x": 1}, "b": 2}


def test_a_redefinition_that_loses_a_nested_type_is_reported() -> None:
    made = registry(A="int8 x", B="A a")
    assert made.add("A", "Gone g") == {"A", "B"}
    assert made.missing("B") == {"Gone"}
    assert made.add("A", "Gone g;Gone h") == frozenset()
    assert made.add("Gone", "int8 x") == {"Gone", "A", "B"}
    assert made.codec("B").size == 2


def test_discard() -> None:
    made = registry(A="int8 x", B="A a", C="B b;Gone g", D="int8 d")
    codec = made.codec("B")
    assert made.discard("A") == {"A", "B"}
    assert made.discard("A") == frozenset()
    assert made.missing("B") == {"A"}
    with pytest.raises(SchemaError):
        made.codec("B")
    assert codec.decode(b"\1") == {"a": {"x": 1}}
    assert made.add("A", "int16 x") == {"A", "B"}
    assert made.codec("B").size == 2
    for name in "ABCD":
        made.discard(name)
    assert made._text_bytes == 0
    assert (made._definitions, made._extents, dict(made._codecs), made._codec_values) == ({}, {}, {}, 0)


@pytest.mark.parametrize(
    ("name", "schema", "code"),
    [
        ("A", "int8", "syntax"),
        ("A", b"\xff", "encoding"),
        ("A", "int8 x;int8 x", "duplicate_field"),
        ("A", "A a", "recursive"),
        ("A", "C c", "circular"),
        ("A", "F f;B b", "circular"),
        ("A", "int8 x[4096];int8 y[4096]", "limit_values"),
        ("A", "char x[65536];int8 y", "limit_size"),
        ("D", "char x[65537]", "limit_size"),
        ("D", " " * 16_385, "limit_text"),
        ("D\n", "int8 x", "syntax"),
        ("", "int8 x", "limit_name"),
        ("n" * 256, "int8 x", "limit_name"),
    ],
)
def test_a_refused_schema_changes_nothing(name: str, schema: str | bytes, code: str) -> None:
    made = registry(A="int8 x", B="A a", C="B b", E="Missing m;D d")
    made.add_inline(POSE2D_INLINE)
    assert code_of(made, name, schema) == code
    assert made.codec("C").size == 1


def test_a_cycle_names_its_chain() -> None:
    made = registry(test="foo a", foo="bar a")
    with pytest.raises(SchemaError, match="bar <- foo <- test") as caught:
        made.add("bar", "test a")
    assert (caught.value.code, caught.value.type_name) == ("circular", "bar")
    assert "bar" not in made
    assert made.add("bar", "int8 x") == {"bar", "foo", "test"}


def test_limits_of_dependents_refuse_the_type_that_makes_them_too_large() -> None:
    made = registry(A="T t[4096]")
    assert code_of(made, "T", "int8 x;int8 y") == "limit_values"
    assert code_of(made, "T", "char x[17]") == "limit_size"
    assert code_of(made, "T", "char x[16]") == "limit_values"
    assert made.add("T", "") == {"T", "A"}


def test_numbers_of_unknown_types_are_bounded_from_below() -> None:
    made = registry(A="Unknown u[4096];int8 x[4095]")
    assert code_of(made, "B", "Unknown u[4096];int8 x[4096]") == "limit_values"
    assert made.missing("A") == {"Unknown"}


def test_depth_is_exact() -> None:
    made = registry(L1="int8 x")
    for level in range(2, 17):
        made.add(f"L{level}", f"L{level - 1} a")
    assert made.codec("L16").decode(b"\7")["a"]["a"]
    assert code_of(made, "L17", "L16 a") == "limit_depth"
    assert code_of(made, "L1", "Unknown u") == "limit_depth"
    assert made.codec("L16").size == 1


def test_number_of_types_and_text_are_bounded() -> None:
    made = SchemaRegistry(Limits(types=3, total_bytes=30))
    for name in "ABC":
        made.add(name, "int8 x")
    assert code_of(made, "D", "") == "limit_types"
    with pytest.raises(SchemaError) as caught:
        made.add_inline("struct D {}")
    assert caught.value.code == "limit_types"
    made.add("A", "int8 x;int8 y;;;;;")
    assert made._text_bytes == 30
    assert code_of(made, "A", "int8 x;int8 y;;;;;;") == "limit_total"
    assert code_of(made, "B", "int16 x") == "limit_total"
    made.discard("C")
    assert made.add("B", "int16 x") == {"B"}


def test_codecs_are_cached_by_use() -> None:
    made = SchemaRegistry()
    for index in range(300):
        made.add(f"T{index}", "int8 x")
    first = made.codec("T0")
    second = made.codec("T1")
    for index in range(2, 257):
        made.codec("T0")
        made.codec(f"T{index}")
    assert len(made._codecs) == 256
    assert made.codec("T0") is first
    assert made.codec("T1") is not second
    assert made._codec_values == 2 * 256


def test_cached_codecs_are_bounded_by_values() -> None:
    made = SchemaRegistry()
    for index in range(20):
        made.add(f"T{index}", "int8 x[4096];int8 y[4095]")
        made.codec(f"T{index}")
        assert made._codec_values <= 65_536
    assert len(made._codecs) == 8


def test_enum_names_is_another_codec() -> None:
    made = registry(A="enum {one=1} int8 x")
    assert made.codec("A").decode(b"\1") == {"x": 1}
    assert made.codec("A", enum_names=True).decode(b"\1") == {"x": "one"}
    assert made.codec("A") is made.codec("A")
    assert made.codec("A", enum_names=True) is made.codec("A", enum_names=True)


def test_difference() -> None:
    made = registry(A="int8 x;float y")
    assert made.difference("A", "int8 x;float32 y;") is None
    assert made.difference("A", "int8 x;double y") == "y"
    for name, schema in (("A", "int8"), ("B", "int8 x")):
        with pytest.raises(SchemaError):
            made.difference(name, schema)


def test_add_inline_defines_every_type() -> None:
    made = SchemaRegistry()
    assert made.add_inline(POSE2D_INLINE) == "Pose2d"
    assert made.nested("Pose2d") == ("Translation2d", "Rotation2d", "Pose2d")
    assert [made.schema(name) for name in made.nested("Pose2d")] == [
        "double x;double y",
        "double value",
        "Translation2d translation;Rotation2d rotation",
    ]
    assert made.codec("Pose2d").inline_schema == POSE2D_INLINE
    assert made.add("Pose2d", "Translation2d translation;Rotation2d rotation") == frozenset()


def test_admit_inline_reports_what_became_available() -> None:
    made = registry(Route="Pose2d poses[2]", Pose2d="Translation2d translation;Rotation2d rotation")
    assert made.admit_inline(POSE2D_INLINE) == InlineAdded(
        "Pose2d", frozenset({"Pose2d", "Translation2d", "Rotation2d", "Route"})
    )
    assert made.admit_inline(POSE2D_INLINE) == InlineAdded("Pose2d", frozenset())


def test_a_known_type_may_be_named_instead_of_defined() -> None:
    made = registry(T="int8 x")
    assert made.add_inline("struct A {T a; struct T b;}") == "A"
    assert made.codec("A").size == 2
    assert made.add_inline("struct B {struct C c; struct C {int8 x;} d; C e;}") == "B"
    assert made.codec("B").size == 3


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("struct A {Nobody a; T b;}", "unresolved", "Nobody"),
        ("struct A {Half a; struct X b;}", "unresolved", "Missing, X"),
        ("struct T {int16 x;}", "conflict", "field x"),
        ("struct A {struct B {int8 x;} b; struct T {int8 x; int8 y;} t;}", "conflict", "T is known with .* y"),
        ("struct A {struct B {int8 x;} b; struct B {int16 x;} c;}", "conflict", "B is defined twice; field x"),
        ("struct A {struct B {struct A {int8 x;} a;} b;}", "circular", "A <- B"),
        ("struct A {struct B {A a;} b;}", "circular", "<-"),
        ("struct A {struct A {int8 x;} a;}", "recursive", "A"),
        ("struct A {A a;}", "recursive", "A"),
        ("struct A {struct B {int8 x;} b; U u;}", "circular", "A <- U"),
        ("struct A {int8 x[5000];}", "limit_array", "4096"),
        ("struct A {struct B {int8 x[4096];} b[2];}", "limit_values", "A has"),
        ("struct A {int8 x", "syntax", "end of text"),
    ],
)  # fmt: skip
def test_a_refused_inline_text_changes_nothing(text: str, code: str, words: str) -> None:
    made = registry(T="int8 x", Half="Missing m", U="A a")
    made.codec("T")
    before = state(made)
    for attempt in (made.add_inline, made.admit_inline):
        with pytest.raises(SchemaError, match=words) as caught:
            attempt(text)
        assert caught.value.code == code
        assert state(made) == before


def test_check_inline_changes_nothing_and_lists_every_contradiction() -> None:
    made = registry(T="int8 x", U="int8 x;int8 y", V="T t", W="int8 w")
    before = state(made)
    text = "struct N {struct T {int16 x;} t; struct U {int8 x;} u; struct W {int8 w;} w; struct M {} m;}"
    check = made.check_inline(text)
    assert check.type_name == "N"
    assert set(check.new) == {"N", "M"}
    assert check.conflicts == (Conflict("T", "x"), Conflict("U", "y"))
    assert made.check_inline("struct W {int8 w;}").new == ()
    for bad in ("struct N {", "struct N {Nobody n;}", "struct T {V v;}"):
        with pytest.raises(SchemaError) as caught:
            made.check_inline(bad)
        assert caught.value.code != "conflict"
    assert state(made) == before


def test_admit_inline_replaces_what_the_caller_owns_and_nothing_else() -> None:
    made = registry(T="int8 x", U="int8 x", V="T t")
    text = "struct N {struct T {int16 x;} t; struct U {int16 x;} u;}"
    before = state(made)
    with pytest.raises(SchemaError, match="U") as caught:
        made.admit_inline(text, {"T"})
    assert caught.value.code == "conflict"
    assert state(made) == before
    assert made.admit_inline(text, {"T", "U"}) == InlineAdded("N", frozenset({"N", "T", "U", "V"}))
    assert made.codec("V").size == 2


def test_the_result_of_an_inline_text_is_kept_until_the_registry_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    made = SchemaRegistry()
    made.add_inline(POSE2D_INLINE)
    with monkeypatch.context() as patch:
        patch.setattr(made, "_stage", None)  # nothing is read or checked again
        assert made.add_inline(POSE2D_INLINE) == "Pose2d"
        assert made.admit_inline(POSE2D_INLINE) == InlineAdded("Pose2d", frozenset())
    made.add("Rotation2d", "double value;double rate")
    with pytest.raises(SchemaError, match="Rotation2d is known with another field") as caught:
        made.add_inline(POSE2D_INLINE)
    assert (caught.value.code, caught.value.type_name) == ("conflict", "Rotation2d")
    made.discard("Rotation2d")
    assert made.add_inline(POSE2D_INLINE) == "Pose2d"
    for index in range(100):
        made.add_inline("struct Pose2d {Translation2d translation; Rotation2d rotation;}" + " " * index)
    assert len(made._inline_names) == 64


def test_names_that_are_not_identifiers() -> None:
    made = SchemaRegistry()
    made.add("Foo<int, 3>", "int8 x")
    made.add("9é", "int8 x")
    assert made.codec("Foo<int, 3>").inline_schema == "struct Foo_int__3_ {int8 x;}"
    assert made.codec("9é").inline_schema == "struct _é {int8 x;}"
