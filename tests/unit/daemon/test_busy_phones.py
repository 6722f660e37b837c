"""What an issue says of the program that keeps a phone."""

import asyncio
from collections.abc import Callable

import pytest

from aoabridge.daemon import busy_phones
from aoabridge.daemon.attach import AttachThreads
from aoabridge.daemon.busy_phones import BusyPhones
from aoabridge.errors import UsbError
from aoabridge.phone.aoa import UsbDevice


def device(port: str) -> UsbDevice:
    return UsbDevice(port=port, vendor=0x18D1, product=0x2D00, busnum=1, devnum=5)


def asked(find: Callable[[int, int], tuple[str, str]], monkeypatch: pytest.MonkeyPatch) -> BusyPhones:
    """After one answer about the phone on 1-1."""
    phones = BusyPhones()

    async def body() -> None:
        monkeypatch.setattr(busy_phones, "holder_of", find)
        threads = AttachThreads(asyncio.get_running_loop())
        phones.ask(device("1-1"), threads)
        phones.ask(None, threads)
        assert await threads.wait_idle(5.0) == []

    asyncio.run(body())
    return phones


def test_the_program_is_named_for_its_port_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    phones = asked(lambda bus, number: (f"adb {bus}/{number}", "adb.service"), monkeypatch)
    assert phones.of("1-1") == {"process": "adb 1/5", "unit": "adb.service"}
    assert phones.of("1-2") == {}


def test_a_program_that_does_not_show_itself_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    phones = asked(lambda _bus, _number: ("", ""), monkeypatch)
    assert phones.of("1-1") == {"process": "another program", "unit": "?"}


def test_a_search_that_fails_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_bus: int, _number: int) -> tuple[str, str]:
        raise UsbError("gone", errno=19, kind="NO_DEVICE", step="open", port="1-1")

    assert asked(fail, monkeypatch).of("1-1") == {}
