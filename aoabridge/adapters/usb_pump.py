"""One reader and one writer thread around the pipe of a phone; what they see goes to the loop as events."""

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

import msgspec

from aoabridge.errors import UsbError
from aoabridge.phone.aoa import IN_BACKLOG_TIMEOUT_MS, IN_TIMEOUT_MS, OUT_TIMEOUT_MS

__all__ = ["Accepted", "Chunk", "Ended", "Idle", "LinkPump", "Pipe", "PumpEvent", "Resync"]

_log = logging.getLogger(__name__)

INBOX_CHUNKS: Final = 64  # 1 MiB; then the reader waits and the phone is refused, nothing is lost
INBOX_WAIT_S: Final = 0.05
BACKLOG_S: Final = 0.5  # old bytes of the phone have come by then
LATE_S: Final = 0.05  # a read that comes back so much after its timeout was held up by this machine
LIFE_SIGN_S: Final = 1.0  # an idle writer shows life more often than the watchdog asks

EMPTY_LIMIT: Final = 16  # zero-length packets within EMPTY_WINDOW_S, then a breath: a broken phone sends nothing else
EMPTY_WINDOW_S: Final = 0.1
EMPTY_PAUSE_S: Final = 0.005

ERROR_WINDOW_S: Final = 1.0
MEMORY_PAUSE_S: Final = 0.05
MEMORY_RETRIES: Final = 5

# How many errors of a kind within ERROR_WINDOW_S end the link; a kind not named here ends it at once.
_TOLERATED: Final = {"PIPE": 2, "IO": 3, "OTHER": 3, "OVERFLOW": 3, "INTERRUPTED": 100}
_TRANSIENT: Final = frozenset({"NO_MEM", "BUSY"})


class Chunk(msgspec.Struct, frozen=True):
    """Bytes of the phone as one transfer brought them, after nothing for ``pause_s`` seconds; None = not measured."""

    data: bytes
    t: float
    pause_s: float | None = None


class Idle(msgspec.Struct, frozen=True):
    """An IN read brought nothing within the first 0.5 s: what the phone had queued before is through. At most once."""

    t: float


class Resync(msgspec.Struct, frozen=True):
    """Bytes of the phone were lost here: go on after the next LF."""

    t: float


class Accepted(msgspec.Struct, frozen=True):
    """Result of the transfer offered last: ``count`` bytes were taken; ``error`` = nobody knows how many."""

    count: int
    error: bool
    t: float


class Ended(msgspec.Struct, frozen=True):
    """The last event of a pump that was not told to stop."""

    error: UsbError
    t: float


PumpEvent: TypeAlias = Chunk | Idle | Resync | Accepted | Ended


class Pipe(Protocol):
    """What a pump needs; errors are UsbError, a timeout is none."""

    @property
    def packet_size(self) -> int:
        """Largest packet of the OUT endpoint in bytes."""
        ...

    def read(self, timeout_ms: int) -> bytes | None:
        """Bytes (b"" = a zero-length packet), None if nothing came in time."""
        ...

    def write(self, data: bytes, timeout_ms: int) -> int:
        """Bytes taken in time."""
        ...

    def clear_halt_in(self) -> None:
        """Clears the halt of the IN endpoint."""

    def clear_halt_out(self) -> None:
        """Clears the halt of the OUT endpoint."""

    def close(self) -> None:
        """Ends the use of the pipe."""


