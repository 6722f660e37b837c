"""The loops beside the relay's own go on, whatever breaks in one round of them."""

import asyncio
import logging
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from aoabridge.adapters.nt import NtClient, NtSettings
from aoabridge.bridge.core import BridgeCore, CoreSettings
from aoabridge.config import default_config
from aoabridge.daemon.relay import Relay
from aoabridge.daemon.service import Bridge
from aoabridge.daemon.sources import SourceHost
from aoabridge.sources.frc import FrcSettings, FrcSource
from aoabridge.sources.settings import TeleopSettings
from aoabridge.sources.teleop import TeleopSource


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.01)


def fails_once(method: Callable[..., Any], calls: list[float]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        calls.append(arguments[-1])
        if len(calls) == 1:
            raise ValueError("a bug")
        return method(*arguments)

    return call


def test_a_look_that_breaks_off_feeds_the_watchdog_and_is_followed_by_another(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        bridge = Bridge(default_config(), None, relay_allowed=False, phones=None)
        looks: list[float] = []
        fed: list[float] = []
        bridge.observer.tick = fails_once(bridge.observer.tick, looks)  # type: ignore[method-assign]
        monkeypatch.setattr(bridge.surfaces, "feed_watchdog", fed.append)
        bridge._observe()
        assert fed == looks
        await until(lambda: len(looks) >= 2)
        await bridge.stop()

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    assert [record.message for record in caplog.records] == ["look at the bridge broken off"]


def test_a_turn_of_a_source_that_breaks_off_is_followed_by_another(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aoabridge.daemon.sources.DEFECT_PAUSE_S", 0.01)

    async def run() -> None:
        relay = Relay(BridgeCore(CoreSettings()), NtClient(NtSettings("test"), wake=lambda: None))
        source = FrcSource(FrcSettings(name="ds"), "pi")
        ticks: list[float] = []
        source.on_tick = fails_once(source.on_tick, ticks)  # type: ignore[method-assign]
        host = SourceHost("frc:ds", source, relay)
        host._turn()
        await until(lambda: len(ticks) >= 2)
        await host.stop()
        relay.close()

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    assert [record.message for record in caplog.records] == ["frc:ds: turn broken off"]


def test_a_source_starts_while_the_name_of_its_peer_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = threading.Event()
    lookups: list[str] = []

    def slow(host: str, port: int, **_more: Any) -> list[Any]:
        lookups.append(host)
        assert answer.wait(5)
        return [(socket.AF_INET, socket.SOCK_DGRAM, 17, "", ("127.0.0.1", port))]

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as screen:
        screen.bind(("127.0.0.1", 0))
        screen.settimeout(5)
        port = screen.getsockname()[1]

        async def run() -> None:
            monkeypatch.setattr(socket, "getaddrinfo", slow)
            relay = Relay(BridgeCore(CoreSettings()), NtClient(NtSettings("test"), wake=lambda: None))
            source = TeleopSource(TeleopSettings(name="cab", port=0, forward_ui=f"screen.local:{port}"), "pi")
            host = SourceHost("teleop:cab", source, relay)
            await asyncio.wait_for(host.start(), 2)
            assert not answer.is_set()
            answer.set()
            await until(lambda: "forward_ui" in host._sockets)
            monkeypatch.setattr(source, "take_datagrams", lambda: [("forward_ui", b"x", ("screen.local", port))])
            host._send(0.0)
            assert await asyncio.to_thread(screen.recv, 10) == b"x"
            await host.stop()
            relay.close()

        asyncio.run(run())
    assert lookups == ["screen.local"]  # once, not with every datagram
