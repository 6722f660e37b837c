"""Datagram sockets and streams on a real loop and the loopback network."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from aoabridge.adapters import udp
from aoabridge.adapters.udp import Address, DatagramSocket, StreamServer

OWN = "127.0.0.1"


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.005)


def plain() -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((OWN, 0))
    return sock


def test_datagrams_come_with_their_sender_and_answers_go_back() -> None:
    async def run() -> None:
        got: list[tuple[bytes, Address]] = []
        sock = DatagramSocket(lambda data, sender: got.append((data, sender)))
        address = sock.open(OWN, 0)
        with plain() as other:
            for data in (b"", b"x", bytes(60_000)):
                other.sendto(data, address)
            await until(lambda: len(got) == 3)
            assert [data for data, _ in got] == [b"", b"x", bytes(60_000)]
            assert got[0][1] == other.getsockname()
            assert sock.send(b"answer", got[0][1])
            assert other.recv(100) == b"answer"
        sock.close()
        sock.close()
        assert not sock.send(b"late", address)

    asyncio.run(run())


def test_a_flood_leaves_the_loop_its_turns() -> None:
    async def run() -> None:
        turns: list[int] = []
        got = 0

        def received(_data: bytes, _sender: Address) -> None:
            nonlocal got
            got += 1

        sock = DatagramSocket(received)
        address = sock.open(OWN, 0)
        with plain() as other:
            for _ in range(400):
                other.sendto(b"x", address)
            while got < 300:  # the kernel may drop some
                await asyncio.sleep(0)
                turns.append(got)
        sock.close()
        steps = [b - a for a, b in zip([0, *turns], turns, strict=False)]
        assert max(steps) <= udp.BATCH

    asyncio.run(run())


def test_a_lone_datagram_is_read_without_asking_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counted(socket.socket):
        asked = 0

        def recvfrom(self, size: int, flags: int = 0) -> tuple[bytes, Address]:
            type(self).asked += 1
            return super().recvfrom(size, flags)

    async def run() -> None:
        got: list[bytes] = []
        sock = DatagramSocket(lambda data, _: got.append(data))
        with plain() as other:
            monkeypatch.setattr("aoabridge.adapters.udp.socket.socket", Counted)
            address = sock.open(OWN, 0)
            for number in (1, 2, 3):
                other.sendto(b"x", address)
                await until(lambda number=number: len(got) == number)  # type: ignore[misc]
                await asyncio.sleep(2 * udp.CROWDED_S)
        sock.close()

    asyncio.run(run())
    assert Counted.asked == 3


@pytest.mark.parametrize("turn_s", [0.002, 1.5 * udp.CROWDED_S])
def test_a_loop_that_is_slow_does_not_fall_behind(turn_s: float) -> None:
    async def run() -> list[int]:
        got: list[bytes] = []
        behind: list[int] = []
        sock = DatagramSocket(lambda data, _: got.append(data))
        address = sock.open(OWN, 0)
        with plain() as other:
            for turn in range(1, 21):
                for _ in range(3):
                    other.sendto(b"x", address)
                time.sleep(turn_s)  # the turn of a busy bridge
                await asyncio.sleep(0)
                behind.append(3 * turn - len(got))
        sock.close()
        return behind

    behind = asyncio.run(run())
    assert max(behind[udp.MAX_LONE + 2 :]) <= 3, "those of the last turn, if the loop looks at its sockets after it"


def test_a_connected_socket_hears_its_peer_only_and_survives_its_absence() -> None:
    async def run() -> None:
        got: list[bytes] = []
        sock = DatagramSocket(lambda data, _: got.append(data))
        with plain() as peer, plain() as stranger:
            own = sock.open(OWN, 0, peer.getsockname())
            stranger.sendto(b"stranger", own)
            peer.sendto(b"peer", own)
            await until(lambda: got)
            sock.send(b"to the peer whatever is said", stranger.getsockname())
            assert peer.recv(100) == b"to the peer whatever is said"
            target = peer.getsockname()
        for _ in range(20):  # "port unreachable" comes back, to a send or to the reader
            sock.send(b"nobody there", target)
            await asyncio.sleep(0.001)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as again:
            again.bind(target)
            again.sendto(b"back", own)
            await until(lambda: len(got) == 2)
        assert got == [b"peer", b"back"]
        sock.close()

    asyncio.run(run())


def test_a_taken_port_is_an_error() -> None:
    async def run() -> None:
        with plain() as other, pytest.raises(OSError):
            DatagramSocket(lambda _data, _sender: None).open(OWN, other.getsockname()[1])

    asyncio.run(run())


class Ends:
    """A server and what it saw."""

    def __init__(self, max_peers: int) -> None:
        self.open: dict[int, Address] = {}
        self.data: dict[int, bytes] = {}
        self.server = StreamServer(self._connected, self._received, max_peers=max_peers)

    def _connected(self, number: int, peer: Address | None) -> None:
        if peer is None:
            del self.open[number]
        else:
            self.open[number] = peer

    def _received(self, number: int, data: bytes) -> None:
        self.data[number] = self.data.get(number, b"") + data


@asynccontextmanager
async def serving(max_peers: int = 8) -> AsyncIterator[tuple[Ends, Address]]:
    ends = Ends(max_peers)
    address = await ends.server.listen(OWN, 0)
    yield ends, address
    await ends.server.close()


def test_streams_by_number() -> None:
    async def run() -> None:
        async with serving() as (ends, address):
            first, second = socket.create_connection(address), socket.create_connection(address)
            with first, second:
                await until(lambda: len(ends.open) == 2)
                first.sendall(b"one")
                second.sendall(b"two")
                await until(lambda: sorted(ends.data.values()) == [b"one", b"two"])
                number = next(key for key, data in ends.data.items() if data == b"two")
                ends.server.send_to(number, b"for two")
                ends.server.send_to(99, b"for nobody")
                ends.server.send(b" and all")
                await asyncio.sleep(0)
                assert second.recv(100) == b"for two and all"
                assert first.recv(100) == b" and all"
                ends.server.close_connection(number)
                await until(lambda: len(ends.open) == 1)
                assert second.recv(100) == b""
                ends.server.close_all()
                await until(lambda: not ends.open)

    asyncio.run(run())


def test_more_peers_than_allowed_are_turned_away() -> None:
    async def run() -> None:
        async with serving(max_peers=1) as (ends, address):
            with socket.create_connection(address) as first:
                await until(lambda: ends.open)
                with socket.create_connection(address) as second:
                    second.settimeout(5)
                    await asyncio.get_running_loop().run_in_executor(None, _ended, second)
                assert ends.server.peers == 1
                first.sendall(b"x")
                await until(lambda: list(ends.data.values()) == [b"x"])

    asyncio.run(run())


def _ended(sock: socket.socket) -> None:
    with suppress(ConnectionResetError):
        assert sock.recv(1) == b""


def test_a_connection_that_is_made() -> None:
    async def run() -> None:
        async with serving() as (ends, address):
            client = Ends(8)
            await client.server.connect(*address)
            await until(lambda: ends.open and client.open)
            client.server.send(b"hello")
            await until(lambda: list(ends.data.values()) == [b"hello"])
            await client.server.close()
            await until(lambda: not ends.open)
        with pytest.raises(OSError):
            await client.server.connect(*address)

    asyncio.run(run())
