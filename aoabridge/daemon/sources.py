"""Runs the configured sources: their sockets, their time, and what they publish."""

import asyncio
import contextlib
import errno
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat
from math import inf
from pathlib import Path
from typing import Final, NamedTuple

from aoabridge.adapters.holders import port_holder
from aoabridge.adapters.lookup import look_up
from aoabridge.adapters.udp import Address, DatagramSocket, StreamServer
from aoabridge.config import Config
from aoabridge.daemon.relay import Relay
from aoabridge.daemon.table_watch import TableWatch
from aoabridge.errors import DecodeError
from aoabridge.sources.base import Endpoint, Source
from aoabridge.sources.frc import FrcSettings, FrcSource, Replay
from aoabridge.sources.table import SOURCES
from aoabridge.values import NtEvent

__all__ = ["BindFailure", "SourceHost", "source_hosts"]

RECONNECT_S: Final = (1.0, 2.0)  # a TCP peer that is not there yet; then every REOPEN_S
REOPEN_S = 5.0  # a port that another program holds
# Of a source that answers nobody: the two directions of a 50 Hz link share one turn and one flush (a second flush waits
# 5 ms anyway), and what is due by time alone goes with the next of their datagrams.
GATHER_S = 0.003
SLACK_S = 0.050
EARLY_S = 0.001  # a timer may go off that much before its time
DEFECT_PAUSE_S = 1.0  # after a turn that broke off

log = logging.getLogger("aoabridge.sources")


def source_hosts(config: Config, relay: Relay, clock: Callable[[], float]) -> list["SourceHost"]:
    """One host per enabled source; a driver station source may watch tables and play a capture."""
    hosts = []
    for kind in SOURCES:
        for settings in getattr(config.sources, kind.key):
            if settings.enabled:
                source = kind.source(settings, config.name)
                host = SourceHost(f"{kind.key}:{settings.name}", source, relay, clock=clock)
                if isinstance(source, FrcSource) and isinstance(settings, FrcSettings):
                    host.watch_tables(source)
                    if settings.replay:
                        host.capture = _Capture(source, settings)
                    else:
                        host.gather_s, host.slack_s = GATHER_S, SLACK_S
                hosts.append(host)
    watching = [host for host in hosts if host.watches]
    if watching:
        relay.watch = lambda events, now: _watch(watching, events, now)
    return hosts


def _watch(hosts: Sequence["SourceHost"], events: Sequence[NtEvent], now: float) -> None:
    for host in hosts:
        host.on_events(events, now)


class _Capture:
    """The capture file that a source is fed from instead of sockets."""

    def __init__(self, source: FrcSource, settings: FrcSettings) -> None:
        self._source = source
        self._settings = settings
        self._replay: Replay | None = None

    async def open(self) -> None:
        """Read the file; OSError or DecodeError says why it cannot be played."""
        settings = self._settings
        data = await asyncio.to_thread(Path(settings.replay).read_bytes)
        self._replay = Replay(data, self._source, speed=settings.replay_speed, loop=settings.replay_loop)

    def step(self, now: float) -> float | None:
        """Play what is due; returns when more is."""
        if self._replay is None:
            return None
        self._replay.step(now)
        return self._replay.next_deadline(now)


class BindFailure(NamedTuple):
    """Why an endpoint cannot be had; ``holder``: the program that has its port, "" if none shows."""

    text: str
    holder: str = ""


