"""What a phone's JSON value becomes on NetworkTables: exactly the topic's type, or a refusal.

ntcore converts silently (4.75 on an int topic becomes 4) and drops silently (another type), so everything is decided
here, before it is called. Nothing is ever rounded, with one exception: a JSON float on a float topic is the nearest
float.
"""

import base64
import binascii
import json
import math
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from aoabridge.errors import LinkError
from aoabridge.values import MAX_VALUE_BYTES, NtValue

__all__ = ["BASIC_TYPES", "canonical_type", "check_size", "coerce", "infer", "is_struct_type"]

MAX_TYPE_CHARS = 255
EXACT_INT_FLOAT = 2**53  # every integer up to here is a double
INT64 = range(-(2**63), 2**63)


def canonical_type(text: str) -> str:
    """Return the NT type string for what a phone wrote: the basic names in any case, all others verbatim."""
    if not text or len(text) > MAX_TYPE_CHARS or not text.isprintable():
        raise LinkError(f"a type is 1 to {MAX_TYPE_CHARS} printable characters", "bad-value")
    lower = text.lower()
    return lower if lower in BASIC_TYPES else text


def is_struct_type(type_: str) -> bool:
    """True for ``struct:X`` and ``struct:X[]``."""
    return type_.startswith("struct:")


def coerce(value: Any, type_: str, *, explicit: bool = False) -> NtValue:
    """Convert a JSON value to the basic, json or binary type ``type_``.

    Binary types take base64 text, and only if the phone named the type (``explicit``).
    Raises LinkError ``type-mismatch`` (another kind of value) or ``bad-value`` (right kind, not representable).
    """
    if value is None:
        raise LinkError("null is not a value", "bad-value")
    convert = _CONVERT.get(type_)
    if convert is not None:
        return convert(value)
    if not explicit:
        raise _mismatch(type_, value, hint='; send base64 text with "type"')
    return _binary(type_, value)


def infer(value: Any) -> tuple[str, NtValue]:
    """Return type and value for a topic that does not exist yet.

    Raises LinkError ``cannot-infer-type`` or ``bad-value``.
    """
    if value is None:
        raise LinkError("null is not a value", "bad-value")
    type_ = _infer_list(value) if isinstance(value, list) else _BY_KIND.get(type(value))
    if type_ is None:
        raise LinkError(f'no type for {_kind(value)}; name it with "type"', "cannot-infer-type")
    return type_, coerce(value, type_)


def _infer_list(items: list[Any]) -> str | None:
    if any(item is None for item in items):
        raise LinkError("null is not a value", "bad-value")
    return _BY_ELEMENTS.get(frozenset(map(type, items)))


def check_size(value: NtValue, key: str) -> None:
    """Raise LinkError ``too-large`` if the encoded value is over the limit."""
    if isinstance(value, bytes):
        size = len(value)
    elif isinstance(value, str):
        size = len(value.encode())
    elif isinstance(value, list):
        size = sum(map(_item_bytes, value))
    else:
        return
    if size > MAX_VALUE_BYTES:
        raise LinkError(f"the value has {size} bytes, the limit is {MAX_VALUE_BYTES}", "too-large", topic=key)


def _item_bytes(item: bool | float | str) -> int:
    if isinstance(item, str):
        return len(item.encode()) + 5
    return 4 if isinstance(item, bool) else 9  # ntcore holds a boolean of an array as an int


def _kind(value: Any) -> str:
    return "an empty array" if value == [] else _KIND_WORDS[type(value)]


def _mismatch(type_: str, value: Any, hint: str = "") -> LinkError:
    return LinkError(f"topic is {type_}, value is {_kind(value)}{hint}", "type-mismatch")


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise _mismatch("boolean", value)


def _int(value: Any) -> int:
    if isinstance(value, float):
        if not value.is_integer():
            raise LinkError(f"topic is int, {value!r} is not integral", "type-mismatch")
        if abs(value) > EXACT_INT_FLOAT:
            raise LinkError(f"{value!r} may have been rounded: beyond 2^53 send an integer", "bad-value")
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _mismatch("int", value)
    if value not in INT64:
        raise LinkError(f"{value} does not fit an int of 64 bits", "bad-value")
    return value


def _double(value: Any) -> float:
    if isinstance(value, float):
        return _finite(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _mismatch("double", value)
    try:
        exact = float(value)
    except OverflowError:
        exact = math.inf
    if exact != value:
        raise LinkError(f"{value} is not exactly a double", "bad-value")
    return exact


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _mismatch("float", value)
    wide = _finite(value) if isinstance(value, float) else _double(value)
    try:
        (nearest,) = struct.unpack("<f", struct.pack("<f", wide))
    except OverflowError:
        raise LinkError(f"{value!r} is beyond the range of a float", "bad-value") from None
    if isinstance(value, int) and nearest != value:
        raise LinkError(f"{value} is not exactly a float", "bad-value")
    return float(nearest)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise LinkError("the number is beyond the range of a double", "bad-value")
    return value


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise _mismatch("string", value)
    return _valid_text(value)


def _valid_text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise LinkError("the text has a lone surrogate", "bad-value") from error
    return text


def _json(value: Any) -> str:
    if isinstance(value, str):
        text = _valid_text(value)
        try:
            orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise LinkError(f"topic is json, the text does not parse: {error}", "bad-value") from error
        return text
    if not isinstance(value, dict | list):
        raise _mismatch("json", value)
    try:
        return orjson.dumps(value).decode()
    except (orjson.JSONEncodeError, TypeError):  # integers beyond 64 bits, lone surrogates
        return _exact_text(value)


def _exact_text(value: dict[str, Any] | list[Any]) -> str:
    try:
        return _valid_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    except RecursionError as error:
        raise LinkError("nested too deeply", "bad-value") from error


def _binary(type_: str, value: Any) -> bytes:
    if not isinstance(value, str):
        raise _mismatch(type_, value, hint="; expected base64 text")
    try:
        data = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise LinkError(f"the text is not padded base64: {error}", "bad-value") from error
    if base64.b64encode(data) != value.encode():
        raise LinkError("the text is not strict base64: wrong padding, or bits that mean nothing", "bad-value")
    return data


def _array(type_: str, element: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def convert(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise _mismatch(type_, value)
        if None in value:
            raise LinkError("null is not a value", "bad-value")
        try:
            return [element(item) for item in value]
        except LinkError as error:
            raise LinkError(f"in {type_}: {error}", error.code) from error

    return convert


_CONVERT: Final[Mapping[str, Callable[[Any], NtValue]]] = {
    "boolean": _boolean,
    "int": _int,
    "double": _double,
    "float": _float,
    "string": _string,
    "json": _json,
    "boolean[]": _array("boolean[]", _boolean),
    "int[]": _array("int[]", _int),
    "double[]": _array("double[]", _double),
    "float[]": _array("float[]", _float),
    "string[]": _array("string[]", _string),
}
BASIC_TYPES: Final = frozenset(_CONVERT)
_KIND_WORDS: Final[Mapping[type, str]] = {
    bool: "a boolean",
    int: "an integer",
    float: "a float",
    str: "a string",
    list: "this array",
    dict: "an object",
    type(None): "null",
}
_BY_KIND: Final[Mapping[type, str]] = {
    bool: "boolean",
    int: "int",
    float: "double",
    str: "string",
    dict: "json",
}
_BY_ELEMENTS: Final[Mapping[frozenset[type], str]] = {
    frozenset({bool}): "boolean[]",
    frozenset({int}): "int[]",
    frozenset({float}): "double[]",
    frozenset({int, float}): "double[]",
    frozenset({str}): "string[]",
}
