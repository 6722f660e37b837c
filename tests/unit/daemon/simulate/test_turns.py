"""Addresses, copies and turns of the simulators' runners."""

import asyncio
import itertools
import socket
import time

import pytest

from aoabridge.daemon.simulate.turns import Copies, Turns, address_of, own_host

DEFAULT = ("127.0.0.1", 1121)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, DEFAULT),
        ("", DEFAULT),
        ("localhost", ("localhost", 1121)),
        ("127.0.0.2:7", ("127.0.0.2", 7)),
        ("[::1]:7", ("::1", 7)),
        ("[::1]", ("::1", 1121)),
        ("::1", ("::1", 1121)),
    ],
)
def test_addresses(text: str | None, expected: tuple[str, int]) -> None:
    assert address_of(text, DEFAULT) == expected


@pytest.mark.parametrize("text", ["x:", "x:0", "x:65536", "x:y"])
def test_no_port(text: str) -> None:
    if text == "x:":
        assert address_of(text, DEFAULT) == ("x", 1121)
        return
    with pytest.raises(ValueError, match="is no port"):
        address_of(text, DEFAULT)


def test_answers_of_this_machine_are_taken_on_this_machine_only() -> None:
    assert [own_host(host) for host in ("127.0.0.1", "localhost", "::1")] == ["127.0.0.1"] * 3
    assert [own_host(host) for host in ("10.0.0.1", "robot.local")] == ["0.0.0.0"] * 2


def test_copies_of_datagrams_and_streams() -> None:
    async def run() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink, socket.create_server(("127.0.0.1", 0)) as server:
            sink.bind(("127.0.0.1", 0))
            targets = [f"a-udp@127.0.0.1:{sink.getsockname()[1]}", f"a-tcp@127.0.0.1:{server.getsockname()[1]}"]
            copies = Copies(targets, ("a-udp", "a-tcp", "b-udp"))
            loop = asyncio.get_running_loop()
            connection, _ = await loop.run_in_executor(None, server.accept)
            await asyncio.sleep(0.05)  # our end of the connection learns of it in a turn of its own
            copies.datagram("b-udp", b"not this")
            copies.datagram("a-udp", b"this")
            copies.stream("a-tcp", b"bytes")
            assert await loop.run_in_executor(None, sink.recv, 100) == b"this"
            assert await loop.run_in_executor(None, connection.recv, 100) == b"bytes"
            await copies.close()
            connection.close()

    asyncio.run(run())


@pytest.mark.parametrize("target", ["c-udp@127.0.0.1:1", "a-udp", "a-udp@127.0.0.1", "a-udp@:5"])
def test_copies_that_cannot_be(target: str) -> None:
    async def run() -> None:
        with pytest.raises(ValueError, match="udp"):
            Copies([target], ("a-udp",))

    asyncio.run(run())


def test_turns_come_soon_and_when_due() -> None:
    async def run() -> list[float]:
        taken: list[float] = []

        def turn(now: float) -> float:
            taken.append(now)
            return now + 0.02

        turns = Turns(turn)
        turns.soon()
        turns.soon()
        begin = time.monotonic()
        while len(taken) < 4 and time.monotonic() < begin + 5:
            await asyncio.sleep(0.005)
        turns.close()
        count = len(taken)
        await asyncio.sleep(0.05)
        assert len(taken) == count
        return taken

    taken = asyncio.run(run())
    assert all(b - a >= 0.019 for a, b in itertools.pairwise(taken))