class SourceHost:
    """One source with its endpoints, on the loop's thread."""

    def __init__(self, name: str, source: Source, relay: Relay, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self.source = source
        self.bind_failures: dict[str, BindFailure] = {}
        self._relay = relay
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._sockets: dict[str, DatagramSocket] = {}
        self._streams: dict[str, StreamServer] = {}
        self._peers: dict[str, Address] = {}  # numeric: a name in a send would be looked up there and then
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = inf  # when the timer goes off: never later than the turn that is due
        self._due_at = inf  # when a turn is due by time alone
        self._turned_at = -inf
        self._tasks: list[asyncio.Task[None]] = []
        self._scheduled = False
        self._stopped = False
        self._heard: set[str] = set()  # endpoints with datagrams since the last turn
        self._expected: set[str] = set()  # those of the last turn that had any
        self._gathering: asyncio.TimerHandle | None = None
        self._watch: TableWatch | None = None
        self.capture: _Capture | None = None
        self.gather_s = 0.0  # how long a datagram may wait for others
        self.slack_s = 0.0  # how long what is due by time may wait for a datagram

    @property
    def watches(self) -> bool:
        """Whether it wants to know what NetworkTables says."""
        return self._watch is not None

    def watch_tables(self, source: FrcSource) -> None:
        """Tell the source who else publishes below the tables that it is to write."""
        if source.tables:
            self._watch = TableWatch(
                source.tables, lambda table, owned: source.on_table_owner(table, owned, self._clock())
            )

    def on_events(self, events: Sequence[NtEvent], now: float) -> None:
        """Take what NetworkTables says."""
        if self._watch is not None and events:
            self._watch.on_events(events, now)
            self._turn_soon()

    async def start(self) -> None:
        """Open every endpoint; one that cannot be had is an issue, and tried again."""
        if self.capture is not None:
            try:
                await self.capture.open()
            except (OSError, DecodeError) as error:
                log.error("%s: %s", self.name, error)
                self.bind_failures["replay"] = BindFailure(f"capture: {error}")
        for endpoint in self.source.endpoints():
            others = endpoint.direction != "listen"  # looking them up or reaching them may take long
            if others or not await self._open(endpoint):
                self._tasks.append(self._loop.create_task(self._keep_open(endpoint, at_once=others)))
        self._turn()

    async def stop(self) -> None:
        """Let the source end what it began, then close every endpoint; what was published goes with the client."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._timer is not None:
            self._timer.cancel()
        self._stopped = True
        now = self._clock()
        self.source.close(now)
        self._send(now)
        for sock in self._sockets.values():
            sock.close()
        for stream in self._streams.values():
            await stream.close()

    async def _open(self, endpoint: Endpoint) -> bool:
        key = endpoint.key
        try:
            address = await (self._open_udp(endpoint) if endpoint.kind == "udp" else self._open_tcp(endpoint))
        except OSError as error:
            self.source.on_endpoint(key, None, self._clock())
            if endpoint.direction != "connect" and key not in self.bind_failures:
                taken = error.errno == errno.EADDRINUSE
                text = f"{endpoint.host or f'port {endpoint.port}'}: {'in use' if taken else error}"
                log.warning("%s: %s", self.name, text)
                holder = await asyncio.to_thread(port_holder, endpoint.port, endpoint.kind) if taken else ""
                self.bind_failures[key] = BindFailure(text, holder)
            return False
        self.bind_failures.pop(key, None)
        self.source.on_endpoint(key, address, self._clock())
        self._turn_soon()
        return True

    async def _open_udp(self, endpoint: Endpoint) -> Address:
        key = endpoint.key
        sock = DatagramSocket(lambda data, sender: self._on_datagram(key, data, sender))
        if endpoint.direction == "listen":
            address = sock.open(endpoint.bind, endpoint.port)
        else:
            peer = (await look_up(endpoint.host, endpoint.port))[0]
            any_address = "::" if ":" in peer[0] else "0.0.0.0"
            address = sock.open(any_address, 0, peer if endpoint.direction == "connect" else None)
            self._peers[key] = peer
        self._sockets[key] = sock
        return address

    async def _open_tcp(self, endpoint: Endpoint) -> Address:
        key = endpoint.key
        stream = StreamServer(
            lambda number, peer: self._on_connection(key, number, peer),
            lambda number, data: self._on_stream(key, number, data),
            max_peers=endpoint.max_peers,
        )
        if endpoint.direction == "listen":
            address = await stream.listen(endpoint.bind, endpoint.port)
        else:
            await _connect(stream, endpoint)
            address = (endpoint.host, endpoint.port)
        self._streams[key] = stream
        return address

    async def _keep_open(self, endpoint: Endpoint, *, at_once: bool) -> None:
        """Try until the endpoint is open; a TCP connection of ours is made anew when it was lost."""
        connects = (endpoint.kind, endpoint.direction) == ("tcp", "connect")
        waits = chain((0.0,), _waits(connects)) if at_once else _waits(connects)
        while True:
            await asyncio.sleep(next(waits))
            stream = self._streams.get(endpoint.key)
            if stream is not None and stream.peers:
                waits = _waits(connects)
            elif await self._open(endpoint) and not connects:
                return

    def _on_datagram(self, key: str, data: bytes, sender: Address) -> None:
        now = self._clock()
        self.source.on_datagram(key, data, sender, now)
        if self.gather_s:
            self._gather(key, now)
        else:
            self._turn_soon()

    def _gather(self, key: str, now: float) -> None:
        """Have a turn as soon as everything is there that came before the last one, or has not come for too long.

        At once, unless datagrams come so densely that more of them may wait to be read.
        """
        self._heard.add(key)
        if self._heard >= self._expected:
            if now >= self._turned_at + self.gather_s:
                self._turn()
            else:
                self._turn_soon()
        elif self._gathering is None:
            self._gathering = self._loop.call_later(self.gather_s, self._turn_soon)

    def _on_stream(self, key: str, number: int, data: bytes) -> None:
        self.source.on_stream(key, number, data, self._clock())
        self._turn_soon()

    def _on_connection(self, key: str, number: int, peer: Address | None) -> None:
        self.source.on_connection(key, number, peer, self._clock())
        self._turn_soon()

    def _turn_soon(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._scheduled = False
        if self._stopped:
            return
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        if self._heard:
            self._expected, self._heard = self._heard, set()
        now = self._turned_at = self._clock()
        next_at: float | None = now + DEFECT_PAUSE_S
        try:
            next_at = self._do_turn(now)
        except MemoryError:
            raise  # what was said last may be wrong: the process ends
        except Exception:  # top of the loop: without its next alarm old values would stand for ever
            log.exception("%s: turn broken off", self.name, extra={"repeat": f"source-turn:{self.name}"})
        self._due_at = inf if next_at is None else max(now, next_at) + self.slack_s
        if self._due_at < self._timer_at:
            self._set_timer(now)

    def _set_timer(self, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = self._due_at
        self._timer = self._loop.call_later(self._due_at - now, self._on_timer)

    def _on_timer(self) -> None:
        """A turn that was put off since the timer was set costs it one more wake-up instead of one more timer each."""
        self._timer, self._timer_at = None, inf
        now = self._clock()
        if self._due_at <= now + EARLY_S:
            self._turn_soon()
        elif self._due_at < inf:
            self._set_timer(now)

    def _do_turn(self, now: float) -> float | None:
        """Returns when the next turn is due."""
        source = self.source
        due = [None if self.capture is None else self.capture.step(now)]
        source.on_tick(now)
        if self._watch is not None:
            self._watch.on_tick(now)
            due.append(self._watch.next_deadline(now))
        items = source.take_publications()
        if self._watch is not None:
            self._watch.on_publications(items)
        self._relay.publish(items, steady=self.gather_s > 0)
        self._send(now)
        due.append(source.next_deadline(now))
        return min((at for at in due if at is not None), default=None)

    def _send(self, now: float) -> None:
        for key, data, target in self.source.take_datagrams():
            if key in self._sockets:
                if not self._sockets[key].send(data, self._peers.get(key, target)):
                    self.source.on_send_failed(key, now)
            elif key in self._streams:
                self._streams[key].send(data)
        for key, number in self.source.take_closures():
            if key in self._streams:
                self._streams[key].close_connection(number)


async def _connect(stream: StreamServer, endpoint: Endpoint) -> None:
    """Connect to the first address that answers; OSError of the last if none does."""
    *others, last = await look_up(endpoint.host, endpoint.port)
    for address in others:
        with contextlib.suppress(OSError):
            await stream.connect(*address)
            return
    await stream.connect(*last)


def _waits(connects: bool) -> Iterator[float]:
    """Pauses before each attempt."""
    return chain(RECONNECT_S if connects else (), repeat(REOPEN_S))
