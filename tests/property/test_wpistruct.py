"""Properties of the struct codec over random schemas, values and bytes."""

import json
import math
import struct
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from aoabridge.codecs.wpistruct import SchemaRegistry
from aoabridge.errors import DecodeError, EncodeError, SchemaError

VECTORS = Path(__file__).parents[1] / "vectors" / "struct_cases.json"
TEXTS = sorted({text for case in json.loads(VECTORS.read_text("utf-8"))["cases"] for _, text in case["schemas"]})

INTEGERS = {f"{sign}int{bits}": bits for sign in ("", "u") for bits in (8, 16, 32, 64)}
CODES = {"bool": "?", "float": "f", "double": "d", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H"} | {
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
}


class Decl(NamedTuple):
    type: str
    name: str
    count: int = 1
    bits: int = 0
    enum: tuple[tuple[str, int], ...] = ()
    single: bool = False

    def text(self, blank: str = " ") -> str:
        enum = "enum{" + ",".join(f"{name}={value}" for name, value in self.enum) + "}" if self.enum else ""
        size = f"[{self.count}]" if self.count > 1 or self.single else f":{self.bits}" if self.bits else ""
        return f"{enum}{blank}{self.type}{blank}{self.name}{blank}{size}"


Types = dict[str, tuple[Decl, ...]]

names = st.from_regex(r"[A-Za-z_é\U0001f600][A-Za-z0-9_é]{0,5}", fullmatch=True)


@st.composite
def declarations(draw: st.DrawFn, name: str, known: list[str]) -> Decl:
    kind = draw(st.sampled_from(["plain", "bits", "bits", "array", "char", "enum", *(["nested"] * 2 if known else [])]))
    count = draw(st.sampled_from([1, 1, 2, 3]))
    single = draw(st.booleans())
    if kind == "nested":
        return Decl(draw(st.sampled_from(known)), name, count, single=single)
    if kind == "bits":
        base = draw(st.sampled_from([*INTEGERS, "bool"]))
        return Decl(base, name, bits=draw(st.integers(1, INTEGERS.get(base, 1))))
    if kind == "char":
        return Decl("char", name, draw(st.integers(1, 6)), single=single)
    if kind == "enum":
        entries = draw(st.lists(st.tuples(names, st.integers(0, 127)), min_size=1, max_size=3))
        return Decl(draw(st.sampled_from([*INTEGERS])), name, count, enum=tuple(entries))
    return Decl(draw(st.sampled_from([*CODES])), name, count if kind == "array" else 1, single=single)


@st.composite
def type_sets(draw: st.DrawFn) -> Types:
    """Up to four types; each may nest those before it, the last one is the top."""
    types: Types = {}
    for index in range(draw(st.integers(1, 4))):
        fields = draw(st.lists(names, max_size=6, unique=True))
        types[f"T{index}"] = tuple([draw(declarations(name, list(types))) for name in fields])
    return types


def registry_of(types: Types) -> SchemaRegistry:
    registry = SchemaRegistry()
    for name, fields in types.items():
        registry.add(name, ";".join(field.text() for field in fields))
    return registry


def scalars(field: Decl) -> st.SearchStrategy[Any]:
    if field.type == "bool":
        return st.booleans()
    if field.type in INTEGERS:
        bits = field.bits or INTEGERS[field.type]
        return (
            st.integers(0, 2**bits - 1)
            if field.type[0] == "u"
            else st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        )
    return st.floats(width=32 if field.type == "float" else 64)


def char_texts(size: int) -> st.SearchStrategy[str]:
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=size).filter(
        lambda text: len(text.encode()) <= size and not text.endswith("\0")
    )


def values(types: Types, name: str) -> st.SearchStrategy[dict[str, Any]]:
    fields: dict[str, st.SearchStrategy[Any]] = {}
    for field in types[name]:
        if field.type == "char":
            fields[field.name] = char_texts(field.count)
            continue
        one = values(types, field.type) if field.type in types else scalars(field)
        fields[field.name] = one if field.count == 1 else st.lists(one, min_size=field.count, max_size=field.count)
    return st.fixed_dictionaries(fields)


def exact(value: Any, *, ordered: bool = True) -> Any:
    if isinstance(value, dict):
        items = [(key, exact(item, ordered=ordered)) for key, item in value.items()]
        return items if ordered else sorted(items)
    if isinstance(value, list):
        return [exact(item, ordered=ordered) for item in value]
    return type(value).__name__, repr(value)


