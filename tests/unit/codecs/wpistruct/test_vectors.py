"""Every case of struct_cases.json, to the type: 1 is not 1.0 is not True."""

import json
from pathlib import Path
from typing import Any

import pytest

from aoabridge.codecs.wpistruct import SchemaRegistry, StructCodec
from aoabridge.errors import DecodeError, SchemaError, TruncatedError

CASES = json.loads((Path(__file__).parents[3] / "vectors" / "struct_cases.json").read_text("utf-8"))
BY_KIND: dict[str, list[dict[str, Any]]] = {}
for _case in CASES["cases"]:
    BY_KIND.setdefault(_case["kind"], []).append(_case)


def cases(*kinds: str) -> Any:
    chosen = [case for kind in kinds for case in BY_KIND[kind]]
    return pytest.mark.parametrize("case", chosen, ids=[case["name"] for case in chosen])


def registry_of(case: dict[str, Any]) -> SchemaRegistry:
    registry = SchemaRegistry()
    for name, schema in case["schemas"]:
        registry.add(name, schema)
    return registry


def codec_of(case: dict[str, Any]) -> StructCodec:
    return registry_of(case).codec(case["type"])


def exact(value: Any) -> Any:
    """Turn a value into something that is equal only for equal types, signs and NaN."""
    if isinstance(value, dict):
        return [(key, exact(item)) for key, item in value.items()]
    if isinstance(value, list):
        return [exact(item) for item in value]
    return type(value).__name__, repr(value)


def expected(value: Any, got: Any) -> Any:
    """Read an expectation of the file: the names of non-finite floats stand for them where a float was decoded."""
    if isinstance(value, dict) and isinstance(got, dict):
        return {key: expected(item, got.get(key)) for key, item in value.items()}
    if isinstance(value, list) and isinstance(got, list) and len(value) == len(got):
        return [expected(item, other) for item, other in zip(value, got, strict=True)]
    if value in ("NaN", "Infinity", "-Infinity") and isinstance(got, float):
        return float(value)
    return value


def test_the_file_is_complete() -> None:
    assert len(CASES["cases"]) == CASES["count"] == 254
    assert {kind: len(chosen) for kind, chosen in BY_KIND.items()} == CASES["by_kind"]


@cases("decode")
def test_decode_and_encode(case: dict[str, Any]) -> None:
    codec = codec_of(case)
    data = bytes.fromhex(case["hex"])
    assert codec.size == case["size"]
    for raw in (data, bytearray(data), memoryview(data), memoryview(b"xx" + data + b"y")[2 : 2 + len(data)]):
        value = codec.decode_array(raw) if "array" in case else codec.decode(raw)
        assert exact(value) == exact(expected(case["expect"], value))
    encoded = codec.encode_array(value) if "array" in case else codec.encode(value)
    assert encoded.hex() == (case["hex"] if case["roundtrip"] else case["encode_hex"])
    if "array" in case:
        assert [
            codec.decode(data[i : i + codec.size]) for i in range(0, len(data), codec.size)
        ] == value or "NaN" in repr(case["expect"])


@cases("decode")
def test_the_careful_path_encodes_the_same(case: dict[str, Any]) -> None:
    codec = codec_of(case)
    data = bytes.fromhex(case["hex"])
    value = codec.decode_array(data) if "array" in case else codec.decode(data)

    class NotPlain(dict[str, Any]):
        """A legal dict that the fast path does not take."""

    want = case["hex"] if case["roundtrip"] else case["encode_hex"]
    if "array" in case:
        assert codec.encode_array(tuple(NotPlain(item) for item in value)).hex() == want
    else:
        assert codec.encode(NotPlain(value)).hex() == want


@cases("decode")
def test_cut_at_every_length(case: dict[str, Any]) -> None:
    codec = codec_of(case)
    data = bytes.fromhex(case["hex"]).ljust(codec.size, b"\0")[: codec.size]
    for length in range(len(data)):
        with pytest.raises(TruncatedError) as caught:
            codec.decode(data[:length])
        assert (caught.value.needed, caught.value.got) == (codec.size, length)
        if length:
            with pytest.raises(TruncatedError):
                codec.decode_array(data[:length])
    with pytest.raises(DecodeError) as too_long:
        codec.decode(data + b"\0")
    assert not isinstance(too_long.value, TruncatedError)


@cases("decode")
def test_layout_of_the_top_level_fields(case: dict[str, Any]) -> None:
    fields = codec_of(case).fields
    by_path = {field.path: field for field in fields}
    for want in case.get("layout", []):
        if want["type"] == "struct":
            step = want["size"]
            starts = (
                [f"{want['name']}[{i}]." for i in range(want["array"])] if want["array"] > 1 else [f"{want['name']}."]
            )
            for index, start in enumerate(starts):
                inner = [field for field in fields if field.path.startswith(start)]
                assert inner[0].offset == want["offset"] + index * step
                assert all(field.offset + field.size * field.count <= inner[0].offset + step for field in inner)
            continue
        field = by_path[want["name"]]
        assert (field.type, field.count, field.offset, field.size) == (
            want["type"],
            want["array"],
            want["offset"],
            want["size"],
        )
        assert (field.shift, field.bits) == (want.get("shift"), want.get("bits"))
        if "int" in want["type"]:  # on other types an enum is accepted and ignored
            assert field.enum == want.get("enum")


@cases("decode")
def test_canonical_texts_describe_the_same_type(case: dict[str, Any]) -> None:
    registry = registry_of(case)
    codec = registry.codec(case["type"])
    again = SchemaRegistry()
    for name in registry.nested(case["type"]):
        again.add(name, registry.schema(name))
    assert again.codec(case["type"]).fields == codec.fields
    assert again.schema(case["type"]) == registry.schema(case["type"])
    inline = SchemaRegistry()
    name = inline.add_inline(codec.inline_schema)
    assert inline.codec(name).fields == codec.fields
    assert inline.codec(name).inline_schema == codec.inline_schema


@cases("schema_error")
def test_schema_error(case: dict[str, Any]) -> None:
    registry = SchemaRegistry()
    *first, (name, schema) = case["schemas"]
    for known, text in first:
        registry.add(known, text)
    for text in (schema, schema.encode("utf-8")):
        with pytest.raises(SchemaError) as caught:
            registry.add(name, text)
        assert caught.value.code == case["error"]["code"]
        if "position" in case["error"]:
            assert caught.value.position == case["error"]["position"]
            assert str(caught.value).startswith(f"{caught.value.position}: ")


@cases("unresolved")
def test_unresolved(case: dict[str, Any]) -> None:
    registry = registry_of(case)
    with pytest.raises(SchemaError, match=case["missing"]) as caught:
        registry.codec(case["type"])
    assert caught.value.code == "unresolved"
    assert registry.missing(case["type"]) == {case["missing"]}
    size = len(case["hex"]) // 2
    assert registry.add(case["missing"], f"uint8 x[{size}]") == {case["type"], case["missing"]}
    assert registry.codec(case["type"]).size == size


@cases("too_short", "too_long")
def test_wrong_length(case: dict[str, Any]) -> None:
    with pytest.raises(TruncatedError if case["kind"] == "too_short" else DecodeError):
        codec_of(case).decode(bytes.fromhex(case["hex"]))
