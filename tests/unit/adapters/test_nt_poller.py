import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from aoabridge.adapters.nt_events import Batch, EventReader, OwnValues, RawEvent
from aoabridge.adapters.nt_pacing import OVERLOAD_EVENTS, Subscribe
from aoabridge.adapters.nt_poller import Poller
from aoabridge.exits import Exit


class Announce:
    flags = 8

    def __init__(self, name: str) -> None:
        self.data = type("Data", (), {"name": name, "type_str": "int"})()


class Source:
    """Hands out batches as they are given; remembers what it was told."""

    def __init__(self) -> None:
        self.ready = threading.Event()
        self.batches: list[Sequence[RawEvent]] = []
        self.told: list[Any] = []
        self.fail = False

    def give(self, batch: Sequence[RawEvent]) -> None:
        self.batches.append(batch)
        self.ready.set()

    def wait(self, timeout_s: float) -> None:
        self.ready.wait(timeout_s)
        self.ready.clear()

    def read(self) -> Sequence[RawEvent]:
        if self.fail:
            self.fail = False
            raise RuntimeError("queue gone wrong")
        return self.batches.pop(0) if self.batches else []

    def resubscribe(self, how: Subscribe) -> None:
        self.told.append(how)

    def end(self) -> None:
        self.told.append("end")
        self.ready.set()

    def close(self) -> None:
        self.told.append("close")


class Seen:
    def __init__(self) -> None:
        self.names: list[str] = []
        self.batches = 0
        self.more = threading.Event()

    def __call__(self, batch: Batch) -> None:
        self.batches += 1
        self.names += [event.topic for event in batch.control]  # type: ignore[union-attr]
        self.more.set()


def started() -> tuple[Poller, Source, Seen]:
    source, seen = Source(), Seen()
    poller = Poller(source, EventReader(OwnValues(), lambda: 0), seen)
    poller.start()
    return poller, source, seen


def test_hands_over_what_comes_and_ends_thread_before_subscription() -> None:
    poller, source, seen = started()
    source.give([Announce("/a"), Announce("/b")])
    assert seen.more.wait(5)
    poller.close()
    assert seen.names == ["/a", "/b"]
    assert source.told == ["end", "close"]


def test_what_follows_while_a_batch_is_translated_goes_with_it() -> None:
    source, seen = Source(), Seen()
    for name in ("/a", "/b", "/c"):
        source.give([Announce(name)])
    Poller(source, EventReader(OwnValues(), lambda: 0), seen).drain()
    assert seen.names == ["/a", "/b", "/c"]
    assert seen.batches == 1


def test_events_that_never_end_are_handed_over_all_the_same() -> None:
    class Endless(Source):
        def read(self) -> Sequence[RawEvent]:
            return [Announce("/a")]

    seen = Seen()
    Poller(Endless(), EventReader(OwnValues(), lambda: 0), seen).drain()
    assert seen.batches == 1


def test_a_failing_read_does_not_cost_what_was_read_before() -> None:
    class Failing(Source):
        def read(self) -> Sequence[RawEvent]:
            if not self.batches:
                raise RuntimeError("queue gone wrong")
            return super().read()

    source, seen = Failing(), Seen()
    source.give([Announce("/a")])
    with pytest.raises(RuntimeError):
        Poller(source, EventReader(OwnValues(), lambda: 0), seen).drain()
    assert seen.names == ["/a"]


def test_survives_a_failing_read() -> None:
    poller, source, seen = started()
    source.fail = True
    source.ready.set()
    deadline = time.monotonic() + 5
    while source.fail and time.monotonic() < deadline:
        time.sleep(0.001)
    source.give([Announce("/a")])
    assert seen.more.wait(5)
    poller.close()


def test_shows_life_without_events() -> None:
    poller, _, _ = started()
    first = poller.seen_at
    deadline = time.monotonic() + 5
    while poller.seen_at == first:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    poller.close()


def test_two_big_drains_reduce_the_subscription() -> None:
    source = Source()
    poller = Poller(source, EventReader(OwnValues(), lambda: 0), Seen())
    big = [Announce("/a")] * (OVERLOAD_EVENTS + 1)
    for _ in range(2):
        source.give(big)
        poller.drain()
    assert source.told == [Subscribe.NEWEST_ONLY]
    assert poller.overloaded


def test_close_without_start() -> None:
    source = Source()
    Poller(source, EventReader(OwnValues(), lambda: 0), Seen()).close()
    assert source.told == ["end", "close"]


STUCK = """
import time
from aoabridge.adapters import nt_poller
from aoabridge.adapters.nt_events import EventReader, OwnValues
class Stuck:
    def wait(self, timeout_s): time.sleep(60)
    def end(self): pass
nt_poller.JOIN_S = 0.05
poller = nt_poller.Poller(Stuck(), EventReader(OwnValues(), lambda: 0), lambda batch: None)
poller.start()
poller.close()
"""


def test_stuck_thread_takes_the_process_with_it() -> None:
    done = subprocess.run([sys.executable, "-c", STUCK], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == Exit.INTERNAL
    assert "does not end" in done.stderr
