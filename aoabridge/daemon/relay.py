"""The turn of the loop: events of NetworkTables, links and sources into the core, its decisions out again.

Everything here runs on the event loop's thread; threads only call ``wake``.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Final, Protocol, cast

from aoabridge.adapters.nt import NtClient
from aoabridge.adapters.usb_pump import Accepted, Chunk, Ended, Idle, PumpEvent, Resync
from aoabridge.bridge.core import BridgeCore
from aoabridge.bridge.link import LinkInfo
from aoabridge.values import (
    Announced,
    ClockSync,
    Connected,
    Disconnected,
    LinkId,
    NtEvent,
    NtValue,
    Publication,
    PutResult,
    Unannounced,
    Update,
    Withdrawal,
)

__all__ = ["PATIENCE_S", "LinkHost", "Relay", "Spy"]

PATIENCE_S: Final = 0.025  # a phone that puts 50 times a second takes what can wait along in its own flushes

RETRY_S = 0.1  # after a turn that broke off

_log = logging.getLogger("aoabridge.relay")


class LinkHost(Protocol):
    """Where the bytes of a link go: USB phones and in-memory ones alike."""

    def ready(self, link: LinkId) -> bool:
        """True if no transfer is under way."""
        ...

    def offer(self, link: LinkId, data: bytes) -> bool:
        """Start one transfer; its result comes as an ``Accepted`` event."""
        ...


class Spy(Protocol):
    """Sees what passes, and changes nothing: live views and the recorder."""

    @property
    def wants_values(self) -> bool:
        """True while values are of interest."""
        ...

    @property
    def wants_chunks(self) -> bool:
        """True while a phone's bytes are of interest."""
        ...

    def value(self, topic: str, type_: str, value: NtValue, now: float) -> None:
        """A topic has a new value."""

    def chunk(self, device: str, direction: str, data: bytes, now: float) -> None:
        """Bytes of a phone passed, ``rx`` from it or ``tx`` to it."""


