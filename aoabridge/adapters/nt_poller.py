"""The thread that waits for ntcore's events; ntcore enters as an ``EventSource``."""

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from aoabridge.adapters.nt_events import Batch, EventReader, RawEvent
from aoabridge.adapters.nt_pacing import OverloadWatch, Subscribe
from aoabridge.exits import Exit

__all__ = ["EventSource", "Poller"]

POLL_S = 1.0  # a sign of life at least this often, well within what the watchdog allows; every event wakes at once
JOIN_S = 2.0
GATHER_S = 0.0005  # ntcore's thread is still handing us the frame of which it has told: half a frame costs a whole turn

_log = logging.getLogger("aoabridge.adapters.nt")


class EventSource(Protocol):
    """A subscription to every topic and the queue of what comes."""

    def wait(self, timeout_s: float) -> None:
        """Return when events wait, after the timeout, or at once when ended."""

    def read(self) -> Sequence[RawEvent]:
        """Remove and return all waiting events."""
        ...

    def resubscribe(self, how: Subscribe) -> None:
        """Replace the subscription."""

    def end(self) -> None:
        """Wake the waiter for the last time."""

    def close(self) -> None:
        """Give up the subscription; nobody waits any more."""


class Poller:
    """Drains an event source; ``on_batch`` runs in the poller's thread."""

    def __init__(self, source: EventSource, reader: EventReader, on_batch: Callable[[Batch], None]) -> None:
        self._source = source
        self._reader = reader
        self._on_batch = on_batch
        self._watch = OverloadWatch()
        self._draining = threading.Lock()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="nt-poller", daemon=True)
        self.seen_at = time.monotonic()

    @property
    def overloaded(self) -> bool:
        """True while only the newest values are subscribed."""
        return self._watch.overloaded

    def start(self) -> None:
        """Begin to wait for events."""
        self._thread.start()

    def drain(self) -> None:
        """Read what waits and hand it over; callable from any thread."""
        with self._draining:
            count = self._gather()
            change = self._watch.on_drain(count, time.monotonic())
            if change is not None:
                _log.warning("subscribing to %s of each topic", change.value)
                self._source.resubscribe(change)

    def _gather(self) -> int:
        """Hand over one batch: what waits, and what follows while that is translated; returns how many events."""
        batch, count = Batch(), 0
        until = time.monotonic() + GATHER_S
        try:
            while events := self._source.read():
                count += len(events)
                self._reader.read_into(batch, events)
                if time.monotonic() >= until:
                    break
        finally:
            if count:
                self._on_batch(batch)
        return count

    def close(self) -> None:
        """End the thread, then the subscription; a thread that does not end takes the process with it."""
        self._stopping = True
        self._source.end()
        if self._thread.ident is not None:
            self._thread.join(JOIN_S)
        if self._thread.is_alive():
            _log.critical("the NetworkTables thread does not end")
            logging.shutdown()
            os._exit(Exit.INTERNAL)  # leaving it to the interpreter would abort the process
        self._source.close()

    def _run(self) -> None:
        while not self._stopping:
            self.seen_at = time.monotonic()
            try:
                self._source.wait(POLL_S)
                if not self._stopping:
                    self.drain()
            except MemoryError:
                raise  # announcements may be lost, without which topics stay silent: the process ends
            except Exception:  # noqa: BLE001  # top-level loop: the one thread that must not end
                _log.exception("NetworkTables events lost")
