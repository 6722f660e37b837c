"""The loops beside the relay's own go on, whatever breaks in one round of them."""

import asyncio
import logging
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
