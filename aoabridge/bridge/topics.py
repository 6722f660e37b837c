"""What is known of every NT topic: its type, its newest value, and the phone line made of it."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import orjson

from aoabridge.bridge.coerce import is_struct_type
from aoabridge.bridge.render import Renderer, renderer, struct_name, struct_renderer
from aoabridge.codecs.wpistruct import SchemaRegistry
from aoabridge.errors import DecodeError, LinkError, SchemaError
from aoabridge.phone.keys import is_reserved, key_of
from aoabridge.phone.lines import MAX_LINE_OUT
from aoabridge.values import NtValue

if TYPE_CHECKING:
    from aoabridge.bridge.slots import Slot

__all__ = ["MAX_HELD_BYTES", "MAX_SAMPLED_VALUE_BYTES", "MemoryBudget", "Topic", "TopicTable", "value_bytes"]

MAX_HELD_BYTES = 64 * 1024 * 1024  # all values held for phones together; a coprocessor has 1 GB for everything
MAX_SAMPLED_VALUE_BYTES = 64 * 1024  # values above this are the first that a full budget refuses and gives up
OBJECT_BYTES = 56  # a Python string or list without its content
ITEM_BYTES = 40  # a list slot and the number in it
MAX_CACHED_LINE = 4_096  # longer lines are built for each phone: keeping them would double what their values take


def value_bytes(value: NtValue) -> int:
    """About what a value occupies in memory, in bytes."""
    if type(value) is float:  # by far the most; exact, because this runs for every value of the robot
        return OBJECT_BYTES
    if isinstance(value, bytes) or isinstance(value, str):  # noqa: SIM101  # a union costs twice as much
        return OBJECT_BYTES + len(value)
    if isinstance(value, list):
        if value and isinstance(value[0], str):
            return OBJECT_BYTES + sum(OBJECT_BYTES + len(str(item)) for item in value)
        return OBJECT_BYTES + ITEM_BYTES * len(value)
    return OBJECT_BYTES


class MemoryBudget:
    """The bytes held for phones: newest values and every-sample lanes together."""

    def __init__(self, limit: int = MAX_HELD_BYTES) -> None:
        self.limit = limit
        self.used = 0

    def fits(self, extra: int) -> bool:
        """True if ``extra`` more bytes may be held."""
        return self.used + extra <= self.limit


class Topic:
    """One NT topic. ``time_us`` is server time; ``render`` is None while a struct's schemas are incomplete."""

    __slots__ = (
        "_budget",
        "_head",
        "_line",
        "count",
        "held",
        "key",
        "name",
        "own",
        "render",
        "seen_at",
        "slots",
        "time_us",
        "type",
        "unresolved_since",
        "value",
    )

    def __init__(self, name: str, type_: str, budget: MemoryBudget, *, own: bool) -> None:
        self.name = name
        self.key = key_of(name)
        self.type = type_
        self.own = own
        self.value: NtValue | None = None
        self.time_us = 0
        self.held = 0
        self.count = 0  # values so far
        self.seen_at: float | None = None  # monotonic time of the newest value
        self.render: Renderer | None = renderer(type_)
        self.slots: list[Slot] = []
        self.unresolved_since: float | None = None
        self._head: Final = b'{"key":' + orjson.dumps(_valid(self.key)) + b',"time":'
        self._line: bytes | LinkError | None = None
        self._budget = budget

    @property
    def struct(self) -> str | None:
        """The struct type's name, None for every other type."""
        return struct_name(self.type) if is_struct_type(self.type) else None

    def line(self) -> bytes:
        """The phone line of the newest value, built once per value.

        Raises LinkError ``bad-value`` or ``too-large`` if there is no line for it.
        """
        if self._line is None:
            if self.value is None:
                raise LinkError("no value", "bad-value", topic=self.key)
            try:
                line = self.line_of(self.value, self.time_us)
            except LinkError as error:
                self._line = error
                raise
            if len(line) <= MAX_CACHED_LINE and self._budget.fits(len(line)):
                self._line = line
                self._budget.used += len(line)
            return line
        if isinstance(self._line, LinkError):
            raise self._line
        return self._line

    def line_of(self, value: NtValue, time_us: int) -> bytes:
        """The phone line of one sample; raises as ``line``."""
        if self.render is None:
            raise LinkError("the schema is not known", "bad-value", topic=self.key)
        try:
            line = self._head + orjson.dumps(time_us / 1e6) + self.render(value)
        except DecodeError as error:
            raise LinkError(f"the value does not fit its schema: {error}", "bad-value", topic=self.key) from error
        except LinkError as error:
            error.topic = self.key
            raise
        except (orjson.JSONEncodeError, TypeError) as error:
            raise LinkError(f"the value has no JSON form: {error}", "bad-value", topic=self.key) from error
        if len(line) > MAX_LINE_OUT:
            text = f"the line would have {len(line)} bytes, the limit is {MAX_LINE_OUT}"
            raise LinkError(text, "too-large", topic=self.key)
        return line

    def forget_line(self) -> None:
        """The built line is no longer that of the newest value, or the topic is gone."""
        if self._line is not None:
            if isinstance(self._line, bytes):
                self._budget.used -= len(self._line)
            self._line = None

    def set(self, value: NtValue | None, time_us: int) -> None:
        """Replace the newest value."""
        self.value = value
        self.time_us = time_us
        self.forget_line()

    def resolve(self, registry: SchemaRegistry, now: float) -> None:
        """Ask the registry for the renderer of a struct topic; keeps None while schemas are missing."""
        self.forget_line()
        try:
            self.render = struct_renderer(self.type, registry)
            self.unresolved_since = None
        except SchemaError as error:
            self.render = _too_large(str(error)) if error.code == "limit_inline" else None
            if self.render is None:
                self.hold_back(now)

    def hold_back(self, now: float) -> None:
        """Send nothing of a struct topic until its schemas are known."""
        self.forget_line()
        self.render = None
        if self.unresolved_since is None:
            self.unresolved_since = now


