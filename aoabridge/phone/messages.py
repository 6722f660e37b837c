"""Lines to typed messages and back: what a phone may say, what the bridge says.

One table maps an action to the function that reads it; everything that is wrong with a line is a LinkError with the
code that the phone is told.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NoReturn, TypeAlias

import msgspec
import orjson

from aoabridge.errors import LinkError
from aoabridge.phone.keys import put_key
from aoabridge.phone.lines import EXCERPT_BYTES

__all__ = [
    "DISCONNECT_LINE",
    "Hello",
    "Ident",
    "Message",
    "Ping",
    "Pong",
    "PutMessage",
    "Subscribe",
    "TopicsRequest",
    "Unsubscribe",
    "ack_line",
    "error_line",
    "hello_line",
    "parse_line",
    "ping_line",
    "pong_line",
    "status_line",
    "topics_line",
]

Ident: TypeAlias = int | str

PROTOCOL = 1
DISCONNECT_LINE: Final = b'{"disconnect":true}\n'
MAX_PERIOD_S = 60.0  # a topic rarer than that is better asked for
EXCERPT_CHARS = 120  # as much of the offending line as the error repeats
MAX_INTEGER_CHARS = 400  # longer than any double; bounds the cost of reading an integer
MAX_IDENT_CHARS = 1024  # ids and nonces are repeated in answers, of which some wait
MAX_NAME_CHARS = 100  # of an app and its version, as the status shows them


class Subscribe(msgspec.Struct, frozen=True):
    """Keys as written; ``period_s`` 0 = no limit of rate; ``legacy`` = without action, as the known app says it."""

    keys: list[str]
    prefix: bool = False
    every_sample: bool = False
    period_s: float = 0.0
    legacy: bool = False


class Unsubscribe(msgspec.Struct, frozen=True):
    """Keys as written, subtree forms included."""

    keys: list[str]
    prefix: bool = False


class PutMessage(msgspec.Struct, frozen=True):
    """A value for one topic; ``key`` is normalised, ``value`` is what JSON gave."""

    key: str
    value: Any
    schema: str | None = None
    type: str | None = None
    ident: Ident | None = None


class TopicsRequest(msgspec.Struct, frozen=True):
    """Send the topic list now."""

    types: bool = False


class Hello(msgspec.Struct, frozen=True):
    """The app names itself and promises to answer pings."""

    app: str = ""
    version: str = ""
    nonce: str | None = None


class Ping(msgspec.Struct, frozen=True):
    """A round trip of the app's own."""

    ident: Ident


class Pong(msgspec.Struct, frozen=True):
    """The answer to our ping."""

    ident: int


Message: TypeAlias = Subscribe | Unsubscribe | PutMessage | TopicsRequest | Hello | Ping | Pong

_MISSING: Final = object()
_TYPE_WORDS: Final = {str: "text", bool: "true or false", list: "a list", int: "an integer"}


def parse_line(line: bytes) -> Message:
    """Read one inbound line; raises LinkError with the code for the phone."""
    obj = _load(line)
    if not isinstance(obj, dict):
        raise LinkError("a line must be a JSON object", "not-an-object")
    action = obj.get("action", _MISSING)
    if action is _MISSING:
        action = _legacy_action(obj)
    elif not isinstance(action, str):
        raise LinkError("action must be text", "wrong-type")
    read = _ACTIONS.get(action)
    if read is None:
        raise LinkError(f"unknown action {action[:40]!r}; known: {', '.join(sorted(_ACTIONS))}", "unknown-action")
    return read(obj)


def _legacy_action(obj: dict[str, Any]) -> str:
    if "subscribe" in obj:
        obj["keys"] = obj["subscribe"]
        return "subscribe"
    if "key" in obj:
        return "put"
    raise LinkError("the field 'action' is missing", "missing-field")


def _load(line: bytes) -> Any:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        if _SURROGATE_ESCAPE.search(line) or _LONG_NUMBER.search(line) or _LARGE_EXPONENT.search(line):
            return _load_exactly(line)  # legal JSON; whoever uses the value refuses it by its own rule
        raise LinkError(f"not JSON: {error}", "bad-json") from error
    # orjson turns integers beyond 64 bits into doubles; a put must not be rounded on its way.
    return _load_exactly(line) if _LONG_NUMBER.search(line) else value


_SURROGATE_ESCAPE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_LONG_NUMBER: Final = re.compile(rb"\d{19}")
_LARGE_EXPONENT: Final = re.compile(rb"[eE]\+?\d{3}")


