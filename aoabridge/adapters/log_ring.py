"""The last log lines in memory: what ``aoabridge log`` and the page show, disk or not."""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from itertools import islice
from typing import TypedDict

__all__ = ["LogLine", "LogRing"]

FOLLOW_S = 0.25  # a person reads along
MAX_TEXT = 2000  # characters of one line; a traceback fits


class LogLine(TypedDict):
    """One line; ``seq`` grows by one per line for ever."""

    seq: int
    time: str
    mono_s: float
    level: str
    logger: str
    code: str | None
    device: str | None
    text: str


class LogRing(logging.Handler):
    """Keeps ``capacity`` lines, from whatever thread has logged them."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self._lines: deque[LogLine] = deque(maxlen=capacity)
        self._next = 0
        self._guard = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one line."""
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + logging.Formatter().formatException(record.exc_info)
        code, device = getattr(record, "code", None), getattr(record, "device", None)
        with self._guard:
            self._lines.append(
                {
                    "seq": self._next,
                    "time": datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z",
                    "mono_s": round(time.monotonic(), 3),
                    "level": record.levelname.lower(),
                    "logger": record.name,
                    "code": None if code is None else str(code),
                    "device": None if device is None else str(device),
                    "text": text[:MAX_TEXT],
                }
            )
            self._next += 1

    def lines(
        self, *, count: int | None = None, level: str | None = None, device: str | None = None, since: int = 0
    ) -> tuple[list[LogLine], int]:
        """The newest ``count`` lines from seq ``since``, of that level or worse, about that device; the next seq."""
        names = logging.getLevelNamesMapping()
        least = names.get((level or "debug").upper(), logging.DEBUG)
        with self._guard:
            skipped = max(since - (self._next - len(self._lines)), 0)
            newer = list(islice(self._lines, skipped, None))
            following = self._next
        found = [
            line
            for line in newer
            if names.get(line["level"].upper(), logging.INFO) >= least and device in (None, line["device"])
        ]
        return found if count is None else found[max(len(found) - count, 0) :], following

    async def follow(self, *, level: str | None = None, device: str | None = None) -> AsyncIterator[LogLine]:
        """The lines that are kept, then every new one, for ever; a slow reader loses those that the ring has lost."""
        since = 0
        while True:
            found, since = self.lines(level=level, device=device, since=since)
            for line in found:
                yield line
            await asyncio.sleep(FOLLOW_S)
