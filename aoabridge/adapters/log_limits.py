"""Keeps a log readable: the first line at once, repeats as one summary per minute, never a flood."""

import logging
import threading
import time
from collections.abc import Callable

__all__ = ["LogLimiter"]

SUMMARY_S = 60.0
BUCKET_LINES_PER_S = 20
BUCKET_BURST = 100  # a start or a stop says many different things at once
MAX_REMEMBERED = 512


class _Repeat:
    """A line that was said."""

    __slots__ = ("count", "record", "since")

    def __init__(self, record: logging.LogRecord, since: float) -> None:
        self.record = record
        self.since = since
        self.count = 0


class LogLimiter(logging.Filter):
    """A filter for handlers, shared by all of them through ``pass_on``.

    Two records are the same line if logger and text are equal, or their ``repeat`` attribute. Errors and debug lines
    are never held back by the bucket.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._said: dict[tuple[str, str], _Repeat] = {}
        self._guard = threading.Lock()
        self._tokens = float(BUCKET_BURST)
        self._filled_at = clock()
        self.left_out = 0
        """Lines that the bucket has refused since start."""

    def filter(self, record: logging.LogRecord) -> bool:
        """True if the record is to be said now."""
        now = self._clock()
        key = record.name, str(getattr(record, "repeat", None) or record.getMessage())
        with self._guard:
            known = self._said.get(key)
            if known is not None and now - known.since < SUMMARY_S:
                known.count += 1
                known.record = record
                return False
            if known is not None and known.count:
                record.count = known.count + 1
            self._remember(key, record, now)
            return self._has_token(record, now)

    def summaries(self) -> list[logging.LogRecord]:
        """The repeats whose minute is over, one record each, with ``count``; call it every few seconds."""
        now = self._clock()
        due: list[logging.LogRecord] = []
        with self._guard:
            for key, known in list(self._said.items()):
                if now - known.since < SUMMARY_S:
                    continue
                del self._said[key]
                if known.count:
                    due.append(_summary(known))
                    self._said[key] = _Repeat(known.record, now)
        return due

    def _remember(self, key: tuple[str, str], record: logging.LogRecord, now: float) -> None:
        self._said.pop(key, None)
        if len(self._said) >= MAX_REMEMBERED:
            del self._said[next(iter(self._said))]
        self._said[key] = _Repeat(record, now)

    def _has_token(self, record: logging.LogRecord, now: float) -> bool:
        if record.levelno >= logging.ERROR or record.levelno <= logging.DEBUG:
            return True
        self._tokens = min(self._tokens + (now - self._filled_at) * BUCKET_LINES_PER_S, BUCKET_BURST)
        self._filled_at = now
        if self._tokens < 1:
            self.left_out += 1
            return False
        self._tokens -= 1
        return True


def _summary(known: _Repeat) -> logging.LogRecord:
    record = logging.makeLogRecord(known.record.__dict__)
    record.msg = f"{known.record.getMessage()} ({known.count} more in {SUMMARY_S:.0f} s)"
    record.args = None
    record.exc_info = None
    record.count = known.count
    return record
