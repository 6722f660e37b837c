"""Fuzz target: struct schemas, inline texts, payloads and values from outside raise only the documented errors.

The first byte chooses what the rest is read as.
"""

import json
import sys
from pathlib import Path
from typing import Any

from aoabridge.codecs.wpistruct import Limits, SchemaRegistry
from aoabridge.codecs.wpistruct.schema_file import read_schema_file, struct_form
from aoabridge.errors import DecodeError, EncodeError, SchemaError

VECTORS = Path(__file__).parents[1] / "vectors" / "struct_cases.json"
# Small limits, so that a fuzzer reaches them.
LIMITS = Limits(text_bytes=512, inline_bytes=1_024, fields=32, array=64, size_bytes=512, values=128, depth=5, types=8)


def _use(registry: SchemaRegistry, name: str, data: bytes) -> None:
    """Decode, encode again, and read back every text of a type that was accepted."""
    try:
        codec = registry.codec(name)
    except SchemaError as error:
        assert error.code == "unresolved"
        return
    payload = data[: codec.size].ljust(codec.size, b"\0")
    value = codec.decode(payload)
    encoded = codec.encode_checked(value)
    assert len(encoded.data) == codec.size
    assert codec.encode_array([value]) == encoded.data
    named = registry.codec(name, enum_names=True)
    named.encode(named.decode(payload))
    for wrong in (data, payload + b"\0", payload[:-1]):
        for decode in (codec.decode, codec.decode_array):
            try:
                decode(wrong)
            except DecodeError:
                continue
            assert len(wrong) == codec.size or (codec.size and len(wrong) % codec.size == 0)
    assert registry.add(name, registry.schema(name)) == frozenset()
    try:
        text = codec.inline_schema
    except SchemaError as error:
        assert error.code == "limit_inline"
        return
    if _RESERVED.isdisjoint(registry.nested(name)):
        check = registry.check_inline(text)
        assert (check.type_name, check.new, check.conflicts) == (name, (), ())


# Legal names of WPILib structs, which the inline form cannot write.
_RESERVED = {"struct", "enum", "bool", "char", "float", "float32", "float64", "double"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


def _schemas(data: bytes) -> None:
    """Lines of schemas for the names A, B, C …, added in turn and again."""
    registry = SchemaRegistry(LIMITS)
    for index, schema in enumerate(data.split(b"\n")[:12]):
        name = chr(ord("A") + index % 5)
        try:
            registry.add(name, schema)
        except SchemaError:
            registry.discard(name) if index % 2 else None
    for name in "ABCDE":
        if name in registry:
            _use(registry, name, data)


def _inline(data: bytes) -> None:
    registry = SchemaRegistry(LIMITS)
    try:
        registry.add("Known", "int8 x")
        name = registry.add_inline(data.decode("utf-8", "surrogatepass"))
    except (SchemaError, UnicodeDecodeError):
        return
    _use(registry, name, data)


def _values(data: bytes) -> None:
    registry = SchemaRegistry()
    registry.add_inline(
        "struct A {struct B {int8 a:3; char c[2];} b[2]; double d; float f[2]; {on=1} uint64 e; bool g[1];}"
    )
    codec = registry.codec("A")
    try:
        value: Any = json.loads(data)
    except (ValueError, RecursionError):
        return
    for call in (codec.encode, codec.encode_array):
        for null_is_nan in (False, True):
            try:
                call(value, null_is_nan=null_is_nan)
            except EncodeError:
                continue


def _file(data: bytes) -> None:
    try:
        registry = read_schema_file(data.decode("utf-8", "replace"), LIMITS)
        form = struct_form(registry, "A[]" if len(data) % 2 else "A")
        form.encode(form.decode(data[: form.codec.size]))
    except (SchemaError, DecodeError):
        return


_TARGETS = (_schemas, _inline, _values, _file)


def run(data: bytes) -> None:
    """Feed one input; anything but a documented error or a broken promise passes silently."""
    if data:
        _TARGETS[data[0] % len(_TARGETS)](data[1:])


def seeds() -> list[bytes]:
    """Return inputs to start from: every schema of the vectors, and one or two of each other kind."""
    cases = json.loads(VECTORS.read_text("utf-8"))["cases"]
    found = {b"\0" + "\n".join(text for _, text in case["schemas"]).encode("utf-8") for case in cases}
    found |= {b"\1struct T {" + text.encode("utf-8") + b"}" for case in cases for _, text in case["schemas"]}
    pose = b"struct Pose2d {struct Translation2d {double x; double y;} translation; struct Rotation2d {double a;} b;}"
    found |= {b"\1" + pose, b"\3" + pose, b"\3A: int8 x\nstruct:B: A a;double d[2]\n", b"\3A: B b[2]\nB: char c[3]"}
    value = b'{"b":[{"a":1,"c":"x"},{"a":-4,"c":""}],"d":1.5,"f":[1,2],"e":"on","g":[true]}'
    found |= {b"\2" + value, b"\2[" + value + b"]", b"\2[]", b"\2null"}
    return sorted(found)


if __name__ == "__main__":
    run(sys.stdin.buffer.read())