class TopicTable:
    """All topics by name, and by the key under which phones know them."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._topics: dict[str, Topic] = {}
        self._by_struct: dict[str, dict[str, Topic]] = {}
        self._budget = budget
        self._large: dict[str, Topic] = {}  # those with a value above MAX_SAMPLED_VALUE_BYTES, oldest first
        self._keys: list[str] | None = None

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._topics.values())

    def __len__(self) -> int:
        return len(self._topics)

    def find(self, name: str) -> Topic | None:
        """The topic of exactly this name."""
        return self._topics.get(name)

    def by_key(self, key: str) -> Topic | None:
        """The topic a phone means: the name with the leading slash, else the bare one."""
        return self._topics.get(key) or self._topics.get(key[1:])

    def announce(self, name: str, type_: str, *, own: bool) -> Topic:
        """A topic exists; whatever was known of the name is replaced, its type included."""
        self.remove(name)
        topic = self._topics[name] = Topic(name, type_, self._budget, own=own)
        if topic.struct is not None:
            self._by_struct.setdefault(topic.struct, {})[name] = topic
        self._keys = None
        return topic

    def remove(self, name: str) -> Topic | None:
        """The topic is gone, and its value with it."""
        topic = self._topics.pop(name, None)
        if topic is not None:
            self._resize(topic, 0)
            topic.forget_line()
            if topic.struct is not None:
                self._by_struct[topic.struct].pop(name)
                if not self._by_struct[topic.struct]:
                    del self._by_struct[topic.struct]
            self._keys = None
        return topic

    def hold(self, topic: Topic, value: NtValue, time_us: int) -> bool:
        """Keep a new value; False if the budget does not allow it: then the topic has none."""
        topic.forget_line()
        held = value_bytes(value)
        if held != topic.held:
            if held > topic.held and not self._budget.fits(held - topic.held):
                self._resize(topic, 0)
                topic.set(None, time_us)
                return False
            self._resize(topic, held)
        topic.value, topic.time_us = value, time_us
        return True

    def give_up_large(self, extra: int) -> list[Topic]:
        """Drop large values, the oldest topic first, until ``extra`` more bytes fit; the topics that have none now."""
        dropped = []
        while self._large and not self._budget.fits(extra):
            topic = next(iter(self._large.values()))
            self._resize(topic, 0)
            topic.set(None, topic.time_us)
            dropped.append(topic)
        return dropped

    def _resize(self, topic: Topic, held: int) -> None:
        self._budget.used += held - topic.held
        topic.held = held
        if held > MAX_SAMPLED_VALUE_BYTES:
            self._large[topic.name] = topic
        else:
            self._large.pop(topic.name, None)

    def of_structs(self, names: Iterable[str]) -> list[Topic]:
        """The topics whose struct type is one of ``names``."""
        return [topic for name in names for topic in self._by_struct.get(name, {}).values()]

    def struct_names(self) -> list[str]:
        """The struct types of all topics."""
        return list(self._by_struct)

    def keys(self) -> list[str]:
        """What a phone may know of: all keys but the reserved ones, sorted, each once."""
        if self._keys is None:
            self._keys = sorted({_valid(topic.key) for topic in self if not is_reserved(topic.key)})
        return self._keys


def _too_large(message: str) -> Renderer:
    def render(value: NtValue) -> bytes:
        del value
        raise LinkError(message, "too-large")

    return render


def _valid(text: str) -> str:
    return text.encode(errors="replace").decode()
