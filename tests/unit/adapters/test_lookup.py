"""Names are looked up beside the loop."""

import asyncio
import socket
import threading
from typing import Any

import pytest

from aoabridge.adapters.lookup import look_up


def test_the_loop_goes_on_while_a_name_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = threading.Event()

    def slow(host: str, port: int, **_more: Any) -> list[Any]:
        assert answer.wait(5)
        return [(socket.AF_INET, socket.SOCK_DGRAM, 17, "", ("10.0.0.7", port))]

    monkeypatch.setattr(socket, "getaddrinfo", slow)

    async def run() -> None:
        looking = asyncio.create_task(look_up("robot.local", 99))
        await asyncio.sleep(0)
        assert not looking.done()
        answer.set()
        assert await asyncio.wait_for(looking, 5) == [("10.0.0.7", 99)]

    asyncio.run(run())


@pytest.mark.parametrize("host", ["10.0.0.2", "::1", "fe80::1%lo"])
def test_a_number_is_never_looked_up(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "getaddrinfo")
    assert asyncio.run(look_up(host, 5)) == [(host, 5)]


def test_every_address_is_told_once_and_those_of_ipv4_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of a robot listen on IPv4, and many a host file names ::1 first."""
    found: list[tuple[socket.AddressFamily, tuple[Any, ...]]] = [
        (socket.AF_INET6, ("::1", 5, 0, 0)),
        (socket.AF_INET, ("127.0.0.1", 5)),
        (socket.AF_INET6, ("::1", 5, 0, 0)),
    ]
    answer = [(family, socket.SOCK_DGRAM, 17, "", name) for family, name in found]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_arguments, **_more: answer)
    assert asyncio.run(look_up("localhost", 5)) == [("127.0.0.1", 5), ("::1", 5)]


@pytest.mark.parametrize("host", ["nowhere.invalid", "x" * 70, "a..b"])
def test_a_name_that_has_no_address(host: str) -> None:
    with pytest.raises(OSError, match=r".+"):
        asyncio.run(look_up(host, 5))


def test_an_answer_after_the_end_of_the_loop_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    answer, asked = threading.Event(), threading.Event()

    def slow(host: str, port: int, **_more: Any) -> list[Any]:
        asked.set()
        assert answer.wait(5)
        raise OSError("no such host")

    monkeypatch.setattr(socket, "getaddrinfo", slow)

    async def run() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(look_up("robot.local", 99), 0.01)

    asyncio.run(run())
    assert asked.is_set()
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "look-up:robot.local"]
    answer.set()
    thread.join(5)
    assert not thread.is_alive()