class Oracle:
    """Decodes bit by bit, straight from the written layout rules; shares nothing with the codec."""

    def __init__(self, types: Types, data: bytes) -> None:
        self.types, self.data, self.at = types, data, 0

    def struct(self, name: str) -> dict[str, Any]:
        value: dict[str, Any] = {}
        unit = shift = 0
        for field in self.types[name]:
            if not field.bits:
                self.at += unit
                unit = shift = 0
                items = [self.one(field) for _ in range(1 if field.type == "char" else field.count)]
                value[field.name] = items[0] if len(items) == 1 else items
                continue
            size = 1 if field.type == "bool" else INTEGERS[field.type] // 8
            if not (field.type == "bool" and unit and shift + 1 <= 8 * unit):
                if size != unit or shift + field.bits > 8 * size:
                    self.at += unit
                    shift = 0
                unit = size
            number = int.from_bytes(self.data[self.at : self.at + unit], "little") >> shift & ((1 << field.bits) - 1)
            if field.type[0] == "i" and number >> (field.bits - 1):
                number -= 1 << field.bits
            value[field.name] = bool(number) if field.type == "bool" else number
            shift += field.bits
        self.at += unit
        return value

    def one(self, field: Decl) -> Any:
        if field.type in self.types:
            return self.struct(field.type)
        if field.type == "char":
            raw = self.data[self.at : self.at + field.count].rstrip(b"\0")
            self.at += field.count
            return self.text(raw)
        size = struct.calcsize("<" + CODES[field.type])
        raw = self.data[self.at : self.at + size]
        self.at += size
        return struct.unpack("<" + CODES[field.type], raw)[0]

    @staticmethod
    def text(raw: bytes) -> str:
        lead = len(raw)
        while lead and raw[lead - 1] & 0b1100_0000 == 0b1000_0000:
            lead -= 1
        if lead == 0:
            return ""
        first = raw[lead - 1]
        needed = next(
            (n for n, top, mask in ((2, 0xC0, 0xE0), (3, 0xE0, 0xF0), (4, 0xF0, 0xF8)) if first & mask == top), 1
        )
        if len(raw) - lead + 1 < needed:
            raw = raw[: lead - 1]
        return raw.decode("utf-8", "replace")


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_encode_then_decode_is_equal(data: st.DataObject) -> None:
    types = data.draw(type_sets())
    top = next(reversed(types))
    codec = registry_of(types).codec(top)
    value = data.draw(values(types, top))
    raw = codec.encode(value)
    assert len(raw) == codec.size
    assert exact(codec.decode(raw), ordered=False) == exact(value, ordered=False)
    checked = codec.encode_checked(value)
    assert (checked.data, checked.truncated) == (raw, ())


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_decode_agrees_with_the_written_rules(data: st.DataObject) -> None:
    types = data.draw(type_sets())
    top = next(reversed(types))
    codec = registry_of(types).codec(top)
    raw = data.draw(st.binary(min_size=codec.size, max_size=codec.size))
    oracle = Oracle(types, raw)
    assert exact(codec.decode(raw)) == exact(oracle.struct(top))
    assert oracle.at == codec.size
    if codec.size:
        assert exact(codec.decode_array(raw + raw)) == exact([codec.decode(raw)] * 2)
        assert codec.decode_array(codec.encode_array(codec.decode_array(raw)))


@settings(deadline=None, max_examples=100)
@given(type_sets())
def test_canonical_texts_give_the_same_layout_and_text(types: Types) -> None:
    registry = registry_of(types)
    top = next(reversed(types))
    codec = registry.codec(top)
    again = SchemaRegistry()
    for name in registry.nested(top):
        again.add(name, registry.schema(name))
        assert registry.add(name, registry.schema(name)) == frozenset()
    assert again.codec(top).fields == codec.fields
    inline = SchemaRegistry()
    assert inline.add_inline(codec.inline_schema) == top
    assert inline.codec(top).fields == codec.fields
    assert inline.codec(top).inline_schema == codec.inline_schema
    assert registry.add_inline(codec.inline_schema) == top
    assert registry.check_inline(codec.inline_schema).conflicts == ()
    assert all(inline.schema(name) == registry.schema(name) for name in registry.nested(top))


