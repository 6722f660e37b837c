"""The two threads of a link over a scripted pipe."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from aoabridge.adapters.usb_pump import INBOX_CHUNKS, Accepted, Chunk, Ended, Idle, LinkPump, PumpEvent, Resync
from aoabridge.errors import UsbError

DEADLINE_S = 10.0


def error(kind: str, step: str = "read") -> UsbError:
    return UsbError(kind, errno=None, kind=kind, step=step, port="1-1")


class ScriptedPipe:
    """Answers reads and writes from two scripts; then reads wait for bytes that never come and writes succeed."""

    packet_size = 512

    def __init__(self, reads: list[Any] | None = None, writes: list[Any] | None = None) -> None:
        self.reads = deque(reads or [])
        self.writes = deque(writes or [])
        self.read_timeouts: list[int] = []
        self.written: list[bytes] = []
        self.cleared: list[tuple[str, str]] = []
        self.in_transfer = {"in": False, "out": False}
        self.overlap = False
        self.closed = False
        self.hang = threading.Event()

    def read(self, timeout_ms: int) -> bytes | None:
        self.in_transfer["in"] = True
        try:
            self.read_timeouts.append(timeout_ms)
            answer = self.reads.popleft() if self.reads else time.sleep(timeout_ms / 1000)
            if isinstance(answer, UsbError):
                raise answer
            if answer == "hang":
                self.hang.wait()
            return answer
        finally:
            self.in_transfer["in"] = False

    def write(self, data: bytes, timeout_ms: int) -> int:
        self.in_transfer["out"] = True
        try:
            answer = self.writes.popleft() if self.writes else len(data)
            if isinstance(answer, UsbError):
                raise answer
            if answer == 0:
                time.sleep(timeout_ms / 1000)
            self.written.append(data)
            return int(answer)
        finally:
            self.in_transfer["out"] = False

    def clear_halt_in(self) -> None:
        self._clear("in")

    def clear_halt_out(self) -> None:
        self._clear("out")

    def _clear(self, side: str) -> None:
        self.overlap = self.overlap or self.in_transfer[side]
        self.cleared.append((side, threading.current_thread().name))

    def close(self) -> None:
        self.closed = True


class Harness:
    def __init__(self, pipe: ScriptedPipe, *, start: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        self.pipe = pipe
        self.wakes = 0
        self.woken = threading.Event()
        self.events: list[PumpEvent] = []
        self.pump = LinkPump(pipe, "scout", self.wake, clock)
        if start:
            self.pump.start()

    def wake(self) -> None:
        self.wakes += 1
        self.woken.set()

    def until(self, condition: Callable[[list[PumpEvent]], bool]) -> list[PumpEvent]:
        deadline = time.monotonic() + DEADLINE_S
        while not condition(self.events):
            assert time.monotonic() < deadline, self.events
            self.woken.wait(0.05)
            self.woken.clear()
            self.events += self.pump.take_events()
        return self.events

    def of(self, kind: type[PumpEvent]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def harness() -> Iterator[Callable[..., Harness]]:
    made: list[Harness] = []

    def make(pipe: ScriptedPipe, **more: Any) -> Harness:
        made.append(Harness(pipe, **more))
        return made[-1]

    yield make
    for one in made:
        one.pipe.hang.set()
        assert one.pump.stop(3.0)


def has(kind: type[PumpEvent], count: int = 1) -> Callable[[list[PumpEvent]], bool]:
    return lambda events: sum(isinstance(event, kind) for event in events) >= count


def test_chunks_come_in_order_and_idle_after_them(harness: Callable[..., Harness]) -> None:
    h = harness(ScriptedPipe([b"one", b"two", b"", b"three"]))
    events = h.until(has(Idle))
    assert [e.data for e in events if isinstance(e, Chunk)] == [b"one", b"two", b"three"]
    assert isinstance(events[-1], Idle)


def test_reads_are_short_while_a_backlog_may_come(harness: Callable[..., Harness]) -> None:
    h = harness(ScriptedPipe([b"old"]))
    h.until(has(Idle))
    deadline = time.monotonic() + DEADLINE_S
    while len(h.pipe.read_timeouts) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert h.pipe.read_timeouts[:4] == [100, 100, 250, 250]
    h.events += h.pump.take_events()
    assert len(h.of(Idle)) == 1


class SlowPipe(ScriptedPipe):
    """Every scripted read takes the time that stands with it, on a clock of its own."""

    now = 0.0

    def read(self, timeout_ms: int) -> bytes | None:
        if self.reads:
            passed_s, self.reads[0] = self.reads[0]
            self.now += passed_s
        return super().read(timeout_ms)


def test_a_pause_of_the_phone_is_told_from_one_of_ours(harness: Callable[..., Harness]) -> None:
    """A read ends with its timeout if the phone is silent: one that took longer was held up here."""
    pipe = SlowPipe([(0.02, b"a"), (0.1, b""), (0.05, b"b"), (0.6, b"c"), (0.0, b"d")])
    h = harness(pipe, clock=lambda: pipe.now)
    h.until(has(Chunk, 4))
    assert [chunk.pause_s for chunk in h.of(Chunk)] == pytest.approx([0.02, 0.15, 0.0, 0.0])


def test_time_that_was_ours_does_not_end_the_time_of_old_bytes(harness: Callable[..., Harness]) -> None:
    pipe = SlowPipe([(0.7, b"a"), (0.1, b"b"), (0.0, None)])
    h = harness(pipe, clock=lambda: pipe.now)
    h.until(has(Idle))
    assert [type(event) for event in h.events] == [Chunk, Chunk, Idle]


def test_one_transfer_at_a_time_each_answered_once(harness: Callable[..., Harness]) -> None:
    h = harness(ScriptedPipe(writes=[3, 0, 1]))
    for data, count in ((b"abc", 3), (b"abc", 0), (b"abc", 1)):
        h.events.clear()
        assert h.pump.offer(data)
        assert not h.pump.offer(b"more")
        h.until(has(Accepted))
        (accepted,) = h.of(Accepted)
        assert (accepted.count, accepted.error) == (count, False)
    assert h.pipe.written == [b"abc"] * 3


def test_the_next_offer_waits_until_the_result_was_taken(harness: Callable[..., Harness]) -> None:
    h = harness(ScriptedPipe())
    h.pump.offer(b"abc")
    deadline = time.monotonic() + DEADLINE_S
    while not h.wakes and time.monotonic() < deadline:
        time.sleep(0.005)
    assert not h.pump.idle
    h.until(has(Accepted))
    assert h.pump.idle


def test_one_wake_until_the_events_are_taken(harness: Callable[..., Harness]) -> None:
    h = harness(ScriptedPipe([b"x"] * 20 + [error("NO_DEVICE")]))
    deadline = time.monotonic() + DEADLINE_S
    while h.pipe.reads and time.monotonic() < deadline:
        time.sleep(0.005)
    assert h.wakes == 1
    h.until(has(Ended))


def test_a_full_inbox_makes_the_reader_wait_and_loses_nothing(harness: Callable[..., Harness]) -> None:
    count = INBOX_CHUNKS + 10
    h = harness(ScriptedPipe([bytes([n]) for n in range(count)]))
    deadline = time.monotonic() + DEADLINE_S
    while not h.pump.counters["inbox_full"] and time.monotonic() < deadline:
        time.sleep(0.005)
    assert len(h.pipe.reads) == 10
    h.until(has(Chunk, count))
    assert b"".join(chunk.data for chunk in h.of(Chunk)) == bytes(range(count))


def test_unplug_ends_the_link_once(harness: Callable[..., Harness]) -> None:
    h = harness(ScriptedPipe([b"x", error("NO_DEVICE")], [error("NO_DEVICE", "write")]), start=False)
    h.pump.offer(b"abc")
    h.pump.start()
    h.until(has(Ended))
    assert h.pump.stop(3.0)
    h.events += h.pump.take_events()
    (ended,) = h.of(Ended)
    assert ended.error.kind == "NO_DEVICE"
    assert not h.pump.offer(b"abc")


@pytest.mark.parametrize("kind", ["ACCESS", "INVALID_PARAM", "NOT_SUPPORTED", "NO_DEVICE"])
def test_what_ends_a_link_at_once(harness: Callable[..., Harness], kind: str) -> None:
    h = harness(ScriptedPipe([error(kind)]))
    h.until(has(Ended))
    assert h.of(Resync) == []


def test_a_halt_in_is_cleared_by_the_reader(harness: Callable[..., Harness]) -> None:
    h = harness(ScriptedPipe([b"half", error("PIPE"), b"after\n"]))
    events = h.until(has(Chunk, 2))
    assert [type(e) for e in events] == [Chunk, Resync, Chunk]
    assert h.pipe.cleared == [("in", "usb-read:scout")]
    assert h.pump.counters["in_resync"] == 1


def test_a_halt_out_is_cleared_by_the_writer(harness: Callable[..., Harness]) -> None:
    h = harness(ScriptedPipe(writes=[error("PIPE", "write")]))
    h.pump.offer(b"abc")
    h.until(has(Accepted))
    (accepted,) = h.of(Accepted)
    assert (accepted.count, accepted.error) == (0, True)
    assert h.pipe.cleared == [("out", "usb-write:scout")]


def test_a_second_halt_within_a_second_ends_the_link(harness: Callable[..., Harness]) -> None:
    h = harness(ScriptedPipe([error("PIPE"), error("PIPE")]))
    h.until(has(Ended))
    assert len(h.pipe.cleared) == 1


@pytest.mark.parametrize("kind", ["IO", "OTHER", "OVERFLOW"])
def test_three_errors_within_a_second_end_the_link(harness: Callable[..., Harness], kind: str) -> None:
    h = harness(ScriptedPipe([error(kind), error(kind), b"x", error(kind)]))
    h.until(has(Ended))
    assert len(h.of(Resync)) == 2
    assert len(h.of(Chunk)) == 1


@pytest.mark.parametrize("kind", ["NO_MEM", "BUSY"])
def test_memory_errors_pass(harness: Callable[..., Harness], kind: str) -> None:
    h = harness(ScriptedPipe([error(kind)] * 5 + [b"x"], [error(kind, "write")] * 5))
    h.pump.offer(b"abc")
    h.until(lambda events: has(Chunk)(events) and has(Accepted)(events))
    assert h.of(Ended) == []
    assert h.of(Resync) == []
    (accepted,) = h.of(Accepted)
    assert (accepted.count, accepted.error) == (3, False)


def test_memory_errors_that_stay_end_the_link(harness: Callable[..., Harness]) -> None:
    h = harness(ScriptedPipe([error("NO_MEM")] * 6))
    h.until(has(Ended))
    assert h.of(Ended)[0].error.kind == "NO_MEM"


def test_an_interrupted_read_is_repeated_at_once(harness: Callable[..., Harness]) -> None:
    h = harness(ScriptedPipe([error("INTERRUPTED")] * 3 + [b"x"]))
    h.until(has(Chunk))
    assert h.of(Resync) == []


def test_an_interrupted_write_may_have_moved_bytes(harness: Callable[..., Harness]) -> None:
    h = harness(ScriptedPipe(writes=[error("INTERRUPTED", "write")]))
    h.pump.offer(b"abc")
    h.until(has(Accepted))
    assert h.of(Accepted)[0].error


def test_halts_on_request_are_cleared_once_by_each_thread(harness: Callable[..., Harness]) -> None:
    h = harness(ScriptedPipe())
    h.until(has(Idle))
    h.pump.clear_halts()
    deadline = time.monotonic() + DEADLINE_S
    while len(h.pipe.cleared) < 2 and time.monotonic() < deadline:
        time.sleep(0.005)
    assert sorted(h.pipe.cleared) == [("in", "usb-read:scout"), ("out", "usb-write:scout")]
    assert not h.pipe.overlap
    assert h.pump.offer(b"abc")
    h.until(has(Accepted))


def test_stop_is_quick_and_tells_nothing(harness: Callable[..., Harness]) -> None:
    h = harness(ScriptedPipe())
    h.until(has(Idle))
    started = time.monotonic()
    assert h.pump.stop(0.75)
    assert time.monotonic() - started < 0.5
    assert not h.pump.offer(b"abc")
    assert h.pump.take_events() == []


def test_stop_during_a_clear_of_halts(harness: Callable[..., Harness]) -> None:
    h = harness(ScriptedPipe(writes=[0]))
    h.until(has(Idle))
    h.pump.offer(b"abc")
    h.pump.clear_halts()
    assert h.pump.stop(0.75)


def test_a_thread_that_hangs_is_reported(harness: Callable[..., Harness]) -> None:
    h = harness(ScriptedPipe(["hang"]))
    assert not h.pump.stop(0.3)
    assert not h.pipe.closed


def test_both_threads_show_life(harness: Callable[..., Harness]) -> None:
    h = harness(ScriptedPipe())
    first = h.pump.seen_at()
    deadline = time.monotonic() + DEADLINE_S
    while h.pump.seen_at() <= first + 1.0 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert first + 1.0 < h.pump.seen_at() <= time.monotonic()


def test_empty_packets_without_end_do_not_spin(harness: Callable[..., Harness]) -> None:
    h = harness(ScriptedPipe([b""] * 160 + [b"x"]))
    started = time.monotonic()
    h.until(has(Chunk))
    assert time.monotonic() - started >= 8 * 0.005  # of ten pauses; a timer may end early by its resolution


def test_a_defect_ends_the_link_loudly(harness: Callable[..., Harness], caplog: pytest.LogCaptureFixture) -> None:
    pipe = ScriptedPipe()
    pipe.read = None  # type: ignore[assignment,method-assign]
    h = harness(pipe)
    h.until(has(Ended))
    assert h.of(Ended)[0].error.kind == "DEFECT"
    assert any(record.exc_info for record in caplog.records)
