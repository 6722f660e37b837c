"""Live publishers by topic name, the setter and size of each type; ntcore enters as a factory."""

import struct
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from aoabridge.adapters.nt_events import OwnValues
from aoabridge.values import SCHEMA_TYPE, NtValue

__all__ = [
    "DROP_DELAY_S",
    "PERIOD_S",
    "SETTERS",
    "MakeSetter",
    "Publishers",
    "SchemaSetter",
    "SetOutcome",
    "Setter",
    "payload_bytes",
]

PERIOD_S = 0.010  # a value whose flush ntcore ignored waits for it; its thread wakes up that often
DROP_DELAY_S = 0.020  # a value set just before its publisher goes may be lost; flushed and this old it is safe

Setter: TypeAlias = Callable[[Any], bool]  # a bound method: it keeps its publisher alive
MakeSetter: TypeAlias = Callable[[str, str, Mapping[str, object] | None, float], Setter]  # the last: period in seconds
SetOutcome: TypeAlias = str | None  # None or a refusal code of the phone protocol

SETTERS = {  # type string -> method of GenericPublisher; every other type string is bytes
    "boolean": "setBoolean",
    "int": "setInteger",
    "double": "setDouble",
    "float": "setFloat",
    "string": "setString",
    "json": "setString",
    "boolean[]": "setBooleanArray",
    "int[]": "setIntegerArray",
    "double[]": "setDoubleArray",
    "float[]": "setFloatArray",
    "string[]": "setStringArray",
}
_ELEMENTS: dict[str, tuple[type, ...]] = {  # what ntcore would silently convert is refused by exact class
    "boolean": (bool,),
    "int": (int,),
    "double": (float, int),
    "float": (float, int),
    "string": (str,),
    "json": (str,),
}
_FLOAT = struct.Struct("<f")


def payload_bytes(value: NtValue) -> int:
    """Return how much a value counts in ntcore's queue, without its fixed part."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, list):
        return sum(payload_bytes(element) + 8 for element in value)
    return 8


class RawPublisher(Protocol):
    """What we use of ntcore's raw publisher."""

    def set(self, value: bytes) -> None:
        """Set a value."""

    def setDefault(self, value: bytes) -> None:  # noqa: N802  # ntcore's name
        """Set a value that is older than any other."""


class SchemaSetter:
    """The first text as a default (time 0: never newer than what the robot publishes), a changed one as a value."""

    def __init__(self, publisher: RawPublisher) -> None:
        self._publisher = publisher
        self._text: bytes | None = None

    def __call__(self, value: str | bytes) -> bool:
        """Publish the text if it is new."""
        text = value.encode() if isinstance(value, str) else value
        if self._text is None:
            self._publisher.setDefault(text)
        elif text != self._text:
            self._publisher.set(text)
        self._text = text
        return True


class _Publisher:
    """One topic of ours: its setter while live, and when its last value went out."""

    __slots__ = ("flushed_at", "setter", "type", "unflushed", "value")

    def __init__(self, type_string: str, setter: Setter) -> None:
        self.type = type_string
        self.setter = setter
        self.value: NtValue | None = None
        self.unflushed = False
        self.flushed_at = float("-inf")


