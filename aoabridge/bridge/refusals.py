"""Everything that phones are refused: counted, told, and noted for the log at a bounded rate."""

from collections import Counter, deque

import msgspec

from aoabridge.bridge.link import Link
from aoabridge.errors import LinkError
from aoabridge.values import LinkId

__all__ = ["Notice", "Refusals"]

NOTICE_S = 1.0  # bad lines are logged at most once per second per phone
MAX_NOTICES = 64  # that wait to be logged


class Notice(msgspec.Struct, frozen=True):
    """A refused line worth one log line."""

    link: LinkId
    code: str
    text: str


class Refusals:
    """``counters`` by code for all lines, ``put_errors`` for puts alone. Times are monotonic seconds."""

    def __init__(self) -> None:
        self.counters: Counter[str] = Counter()
        self.put_errors: Counter[str] = Counter()
        self._notices: deque[Notice] = deque(maxlen=MAX_NOTICES)
        self._noticed: dict[LinkId, float] = {}

    def refuse(self, link: Link, error: LinkError, now: float, line: bytes = b"") -> None:
        """Tell a phone what was wrong with ``line`` (or with a value, if it is empty)."""
        self.counters[error.code] += 1
        link.refuse(error, now, line)
        if now - self._noticed.get(link.ident, -NOTICE_S) >= NOTICE_S:
            self._noticed[link.ident] = now
            self._notices.append(Notice(link.ident, error.code, str(error)))

    def refuse_put(self, link: Link, error: LinkError, now: float) -> None:
        """A put that was ordered came back refused."""
        self.count_put(link, error)
        self.refuse(link, error, now)

    def count_put(self, link: Link, error: LinkError) -> None:
        """Count a refused put."""
        self.put_errors[error.code] += 1
        link.counters["refused_puts"] += 1
        link.refused_code, link.refused_topic = error.code, error.topic or ""

    def forget(self, link: LinkId) -> None:
        """The link is over."""
        self._noticed.pop(link, None)

    def take_notices(self) -> list[Notice]:
        """Refused lines to log, at most one per second and phone."""
        notices = list(self._notices)
        self._notices.clear()
        return notices
