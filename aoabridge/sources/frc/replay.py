"""A capture played into a FrcSource as if it arrived now; the reader of the file hands in its bytes."""

from collections.abc import Iterator
from typing import TypeAlias

from aoabridge.codecs.pcap import Capture, Datagram, StreamData
from aoabridge.sources.frc.ports import REPLAY_RULES
from aoabridge.sources.frc.source import FrcSource

__all__ = ["Replay"]

BATCH = 256  # packets of one step at full speed: the loop has other work
_PORTS = frozenset(port for rule in REPLAY_RULES.values() for port in rule.ports)

_Event: TypeAlias = tuple[Datagram | StreamData, str]


class Replay:
    """Plays the packets of the nine protocols at ``speed`` (0 = as fast as possible), once or in a loop.

    DecodeError: not a capture. ``gaps``: streams that ended at a hole.
    """

    def __init__(self, capture: bytes, source: FrcSource, *, speed: float = 1.0, loop: bool = False) -> None:
        self.gaps = 0
        self._capture = capture
        self._source = source
        self._speed = speed
        self._loop = loop
        self._events = self._read()
        self._next = next(self._events, None)
        self._empty = self._next is None
        self._origin: tuple[float, float] | None = None
        self._streams: set[tuple[str, int]] = set()

    def _read(self) -> Iterator[_Event]:
        capture = Capture(self._capture, _PORTS)
        for packet in capture.packets():
            transport = "udp" if isinstance(packet, Datagram) else "tcp"
            for protocol, rule in REPLAY_RULES.items():
                port = (packet.src if rule.side == "src" else packet.dst)[1]
                if rule.transport == transport and port in rule.ports:
                    yield packet, f"{protocol}:{port}"
        self.gaps += capture.gaps

    @property
    def finished(self) -> bool:
        """True if nothing more will come."""
        return self._next is None

    def next_deadline(self, now: float) -> float | None:
        """When the next packet is due, None at the end."""
        if self._next is None:
            return None
        return max(now, self._due(self._next[0].time_s, now))

    def _due(self, time_s: float, now: float) -> float:
        if self._origin is None:
            self._origin = (time_s, now)
        captured_at, played_at = self._origin
        return played_at + (time_s - captured_at) / self._speed if self._speed else now

    def step(self, now: float) -> None:
        """Hand over what is due."""
        for _ in range(BATCH):
            if self._next is None or self._due(self._next[0].time_s, now) > now:
                return
            self._play(*self._next, now)
            self._next = next(self._events, None)
            if self._next is None and self._loop and not self._empty:
                self._events, self._origin = self._read(), None
                self._next = next(self._events, None)
                self._streams.clear()

    def _play(self, packet: Datagram | StreamData, key: str, now: float) -> None:
        if isinstance(packet, Datagram):
            self._source.on_datagram(key, packet.data, packet.src, now)
            return
        place = (key, packet.stream)
        if packet.end:
            self._source.on_connection(*place, None, now)
            return
        if place not in self._streams:
            self._streams.add(place)
            self._source.on_connection(*place, packet.src, now)
        self._source.on_stream(*place, packet.data, now)
