"""Schemas made to cost time or memory: refused, or served within the limits. Times are bounds with a wide margin."""

import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from aoabridge.codecs.wpistruct import Limits, SchemaRegistry
from aoabridge.errors import DecodeError, EncodeError, SchemaError

MARGIN = 15  # the machine of a test is slower and busier than the one that the targets are for
MAX_STEP_S = 0.020 * MARGIN
MAX_MEMORY_BYTES = 64 * 2**20


@contextmanager
def within(limit_s: float = MAX_STEP_S) -> Iterator[None]:
    start = time.thread_time()
    yield
    assert time.thread_time() - start < limit_s


def code_of(call: Callable[[], object]) -> str:
    """Run within the time; return the code of the SchemaError, "" if there is none."""
    with within():
        try:
            call()
        except SchemaError as error:
            assert len(str(error)) < 3_000
            return error.code
        return ""


TEXTS = {
    "semicolons": (";" * 16_384, ""),
    "semicolons and blanks": ("; " * 8_192, ""),
    "blanks": (" \t\r\n" * 4_096, ""),
    "too long": (";" * 16_385, "limit_text"),
    "digits": ("int8 a[" + "9" * 16_000 + "]", "limit_array"),
    "digits of an enum": ("{a=" + "9" * 16_000 + "}int8 a", "enum_value"),
    "digits of a width": ("int8 a:" + "9" * 16_000, "bit_width"),
    "zeros": ("int8 a[" + "0" * 16_000 + "]", "limit_array"),
    "identifier": ("a" * 16_384, "limit_name"),
    "enum": ("{" + "a=1," * 4_090 + "}int8 a", ""),
    "wide enum numbers": ("{" + "a=1000000000000000000," * 740 + "}int8 a", ""),
    "enums": (";".join(f"{{a=1}}int8 a{i}" for i in range(1_000)), ""),
    "braces": ("{" * 16_384, "syntax"),
    "minus": ("-" * 16_384, "syntax"),
    "many": (";".join(f"int8 a{i}" for i in range(1_025)), "limit_fields"),
    "bits": (";".join(f"int64 a{i}:{1 + i % 64}" for i in range(1_024)), ""),
    "structs": (";".join(f"T{i} a{i}" for i in range(1_024)), ""),
    "wide characters": (";".join(f"int8 \U0001f600{i}" for i in range(1_000)), ""),
}


@pytest.mark.parametrize("name", TEXTS)
def test_text(name: str) -> None:
    text, code = TEXTS[name]
    registry = SchemaRegistry()
    assert code_of(lambda: registry.add("T", text)) == code
    if not code and not registry.missing("T"):
        assert code_of(lambda: registry.codec("T")) == ""
        codec = registry.codec("T")
        with within():
            assert codec.encode(codec.decode(bytes(codec.size))) == bytes(codec.size)


INLINE_TEXTS = {
    "semicolons": ("struct A {" + ";" * 65_000 + "}", ""),
    "too long": ("struct A {" + ";" * 65_536 + "}", "limit_inline"),
    "enum": ("struct A {{" + "a=1," * 16_000 + "} int8 x;}", "limit_text"),
    "enums": ("struct A {" + ("struct B {{" + "a=1," * 3_000 + "} int8 x;} b;") * 5 + "}", "duplicate_field"),
    "repeated": ("struct A {" + "".join(f"struct B {{int8 x;}} b{i};" for i in range(1_024)) + "}", ""),
    "distinct": ("struct A {" + "".join(f"struct B{i} {{}} b{i};" for i in range(1_023)) + "}", ""),
    "too many": ("struct A {" + "".join(f"struct B{i} {{}} b{i};" for i in range(1_024)) + "}", "limit_types"),
    "deep": ("".join(f"struct A{i} {{" for i in range(4_000)), "limit_depth"),
    "deep recursion": ("struct A {" * 6_000, "recursive"),
    "chain by name": (
        "struct A {" + "".join(f"struct B{i} {{B{i + 1} b;}} b{i};" for i in range(900)) + "struct B900 {} b900;}",
        "limit_depth",
    ),
    "ring by name": (
        "struct A {" + "".join(f"struct B{i} {{B{(i + 1) % 900} b;}} b{i};" for i in range(900)) + "}",
        "circular",
    ),
    "doubling": (
        "struct A {"
        + "".join(f"struct D{i} {{D{i + 1} a; D{i + 1} b;}} d{i};" for i in range(15))
        + "struct D15 {} e;}",
        "limit_values",
    ),
}


@pytest.mark.parametrize("name", INLINE_TEXTS)
def test_inline_text(name: str) -> None:
    text, code = INLINE_TEXTS[name]
    registry = SchemaRegistry()
    assert code_of(lambda: registry.add_inline(text)) == code
    assert code_of(lambda: registry.add_inline(text)) == code
    if code:
        assert "A" not in registry
    else:
        assert code_of(lambda: registry.codec("A")) == ""


