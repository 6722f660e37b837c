"""Sixty thousand values at once: through the client they all arrive, past it the client recovers."""

import logging
import time

import ntcore
import pytest

from aoabridge.values import Connected, Disconnected, Put, PutOp
from rig.nt_loop import NtLoop
from rig.nt_process import NtProcess

FLOOD = 60_000
SEND_ALL = ntcore.PubSubOptions(sendAll=True, keepDuplicates=True)


def flood_past(bridge: NtLoop) -> None:
    """Set until ntcore reports dropped values; a network thread that keeps up needs more than one flood."""
    instance = bridge.client._instance
    assert instance is not None
    publisher = instance.getIntegerTopic("/past").publish(SEND_ALL)
    deadline = time.monotonic() + 20
    while not bridge.client.blocked:
        assert time.monotonic() < deadline
        for value in range(FLOOD):
            publisher.set(value)
    publisher.close()


def test_flood_through_the_client_arrives_in_order(
    robot: NtProcess, bridge: NtLoop, caplog: pytest.LogCaptureFixture
) -> None:
    assert bridge.code("/flood", "int", -1) is None
    robot.wait_value("/flood", -1)
    with caplog.at_level(logging.DEBUG):
        bridge.client.offer_puts([Put(n + 10, 1, PutOp.SET, "/flood", "int", n) for n in range(FLOOD)])
        bridge.until(lambda: len(bridge.results) == FLOOD + 1, seconds=30)
    assert all(result.accepted for result in bridge.results)
    robot.wait_value("/flood", FLOOD - 1, seconds=30)
    assert robot.values("/flood") == list(range(-1, FLOOD))
    assert caplog.records == []
    assert bridge.client.counters["nt_blocked"] == 0


def test_flood_past_the_client_recovers(robot: NtProcess, bridge: NtLoop) -> None:
    bridge.publish("/AOABridge/x/n", "int", 1)
    assert bridge.code("/phone", "int", 1) is None
    robot.wait_value("/phone", 1)
    flood_past(bridge)
    assert bridge.code("/phone", "int", 2) == "not-connected"
    bridge.until(lambda: bridge.client.online and not bridge.client.blocked)
    assert bridge.connections() == [Connected, Disconnected, Connected]
    assert bridge.client.counters["nt_blocked"] == 1
    robot.wait_topic("/phone", gone=True)
    bridge.publish("/AOABridge/x/n", "int", 2)
    bridge.until(lambda: robot.values("/AOABridge/x/n")[-1:] == [2])
    assert bridge.code("/phone", "int", 3) is None
    robot.wait_value("/phone", 3)
    assert 2 not in robot.values("/phone")
    bridge.run(0.3)
    assert bridge.client.counters["nt_blocked"] == 1


def test_second_blockage_within_ten_seconds_waits(robot: NtProcess, bridge: NtLoop) -> None:
    for restarts in (1, 1):
        flood_past(bridge)
        if bridge.client.counters["nt_blocked"] == 0:
            bridge.until(lambda: bridge.client.online and not bridge.client.blocked)
        assert bridge.client.counters["nt_blocked"] == restarts
    bridge.run(0.3)
    assert bridge.client.blocked
    assert bridge.code("/phone", "int", 1) == "not-connected"
    bridge.until(lambda: bridge.client.counters["nt_blocked"] == 2, seconds=12)
    bridge.until(lambda: bridge.client.online)
    assert bridge.code("/phone", "int", 2) is None