class Relay:
    """Owns the core and the NetworkTables client; hosts report links, sources publish through it."""

    def __init__(self, core: BridgeCore, nt: NtClient, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.core = core
        self.nt = nt
        self.clock_sync = ClockSync(0, 0, valid=False)
        self.connected_at: float | None = None
        self.losses = 0
        self.lost_at: float | None = None
        self.stirred = 0
        """Grows with everything that happens outside; not with time, nor with what the bridge says of itself."""
        self.on_turn: Callable[[float], None] | None = None
        self.spies: list[Spy] = []
        self.watch: Callable[[Sequence[NtEvent], float], None] | None = None
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._hosts: dict[LinkId, LinkHost] = {}
        self._scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._due = float("inf")  # when the timer goes off
        self._closed = False

    def wake(self) -> None:
        """Ask for a turn, from any thread."""
        try:
            self._loop.call_soon_threadsafe(self.turn_soon)
        except RuntimeError:
            _log.debug("woken after the loop was closed")

    def turn_soon(self) -> None:
        """Ask for a turn once what is under way on the loop is done."""
        if not self._scheduled and not self._closed:
            self._scheduled = True
            self._loop.call_soon(self._turn)

    def stir(self) -> None:
        """Something else has happened that may be shown: ask for a turn."""
        self.stirred += 1
        self.turn_soon()

    def turn_now(self) -> None:
        """Do at once what a turn would do."""
        self._turn()

    def close(self) -> None:
        """No more turns."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    # Links.

    def link_up(self, host: LinkHost, link: LinkId, info: LinkInfo) -> None:
        """A host has claimed a phone."""
        self._hosts[link] = host
        self.core.on_link_up(link, info, self._clock())
        self.stir()

    def link_event(self, link: LinkId, event: PumpEvent) -> None:
        """What the pump of a link saw, in order."""
        with _GoingOn(f"event of link {link} dropped"):
            self._LINK_EVENTS[type(event)](self, link, event)
        self.turn_soon()

    def link_down(self, link: LinkId) -> None:
        """The link is over, for whatever reason."""
        if self._hosts.pop(link, None) is not None:
            self.core.on_link_down(link, self._clock())
            self.stir()

    def link_farewell(self, link: LinkId) -> bytes:
        """The next transfer of an orderly end, b"" when all is said."""
        now = self._clock()
        self.core.close_link(link, now)
        self.turn_soon()
        if self.core.links[link].blocked_since is not None:
            return b""  # the app does not read: there is nobody to tell
        return self.core.take_bytes(link, now)

    def _on_chunk(self, link: LinkId, event: Chunk) -> None:
        try:
            age_s = self._clock() - event.t
            self.core.on_link_bytes(link, event.data, event.t, age_s=age_s, pause_s=event.pause_s)
        except BaseException:
            # Nobody knows how much of it was used: its neighbours must not be joined to a line that nobody said.
            self.core.on_link_resync(link, event.t)
            raise
        self._show_chunk(link, "rx", event.data, event.t)

    def _on_idle(self, link: LinkId, event: Idle) -> None:
        self.core.on_link_idle(link, event.t)

    def _on_resync(self, link: LinkId, event: Resync) -> None:
        self.core.on_link_resync(link, event.t)

    def _on_accepted(self, link: LinkId, event: Accepted) -> None:
        self.core.on_bytes_accepted(link, event.count, event.t, error=event.error)

    def _on_ended(self, link: LinkId, event: Ended) -> None:
        del link, event  # the host ends the link

    _LINK_EVENTS: Final[dict[type[PumpEvent], Callable[..., None]]] = {
        Chunk: _on_chunk,
        Idle: _on_idle,
        Resync: _on_resync,
        Accepted: _on_accepted,
        Ended: _on_ended,
    }

    # NetworkTables.

    def publish(self, items: Sequence[Publication | Withdrawal], *, urgent: bool = True, steady: bool = False) -> None:
        """Publish values of the bridge itself, to NetworkTables and to the phones; ``steady`` as in ``NtClient``."""
        if items:
            now = self._clock()
            if urgent:
                self.nt.publish(items, steady=steady)
            else:
                self.nt.publish(items, now + PATIENCE_S)
            self.core.on_publications(items, now, self._time_us(now))
            self._show_publications(items, now)
            if not urgent or self._hosts or self._scheduled or self._closed:
                self.turn_soon()
            else:
                self._set_now(now)

    def _set_now(self, now: float) -> None:
        """Without a phone nobody but NetworkTables has to do with what is published: no turn for that."""
        with _GoingOn("values of the bridge not set"):
            again = self.nt.turn(now)
            if again is not None and again < self._due:
                self._sleep_until(again, now)

    def _show_publications(self, items: Iterable[Publication | Withdrawal], now: float) -> None:
        for spy in self._watching():
            for item in items:
                if isinstance(item, Publication):
                    spy.value(item.topic, item.type, item.value, now)

    def _show_puts(self, results: Iterable[PutResult], now: float) -> None:
        for spy in self._watching():
            for put in (result.put for result in results if result.accepted):
                if put.value is not None:
                    spy.value(put.topic, put.type, put.value, now)

    def _show_updates(self, updates: Iterable[Update], now: float) -> None:
        for spy in self._watching():
            for update in updates:
                topic = self.core.topics.find(update.topic)
                if topic is not None:
                    spy.value(update.topic, topic.type, update.value, now)

    def _watching(self) -> list[Spy]:
        return [spy for spy in self.spies if spy.wants_values]

    def _show_chunk(self, link: LinkId, direction: str, data: bytes, now: float) -> None:
        for spy in self.spies:
            if spy.wants_chunks:
                spy.chunk(self.core.links[link].info.name, direction, data, now)

    def _time_us(self, now: float) -> int:
        server_us = self.nt.server_now_us()
        return int(now * 1e6) if server_us is None else server_us

    def _feed(self, events: Iterable[NtEvent], now: float) -> None:
        for kind, run in groupby(events, key=type):
            with _GoingOn("events of NetworkTables dropped"):
                self._feed_run(kind, list(run), now)

    def _feed_run(self, kind: type[NtEvent], run: Sequence[NtEvent], now: float) -> None:
        self.stirred += kind is not ClockSync
        if kind is Update:
            updates = cast("Sequence[Update]", run)
            self.core.on_updates(updates, now)
            self._show_updates(updates, now)
        elif kind is Announced or kind is Unannounced:
            self.core.on_topics(cast("Sequence[Announced | Unannounced]", run), now)
        else:
            for event in run:
                self._on_connection(event, now)

    def _on_connection(self, event: NtEvent, now: float) -> None:
        if isinstance(event, ClockSync):
            self.clock_sync = event
        elif isinstance(event, Connected):
            _log.info("robot connected: %s", event.address)
            self.connected_at = now
            self.core.on_connection(event, now)
        elif isinstance(event, Disconnected):
            _log.warning("robot connection lost")
            self.connected_at = None
            self.losses += 1
            self.lost_at = now
            self.core.on_connection(event, now)

    # The turn.

    def _turn(self) -> None:
        self._scheduled = False
        if self._closed:
            return
        now = self._clock()
        due = now + RETRY_S
        with _GoingOn("turn of the relay broken off"):
            due = self._do_turn(now)
        self._sleep_until(due, now)

    def _do_turn(self, now: float) -> float:
        """Returns when the next turn is due."""
        core, nt = self.core, self.nt
        events = nt.take_events()
        self._feed(events, now)
        if self.watch is not None:
            with _GoingOn("events of NetworkTables kept from the sources"):
                self.watch(events, now)
        core.on_tick(now)
        again = self._send(now)
        results = nt.take_put_results()
        if results:
            core.on_put_results(results, now, self._time_us(now))
            self._show_puts(results, now)
        for link, host in self._hosts.items():
            with _GoingOn(f"transfer of link {link} dropped"):
                self._pump(link, host, now)
        for type_name, fault in core.fanout.take_schema_faults().items():
            _log.warning("schema of %s refused (%s): %s", type_name, fault.code, fault)
        for notice in core.take_notices():
            name = core.links[notice.link].info.name if notice.link in core.links else "phone"
            told = {"device": name, "repeat": f"line refused: {name}"}  # garbage seldom says the same thing twice
            _log.info("%s: line refused (%s): %s", name, notice.code, notice.text, extra=told)
        if self.on_turn is not None:
            self.on_turn(now)
        due = core.next_deadline(now)
        return due if again is None else min(due, again)

    def _send(self, now: float) -> float | None:
        """Hand the core's orders and own values to NetworkTables; returns when it wants to be called again."""
        items = self.core.take_publications()
        if items:
            self.nt.publish(items, now + PATIENCE_S)
            self.core.on_publications(items, now, self._time_us(now))
            self._show_publications(items, now)
        sampled = self.core.fanout.take_sampled()
        if sampled is not None:
            self.nt.set_every_sample(sorted(sampled))
        self.nt.offer_puts(self.core.take_puts())
        return self.nt.turn(now)

    def _pump(self, link: LinkId, host: LinkHost, now: float) -> None:
        if host.ready(link):
            data = self.core.take_bytes(link, now)
            if data and not host.offer(link, data):
                self.core.on_bytes_accepted(link, 0, now, error=True)
            if data:
                self._show_chunk(link, "tx", data, now)

    def _sleep_until(self, due: float, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        self._timer = self._loop.call_later(max(0.0, due - now), self.turn_soon)


class _GoingOn:
    """Around one part of the loop's work: its failure costs ``loss``, and nothing that comes behind it.

    A class, as a context manager from a generator costs several times as much at each of the parts of a turn.
    """

    __slots__ = ("_loss",)

    def __init__(self, loss: str) -> None:
        self._loss = loss

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, Exception) or isinstance(error, MemoryError):
            return False  # after a MemoryError anything may be half done: the process ends
        _log.error(self._loss, exc_info=error, extra={"repeat": self._loss})
        return True
