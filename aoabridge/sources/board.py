"""What a source has on NetworkTables: each topic with its origin, its pace and the last value said.

Booleans and texts leave at once on change, numbers at a limited rate (newest wins), structs and events every time.
Topics of an origin that fell silent are withdrawn: a client's last value would otherwise survive and come back.
"""

from collections.abc import Mapping
from math import inf

import msgspec

from aoabridge.values import SCHEMA_ROOT, SCHEMA_TYPE, NtValue, Publication, Withdrawal

__all__ = ["UNITS", "TopicBoard", "Writer", "cut_text"]

MAX_TEXT = 4096  # characters of one published text; longer ones are logs, not values
UNITS = {
    "_s": "s",
    "_ms": "ms",
    "_us": "us",
    "_hz": "Hz",
    "_pct": "%",
    "_volts": "V",
    "_amps": "A",
    "_A": "A",
    "_bytes": "B",
    "_mbps": "Mbit/s",
    "_kmh": "km/h",
    "_mmps": "mm/s",
    "_deg": "deg",
    "_degps": "deg/s",
}
"""Suffix of a topic's name -> its property ``unit``."""


class _Topic:
    """One topic that is published: who set it last, what was said last, and what waits to be said."""

    __slots__ = ("origin", "said", "said_at", "waiting")

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.said: NtValue | None = None
        self.said_at = -inf
        self.waiting: tuple[str, NtValue] | None = None


class TopicBoard:
    """Topics below ``root`` (with its last slash); numbers leave at most ``publish_hz`` times a second, 0 = always."""

    def __init__(self, root: str, publish_hz: float) -> None:
        self.root = root
        self.replaced_texts = 0  # texts with bytes that are not UTF-8
        self._period_s = 1 / publish_hz if publish_hz else 0.0
        self._topics: dict[str, _Topic] = {}
        self._waiting: dict[str, _Topic] = {}
        self._out: list[Publication | Withdrawal] = []
        self._schemas: set[str] = set()

    def writer(self, origin: str, prefix: str = "") -> "Writer":
        """The hand that writes topics below ``prefix`` as ``origin``."""
        return Writer(self, origin, prefix)

    def schema(self, name: str, text: str) -> None:
        """Publish the schema of a struct, once."""
        if name not in self._schemas:
            self._schemas.add(name)
            self._out.append(Publication(SCHEMA_ROOT + name, SCHEMA_TYPE, text.encode()))

    def say(
        self, origin: str, name: str, type_string: str, value: NtValue, properties: dict[str, object] | None = None
    ) -> None:
        """Publish now unless it is what was said last."""
        topic, new = self._topic(origin, name)
        if new or topic.said != value:
            self._send(topic, name, type_string, value, properties=properties)

    def say_always(self, origin: str, name: str, type_string: str, value: NtValue) -> None:
        """Publish now as a value of which every one counts."""
        self._send(self._topic(origin, name)[0], name, type_string, value, keep_all=True)

    def say_soon(self, origin: str, name: str, type_string: str, value: NtValue) -> None:
        """Publish as soon as the rate of the topic allows; a newer value takes the place of one that waits."""
        if not self._period_s:
            self.say(origin, name, type_string, value)
            return
        topic, _ = self._topic(origin, name)
        topic.waiting = (type_string, value)
        self._waiting[name] = topic

    def forget(self, origin: str) -> None:
        """Withdraw every topic that this origin set last."""
        for name in [name for name, topic in self._topics.items() if topic.origin == origin]:
            self.withdraw(name)

    def withdraw(self, name: str) -> None:
        """Withdraw one topic, if it is there."""
        if self._topics.pop(name, None) is not None:
            self._waiting.pop(name, None)
            self._out.append(Withdrawal(self._path(name)))

    def has(self, origin: str) -> bool:
        """Whether the origin has any topic."""
        return any(topic.origin == origin for topic in self._topics.values())

    def take(self, now: float) -> list[Publication | Withdrawal]:
        """Remove and return what is to be published, in order."""
        for name in [name for name, topic in self._waiting.items() if topic.said_at + self._period_s <= now]:
            topic = self._waiting.pop(name)
            if topic.waiting is not None:
                type_string, value = topic.waiting
                topic.waiting = None
                if topic.said is None or topic.said != value:
                    self._send(topic, name, type_string, value)
                    topic.said_at = now
        out, self._out = self._out, []
        return out

    def next_deadline(self) -> float | None:
        """When the next waiting number may leave."""
        if self._out:
            return -inf
        return min((topic.said_at + self._period_s for topic in self._waiting.values()), default=None)

    def _topic(self, origin: str, name: str) -> tuple[_Topic, bool]:
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = _Topic(origin)
            return topic, True
        topic.origin = origin
        return topic, False

    def _send(
        self,
        topic: _Topic,
        name: str,
        type_string: str,
        value: NtValue,
        *,
        properties: dict[str, object] | None = None,
        keep_all: bool = False,
    ) -> None:
        topic.said = value
        self._out.append(Publication(self._path(name), type_string, value, properties or _properties(name), keep_all))

    def _path(self, name: str) -> str:
        """Names with a leading slash stand outside the root."""
        return name if name.startswith("/") else self.root + name


def _properties(name: str) -> dict[str, object] | None:
    unit = UNITS.get(name[name.rfind("_") :]) if "_" in name else None
    return None if unit is None else {"unit": unit}


def cut_text(text: str) -> str:
    """The text as it is published."""
    return text[:MAX_TEXT]


class Writer(msgspec.Struct, frozen=True):
    """Writes topics of one origin below one prefix, each kind of value at its pace."""

    board: TopicBoard
    origin: str
    prefix: str

    def below(self, prefix: str) -> "Writer":
        """The same origin further down."""
        return Writer(self.board, self.origin, self.prefix + prefix)

    def flag(self, name: str, value: bool) -> None:
        """A boolean."""
        self.board.say(self.origin, self.prefix + name, "boolean", bool(value))

    def flags(self, values: Mapping[str, bool]) -> None:
        """Several booleans."""
        for name, value in values.items():
            self.flag(name, value)

    def text(self, name: str, value: str | bytes) -> None:
        """A text; bytes that are not UTF-8 become U+FFFD and are counted."""
        self.board.say(self.origin, self.prefix + name, "string", self._text(value))

    def number(self, name: str, value: int) -> None:
        """An integer."""
        self.board.say_soon(self.origin, self.prefix + name, "int", int(value))

    def real(self, name: str, value: float) -> None:
        """A number with a fraction."""
        self.board.say_soon(self.origin, self.prefix + name, "double", float(value))

    def array(self, name: str, type_string: str, value: list[int] | list[float] | list[bool]) -> None:
        """An array; of booleans at once on change, of numbers at their rate."""
        say = self.board.say if type_string == "boolean[]" else self.board.say_soon
        say(self.origin, self.prefix + name, type_string, value)

    def withdraw(self, *names: str) -> None:
        """Stop publishing what is not known any more."""
        for name in names:
            self.board.withdraw(self.prefix + name)

    def struct(self, name: str, type_string: str, data: bytes) -> None:
        """The bytes of a struct, every time."""
        self.board.say_always(self.origin, self.prefix + name, type_string, data)

    def event(self, name: str, type_string: str, value: NtValue) -> None:
        """A value of which every one counts."""
        if isinstance(value, str | bytes):
            value = self._text(value)
        self.board.say_always(self.origin, self.prefix + name, type_string, value)

    def _text(self, value: str | bytes) -> str:
        if isinstance(value, bytes):
            self.board.replaced_texts += 1
            value = value.decode(errors="replace")
        return cut_text(value)
