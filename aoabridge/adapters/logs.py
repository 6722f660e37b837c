"""Sets logging up once: to the journal, as text or as JSON Lines, always into the ring, never in floods."""

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TextIO

from aoabridge.adapters.journal import OWN_FIELDS, JournalHandler, journal_is_stderr
from aoabridge.adapters.log_limits import LogLimiter
from aoabridge.adapters.log_ring import LogRing
from aoabridge.adapters.log_stream import DescriptorHandler
from aoabridge.status.text import printable

__all__ = ["Logs"]

ROOT_LOGGER = "aoabridge"


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line without its end."""
        line: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "text": record.getMessage(),
        }
        line |= {name: getattr(record, name) for name in OWN_FIELDS if getattr(record, name, None) is not None}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class TextFormatter(logging.Formatter):
    """Time, level, logger, text; control characters of foreign names escaped."""

    def format(self, record: logging.LogRecord) -> str:
        """The line without its end; a traceback follows on lines of its own."""
        name = record.name.removeprefix(f"{ROOT_LOGGER}.")
        text = f"{_time(record)}  {record.levelname:<7}  {name}: {printable(record.getMessage())}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class Logs:
    """The handlers of this process; ``ring`` holds the last lines."""

    def __init__(self, *, form: str = "auto", ring_lines: int = 2000, stream: TextIO | None = None) -> None:
        self.ring = LogRing(ring_lines)
        self.limiter = LogLimiter()
        self.journal: JournalHandler | None = None
        self._logger = logging.getLogger(ROOT_LOGGER)
        self._set: set[str] = set()
        handlers: list[logging.Handler] = [self.ring]
        if form == "auto" and journal_is_stderr():
            self.journal = JournalHandler()
            handlers.append(self.journal)
        else:
            output = _output(stream or sys.stderr)
            output.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
            handlers.append(output)
        self._fan = _Fan(handlers, self.limiter)

    def install(self, level: str, levels: Mapping[str, str]) -> None:
        """Begin; to be undone by ``remove``."""
        self._logger.propagate = False
        self._logger.addHandler(self._fan)
        self.apply_levels(level, levels)

    def apply_levels(self, level: str, levels: Mapping[str, str]) -> None:
        """Set the level of everything and of single loggers; loggers set earlier and not named now follow again."""
        self._logger.setLevel(level.upper())
        for name in self._set - set(levels):
            logging.getLogger(name).setLevel(logging.NOTSET)
        for name, own in levels.items():
            logging.getLogger(name).setLevel(own.upper())
        self._set = set(levels)

    def on_tick(self) -> None:
        """Say the summaries of what was repeated; every few seconds."""
        self._fan.say(self.limiter.summaries())

    def remove(self) -> None:
        """End; pending summaries are not said any more."""
        self._logger.removeHandler(self._fan)
        self._fan.close()


class _Fan(logging.Handler):
    """One filter in front of several handlers, so that a line is judged once."""

    def __init__(self, handlers: list[logging.Handler], limiter: LogLimiter) -> None:
        super().__init__()
        self._handlers = handlers
        self._limiter = limiter

    def emit(self, record: logging.LogRecord) -> None:
        if self._limiter.filter(record):
            self.say([record])

    def say(self, records: list[logging.LogRecord]) -> None:
        for record in records:
            for handler in self._handlers:
                handler.handle(record)

    def close(self) -> None:
        for handler in self._handlers:
            handler.close()
        super().close()


def _output(stream: TextIO | None) -> logging.Handler:
    """Straight to the stream's descriptor, if it has one; None = the process was started without stderr."""
    if stream is None:
        return logging.NullHandler()
    try:
        return DescriptorHandler(stream.fileno())
    except (OSError, ValueError):
        return logging.StreamHandler(stream)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
