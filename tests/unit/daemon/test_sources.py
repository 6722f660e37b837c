"""When a source has its turn after a datagram."""

import asyncio
import contextlib
import socket

import msgspec
import pytest

from aoabridge.adapters.nt import NtClient, NtSettings
from aoabridge.bridge.core import BridgeCore, CoreSettings
from aoabridge.config import default_config
from aoabridge.config.sections import SourcesSettings
from aoabridge.daemon.relay import Relay
from aoabridge.daemon.sources import SLACK_S, BindFailure, SourceHost, source_hosts
from aoabridge.sources.base import Address, Endpoint
from aoabridge.sources.frc import FrcSettings, FrcSource
from aoabridge.sources.settings import TeleopSettings
from aoabridge.sources.teleop import TeleopSource

SENDER = ("127.0.0.1", 1110)


def new_relay() -> Relay:
    return Relay(BridgeCore(CoreSettings()), NtClient(NtSettings("test"), wake=lambda: None))


def watched(host: SourceHost) -> list[int]:
    """How many datagrams the source had heard at each of its turns."""
    heard, turns = [0], []
    on_tick = host.source.on_tick

    def hear(endpoint_key: str, data: bytes, sender: Address, now: float) -> None:
        heard[0] += 1

    def tick(now: float) -> None:
        turns.append(heard[0])
        on_tick(now)

    host.source.on_datagram, host.source.on_tick = hear, tick  # type: ignore[method-assign]
    return turns


def gathered(rounds: list[list[str]], gather_s: float) -> list[int]:
    """How many datagrams had been heard at each turn, if those of a round come one after the other, then a pause."""

    async def run() -> list[int]:
        relay = new_relay()
        host = SourceHost("frc:ds", FrcSource(FrcSettings(name="ds"), "pi"), relay)
        host.gather_s = gather_s
        turns = watched(host)
        total = 0
        for keys in rounds:
            for key in keys:
                host._on_datagram(key, b"", SENDER)
                await asyncio.sleep(0)
            total += len(keys)
            async with asyncio.timeout(5):
                while turns[-1:] != [total]:
                    await asyncio.sleep(0.001)
        await host.stop()
        relay.close()
        return turns

    return asyncio.run(run())


def test_datagrams_that_come_together_share_a_turn() -> None:
    turns = gathered([["a"], ["b"], ["a", "b"], ["a", "b"]], 5.0)
    assert turns == [1, 2, 4, 6]


def test_a_single_link_never_waits() -> None:
    assert gathered([["a"], ["a"], ["a"]], 5.0) == [1, 2, 3]


def test_a_datagram_whose_partner_is_late_waits_for_a_moment_only() -> None:
    assert gathered([["a"], ["b"], ["a", "b"], ["a"]], 0.01) == [1, 2, 4, 5]


def test_a_datagram_does_not_wait_where_an_answer_may_be_due() -> None:
    async def run() -> list[int]:
        relay = new_relay()
        host = SourceHost("frc:ds", FrcSource(FrcSettings(name="ds"), "pi"), relay)
        turns = watched(host)
        host._on_datagram("a", b"", SENDER)
        await asyncio.sleep(0)
        await host.stop()
        relay.close()
        return turns

    assert asyncio.run(run()) == [1]


def test_a_stopped_source_has_no_turn_that_was_under_way() -> None:
    async def run() -> list[int]:
        relay = new_relay()
        host = SourceHost("frc:ds", FrcSource(FrcSettings(name="ds"), "pi"), relay)
        host.gather_s = 0.005
        turns = watched(host)
        for key in ("a", "a"):  # the first has its turn at once, the second waits for its own
            host._on_datagram(key, b"", SENDER)
        await host.stop()
        await asyncio.sleep(0.01)
        relay.close()
        return turns

    assert asyncio.run(run()) == [1]


def test_only_sources_that_answer_nobody_gather() -> None:
    async def run() -> dict[str, tuple[bool, float]]:
        relay = new_relay()
        sources = SourcesSettings(
            frc=(FrcSettings(enabled=True, name="ds"),), teleop=(TeleopSettings(enabled=True, name="cab"),)
        )
        config = msgspec.structs.replace(default_config(), sources=sources)
        hosts = source_hosts(config, relay, lambda: 0.0)
        relay.close()
        return {host.name: (host.gather_s > 0, host.slack_s) for host in hosts}

    assert asyncio.run(run()) == {"frc:ds": (True, SLACK_S), "teleop:cab": (False, 0.0)}


def failures(settings: TeleopSettings) -> dict[str, BindFailure]:
    async def run() -> dict[str, BindFailure]:
        relay = new_relay()
        host = SourceHost("teleop:cab", TeleopSource(settings, "pi"), relay)
        async with asyncio.timeout(5):
            await host.start()
            while not host.bind_failures:
                await asyncio.sleep(0.01)
        found = dict(host.bind_failures)
        await host.stop()
        relay.close()
        return found

    return asyncio.run(run())


def test_each_port_that_is_taken_names_who_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aoabridge.daemon.sources.port_holder", lambda port, kind: f"{kind} {port}")
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(2)]
        for other in others:
            other.bind(("127.0.0.1", 0))
        uplink, trigger = (other.getsockname()[1] for other in others)
        found = failures(TeleopSettings(name="cab", port=uplink, ctrl_port=0, trigger_port=trigger))
    assert {key: failure.holder for key, failure in found.items()} == {
        f"uplink:{uplink}": f"udp {uplink}",
        f"trigger:{trigger}": f"udp {trigger}",
    }


def test_a_peer_without_an_address_is_no_port_that_somebody_has(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_arguments: object, **_more: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setattr("aoabridge.daemon.sources.port_holder", lambda port, kind: "an innocent program")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = TeleopSettings(name="cab", port=port, ctrl_port=0, trigger_port=0, forward_ui=f"screen.local:{port}")
    assert failures(settings)["forward_ui"].holder == ""


def test_a_capture_is_played_at_its_own_pace() -> None:
    async def run() -> list[tuple[float, float]]:
        relay = new_relay()
        frc = (FrcSettings(enabled=True, name="ds", replay="match.pcap"),)
        config = msgspec.structs.replace(default_config(), sources=SourcesSettings(frc=frc))
        hosts = source_hosts(config, relay, lambda: 0.0)
        relay.close()
        return [(host.gather_s, host.slack_s) for host in hosts]

    assert asyncio.run(run()) == [(0.0, 0.0)]


def test_a_connection_tries_every_address_of_its_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def addresses(_host: str, port: int) -> list[Address]:
        return [("127.0.0.9", port), ("127.0.0.1", port)]

    async def run(port: int) -> int:
        relay = new_relay()
        host = SourceHost("frc:ds", FrcSource(FrcSettings(name="ds"), "pi"), relay)
        key = f"rio2ds-tcp@robot.local:{port}"
        endpoint = Endpoint(key, "tcp", "", port, direction="connect", host="robot.local")
        assert await host._open(endpoint)
        peers = host._streams[key].peers
        await host.stop()
        relay.close()
        return peers

    monkeypatch.setattr("aoabridge.daemon.sources.look_up", addresses)
    with socket.create_server(("127.0.0.1", 0)) as robot:
        assert asyncio.run(run(robot.getsockname()[1])) == 1