def _load_exactly(line: bytes) -> Any:
    beyond: list[str] = []

    def whole(text: str) -> int:
        if len(text) <= MAX_INTEGER_CHARS:
            return int(text)
        beyond.append(text)
        return 0

    def real(text: str) -> float:
        value = float(text)
        if math.isinf(value):
            beyond.append(text)
        return value

    try:
        value = json.loads(line.decode(), parse_int=whole, parse_float=real, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise LinkError(f"not JSON: {error}", "bad-json") from error
    if beyond:
        ident = _ident(value, None) if isinstance(value, dict) else None
        raise LinkError(f"{beyond[0][:40]} is beyond the range of a double", "bad-value", ident=ident)
    return value


def _no_constant(text: str) -> NoReturn:
    raise LinkError(f"not JSON: {text} is not a JSON number", "bad-json")


def _field(obj: dict[str, Any], name: str, kind: type, default: Any = _MISSING) -> Any:
    value = obj.get(name, default)
    if value is _MISSING:
        raise LinkError(f"the field {name!r} is missing", "missing-field")
    if value is not default and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
        raise LinkError(f"{name} must be {_TYPE_WORDS[kind]}", "wrong-type")
    return value


def _keys(obj: dict[str, Any]) -> list[str]:
    keys: list[str] = _field(obj, "keys", list)
    if not all(isinstance(key, str) for key in keys):
        raise LinkError("keys must be a list of text", "wrong-type")
    return keys


def _ident(obj: dict[str, Any], default: Any) -> Any:
    value = obj.get("id", default)
    if value is _MISSING:
        raise LinkError("the field 'id' is missing", "missing-field")
    if value is default:
        return value
    if isinstance(value, str):
        return _answerable(value, "id")
    if isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**64:
        return value
    raise LinkError("id must be text or an integer of 64 bits", "wrong-type")


def _subscribe(obj: dict[str, Any]) -> Subscribe:
    period = obj.get("period", 0.0)
    if isinstance(period, bool) or not isinstance(period, int | float):
        raise LinkError("period must be a number of seconds", "wrong-type")
    if not 0 <= period <= MAX_PERIOD_S:
        raise LinkError(f"period must be from 0 to {MAX_PERIOD_S:g} seconds", "bad-value")
    prefix, every_sample = _field(obj, "prefix", bool, False), _field(obj, "all", bool, False)
    return Subscribe(_keys(obj), prefix, every_sample, float(period), legacy="action" not in obj)


def _unsubscribe(obj: dict[str, Any]) -> Unsubscribe:
    return Unsubscribe(_keys(obj), _field(obj, "prefix", bool, False))


def _put(obj: dict[str, Any]) -> PutMessage:
    ident = _ident(obj, None)
    try:
        key = put_key(_field(obj, "key", str))
        if "value" not in obj:
            raise LinkError("the field 'value' is missing", "missing-field", topic=key)
        schema = _field(obj, "schema", str, None)
        return PutMessage(key, obj["value"], schema, _field(obj, "type", str, None), ident)
    except LinkError as error:
        error.ident = ident
        raise


def _topics(obj: dict[str, Any]) -> TopicsRequest:
    return TopicsRequest(_field(obj, "types", bool, False))


def _hello(obj: dict[str, Any]) -> Hello:
    nonce = _field(obj, "nonce", str, None)
    return Hello(
        _printable(_field(obj, "app", str, "")[:MAX_NAME_CHARS]),
        _printable(_field(obj, "version", str, "")[:MAX_NAME_CHARS]),
        None if nonce is None else _answerable(nonce, "nonce"),
    )


_ACTIONS: Final[Mapping[str, Callable[[dict[str, Any]], Message]]] = {
    "subscribe": _subscribe,
    "unsubscribe": _unsubscribe,
    "put": _put,
    "topics": _topics,
    "hello": _hello,
    "ping": lambda obj: Ping(_ident(obj, _MISSING)),
    "pong": lambda obj: Pong(_field(obj, "id", int)),
}


def _line(obj: dict[str, Any]) -> bytes:
    line = orjson.dumps(obj, option=orjson.OPT_APPEND_NEWLINE)
    # The known app takes every line with this text for a value line; the escape means the same.
    return line.replace(b'"key"', b'"\\u006bey"') if b'"key"' in line else line


def topics_line(keys: Iterable[str], types: Mapping[str, str] | None = None) -> bytes:
    """The topic list; with ``types`` the types of those topics beside it."""
    return _line({"topics": list(keys)} if types is None else {"topics": list(keys), "types": types})


def status_line(server: str, address: str) -> bytes:
    """The state of the robot connection: ``connected`` or ``disconnected``."""
    return _line({"status": {"server": server, "address": address}})


def ack_line(ident: Ident) -> bytes:
    """A put with an id is on its way to the server."""
    return _line({"ack": ident})


def ping_line(number: int) -> bytes:
    """Ask an app that said hello for a sign of life."""
    return b'{"ping":%d}\n' % number


def pong_line(ident: Ident) -> bytes:
    """The answer to the app's own ping."""
    return _line({"pong": ident})


def hello_line(version: str, nonce: str | None, server: str) -> bytes:
    """The answer to a hello."""
    answer: dict[str, Any] = {"bridge": "aoabridge", "version": version, "protocol": PROTOCOL}
    if nonce is not None:
        answer["nonce"] = nonce
    answer["server"] = server
    return _line({"hello": answer})


def error_line(
    code: str, message: str, *, topic: str | None = None, line: bytes = b"", ident: Ident | None = None
) -> bytes:
    """One refusal or fault; ``line`` is the offending text (cut to 120 characters), empty for faults of a value."""
    error: dict[str, Any] = {"code": code}
    if topic is not None:
        error["topic"] = _printable(topic)
    error["message"] = _printable(message)
    if line:
        error["line"] = line[:EXCERPT_BYTES].decode(errors="replace")[:EXCERPT_CHARS]
    if ident is not None:
        error["id"] = ident
    return _line({"error": error})


def _answerable(text: str, name: str) -> str:
    if len(text) > MAX_IDENT_CHARS:
        raise LinkError(f"{name} has more than {MAX_IDENT_CHARS} characters", "too-large")
    return _printable(text)


def _printable(text: str) -> str:
    """The text with lone surrogates replaced, which JSON cannot carry."""
    return text.encode(errors="replace").decode()
