"""The relay's loop goes on, whatever one turn or one event does."""

import asyncio
import logging

from aoabridge.adapters.nt import NtClient, NtSettings
from aoabridge.adapters.usb_pump import Accepted, Chunk
from aoabridge.bridge.core import BridgeCore, CoreSettings
from aoabridge.bridge.link import LinkInfo
from aoabridge.daemon.relay import PATIENCE_S, Relay
from aoabridge.values import Announced, Connected, Disconnected, Publication, Update


class Host:
    """Takes every transfer; the test says what became of it."""

    def __init__(self):
        self.taken = []

    def ready(self, link):
        return True

    def offer(self, link, data):
        self.taken.append((link, data))
        return True


async def until(condition):
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("condition not met in time")


def relay():
    """Without a robot: the client is never opened."""
    return Relay(BridgeCore(CoreSettings()), NtClient(NtSettings("test"), wake=lambda: None))


def test_a_turn_that_breaks_off_is_logged_and_followed_by_another(caplog):
    async def run():
        loop = relay()
        turns = []

        def on_turn(now):
            turns.append(now)
            if len(turns) == 1:
                raise ValueError("a bug")

        loop.on_turn = on_turn
        loop.turn_soon()
        await until(lambda: len(turns) >= 2)
        loop.close()

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    assert [record.message for record in caplog.records] == ["turn of the relay broken off"]


def test_an_event_that_fails_costs_nothing_but_itself(caplog):
    async def run():
        loop, host = relay(), Host()
        loop.link_up(host, 1, LinkInfo("phone", 512))
        await until(lambda: host.taken)
        loop.link_event(7, Chunk(b"of nobody", 0.0))
        first = host.taken[-1][1]
        loop.link_event(1, Accepted(len(first), error=False, t=loop._clock()))
        loop.link_event(1, Chunk(b'{"action":"ping","id":1}\n', loop._clock()))
        await until(lambda: b'{"pong":1}' in host.taken[-1][1])
        loop.link_down(1)
        loop.close()

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    assert [record.message for record in caplog.records] == ["event of link 7 dropped"]


def test_the_halves_around_a_chunk_that_was_dropped_are_not_joined(monkeypatch):
    async def run():
        loop, host = relay(), Host()
        loop.link_up(host, 1, LinkInfo("phone", 512))
        await until(lambda: host.taken)
        loop.link_event(1, Accepted(len(host.taken[-1][1]), error=False, t=loop._clock()))
        loop.link_event(1, Chunk(b'{"action":"ping","id":1', loop._clock()))
        with monkeypatch.context() as patch:
            patch.setattr(loop.core, "on_link_bytes", lambda *_arguments, **_more: 1 / 0)
            loop.link_event(1, Chunk(b'2}\n{"action":"ping","id":3', loop._clock()))
        loop.link_event(1, Chunk(b'4}\n{"action":"ping","id":5}\n', loop._clock()))
        await until(lambda: b"pong" in host.taken[-1][1])
        loop.link_down(1)
        loop.close()
        return host.taken[-1][1]

    assert asyncio.run(run()) == b'{"pong":5}\n'


class Client(NtClient):
    """Notes until when each publication may wait, and its own turns."""

    def __init__(self):
        super().__init__(NtSettings("test"), wake=lambda: None)
        self.waits = []
        self.turns = []
        self.again = None

    def publish(self, items, by=float("-inf"), *, steady=False):
        self.waits.append(by)
        super().publish(items, by, steady=steady)

    def turn(self, now):
        self.turns.append(now)
        if self.again is None:
            return None
        return now + self.again


def test_status_may_wait_for_a_put_and_a_source_may_not():
    async def run():
        client = Client()
        loop = Relay(BridgeCore(CoreSettings()), client, clock=lambda: 100.0)
        loop.publish([Publication("/source", "int", 1)])
        loop.publish([Publication("/status", "int", 1)], urgent=False)
        loop.close()
        return client.waits

    assert asyncio.run(run()) == [float("-inf"), 100.0 + PATIENCE_S]


def test_what_a_source_says_is_set_at_once_and_takes_a_turn_only_for_phones(caplog):
    async def run():
        client, host = Client(), Host()
        loop = Relay(BridgeCore(CoreSettings()), client)
        turns = []
        loop.on_turn = turns.append
        loop.publish([Publication("/source", "int", 1)])
        assert (len(client.turns), turns) == (1, [])
        client.again = 0.01  # as if the flush had to wait: then a turn has it
        loop.publish([Publication("/source", "int", 2)])
        client.again = None
        await until(lambda: turns)
        loop.link_up(host, 1, LinkInfo("phone", 512))
        await until(lambda: host.taken)
        before, sets = len(turns), len(client.turns)
        loop.publish([Publication("/source", "int", 3)])
        assert len(client.turns) == sets
        await until(lambda: len(turns) > before)
        loop.link_down(1)
        loop.close()
        return client

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    assert caplog.records == []


