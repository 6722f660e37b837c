"""The control lines that wait for one phone: answers, errors, topic lists, status, and the last line of all."""

from collections import Counter, deque
from enum import IntEnum
from typing import Final

from aoabridge.phone.lines import LineKind, OutLine

__all__ = ["ControlKind", "ControlQueue"]

MAX_CONTROL = 64  # error lines are rate-limited to 20/s: more than this and the phone has not read for seconds
MAX_ACKS = 2_000  # a burst of puts is answered at once; twice that and the phone does not read


class ControlKind(IntEnum):
    """What a control line is, for what a full queue gives up."""

    ANSWER = 0
    ERROR = 1
    TOPICS = 2
    STATUS = 3
    ACK = 4
    LAST = 5


_NEWEST_ONLY: Final = frozenset((ControlKind.TOPICS, ControlKind.STATUS))


class ControlQueue:
    """A newer topic list or status replaces the one that waits; a full queue gives up errors, then answers.

    Nothing follows the line of kind ``LAST``; what comes while it waits goes ahead of it.
    """

    def __init__(self, counters: Counter[str]) -> None:
        self._lines: deque[tuple[ControlKind, bytes]] = deque()
        self._kinds: Counter[ControlKind] = Counter()
        self._acks: deque[bytes] = deque()
        self._last: bytes | None = None
        self._over = False
        self._counters = counters

    def __bool__(self) -> bool:
        return bool(self._lines or self._acks or self._last)

    def put(self, line: bytes, kind: ControlKind) -> None:
        """Queue a line."""
        if self._over or (kind is ControlKind.ACK and len(self._acks) >= MAX_ACKS):
            self._counters["dropped_control"] += 1
        elif kind is ControlKind.LAST:
            self._last = line
        elif kind is ControlKind.ACK:
            self._acks.append(line)
        else:
            self._make_room(kind)
            self._lines.append((kind, line))
            self._kinds[kind] += 1

    def _make_room(self, kind: ControlKind) -> None:
        if kind in _NEWEST_ONLY:
            self._drop(kind)
        elif len(self._lines) >= MAX_CONTROL:
            self._counters["dropped_control"] += 1
            self._drop(ControlKind.ERROR if self._kinds[ControlKind.ERROR] else ControlKind.ANSWER)

    def _drop(self, kind: ControlKind) -> None:
        """Drop the oldest line of a kind."""
        if not self._kinds[kind]:
            return
        index = next(index for index, (queued, _) in enumerate(self._lines) if queued is kind)
        del self._lines[index]
        self._kinds[kind] -= 1

    def pull(self, room: int, *, empty: bool) -> OutLine | None:
        """The next line if it fits ``room``, whatever its length if ``empty``."""
        if self._lines:
            kind, line = self._lines[0]
        elif self._acks:
            kind, line = ControlKind.ACK, self._acks[0]
        elif self._last is not None:
            kind, line = ControlKind.LAST, self._last
        else:
            return None
        if not empty and len(line) > room:
            return None
        self._taken(kind)
        return OutLine(line, LineKind.CONTROL, kind)

    def _taken(self, kind: ControlKind) -> None:
        if kind is ControlKind.LAST:
            self._last, self._over = None, True
        elif kind is ControlKind.ACK:
            self._acks.popleft()
        else:
            self._lines.popleft()
            self._kinds[kind] -= 1

    def give_back(self, line: bytes, kind: ControlKind) -> None:
        """A line of which no byte was sent returns to the front, unless a newer one has taken its place."""
        if kind is ControlKind.LAST:
            self._last, self._over = line, False
        elif kind is ControlKind.ACK:
            self._acks.appendleft(line)
        elif kind not in _NEWEST_ONLY or not self._kinds[kind]:
            self._lines.appendleft((kind, line))
            self._kinds[kind] += 1

    def clear(self) -> None:
        """Forget every waiting line but the last of all."""
        self._lines.clear()
        self._kinds.clear()
        self._acks.clear()
