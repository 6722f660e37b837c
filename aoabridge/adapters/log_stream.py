"""Log lines to a descriptor that others share, of which only so much is written as fits at once.

A terminal that was stopped, or a pipe that nobody reads, must not hold up the thread that logs: what does not fit is
lost, counted, and said once there is room again. The descriptor is not made non-blocking: that would hold for every
program that has it open too. A terminal is opened once more, because its room may be for a few bytes only.
"""

import contextlib
import logging
import os
import select
from typing import Final

__all__ = ["DescriptorHandler"]

# What a pipe takes without blocking once it says that it is writable.
PIECE_BYTES: Final = select.PIPE_BUF


class DescriptorHandler(logging.Handler):
    """Writes formatted lines to ``descriptor``; ``dropped`` counts the lines that were lost."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self.dropped = 0
        self._unsaid = 0  # of the dropped ones, those that no line has told of
        self._cut = False  # the last line that was written has no end
        self._terminal = _terminal(descriptor)
        self._descriptor = descriptor if self._terminal is None else self._terminal
        self._poll = select.poll()
        self._poll.register(self._descriptor, select.POLLOUT)

    def emit(self, record: logging.LogRecord) -> None:
        """Write, or drop and count."""
        try:
            line = self.format(record)
        except (TypeError, ValueError):  # arguments that do not fit the text
            self.handleError(record)
            return
        if self._write(self._told(record) + line):
            self._unsaid = 0
        else:
            self.dropped += 1
            self._unsaid += 1

    def close(self) -> None:
        """Write no more."""
        self.acquire()
        try:
            if self._terminal is not None:
                self._poll.unregister(self._terminal)  # without it no room is found, and nothing written
                os.close(self._terminal)
                self._terminal = None
        finally:
            self.release()
        super().close()

    def _told(self, record: logging.LogRecord) -> str:
        """What stands before the next line: the end of a cut one, and how many are missing."""
        if not self._unsaid:
            return ""
        lost = {
            "name": record.name,
            "levelno": logging.WARNING,
            "levelname": "WARNING",
            "msg": "log lines lost because nobody read them: %d",
            "args": (self._unsaid,),
        }
        return ("\n" if self._cut else "") + self.format(logging.makeLogRecord(lost)) + "\n"

    def _write(self, line: str) -> bool:
        """True if the whole line was written."""
        data = memoryview(line.encode("utf-8", "backslashreplace") + b"\n")
        length = len(data)
        with contextlib.suppress(OSError):  # the reader is gone for good: as one that never reads
            while data and self._has_room():
                data = data[os.write(self._descriptor, data[:PIECE_BYTES]) :]
        if len(data) < length:
            self._cut = bool(data)
        return not data

    def _has_room(self) -> bool:
        return any(event & select.POLLOUT for _, event in self._poll.poll(0))


def _terminal(descriptor: int) -> int | None:
    """The terminal behind the descriptor, open without blocking for us alone; None if there is none to be had."""
    try:
        return os.open(os.ttyname(descriptor), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
