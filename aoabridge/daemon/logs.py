"""Where the daemon's log goes: lines on stderr, as text or JSON."""

import json
import logging
import sys
import time

from aoabridge.config.sections import LogSettings

__all__ = ["LogOutput"]


class LogOutput:
    """The log of one process run; ``verbose`` lowers the level, ``quiet`` raises it."""

    def __init__(self, settings: LogSettings, *, json: bool, quiet: bool, verbose: int) -> None:
        self._settings = settings
        self._json = json or settings.format == "json"
        self._quiet = quiet
        self._verbose = verbose
        self._handler: logging.Handler | None = None

    def open(self) -> None:
        """Send every logger of the bridge there."""
        handler = self._handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_JsonFormatter() if self._json else _TextFormatter())
        root = logging.getLogger("aoabridge")
        root.addHandler(handler)
        root.propagate = False
        self.apply(self._settings)

    def apply(self, settings: LogSettings) -> None:
        """Set the levels."""
        level = settings.level.upper()
        if self._verbose:
            level = "DEBUG"
        elif self._quiet:
            level = "ERROR"
        logging.getLogger("aoabridge").setLevel(level)
        for name, own in settings.levels.items():
            logging.getLogger(name).setLevel(own.upper())

    def close(self) -> None:
        """Flush and let go."""
        if self._handler is not None:
            self._handler.flush()
            logging.getLogger("aoabridge").removeHandler(self._handler)


class _TextFormatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(
            {
                "time": record.created,
                "mono_s": time.monotonic(),
                "level": record.levelname.lower(),
                "logger": record.name,
                "text": record.getMessage(),
            }
        )
