"""Datagram sockets and TCP streams on the event loop, for sources and simulators.

A wake-up reads a bounded batch: a flood costs a bounded share of the loop, the kernel drops the rest.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from typing import TypeAlias

__all__ = ["Address", "DatagramSocket", "StreamServer"]

Address: TypeAlias = tuple[str, int]
Received: TypeAlias = Callable[[bytes, Address], None]

MAX_DATAGRAM = 65_535
BATCH = 128  # about 1 ms of decoding, then the relay has its turn
CROWDED_S = 0.010  # wake-ups closer than that read on; asking for a datagram that is not there costs an exception
MAX_LONE = 3  # wake-ups in a row that do not ask for more: a loop that turns slowly would fall behind for ever
RECEIVE_BUFFER_BYTES = 256 * 1024  # a burst while the loop is busy; older than that is stale anyway

log = logging.getLogger(__name__)


class DatagramSocket:
    """One UDP socket; ``received`` is called on the loop for each datagram."""

    def __init__(self, received: Received) -> None:
        self._received = received
        self._loop = asyncio.get_running_loop()
        self._socket: socket.socket | None = None
        self._connected = False
        self._read_at = float("-inf")
        self._lone = 0  # wake-ups since one asked for more, MAX_LONE if that was not in vain
        self.send_errors = 0

    def open(self, bind: str, port: int, peer: Address | None = None) -> Address:
        """Bind, and with ``peer`` connect, so that the kernel drops every other sender. OSError if it cannot."""
        family = socket.AF_INET6 if ":" in bind else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_DGRAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
            sock.bind((bind, port))
            if peer is not None:
                sock.connect(peer)
        except OSError:
            sock.close()
            raise
        self._socket, self._connected = sock, peer is not None
        self._loop.add_reader(sock, self._read)
        return _address(sock.getsockname())

    def send(self, data: bytes, target: Address) -> bool:
        """Send one datagram, to the peer if there is one.

        False: a full buffer or an unreachable target cost the datagram; counted in ``send_errors``.
        """
        if self._socket is None:
            return False
        try:
            if self._connected:
                self._socket.send(data)
            else:
                self._socket.sendto(data, target)
        except OSError:
            self.send_errors += 1
            return False
        return True

    def close(self) -> None:
        """Close the socket. Idempotent."""
        sock, self._socket = self._socket, None
        if sock is not None:
            self._loop.remove_reader(sock)
            sock.close()

    def _read(self) -> None:
        now = self._loop.time()
        asks = now < self._read_at + CROWDED_S or self._lone >= MAX_LONE
        self._read_at, self._lone = now, 0 if asks else self._lone + 1
        for before in range(BATCH if asks else 1):
            if self._socket is None:
                return
            try:
                data, sender = self._socket.recvfrom(MAX_DATAGRAM)
            except BlockingIOError:
                return
            except OSError:  # the answer to an earlier send, such as "port unreachable"
                continue
            if before:
                self._lone = MAX_LONE
            self._received(data, _address(sender))


def _address(name: tuple[str | int, ...]) -> Address:
    return str(name[0]), int(name[1])


class _Stream(asyncio.Protocol):
    """One TCP connection, reported under its number."""

    def __init__(self, owner: "StreamServer") -> None:
        self._owner = owner
        self.number = 0
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admit the connection, or end it at once."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        peer = transport.get_extra_info("peername")
        self._owner._began(self, _address(peer) if peer else ("", 0))

    def data_received(self, data: bytes) -> None:
        """Pass bytes on, in any chunking."""
        if self.number:
            self._owner._bytes(self.number, data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is over, from either side."""
        del exc
        if self.number:
            self._owner._ended(self.number)


class StreamServer:
    """TCP connections of one endpoint, accepted or made.

    ``connected(number, peer)`` says that one began, with peer None that it ended; ``received(number, data)`` passes
    bytes. At most ``max_peers`` at once.
    """

    def __init__(
        self,
        connected: Callable[[int, Address | None], None],
        received: Callable[[int, bytes], None],
        *,
        max_peers: int = 8,
    ) -> None:
        self._connected = connected
        self._received = received
        self._max_peers = max_peers
        self._streams: dict[int, _Stream] = {}
        self._server: asyncio.Server | None = None
        self._number = 0

    async def listen(self, bind: str, port: int) -> Address:
        """Accept connections; OSError if the port cannot be had."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Stream(self), bind, port)
        return _address(self._server.sockets[0].getsockname())

    async def connect(self, host: str, port: int) -> None:
        """Make one connection; OSError if nobody answers."""
        await asyncio.get_running_loop().create_connection(lambda: _Stream(self), host, port)

    def send(self, data: bytes) -> None:
        """Write to every open connection."""
        for stream in self._streams.values():
            if stream.transport is not None:
                stream.transport.write(data)

    def send_to(self, number: int, data: bytes) -> None:
        """Write to one connection; one that has ended takes nothing."""
        stream = self._streams.get(number)
        if stream is not None and stream.transport is not None:
            stream.transport.write(data)

    @property
    def peers(self) -> int:
        """Open connections."""
        return len(self._streams)

    def close_connection(self, number: int) -> None:
        """End one connection."""
        stream = self._streams.get(number)
        if stream is not None and stream.transport is not None:
            stream.transport.close()

    def close_all(self) -> None:
        """End every connection; the endpoint stays."""
        for number in list(self._streams):
            self.close_connection(number)

    async def close(self) -> None:
        """End everything."""
        if self._server is not None:
            self._server.close()
        for stream in list(self._streams.values()):
            if stream.transport is not None:
                stream.transport.abort()
        if self._server is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._server.wait_closed(), 0.5)

    def _began(self, stream: _Stream, peer: Address) -> None:
        if len(self._streams) >= self._max_peers and stream.transport is not None:
            log.warning("%s refused: %d connections are open", peer[0], self._max_peers)
            stream.transport.abort()
            return
        self._number += 1
        stream.number = self._number
        self._streams[stream.number] = stream
        self._connected(stream.number, peer)

    def _bytes(self, number: int, data: bytes) -> None:
        self._received(number, data)

    def _ended(self, number: int) -> None:
        self._streams.pop(number, None)
        self._connected(number, None)
