"""Log records to journald in its native protocol, on a socket that never blocks.

The C binding waits for a full journal socket while it holds the interpreter's lock; here a record is dropped, counted,
and the count travels with the next one.
"""

import logging
import os
import socket
import struct
import time
from collections.abc import Iterable
from pathlib import Path

from aoabridge.issues import EVENTS, ISSUES, message_id

__all__ = ["JOURNAL_SOCKET", "OWN_FIELDS", "JournalHandler", "encode_record", "journal_is_stderr"]

JOURNAL_SOCKET = Path("/run/systemd/journal/socket")
MAX_RECORD_BYTES = 48 * 1024  # without passing a file descriptor journald takes about 212 KiB
MAX_FIELD_BYTES = 40 * 1024

OWN_FIELDS = ("device", "serial", "port", "server", "errno", "code", "count", "match")
"""Attributes of a log record (``extra=``) that become ``AOABRIDGE_<NAME>``."""

_PRIORITIES = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
_KNOWN_CODES = frozenset(ISSUES) | frozenset(EVENTS)


def journal_is_stderr() -> bool:
    """True if the service manager has connected our stderr to the journal."""
    device, _, inode = os.environ.get("JOURNAL_STREAM", "").partition(":")
    try:
        found = os.fstat(2)
    except OSError:
        return False
    return (device, inode) == (str(found.st_dev), str(found.st_ino)) and JOURNAL_SOCKET.exists()


def encode_record(fields: Iterable[tuple[str, str]]) -> bytes:
    """One datagram of the native protocol; values with line ends are length-prefixed; cut at MAX_RECORD_BYTES."""
    out = bytearray()
    for name, text in fields:
        value = text.encode("utf-8", "replace")[:MAX_FIELD_BYTES]
        if b"\n" in value:
            line = name.encode() + b"\n" + struct.pack("<Q", len(value)) + value + b"\n"
        else:
            line = name.encode() + b"=" + value + b"\n"
        if len(out) + len(line) > MAX_RECORD_BYTES:
            break
        out += line
    return bytes(out)


class JournalHandler(logging.Handler):
    """Sends every record at once or not at all. ``dropped`` counts those that were not."""

    def __init__(self, path: Path = JOURNAL_SOCKET, identifier: str = "aoabridge") -> None:
        super().__init__()
        self._path = str(path)
        self._identifier = identifier
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        self.dropped = 0
        self._unreported = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record; EAGAIN or a journal that is away drops it."""
        fields = list(self._fields(record))
        if self._unreported:
            fields.append(("AOABRIDGE_DROPPED", str(self._unreported)))
        try:
            self._socket.sendto(encode_record(fields), self._path)
        except OSError:
            self.dropped += 1
            self._unreported += 1
        else:
            self._unreported = 0

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
        super().close()

    def _fields(self, record: logging.LogRecord) -> Iterable[tuple[str, str]]:
        message = record.getMessage()
        if record.exc_info:
            message += "\n" + logging.Formatter().formatException(record.exc_info)
        yield "MESSAGE", message
        yield "PRIORITY", str(next((value for level, value in _PRIORITIES if record.levelno >= level), 7))
        yield "SYSLOG_IDENTIFIER", self._identifier
        yield "LOGGER", record.name or "root"
        yield "THREAD_NAME", str(record.threadName)
        yield "CODE_FILE", record.pathname
        yield "CODE_LINE", str(record.lineno)
        yield "CODE_FUNC", record.funcName or ""
        code = getattr(record, "code", None)
        if code in _KNOWN_CODES:
            yield "MESSAGE_ID", message_id(str(code))
        yield "AOABRIDGE_MONO_US", str(time.monotonic_ns() // 1000)
        for name in OWN_FIELDS:
            value = getattr(record, name, None)
            if value is not None:
                yield f"AOABRIDGE_{name.upper()}", str(value)