@pytest.mark.parametrize("leaf", ["", "int8 x", "double x[4]"])
@pytest.mark.parametrize("innermost_first", [True, False])
def test_doubling_chains(leaf: str, innermost_first: bool) -> None:
    chain = [("S0", leaf), *((f"S{i}", f"S{i - 1} a;S{i - 1} b") for i in range(1, 41))]
    registry = SchemaRegistry()
    codes = {
        code_of(lambda name=name, text=text: registry.add(name, text))
        for name, text in (chain if innermost_first else reversed(chain))
    }
    assert codes <= {"", "limit_depth", "limit_values", "limit_size"}
    assert len(codes) > 1
    served = 0
    for name, _ in chain:
        code = code_of(lambda name=name: registry.codec(name))
        assert code in ("", "unresolved")
        if not code:
            served += 1
            codec = registry.codec(name)
            with within():
                assert codec.encode(codec.decode(bytes(codec.size))) == bytes(codec.size)
            with within():
                assert len(codec.fields) <= 8_192
            assert code_of(lambda codec=codec: codec.inline_schema) in ("", "limit_inline")
    assert served >= 9 or not innermost_first


def test_arrays_of_empty_structs() -> None:
    registry = SchemaRegistry()
    registry.add("Empty", "")
    registry.add("Many", "Empty a[4096]")
    assert code_of(lambda: registry.add("Twice", "Many a[4096]")) == "limit_values"
    assert code_of(lambda: registry.add("Pair", "Many a;Many b")) == "limit_values"
    codec = registry.codec("Many")
    with within():
        assert codec.encode(codec.decode(b"")) == b""
    assert len(codec.decode(b"")["a"]) == 4_096


def test_a_size_of_many_digits_is_only_a_number() -> None:
    registry = SchemaRegistry()
    assert code_of(lambda: registry.add("A", "char a[99999999999999999999]")) == "limit_size"
    assert code_of(lambda: registry.add("A", "char a[" + "9" * 10_000 + "]")) == "limit_size"


def test_ten_thousand_types_stay_within_memory() -> None:
    tracemalloc.start()
    try:
        registry = SchemaRegistry()
        codes: dict[str, int] = {}
        text = ";".join(f"T{i:x} a{i}" for i in range(1_000))
        for index in range(10_000):
            try:
                registry.add(f"N{index}", text if index < 90 else f"int8 x{index}")
            except SchemaError as error:
                codes[error.code] = codes.get(error.code, 0) + 1
        assert tracemalloc.get_traced_memory()[1] < MAX_MEMORY_BYTES
    finally:
        tracemalloc.stop()
    assert set(codes) <= {"limit_types", "limit_total"}
    assert len(registry._definitions) <= 1_024
    assert registry._text_bytes <= 2**20


def test_a_full_registry_stays_quick_when_a_type_that_all_contain_changes() -> None:
    registry = SchemaRegistry()
    registry.add("X", "int8 a")
    for index in range(1_023):
        registry.add(f"U{index}", "X a;" + ";".join(f"M{index * 99 + j:x} a{j}" for j in range(80)))
    assert code_of(lambda: registry.add("X", "int16 a")) == ""
    assert code_of(lambda: registry.discard("X")) == ""
    assert code_of(lambda: registry.add("X", "U5 a")) == "circular"


def test_compiled_codecs_stay_within_memory() -> None:
    tracemalloc.start()
    try:
        registry = SchemaRegistry()
        text = ";".join(f"int64 a{i}:{1 + i % 64}" for i in range(1_024))
        for index in range(100):
            registry.add(f"T{index % 60}", text + ";" * (index % 7))
            registry.codec(f"T{index % 60}")
        assert tracemalloc.get_traced_memory()[1] < MAX_MEMORY_BYTES
    finally:
        tracemalloc.stop()


def test_a_long_array_value_is_refused_before_it_is_decoded() -> None:
    registry = SchemaRegistry()
    registry.add("A", "uint8 x")
    codec = registry.codec("A")
    assert codec.max_elements == 32_768
    with within():
        assert len(codec.decode_array(bytes(32_768))) == 32_768
    with within(0.005 * MARGIN), pytest.raises(DecodeError):
        codec.decode_array(bytes(2**21))


def test_a_foreign_value_costs_no_more_than_its_size() -> None:
    registry = SchemaRegistry(Limits())
    registry.add("A", ";".join(f"int8 {'n' * 200}{i}" for i in range(70)))
    codec = registry.codec("A")
    for value in (
        {"n" * 100_000: 1},
        {f"{'n' * 60}{i}": i for i in range(20_000)},
        {i: i for i in range(20_000)},
        [0] * 100_000,
        "x" * 1_000_000,
        10**4_000,
    ):
        with within(), pytest.raises(EncodeError) as caught:
            codec.encode(value)
        assert len(str(caught.value)) < 1_000
