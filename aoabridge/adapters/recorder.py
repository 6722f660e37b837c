"""WPILOG files: a writer with a thread and a bounded queue of its own, and a reader. A write never delays the relay."""

import contextlib
import errno
import json
import logging
import os
import queue
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec
from wpiutil.log import DataLogReader

from aoabridge.adapters.nt_publishers import payload_bytes
from aoabridge.codecs.wpilog import WpilogEncoder
from aoabridge.values import NtValue

__all__ = ["LogRecord", "RecordedValue", "Recorder", "read_log"]

FLUSH_S = 0.25  # a power pull loses no more
QUEUE_RECORDS = 20_000  # a second of a busy robot; a card that stands still longer costs records, not the relay
QUEUE_BYTES = 32 * 1024 * 1024  # values may be large: what waits for a slow card must not eat a coprocessor's memory
FLUSH_BYTES = 256 * 1024  # what waits for the next flush of a busy robot
SPACE_S = 1.0
STOP_S = 2.0
HEADER = "AOABridge"
# Words of NetworkTables -> words of log files.
_LOG_TYPES: Final = {"int": "int64", "int[]": "int64[]"}
_METADATA: Final[Mapping[str, str]] = {name: json.dumps({"source": name}) for name in ("NT", "AOA", "AOABridge")}
_NT_TYPES: Final = {log: nt for nt, log in _LOG_TYPES.items()}
_GET: Final[Mapping[str, str]] = {
    "boolean": "getBoolean",
    "int64": "getInteger",
    "double": "getDouble",
    "float": "getFloat",
    "string": "getString",
    "json": "getString",
    "boolean[]": "getBooleanArray",
    "int64[]": "getIntegerArray",
    "double[]": "getDoubleArray",
    "float[]": "getFloatArray",
    "string[]": "getStringArray",
}

log = logging.getLogger("aoabridge.adapters.recorder")


class LogRecord(msgspec.Struct, frozen=True, gc=False):
    """One value for an entry; ``type`` in the words of NetworkTables, ``time_us`` local monotonic."""

    entry: str
    type: str
    value: NtValue
    time_us: int
    source: str = "NT"


class Recorder:
    """Writes one file from ``open`` to ``close``.

    ``failed`` is called at most once, from the thread, with the reason why nothing more can be written: the disk has
    less than ``min_free_bytes`` left, or has gone.
    """

    def __init__(self, path: Path, *, min_free_bytes: int, failed: Callable[[str], None]) -> None:
        self.path = path
        self.dropped = 0
        self.seen_at = time.monotonic()
        self._min_free_bytes = min_free_bytes
        self._failed = failed
        self._offered_bytes = 0  # belongs to the caller
        self._written_bytes = 0  # belongs to the thread
        self._queue: queue.SimpleQueue[LogRecord | None] = queue.SimpleQueue()
        self._encoder = WpilogEncoder(HEADER)
        self._pending = bytearray()
        self._descriptor = -1
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)

    def open(self) -> None:
        """Create the file and start writing; OSError if it cannot be made or the disk is too full."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        if shutil.disk_usage(self.path.parent).free < self._min_free_bytes:
            raise OSError(28, "not enough free space", str(self.path))
        self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        with contextlib.suppress(PermissionError):  # FAT has no modes to change
            os.fchmod(self._descriptor, 0o644)  # the service's umask would hide the file from who fetches it
        self._pending += self._encoder.header
        self._thread.start()

    def offer(self, record: LogRecord) -> None:
        """Queue a record; a full queue drops it and counts."""
        size = payload_bytes(record.value)
        if self._queue.qsize() >= QUEUE_RECORDS or self._offered_bytes - self._written_bytes + size > QUEUE_BYTES:
            self.dropped += 1
        else:
            self._offered_bytes += size
            self._queue.put(record)

    def finish(self) -> None:
        """Let the thread write what is queued and end the file."""
        self._queue.put(None)

    def close(self) -> bool:
        """Finish and wait for it; False if the thread does not end."""
        self.finish()
        self._thread.join(STOP_S)
        return not self._thread.is_alive()

    def size_bytes(self) -> int:
        """The file's size so far."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def _run(self) -> None:
        flush_at = space_at = time.monotonic()
        fault: str | None = None
        going = True
        while going and fault is None:
            try:
                record = self._queue.get(timeout=FLUSH_S)
                going = record is not None
                if record is not None:
                    self._written_bytes += payload_bytes(record.value)
                    self._write(record)
            except queue.Empty:
                pass
            except Exception:  # top of a thread: one odd value must not end the recording
                log.exception("a value could not be recorded")
            now = self.seen_at = time.monotonic()
            if now - flush_at >= FLUSH_S or len(self._pending) >= FLUSH_BYTES:
                flush_at = now
                fault = self._flush()
            if now - space_at >= SPACE_S:
                space_at = now
                fault = fault or self._disk_fault()
        last = self._flush()
        os.close(self._descriptor)
        if fault or last:
            self._failed(fault or last or "")

    def _flush(self) -> str | None:
        """Write what waits; why that was not possible. What the disk took of it stays: a cut end is the end."""
        try:
            while self._pending:
                del self._pending[: os.write(self._descriptor, self._pending)]
        except OSError as error:
            self._pending.clear()
            return "disk full" if error.errno == errno.ENOSPC else error.strerror or str(error)
        return None

    def _disk_fault(self) -> str | None:
        try:
            free_bytes = shutil.disk_usage(self.path.parent).free
        except OSError as error:
            return error.strerror or str(error)
        return "disk full" if free_bytes < self._min_free_bytes else None

    def _write(self, record: LogRecord) -> None:
        type_ = _LOG_TYPES.get(record.type, record.type)
        metadata = _METADATA.get(record.source) or json.dumps({"source": record.source})
        self._pending += self._encoder.record(record.entry, type_, metadata, record.value, record.time_us)


class RecordedValue(msgspec.Struct, frozen=True):
    """One value of a file, in file order; ``type`` in the words of NetworkTables."""

    entry: str
    type: str
    value: NtValue
    time_us: int


def read_log(path: Path) -> Iterator[RecordedValue]:
    """The values of a WPILOG file; OSError if it is none. A cut end is the end."""
    try:
        reader = DataLogReader(str(path))
    except RuntimeError as error:
        raise OSError(5, str(error), str(path)) from error
    if not reader.isValid():
        raise OSError(22, "not a WPILOG file", str(path))
    entries: dict[int, tuple[str, str]] = {}
    for record in reader:
        if record.isStart():
            start = record.getStartData()
            entries[start.entry] = start.name, start.type
        elif not record.isControl() and record.getEntry() in entries:
            name, type_ = entries[record.getEntry()]
            value = getattr(record, _GET.get(type_, "getRaw"))()
            if isinstance(value, bytearray | memoryview):
                value = bytes(value)
            yield RecordedValue(name, _NT_TYPES.get(type_, type_), value, record.getTimestamp())
