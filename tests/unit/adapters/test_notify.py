"""The service manager's protocol, against a socket of our own."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from aoabridge.adapters.notify import Notifier


class Manager:
    """Receives what a service manager would."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.socket.setblocking(False)

    def said(self) -> list[str]:
        found = []
        while True:
            try:
                found.append(self.socket.recv(4096).decode())
            except BlockingIOError:
                return found


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    found = Manager(tmp_path / "notify")
    yield found
    found.socket.close()


def test_each_message_is_one_datagram_of_the_protocol(manager: Manager, tmp_path: Path) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": str(tmp_path / "notify")})
    notifier.status("1 phone flowing,\nrobot connected", 0.0)
    notifier.ready()
    notifier.alive()
    notifier.reloading(123456)
    notifier.ready()
    notifier.stopping()
    assert manager.said() == [
        "STATUS=1 phone flowing, robot connected",
        "READY=1",
        "WATCHDOG=1",
        "RELOADING=1\nMONOTONIC_USEC=123456",
        "READY=1",
        "STOPPING=1",
    ]
    notifier.close()
    notifier.ready()
    assert manager.said() == []


def test_the_status_is_sent_on_change_and_at_most_once_per_second(manager: Manager, tmp_path: Path) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": str(tmp_path / "notify")})
    for now, text in ((0.0, "a"), (0.2, "b"), (0.4, "c"), (0.6, "c")):
        notifier.status(text, now)
    assert manager.said() == ["STATUS=a"]
    notifier.on_tick(1.0)
    notifier.on_tick(5.0)
    assert manager.said() == ["STATUS=c"]
    notifier.close()


def test_an_abstract_address_is_reached() -> None:
    name = f"aoabridge-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind("\0" + name)
        receiver.settimeout(5)
        notifier = Notifier({"NOTIFY_SOCKET": "@" + name})
        notifier.ready()
        assert receiver.recv(100) == b"READY=1"
        notifier.close()


def test_a_manager_that_never_reads_or_is_gone_stops_nobody(manager: Manager, tmp_path: Path) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": str(tmp_path / "notify")})
    for _ in range(1000):
        notifier.alive()
    manager.socket.close()
    notifier.alive()
    notifier.close()


@pytest.mark.parametrize(
    ("environment", "interval"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "15000000"}, 7.5),
        ({"WATCHDOG_USEC": "15000000", "WATCHDOG_PID": str(os.getpid())}, 7.5),
        ({"WATCHDOG_USEC": "15000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_the_watchdog_wants_a_sign_at_half_its_patience(environment: dict[str, str], interval: float | None) -> None:
    notifier = Notifier(environment)
    assert notifier.watchdog_s == interval
    notifier.ready()