class LinkPump:
    """Runs both threads from ``start`` to ``stop`` or until an error ends the link.

    ``wake`` is called from a thread, once until the events are taken. One transfer out at a time.
    """

    def __init__(
        self, pipe: Pipe, name: str, wake: Callable[[], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.name = name
        self.in_flight = False  # until its Accepted has been taken; belongs to the loop
        self.counters = {"in_resync": 0, "inbox_full": 0}
        self._pipe = pipe
        self._wake = wake
        self._clock = clock
        self._lock = threading.Lock()
        self._events: deque[PumpEvent] = deque()
        self._chunks = 0
        self._woken = False
        self._stopping = threading.Event()
        self._ended = False
        self._in_backlog = True
        self._backlog_ends = 0.0
        self._pause_s = 0.0  # since the last chunk, as far as it was the phone's
        self._outgoing: bytes | None = None
        self._out_ready = threading.Event()
        self._halts_asked = {"in": False, "out": False}
        self._halts_meet = threading.Barrier(2)
        self._seen = {"in": clock(), "out": clock()}
        self._threads = (
            threading.Thread(target=self._run, args=("in", self._read_on), name=f"usb-read:{name}", daemon=True),
            threading.Thread(target=self._run, args=("out", self._write_on), name=f"usb-write:{name}", daemon=True),
        )

    def start(self) -> None:
        """Starts both threads."""
        self._backlog_ends = self._clock() + BACKLOG_S
        for thread in self._threads:
            thread.start()

    def take_events(self) -> list[PumpEvent]:
        """Everything since the last call, in order."""
        with self._lock:
            events = list(self._events)
            self._events.clear()
            self._chunks = 0
            self._woken = False
        if any(isinstance(event, Accepted) for event in events):
            self.in_flight = False
        return events

    @property
    def idle(self) -> bool:
        """True if ``offer`` would be taken."""
        return not self.in_flight and self._going_on()

    def offer(self, data: bytes) -> bool:
        """Hands one transfer over, answered by one Accepted; False while another one is in flight or after the end."""
        if not self.idle:
            return False
        self.in_flight = True
        self._outgoing = data
        self._out_ready.set()
        return True

    def clear_halts(self) -> None:
        """Asks each thread to clear the halt of its endpoint once, with no transfer of either in flight."""
        self._halts_asked = {"in": True, "out": True}
        self._out_ready.set()

    def seen_at(self) -> float:
        """When the slower of the two threads last showed life; the time of the end once that is told."""
        return self._clock() if self._ended else min(self._seen.values())

    def stop(self, timeout: float) -> bool:
        """Ends both threads within ``timeout`` seconds; blocking. False: one hangs, and the pipe must not be closed."""
        self._stopping.set()
        self._out_ready.set()
        self._halts_meet.abort()
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _going_on(self) -> bool:
        return not self._ended and not self._stopping.is_set()

    def _post(self, event: PumpEvent) -> None:
        with self._lock:
            self._events.append(event)
            self._chunks += isinstance(event, Chunk)
            wake, self._woken = not self._woken, True
        if wake:
            self._wake()

    def _end(self, error: UsbError) -> None:
        with self._lock:
            first, self._ended = not self._ended, True
        if first:
            self._out_ready.set()
            self._halts_meet.abort()
            self._post(Ended(error, self._clock()))

    def _run(self, side: str, loop: Callable[["_Faults"], None]) -> None:
        """One thread: goes on over errors as long as they are tolerable, then reports the end."""
        faults = _Faults(self._clock)
        while self._going_on():
            try:
                loop(faults)
            except UsbError as error:
                self._after(side, error, faults)
            except Exception as error:  # noqa: BLE001 (top of a thread: a link must never die silently)
                _log.exception("defect in the %s thread of %s", side, self.name)
                self._end(UsbError(str(error), errno=None, kind="DEFECT", step=side, port=self.name))

    def _after(self, side: str, error: UsbError, faults: "_Faults") -> None:
        """Goes on after an error of a transfer, or ends the link."""
        if error.kind in _TRANSIENT:
            if faults.transient():
                self._stopping.wait(MEMORY_PAUSE_S)
            else:
                self._end(error)
            return
        if faults.count(error.kind) >= _TOLERATED.get(error.kind, 1):
            self._end(error)
            return
        try:
            if error.kind == "PIPE":
                self._clear_halt(side)
        except UsbError as second:
            self._end(second)
            return
        if side == "out":
            self._accepted(0, error=True)
        elif error.kind != "INTERRUPTED":  # libusb goes on waiting by itself there, nothing is lost
            self.counters["in_resync"] += 1
            self._post(Resync(self._clock()))

    def _clear_halt(self, side: str) -> None:
        if side == "in":
            self._pipe.clear_halt_in()
        else:
            self._pipe.clear_halt_out()

    def _meet_to_clear(self, side: str) -> None:
        """Clears this side's halt while the other thread, too, is outside a transfer; alone if it does not come."""
        self._halts_asked[side] = False
        with contextlib.suppress(threading.BrokenBarrierError):
            self._halts_meet.wait(2 * OUT_TIMEOUT_MS / 1000)
        if self._going_on():
            self._clear_halt(side)

    # The reader thread.

    def _read_on(self, faults: "_Faults") -> None:
        """Reads until an error or the end."""
        read = self._pipe.read
        empties = deque[float](maxlen=EMPTY_LIMIT)
        while self._going_on():
            self._wait_for_room()
            if self._halts_asked["in"]:
                self._meet_to_clear("in")
            asked, timeout_ms = self._clock(), IN_BACKLOG_TIMEOUT_MS if self._in_backlog else IN_TIMEOUT_MS
            data = read(timeout_ms)
            now = self._seen["in"] = self._clock()
            faults.recovered()
            self._note_wait(now - asked, timeout_ms / 1000)
            if data:
                self._post(Chunk(data, now, self._pause_s))
                self._pause_s = 0.0
            elif data is not None:
                self._breathe(empties, now)
            if self._in_backlog:
                self._end_backlog(data, now)

    def _note_wait(self, passed_s: float, timeout_s: float) -> None:
        """A read is over: how long the phone was silent. Time in which nobody could read does not end the backlog."""
        if passed_s <= timeout_s + LATE_S:
            self._pause_s += passed_s
        else:
            self._backlog_ends += passed_s

    def _end_backlog(self, data: bytes | None, now: float) -> None:
        if data is None:
            self._post(Idle(now))
        self._in_backlog = data is not None and now < self._backlog_ends

    def _wait_for_room(self) -> None:
        if self._chunks < INBOX_CHUNKS:
            return
        self.counters["inbox_full"] += 1
        while self._chunks >= INBOX_CHUNKS and self._going_on():
            self._stopping.wait(INBOX_WAIT_S)
            self._seen["in"] = self._clock()

    def _breathe(self, empties: deque[float], now: float) -> None:
        empties.append(now)
        if len(empties) == EMPTY_LIMIT and now - empties[0] <= EMPTY_WINDOW_S:
            empties.clear()
            self._stopping.wait(EMPTY_PAUSE_S)

    # The writer thread.

    def _write_on(self, faults: "_Faults") -> None:
        """Writes what is offered until an error or the end."""
        while self._going_on():
            if self._outgoing is None or self._halts_asked["out"]:
                self._out_ready.wait(LIFE_SIGN_S)
                self._out_ready.clear()
                self._seen["out"] = self._clock()
            if self._halts_asked["out"]:
                self._meet_to_clear("out")
            data = self._outgoing
            if data is not None and self._going_on():
                count = self._pipe.write(data, OUT_TIMEOUT_MS)
                self._seen["out"] = self._clock()
                faults.recovered()
                self._accepted(count, error=False)

    def _accepted(self, count: int, *, error: bool) -> None:
        self._outgoing = None
        self._post(Accepted(count, error, self._clock()))


class _Faults:
    """Recent errors of one thread, by kind."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._times: dict[str, deque[float]] = {}
        self._transient = 0

    def count(self, kind: str) -> int:
        """Notes one error; how many of its kind there were within the window."""
        now = self._clock()
        times = self._times.setdefault(kind, deque())
        times.append(now)
        while now - times[0] > ERROR_WINDOW_S:
            times.popleft()
        return len(times)

    def transient(self) -> bool:
        """Notes one error of a kind that passes; False once it has been repeated too often in a row."""
        self._transient += 1
        return self._transient <= MEMORY_RETRIES

    def recovered(self) -> None:
        """A transfer worked."""
        self._transient = 0
