"""How a value of an NT topic looks in a phone line, decided once per topic from its type string.

A renderer turns the NT value into the bytes between ``"time":…`` and the end of the line, the extra fields that its
type needs included.
"""

import base64
from collections.abc import Callable
from typing import Final, TypeAlias

import orjson

from aoabridge.bridge.coerce import is_struct_type
from aoabridge.codecs.wpistruct import SchemaRegistry
from aoabridge.errors import DecodeError, LinkError
from aoabridge.values import NtValue

__all__ = ["Renderer", "renderer", "struct_name", "struct_renderer"]

Renderer: TypeAlias = Callable[[NtValue], bytes]

_END: Final = b"}\n"
_JSON_TYPES: Final = frozenset(
    ("boolean", "int", "double", "float", "string", "boolean[]", "int[]", "double[]", "float[]", "string[]")
)


def renderer(type_: str) -> Renderer | None:
    """The renderer of a type; None for struct types (theirs needs a schema) and for ``rpc``, which has no values."""
    if type_ in _JSON_TYPES:
        return _plain
    if type_ == "json":
        return _json
    if type_ == "rpc" or is_struct_type(type_):
        return None
    return _binary


def struct_name(type_: str) -> str:
    """``Pose2d`` for ``struct:Pose2d`` and ``struct:Pose2d[]``."""
    return type_.removeprefix("struct:").removesuffix("[]")


def struct_renderer(type_: str, registry: SchemaRegistry) -> Renderer:
    """The renderer of a struct type; raises SchemaError while its schemas are not complete.

    The renderer raises DecodeError for bytes that do not fit, LinkError ``too-large`` for an array that is too long.
    """
    codec = registry.codec(struct_name(type_))
    head = b',"schema":' + orjson.dumps(codec.inline_schema) + b',"value":'
    if not type_.endswith("[]"):
        return lambda value: head + orjson.dumps(codec.decode(_bytes(value))) + _END
    most_bytes = codec.max_elements * codec.size

    def render_array(value: NtValue) -> bytes:
        data = _bytes(value)
        if len(data) > most_bytes:
            raise LinkError(f"{len(data)} bytes are more than {codec.max_elements} elements", "too-large")
        return head + orjson.dumps(codec.decode_array(data)) + _END

    return render_array


def _bytes(value: NtValue) -> bytes:
    if not isinstance(value, bytes):
        raise DecodeError(f"expected bytes, got {type(value).__name__}")
    return value


def _plain(value: NtValue) -> bytes:
    # orjson writes NaN and infinities as null, floats in their shortest form, integers exactly.
    return b',"value":' + orjson.dumps(value) + _END


def _json(value: NtValue) -> bytes:
    text = str(value)
    try:
        parsed = orjson.loads(text)
    except orjson.JSONDecodeError:
        return _plain(text)
    # Verbatim keeps every digit of its numbers; a text of several lines must become one.
    fragment = orjson.Fragment(text) if "\n" not in text and "\r" not in text else parsed
    return b',"value":' + orjson.dumps(fragment) + _END


def _binary(value: NtValue) -> bytes:
    return b',"type":"raw","value":"' + base64.b64encode(_bytes(value)) + b'"' + _END
