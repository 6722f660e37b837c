"""Live views of what passes: the lines of one phone or the values of one topic, for ``monitor``.

Costs nothing while nobody looks; a slow viewer loses the oldest events and is told how many.
"""

import asyncio
import base64
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping

from aoabridge.phone.keys import key_of
from aoabridge.values import NtValue

__all__ = ["Taps", "shown_value"]

MAX_WAITING = 200  # a terminal cannot show more per second
POLL_S = 0.05

Event = Mapping[str, object]


def shown_value(value: NtValue | None) -> object:
    """A value as JSON shows it: bytes as base64."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


class _Tap:
    """One viewer."""

    def __init__(self, *, raw: bool = False) -> None:
        self.raw = raw
        self.waiting: deque[Event] = deque()
        self.dropped = 0

    def show(self, event: Event) -> None:
        if len(self.waiting) >= MAX_WAITING:
            self.waiting.popleft()
            self.dropped += 1
        self.waiting.append(event)


class Taps:
    """Viewers by phone name and by topic key. ``wall`` gives the wall clock in seconds."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self._devices: dict[str, list[_Tap]] = {}
        self._topics: dict[str, list[_Tap]] = {}

    @property
    def wants_values(self) -> bool:
        """True while anybody looks at a topic."""
        return bool(self._topics)

    @property
    def wants_chunks(self) -> bool:
        """True while anybody looks at a phone."""
        return bool(self._devices)

    def chunk(self, device: str, direction: str, data: bytes, now: float) -> None:
        """Bytes of a phone passed, ``rx`` from it or ``tx`` to it."""
        del now
        for tap in self._devices.get(device, ()):
            common = {"time": self._wall(), "dir": direction, "device": device}
            if tap.raw:
                tap.show({**common, "hex": data.hex()})
            else:
                for line in data.split(b"\n"):
                    if line.strip():
                        tap.show({**common, "line": line.decode(errors="replace")})

    def value(self, topic: str, type_: str, value: NtValue, now: float) -> None:
        """A topic has a new value."""
        del now
        key = key_of(topic)
        taps = self._topics.get(key)
        if taps:
            for tap in taps:
                tap.show({"time": self._wall(), "topic": key, "type": type_, "value": shown_value(value)})

    async def device(self, name: str, *, raw: bool) -> AsyncIterator[Event]:
        """The messages of one phone, as they pass."""
        async for event in self._follow(self._devices, name, _Tap(raw=raw)):
            yield event

    async def topic(self, key: str) -> AsyncIterator[Event]:
        """The values of one topic, as they come."""
        async for event in self._follow(self._topics, key, _Tap()):
            yield event

    async def _follow(self, table: dict[str, list[_Tap]], name: str, tap: _Tap) -> AsyncIterator[Event]:
        table.setdefault(name, []).append(tap)
        try:
            while True:
                while tap.waiting:
                    yield tap.waiting.popleft()
                if tap.dropped:
                    yield {"dropped": tap.dropped}
                    tap.dropped = 0
                await asyncio.sleep(POLL_S)
        finally:
            table[name].remove(tap)
            if not table[name]:
                del table[name]
