"""The app on the emulated phone: known (as teams run it), hello (with the extensions), silent, closed, echo."""

import json
from collections import deque

from fakes.applog import AppLog
from fakes.lines import InboundBook
from fakes.traffic import Traffic

__all__ = ["App"]

REOPEN_S = 0.5  # known app: after a disconnect line, and how often it polls the accessory list
SILENCE_S = 12.0  # known app: no line that is not blank for so long = link dead
RESUBSCRIBE_S = 60.0
POSE_DELAY_S = 1.0
DROP_BYTES = 4 * 1024 * 1024
KEYS = ("/FMSInfo/IsRedAlliance", "/bench/")
NEW_KEYS = ("/bench/0",)


class App(Traffic):
    """One app installation; `function` is the accessory node while the phone is in accessory mode."""

    def __init__(self, profile, clock, phone):
        self.profile = profile
        self.clock = clock
        self.phone = phone
        self.log = AppLog(clock)
        self.book = InboundBook(f"/in/{profile.name}", clock)
        self.kind = profile.app
        self.keys = KEYS
        self.open = False
        self.muted = False
        self.reading = True
        self.function = None
        self.reopen_times = []
        self._closed_at = None
        self._generation = 0
        self._buffer = bytearray()
        self._line_start = 0
        self._boundary = None
        self._begins_mid_line = False
        self._stuck = False
        super().__init__()

    # life cycle

    def attached(self, function, adopted):
        """The phone entered accessory mode: the system launches the app (or it has run all the time)."""
        self.function = function
        self._generation += 1
        self._stuck = False
        if self.kind != "closed":
            self._open(greet=not adopted)

    def detached(self):
        self._shut(leave=False)
        self._closed_at = None  # it did not close by itself
        self.function = None
        self.stop_jobs()

    def close(self, reopen_after=None):
        """The app closes its descriptor; on new Android the phone may leave accessory mode."""
        if self.open:
            self._shut(leave=True)
        if reopen_after is not None:
            self._later(reopen_after, self._try_open)

    def restart(self, gap_s=0.5, new_keys=None):
        self.close()
        if new_keys:
            self.keys = tuple(new_keys) if isinstance(new_keys, list | tuple) else NEW_KEYS
        self._later(gap_s, self._try_open)

    def _later(self, delay, callback):
        """A timer that dies with this attachment of the phone."""
        generation = self._generation
        self.clock.call_later(delay, lambda: callback() if generation == self._generation else None)

    def _try_open(self):
        if self.open or self.function is None:
            return
        if self._stuck:  # the node is single-open and the old read still holds it
            self._later(REOPEN_S, self._try_open)
            return
        self._open(greet=True)

    def _open(self, greet):
        self.open = True
        self._session = object()
        if self._closed_at is not None:
            self.reopen_times.append(self.clock.now() - self._closed_at)
            self._closed_at = None
        self._buffer.clear()
        self._begins_mid_line = self.function.out.mid_line
        self._line_start = self.function.out.delivered_bytes
        self.log.last_line_at = self.clock.now()
        if self.profile.stale_request and self.function.out.last_request:
            for raw, start in self._on_chunk(self.function.out.last_request):
                self._on_line(raw, start)
        self._read()
        if self.kind == "known":
            self._watch_silence(self._session)
        if greet:
            self._greet()

    def _shut(self, leave):
        self.open = False
        self.stop_jobs()
        self._session = None
        self._closed_at = self.clock.now()
        function = self.function
        if function is None:
            return
        if self.profile.stuck_reader and function.out.reading:
            self._stuck = True
        else:
            function.out.close()
        function.in_.drop_writes()
        if leave:
            self.phone.app_closed()

    # greeting and known habits

    def _greet(self):
        if self.muted or self.kind not in ("known", "hello"):
            return
        if self.kind == "hello":
            self.log.hello_sent(self.keys)
            self._say({"action": "hello", "app": "bench", "version": "1", "nonce": str(self.clock.now())})
            self._subscribe({"action": "subscribe", "keys": list(self.keys)})
            return
        self._subscribe({"subscribe": list(self.keys)})
        session = self._session
        self._later(POSE_DELAY_S, lambda: self._pose(session))
        self._later(RESUBSCRIBE_S, lambda: self._resubscribe(session))

    def _subscribe(self, message):
        self.log.subscribed(message.get("keys") or message["subscribe"])
        self._say(message)

    def _pose(self, session):
        if session is self._session and not self.muted:
            self._subscribe({"subscribe": ["/robot/pose"]})

    def _resubscribe(self, session):
        if session is self._session:
            if not self.muted:
                self._subscribe({"subscribe": list(self.keys)})
            self._later(RESUBSCRIBE_S, lambda: self._resubscribe(session))

    def _watch_silence(self, session):
        if session is not self._session or session is None:
            return
        if self.clock.now() - self.log.last_line_at >= SILENCE_S and self.reading:
            self.close(reopen_after=REOPEN_S)
            return
        self._later(0.5, lambda: self._watch_silence(session))

    def _say(self, message):
        self.say(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def write(self, data, callback=None):
        if self.open and self.function is not None:
            self.function.in_.write(data, callback)

    # reading

    def stop_reading(self):
        self.reading = False

    def resume_reading(self):
        self.reading = True
        self.log.last_line_at = self.clock.now()
        self.log.resumed()
        self._read()

    def link_opened(self):
        """A host claimed the interface: what it sends begins at this byte of the stream."""
        self.log.link_opened()
        if self.function is not None:
            self._boundary = self.function.out.accepted_bytes

    def _read(self):
        function = self.function
        if self.open and self.reading and function is not None and not function.out.reading:
            session = self._session
            function.out.read(self.profile.read_buffer, lambda data: self._read_returned(session, data))

    def _read_returned(self, session, data):
        if session is not self._session:
            self._stuck = False  # the read of a closed run came back at last
            return
        lines = self._on_chunk(data)
        pace_s = 1 / self.profile.lines_per_s if self.profile.lines_per_s else 0.0
        self._digest(session, deque(lines), pace_s)

    def _digest(self, session, lines, pace_s):
        """Handles line after line, each for `pace_s` unless it is blank, then reads again."""
        while lines and session is self._session:
            raw, start = lines.popleft()
            self._on_line(raw, start)
            if pace_s and raw.strip():
                self._later(pace_s, lambda: self._digest(session, lines, pace_s))
                return
        if session is self._session:
            self._read()

    def _on_chunk(self, data):
        """Takes bytes; returns the complete lines as (text, position in the stream)."""
        if self.kind == "echo":
            self.write(data)
            return []
        self._buffer += data
        lines = []
        while (end := self._buffer.find(b"\n")) >= 0:
            lines.append((bytes(self._buffer[:end]), self._line_start))
            del self._buffer[: end + 1]
            self._line_start += end + 1
        if len(self._buffer) > DROP_BYTES:
            self._line_start += len(self._buffer)
            self._buffer.clear()
        return lines

    def _on_line(self, raw, start):
        if self._begins_mid_line:
            self._begins_mid_line = False  # the rest of a line whose beginning an earlier run of the app read
            return
        first_full = False
        if self._boundary is not None:
            if start < self._boundary:
                if raw.strip():
                    joined = start + len(raw) > self._boundary
                    (self.log.joined_line if joined else self.log.fragment)(raw)
                return
            first_full = bool(raw.strip())
            if first_full:
                self._boundary = None
        message = self.log.line(raw, first_full)
        if b'"disconnect":' in raw and message is not None and self.kind in ("known", "hello"):
            self.close(reopen_after=REOPEN_S)
        elif message is not None and "ping" in message and self.kind == "hello" and not self.muted:
            self._say({"action": "pong", "id": message["ping"]})
