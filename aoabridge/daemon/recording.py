"""What is recorded, in which files: topics by glob, phone lines, issues; rotation and room on the disk."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from aoabridge.adapters.control import Action, Arguments, Handler, Query, RequestError
from aoabridge.adapters.recorder import LogRecord, Recorder
from aoabridge.bridge.policy import compile_patterns
from aoabridge.bridge.topics import TopicTable
from aoabridge.config.sections import RecordSettings
from aoabridge.daemon.match_info import event_name, match_info
from aoabridge.phone.keys import key_of
from aoabridge.status.views import RecordView
from aoabridge.values import NtValue

__all__ = ["RecordHost"]

MIB = 1 << 20
CHECK_S = 1.0
SYSTEM_TIME_S = 5.0  # wall clock against the file's clock
SUFFIX = ".wpilog"

log = logging.getLogger("aoabridge.recording")


class RecordHost:
    """The recording of this daemon; all calls are for the event loop. ``now`` is monotonic seconds."""

    def __init__(
        self, settings: RecordSettings, directory: Path | None, topics: TopicTable, wake: Callable[[], None]
    ) -> None:
        self._settings = settings
        self._state_dir = directory
        self._topics = topics
        self._wake = wake
        self._recorder: Recorder | None = None
        self._last: Recorder | None = None
        self._finishing: Recorder | None = None  # whose file the next one has replaced
        self._globs = compile_patterns(settings.topics)
        self._chosen: tuple[str, ...] | None = None  # topics that somebody asked for, instead of the configured ones
        self._given_path: Path | None = None
        self._began = 0.0
        self._ended_s = 0.0
        self._checked_at = float("-inf")
        self._system_time_at = float("-inf")
        self._fault: str | None = None  # of the file, told by the writing thread
        self._partial: dict[tuple[str, str], bytes] = {}
        self._named_with_match = False
        self.stopped_because: str | None = None

    @property
    def active(self) -> bool:
        """True while a file is open."""
        return self._recorder is not None

    @property
    def _directory(self) -> Path | None:
        if self._settings.dir:
            return Path(self._settings.dir)
        return None if self._state_dir is None else self._state_dir / "records"

    def configure(self, settings: RecordSettings, now: float) -> None:
        """Take new settings; a running file gives way to a new one if they would have made another one.

        Only a file whose place somebody chose goes on: a new one there would overwrite it.
        """
        was, kept_mib = self._file_settings(), self._settings.keep_mib
        self._settings = settings
        self._checked_at = float("-inf")  # another length of a file holds from the next tick
        if not self.active or self._given_path is not None:
            return
        if self._file_settings() != was:
            self._replace(now)
        if settings.keep_mib < kept_mib:
            self._delete_oldest()

    def _file_settings(self) -> tuple[object, ...]:
        return self._directory, self._topics_wanted(), self._settings.min_free_mib

    def _topics_wanted(self) -> tuple[str, ...]:
        return self._settings.topics if self._chosen is None else self._chosen

    def start(self, now: float, out: Path | None = None, topics: Iterable[str] | None = None) -> None:
        """Begin a file with the current value of every topic; OSError if it cannot be made."""
        self.stop(now)
        self._chosen = None if topics is None else tuple(topics)
        self._given_path = out
        self._partial.clear()  # halves of lines that ended while nobody recorded
        self.stopped_because = None
        self._begin(now)
        log.info("recording to %s", self.view().file, extra={"code": "record-started"})

    def _begin(self, now: float) -> None:
        self._globs = compile_patterns(self._topics_wanted())
        path = self._given_path or self._new_path()
        self._fault = None
        recorder = Recorder(
            path,
            min_free_bytes=self._settings.min_free_mib * MIB,
            failed=lambda reason: self._on_failed(recorder, reason),
        )
        recorder.open()
        self._recorder = self._last = recorder
        self._began = now
        for topic in self._topics:
            if topic.value is not None:
                self.value(topic.name, topic.type, topic.value, now)

    def _new_path(self) -> Path:
        if self._directory is None:
            raise OSError(2, "no directory for recordings: set record.dir")
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        event, match = event_name(self._topics), match_info(self._topics).match
        self._named_with_match = match is not None
        name = "_".join(part for part in ("aoabridge", stamp, event, match) if part)
        path, number = self._directory / f"{name}{SUFFIX}", 1
        while path.exists():
            number += 1
            path = self._directory / f"{name}-{number}{SUFFIX}"
        return path

    def stop(self, now: float) -> None:
        """End the file, and wait for it."""
        recorder = self._finish(now)
        for ending in (self._finishing, recorder):
            if ending is not None:
                ending.close()
        self._finishing = None

    def _finish(self, now: float) -> Recorder | None:
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            self._ended_s = now - self._began
            recorder.finish()
            log.info("recorded %s", recorder.path, extra={"code": "record-ended"})
        return recorder

    # What is recorded (a Spy of the relay).

    @property
    def wants_values(self) -> bool:
        """True while a file is open."""
        return self._recorder is not None

    @property
    def wants_chunks(self) -> bool:
        """True while a file is open that phone lines go to."""
        return self._recorder is not None and self._settings.phone_lines

    def value(self, topic: str, type_: str, value: NtValue, now: float) -> None:
        """A topic has a new value."""
        recorder = self._recorder
        if recorder is not None and self._globs is not None and self._globs.match(key_of(topic)):
            recorder.offer(LogRecord(f"NT:{topic}", type_, value, int(now * 1e6)))

    def chunk(self, device: str, direction: str, data: bytes, now: float) -> None:
        """Bytes of a phone passed; whole lines are recorded."""
        recorder = self._recorder
        if recorder is None:
            return
        *lines, rest = (self._partial.pop((device, direction), b"") + data).split(b"\n")
        if rest:
            self._partial[device, direction] = rest[-MIB:]
        for line in lines:
            if line.strip():
                text = line.decode(errors="replace")
                recorder.offer(LogRecord(f"AOA:/{device}/{direction}", "json", text, int(now * 1e6), "AOA"))

    def issues(self, texts: list[str], now: float) -> None:
        """The open issues changed."""
        if self._recorder is not None:
            self._recorder.offer(LogRecord("AOABridge:/issues", "string[]", texts, int(now * 1e6), "AOABridge"))

    # Time.

    def on_tick(self, now: float) -> None:
        """Rotation, room on the disk, the match in the file's name."""
        recorder = self._recorder
        if recorder is None or now - self._checked_at < CHECK_S:
            return
        self._checked_at = now
        if now - self._system_time_at >= SYSTEM_TIME_S:
            self._system_time_at = now
            recorder.offer(LogRecord("systemTime", "int", int(time.time() * 1e6), int(now * 1e6), "AOABridge"))
        if self._fault is not None:
            self.stop(now)
            self.stopped_because = self._fault
            log.warning("recording stopped: %s", self._fault, extra={"code": "record-stopped"})
        elif self._given_path is None and self._should_rotate(recorder):
            self._replace(now)
            self._delete_oldest()

    def _replace(self, now: float) -> None:
        """Begin the next file. Nobody waits for a slow card: a match may just begin."""
        if self._finishing is not None:
            self._finishing.close()  # has had the time of a whole file
        self._finishing = self._finish(now)
        try:
            self._begin(now)
        except OSError as error:
            self.stopped_because = str(error.strerror or error)
            log.warning("recording stopped: %s", error, extra={"code": "record-stopped"})

    def _should_rotate(self, recorder: Recorder) -> bool:
        match_known = match_info(self._topics).match is not None
        return recorder.size_bytes() >= self._settings.rotate_mib * MIB or (match_known and not self._named_with_match)

    def _delete_oldest(self) -> None:
        if self._directory is None:
            return
        try:
            found = [(path.stat(), path) for path in self._directory.glob(f"aoabridge_*{SUFFIX}")]
            files = sorted(found, key=lambda item: item[0].st_mtime)
            total = sum(stat.st_size for stat, _ in files)
            for stat, path in files[:-1]:
                if total <= self._settings.keep_mib * MIB:
                    return
                total -= stat.st_size
                path.unlink(missing_ok=True)
        except OSError as error:  # somebody tidies up at the same time, or the disk has gone
            log.warning("old recordings stay: %s", error)

    def _on_failed(self, recorder: Recorder, reason: str) -> None:
        """In the recorder's thread."""
        if recorder is self._finishing:
            log.warning("the end of %s is missing: %s", recorder.path, reason)
        else:
            self._fault = reason
            self._wake()

    def seen_at(self) -> float | None:
        """The writing thread's last sign of life."""
        return None if self._recorder is None else self._recorder.seen_at

    def view(self) -> RecordView:
        """What the snapshot says."""
        last = self._last
        return RecordView(self.active, None if last is None else str(last.path), 0 if last is None else last.dropped)

    # Requests.

    def handlers(self, clock: Callable[[], float]) -> dict[str, Handler]:
        """The control socket's requests."""
        return {
            "record-status": Query(lambda _arguments: self._status(clock())),
            "record-start": Action(lambda arguments: self._on_start(arguments, clock())),
            "record-stop": Action(lambda _arguments: self._on_stop(clock())),
        }

    def _on_start(self, arguments: Arguments, now: float) -> Mapping[str, object]:
        out, topics = arguments.get("out"), arguments.get("topics")
        if not (out is None or isinstance(out, str)) or not (topics is None or _is_texts(topics)):
            raise RequestError("bad-request", "out must be text, topics a list of text")
        try:
            self.start(now, None if out is None else Path(out), topics)
        except OSError as error:
            raise RequestError("cannot-create", str(error), "ls -ld of its directory; df") from error
        return self._status(now)

    def _on_stop(self, now: float) -> Mapping[str, object]:
        self.stop(now)
        return self._status(now)

    def _status(self, now: float) -> Mapping[str, object]:
        view, last = self.view(), self._last
        duration_s = now - self._began if self.active else self._ended_s
        return {
            "active": view.active,
            "file": view.file,
            "size_bytes": None if last is None else last.size_bytes(),
            "duration_s": None if last is None else round(duration_s, 1),
            "dropped": view.dropped,
        }


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