def test_after_its_end_a_relay_sets_nothing_more():
    async def run():
        client = Client()
        loop = Relay(BridgeCore(CoreSettings()), client)
        loop.close()
        loop.publish([Publication("/source", "int", 1)])
        return client.turns

    assert asyncio.run(run()) == []


def test_values_that_cannot_be_set_are_logged_and_the_source_goes_on(caplog):
    async def run():
        client = Client()
        client.again = "a bug"
        loop = Relay(BridgeCore(CoreSettings()), client)
        loop.publish([Publication("/source", "int", 1)])
        loop.close()

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    assert [record.message for record in caplog.records] == ["values of the bridge not set"]


class Robot(NtClient):
    """Says what the test lets it say, once."""

    def __init__(self, *events):
        super().__init__(NtSettings("test"), wake=lambda: None)
        self.events = list(events)

    def take_events(self):
        events, self.events = self.events, []
        return events


def test_a_source_that_fails_hides_no_loss_of_the_robot_from_the_core(caplog):
    async def run():
        loop = Relay(BridgeCore(CoreSettings()), Robot(Connected("10.0.0.2:5810"), Disconnected()))

        def watch(events, now):
            raise ValueError("a bug")

        loop.watch = watch
        loop.turn_now()
        loop.close()
        return loop

    with caplog.at_level(logging.ERROR):
        loop = asyncio.run(run())
    assert (loop.losses, loop.connected_at) == (1, None)
    assert [record.message for record in caplog.records] == ["events of NetworkTables kept from the sources"]


def test_an_update_that_fails_hides_no_loss_of_the_robot(caplog):
    async def run():
        events = [Connected("10.0.0.2:5810"), Announced("/a", "double"), Update("/a", object(), None), Disconnected()]
        loop = Relay(BridgeCore(CoreSettings()), Robot(*events))

        def fails(*_arguments):
            raise ValueError("a bug")

        loop.core.on_updates = fails
        loop.turn_now()
        loop.close()
        return loop

    with caplog.at_level(logging.ERROR):
        loop = asyncio.run(run())
    assert (loop.losses, loop.connected_at) == (1, None)
    assert [record.message for record in caplog.records] == ["events of NetworkTables dropped"]


def test_a_link_that_fails_stops_no_other(caplog):
    class BadHost(Host):
        def ready(self, link):
            raise ValueError("a bug")

    async def run():
        loop, host = relay(), Host()
        loop.link_up(BadHost(), 1, LinkInfo("bad", 512))
        loop.link_up(host, 2, LinkInfo("good", 512))
        loop.turn_now()
        loop.close()
        return [link for link, _ in host.taken]

    with caplog.at_level(logging.ERROR):
        assert asyncio.run(run()) == [2]
    assert [record.message for record in caplog.records] == ["transfer of link 1 dropped"]


def test_a_viewer_that_fails_costs_no_byte(caplog):
    class BadSpy:
        wants_values = wants_chunks = True

        def chunk(self, *_arguments):
            raise ValueError("a bug")

        value = chunk

    async def run():
        loop, host = relay(), Host()
        loop.spies = [BadSpy()]
        loop.link_up(host, 1, LinkInfo("phone", 512))
        await until(lambda: host.taken)
        loop.link_event(1, Accepted(len(host.taken[-1][1]), error=False, t=loop._clock()))
        loop.link_event(1, Chunk(b'{"action":"ping","id":1}\n', loop._clock()))
        await until(lambda: b'{"pong":1}' in host.taken[-1][1])
        loop.close()

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    assert {record.levelname for record in caplog.records} == {"ERROR"}


def test_the_core_is_told_how_long_bytes_have_waited_for_the_loop():
    async def run():
        loop = Relay(BridgeCore(CoreSettings()), NtClient(NtSettings("test"), wake=lambda: None), clock=lambda: 100.0)
        loop.link_up(Host(), 1, LinkInfo("phone", 512))
        loop.link_event(1, Chunk(b"{}\n", 97.5))
        loop.close()
        return loop.core.links[1].chunk_age_s

    assert asyncio.run(run()) == 2.5
