"""What the runners of the simulators share: their turn on the loop, addresses, and copies for a listener."""

import asyncio
import contextlib
import ipaddress
import time
from collections.abc import Callable

from aoabridge.adapters.udp import Address, DatagramSocket, StreamServer
from aoabridge.codecs.host_port import split_host_port
from aoabridge.errors import DecodeError

__all__ = ["Copies", "Turns", "address_of", "open_near", "own_host"]

RETRY_S = 0.5  # a listener of copies that is not there yet
IDLE_S = 1.0  # between turns when nothing is due


class Turns:
    """Calls ``turn(now)``, which returns when it wants to be called again: soon after input, and when due."""

    def __init__(self, turn: Callable[[float], float | None]) -> None:
        self._turn = turn
        self._loop = asyncio.get_running_loop()
        self._scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def soon(self) -> None:
        """Ask for a turn."""
        if not self._scheduled and not self._closed:
            self._scheduled = True
            self._loop.call_soon(self._run)

    def close(self) -> None:
        """No more turns."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _run(self) -> None:
        self._scheduled = False
        if self._closed:
            return
        now = time.monotonic()
        due = self._turn(now)
        if self._timer is not None:
            self._timer.cancel()
        wait_s = IDLE_S if due is None else max(0.0, due - time.monotonic())
        self._timer = self._loop.call_later(wait_s, self.soon)


def address_of(text: str | None, default: Address) -> Address:
    """An address as ``split_host_port`` reads it; what is missing comes from ``default``. DecodeError for a bad one."""
    return split_host_port(text, default[1]) if text else default


def own_host(target: str) -> str:
    """Where to listen for answers of a target: this machine alone, unless the target is another one."""
    try:
        is_near = target == "localhost" or ipaddress.ip_address(target).is_loopback
    except ValueError:
        is_near = False
    return "127.0.0.1" if is_near else "0.0.0.0"


def open_near(sock: DatagramSocket, host: str, port: int) -> Address:
    """Bind to this port, or to any if another program has it: both ends are ours and know each other."""
    try:
        return sock.open(host, port)
    except OSError:
        return sock.open(host, 0)


class Copies:
    """Unchanged copies of what is sent, by protocol id, for ``PROTO@HOST:PORT`` listeners."""

    def __init__(self, targets: list[str], protocols: tuple[str, ...]) -> None:
        """ValueError: no such protocol here, or no address."""
        self._datagrams: dict[str, list[Address]] = {}
        self._streams: dict[str, list[_StreamCopy]] = {}
        streams: list[tuple[str, Address]] = []
        for text in targets:
            protocol, _, target = text.partition("@")
            if protocol not in protocols:
                raise ValueError(f"{text!r}: this simulator sends {', '.join(protocols)}")
            try:
                address = split_host_port(target)
            except DecodeError as error:
                raise ValueError(f"{text!r} is not PROTO@HOST:PORT") from error
            if protocol.endswith("-udp"):
                self._datagrams.setdefault(protocol, []).append(address)
            else:
                streams.append((protocol, address))
        self._socket = DatagramSocket(lambda _data, _sender: None)
        self._socket.open("0.0.0.0", 0)
        for protocol, address in streams:
            self._streams.setdefault(protocol, []).append(_StreamCopy(address))

    def datagram(self, protocol: str, data: bytes) -> None:
        """One datagram was sent."""
        for address in self._datagrams.get(protocol, ()):
            self._socket.send(data, address)

    def stream(self, protocol: str, data: bytes) -> None:
        """Bytes were written to a connection."""
        for copy in self._streams.get(protocol, ()):
            copy.write(data)

    async def close(self) -> None:
        """End all."""
        self._socket.close()
        for copies in self._streams.values():
            for copy in copies:
                await copy.close()


class _StreamCopy:
    """One connection to a listener, made anew when it ends; what is said while nobody listens is lost."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._server = StreamServer(lambda _number, _peer: None, lambda _number, _data: None)
        self._task = asyncio.get_running_loop().create_task(self._keep())

    def write(self, data: bytes) -> None:
        self._server.send(data)

    async def _keep(self) -> None:
        while True:
            if not self._server.peers:
                with contextlib.suppress(OSError):
                    await self._server.connect(*self._address)
            await asyncio.sleep(RETRY_S)

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._server.close()