class Publishers:
    """The publishers of one owner (the phones, or the bridge itself).

    A publisher that is dropped right after a set stays until that set was flushed ``DROP_DELAY_S`` ago; a set on the
    same topic and type in the meantime takes it back.
    """

    def __init__(self, make: MakeSetter, own: OwnValues) -> None:
        self._make = make
        self._own = own
        self._live: dict[str, _Publisher] = {}
        self._dying: dict[str, _Publisher] = {}
        self._unflushed: list[_Publisher] = []

    def __contains__(self, topic: str) -> bool:
        return topic in self._live

    def set(
        self,
        topic: str,
        type_string: str,
        value: NtValue,
        properties: Mapping[str, object] | None = None,
        period_s: float = PERIOD_S,
    ) -> SetOutcome:
        """Publish one value of exactly this type; returns a refusal code, None if ntcore took it.

        ``properties`` and ``period_s`` are those of the first value.
        """
        if not _fits(type_string, value):
            return "type-mismatch"
        try:
            publisher = self._publisher(topic, type_string, properties, period_s)
            accepted = publisher.setter(value)
        except (TypeError, ValueError, OverflowError):  # no UTF-8, beyond int64: ntcore's binding refuses it
            self._forget(topic)  # a refused value leaves no topic behind
            return "bad-value"
        if not accepted:
            self._forget(topic)
            return "type-mismatch"
        publisher.value = value
        if not publisher.unflushed:
            publisher.unflushed = True
            self._unflushed.append(publisher)
        self._own.note(topic, _narrow(type_string, value))
        return None

    def drop(self, topic: str, now: float) -> None:
        """Stop publishing a topic, as soon as its last value is safely out."""
        publisher = self._live.pop(topic, None)
        if publisher is None:
            return
        self._own.forget(topic)
        if publisher.unflushed or now < publisher.flushed_at + DROP_DELAY_S:
            self._dying[topic] = publisher

    def drop_all(self) -> None:
        """Drop every publisher at once; unsent values are lost, which is what a lost connection asks for."""
        for topic in self._live:
            self._own.forget(topic)
        self._live.clear()
        self._dying.clear()
        self._unflushed.clear()

    def on_announced(self, topic: str, type_string: str) -> None:
        """Drop our publisher if the topic now has another type."""
        publisher = self._live.get(topic)
        if publisher is not None and publisher.type != type_string:
            self._forget(topic)

    def on_flushed(self, now: float) -> None:
        """Everything set so far is on its way."""
        for publisher in self._unflushed:
            publisher.unflushed, publisher.flushed_at = False, now
        self._unflushed.clear()

    def reap(self, now: float) -> bool:
        """Drop the publishers whose delay is over; True if there were any."""
        if not self._dying:
            return False
        over = [t for t, p in self._dying.items() if not p.unflushed and now >= p.flushed_at + DROP_DELAY_S]
        for topic in over:
            del self._dying[topic]
        return bool(over)

    def next_time(self) -> float | None:
        """When ``reap`` has something to do; None if nothing is due or a flush comes first."""
        if not self._dying:
            return None
        return min((p.flushed_at + DROP_DELAY_S for p in self._dying.values() if not p.unflushed), default=None)

    def raised(self, prefix: str) -> list[str]:
        """Return the live topics below ``prefix`` whose last value is true."""
        return [topic for topic, p in self._live.items() if p.value is True and topic.startswith(prefix)]

    def _publisher(
        self, topic: str, type_string: str, properties: Mapping[str, object] | None, period_s: float
    ) -> _Publisher:
        live = self._live.get(topic)
        if live is not None and live.type == type_string:
            return live
        dying = self._dying.pop(topic, None)
        if dying is not None and dying.type == type_string:
            self._live[topic] = dying
            return dying
        self._release(dying)
        self._forget(topic)
        live = dying = None  # a publisher of another type must be gone before the new one comes
        setter = self._make(topic, type_string, properties, period_s)
        publisher = self._live[topic] = _Publisher(type_string, setter)
        return publisher

    def _forget(self, topic: str) -> None:
        self._release(self._live.pop(topic, None))
        self._own.forget(topic)

    def _release(self, publisher: _Publisher | None) -> None:
        """Drop our list's reference: the publisher lives exactly as long as its last one."""
        if publisher is not None and publisher.unflushed:
            self._unflushed.remove(publisher)


def _fits(type_string: str, value: object) -> bool:
    if type_string == SCHEMA_TYPE:
        return isinstance(value, str | bytes)
    scalar = type_string.removesuffix("[]")
    if type_string not in SETTERS:
        return isinstance(value, bytes)
    classes = _ELEMENTS[scalar]
    if scalar == type_string:
        return type(value) in classes
    return isinstance(value, list) and all(type(element) in classes for element in value)


def _narrow(type_string: str, value: NtValue) -> NtValue:
    """Return what a reader of the topic gets: schemas are bytes, floats of a float topic lose digits on the way."""
    if type_string == SCHEMA_TYPE and isinstance(value, str):
        return value.encode()
    if type_string == "float" and isinstance(value, float | int):
        return _nearest(value)
    if type_string == "float[]" and isinstance(value, list):
        return [_nearest(element) for element in value if isinstance(element, float | int)]
    return value


def _nearest(value: float) -> float:
    try:
        nearest: float = _FLOAT.unpack(_FLOAT.pack(value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return nearest
