"""Runs the configured sources: their sockets, their time, and what they publish."""

import asyncio
import errno
import logging
import time
from collections.abc import Callable

from aoabridge.adapters.udp import Address, DatagramSocket, StreamServer
from aoabridge.daemon.relay import Relay
from aoabridge.sources.base import Endpoint, Source

__all__ = ["SourceHost"]

RECONNECT_S = 1.0  # a TCP peer that is not there yet
REOPEN_S = 10.0  # a port that another program holds

log = logging.getLogger("aoabridge.sources")


class SourceHost:
    """One source with its endpoints, on the loop's thread."""

    def __init__(self, name: str, source: Source, relay: Relay, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self.source = source
        self.bind_failures: dict[str, str] = {}
        self._relay = relay
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._sockets: dict[str, DatagramSocket] = {}
        self._streams: dict[str, StreamServer] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._scheduled = False

    async def start(self) -> None:
        """Open every endpoint; one that cannot be had is an issue, and tried again."""
        for endpoint in self.source.endpoints():
            if not await self._open(endpoint) or (endpoint.kind, endpoint.direction) == ("tcp", "connect"):
                self._tasks.append(self._loop.create_task(self._keep_open(endpoint)))
        self._turn()

    async def stop(self) -> None:
        """Close every endpoint; what was published goes with the client."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._timer is not None:
            self._timer.cancel()
        self._scheduled = True  # no further turn
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
                text = "in use" if error.errno == errno.EADDRINUSE else str(error)
                log.warning("%s: port %d: %s", self.name, endpoint.port, text)
                self.bind_failures[key] = f"port {endpoint.port}: {text}"
            return False
        self.bind_failures.pop(key, None)
        self.source.on_endpoint(key, address, self._clock())
        self._turn_soon()
        return True

    async def _open_udp(self, endpoint: Endpoint) -> Address:
        key = endpoint.key
        sock = DatagramSocket(lambda data, sender: self._on_datagram(key, data, sender))
        peer = (endpoint.host, endpoint.port) if endpoint.direction == "connect" else None
        address = sock.open(endpoint.bind, endpoint.port if endpoint.direction == "listen" else 0, peer)
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
            await stream.connect(endpoint.host, endpoint.port)
            address = (endpoint.host, endpoint.port)
        self._streams[key] = stream
        return address

    async def _keep_open(self, endpoint: Endpoint) -> None:
        """Try again until the endpoint is open; a TCP connection of ours is made anew when it was lost."""
        connects = (endpoint.kind, endpoint.direction) == ("tcp", "connect")
        while True:
            await asyncio.sleep(RECONNECT_S if connects else REOPEN_S)
            stream = self._streams.get(endpoint.key)
            if stream is None or not stream.peers:
                opened = await self._open(endpoint)
                if opened and not connects:
                    return

    def _on_datagram(self, key: str, data: bytes, sender: Address) -> None:
        self.source.on_datagram(key, data, sender, self._clock())
        self._turn_soon()

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
        now = self._clock()
        source = self.source
        source.on_tick(now)
        self._relay.publish(source.take_publications())
        for key, data, target in source.take_datagrams():
            if key in self._sockets:
                self._sockets[key].send(data, target)
            elif key in self._streams:
                self._streams[key].send(data)
        for key, number in source.take_closures():
            if key in self._streams:
                self._streams[key].close_connection(number)
        if self._timer is not None:
            self._timer.cancel()
        due = source.next_deadline(now)
        self._timer = None if due is None else self._loop.call_later(max(0.0, due - now), self._turn_soon)