@settings(deadline=None, max_examples=100)
@given(type_sets(), st.randoms(use_true_random=False))
def test_any_order_of_arrival_gives_the_same_codec(types: Types, random: Any) -> None:
    order = list(types)
    random.shuffle(order)
    registry = SchemaRegistry()
    reported: set[str] = set()
    for name in order:
        reported |= registry.add(name, ";".join(field.text("\t") for field in types[name]))
    assert reported == set(types)
    top = next(reversed(types))
    assert registry.codec(top).fields == registry_of(types).codec(top).fields
    assert not registry.missing(top)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=8,
)


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_damaged_values_raise_encode_error_or_read_back(data: st.DataObject) -> None:
    types = data.draw(type_sets())
    top = next(reversed(types))
    codec = registry_of(types).codec(top)
    value = data.draw(values(types, top))
    if value:
        value[data.draw(st.sampled_from([*value, "other"]))] = data.draw(json_values)
    before = repr(value)
    try:
        raw = codec.encode_checked(value).data
    except EncodeError as error:
        assert error.field
        assert error.field.split(".")[0].split("[")[0] in {*value, *(field.name for field in types[top])}
    else:
        again = codec.encode(codec.decode(raw))
        assert len(raw) == codec.size
        assert again == raw or any(field.type == "char" for fields in types.values() for field in fields)
    assert repr(value) == before


@settings(deadline=None, max_examples=200)
@given(json_values, st.booleans())
def test_foreign_values_raise_encode_error_only(value: Any, null_is_nan: bool) -> None:
    registry = SchemaRegistry()
    registry.add_inline("struct A {struct B {int8 a:3; char c[2];} b[2]; double d; float f[2]; {on=1} uint64 e;}")
    codec = registry.codec("A")
    for call in (codec.encode, codec.encode_array):
        try:
            call(value, null_is_nan=null_is_nan)
        except EncodeError:
            continue
        assert value == []


@st.composite
def mutated_schemas(draw: st.DrawFn) -> bytes:
    raw = bytearray(draw(st.sampled_from(TEXTS)).encode("utf-8"))
    pieces = st.sampled_from(
        [b";", b":", b"[", b"]", b"{", b"}", b"=", b",", b"-", b"enum", b"struct ", b"9" * 25, b"\xff"]
    )
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(raw)))
        raw[at : at + draw(st.integers(0, 3))] = draw(pieces | st.binary(max_size=3))
    return bytes(raw)


@settings(deadline=None, max_examples=400)
@given(st.binary(max_size=200) | mutated_schemas())
def test_foreign_text_raises_schema_error_only_and_leaves_no_trace(raw: bytes) -> None:
    registry = SchemaRegistry()
    registry.add("Known", "int8 x")
    inline = b"struct T {" + raw + b"}"
    for call, text in (
        (lambda text: registry.add("T", text), raw),
        (lambda text: registry.add_inline(text.decode("utf-8", "surrogateescape")), inline),
    ):
        try:
            call(text)
        except SchemaError as error:
            assert error.position is None or 0 <= error.position <= len(inline)
            assert "T" not in registry
            assert len(str(error)) < 3_000
        else:
            assert registry.add("T", registry.schema("T")) == frozenset()
        registry.discard("T")


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=64))
def test_any_length_raises_decode_error_only(raw: bytes) -> None:
    registry = SchemaRegistry()
    registry.add("A", "int8 a:3;char c[4];double d")
    codec = registry.codec("A")
    for call in (codec.decode, codec.decode_array):
        try:
            call(raw)
        except DecodeError:
            assert len(raw) != codec.size


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=12))
def test_text_of_any_bytes(raw: bytes) -> None:
    registry = SchemaRegistry()
    registry.add("A", f"char c[{max(1, len(raw))}]")
    codec = registry.codec("A")
    text = codec.decode(raw or b"\0")["c"]
    assert text == Oracle.text(raw.rstrip(b"\0"))


@settings(deadline=None, max_examples=200)
@given(st.floats() | st.integers() | st.integers().map(float))
def test_a_number_is_exact_or_refused(number: float) -> None:
    registry = SchemaRegistry()
    registry.add("A", "double d")
    registry.add("B", "int64 i")
    double, integer = registry.codec("A"), registry.codec("B")
    nan = isinstance(number, float) and math.isnan(number)
    try:
        back = double.decode(double.encode({"d": number}))["d"]
    except EncodeError:
        assert isinstance(number, int)
        assert abs(number) > 2**53
    else:
        assert math.isnan(back) if nan else back == number
    try:
        back = integer.decode(integer.encode({"i": number}))["i"]
    except EncodeError:
        assert nan or abs(number) > 2**53 or not float(number).is_integer()
    else:
        assert back == number
        assert type(back) is int
