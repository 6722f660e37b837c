"""What the robot sees of a phone's life: pulses, ownership, the heartbeat, an orderly stop."""

import pytest

from aoabridge.bridge.core import IDLE_SLEEP_S, MAX_SLEEP_S
from aoabridge.values import Connected, PutOp
from fakes.core_rig import CoreRig, subscribe


def test_what_a_link_put_ends_with_it():
    rig = CoreRig()
    rig.say({"key": "/RoboRoute/RunPose", "value": True}, {"key": "/RoboRoute/RunRoute", "value": False})
    rig.say({"key": "/RoboRoute/CancelPlan", "value": True}, {"key": "/x", "value": 1})
    rig.accept()
    rig.core.on_link_down(1, rig.now)
    assert rig.sets() == [("/RoboRoute/RunPose", "boolean", False)]
    rig.wait(0.019)
    assert rig.orders() == []
    rig.wait(0.002)
    ended = [(put.op, put.topic) for put in rig.orders()]
    topics = ["/RoboRoute/RunPose", "/RoboRoute/RunRoute", "/RoboRoute/CancelPlan", "/x"]
    assert ended == [(PutOp.UNPUBLISH, topic) for topic in topics]


def test_the_last_owner_of_a_topic_ends_it():
    rig = CoreRig()
    rig.link_up(2)
    rig.say({"key": "/RoboRoute/RunPose", "value": True})
    rig.say({"key": "/RoboRoute/RunPose", "value": True}, link=2)
    rig.accept()
    assert rig.core.owners.find("/RoboRoute/RunPose").links == {1, 2}
    rig.core.on_link_down(1, rig.now)
    rig.wait(0.1)
    assert rig.orders() == []
    rig.core.on_link_down(2, rig.now)
    assert rig.sets() == [("/RoboRoute/RunPose", "boolean", False)]
    rig.wait(0.1)
    assert [put.op for put in rig.orders()] == [PutOp.UNPUBLISH]


def test_when_the_robot_goes_everything_of_phones_is_dropped_without_a_set():
    rig = CoreRig()
    rig.say({"key": "/RoboRoute/RunPose", "value": True})
    rig.accept()
    rig.disconnect()
    assert [(put.op, put.topic) for put in rig.orders()] == [(PutOp.UNPUBLISH, "/RoboRoute/RunPose")]
    rig.connect()
    rig.core.on_link_down(1, rig.now)
    assert rig.orders() == []


@pytest.mark.parametrize("late", [False, True])
def test_a_foreign_run_pulse_is_lowered_before_the_first_put(late):
    rig = CoreRig(link=False, connected=not late)
    if late:
        rig.link_up()
        rig.core.on_connection(_connected(), rig.now)
    rig.announce("/RoboRoute/RunPlan", "boolean", True)
    rig.announce("/RoboRoute/RunPose", "boolean", False)
    rig.announce("/RoboRoute/Running", "int", 1)
    rig.announce("RoboRoute/RunRoute", "boolean", True)
    if late:
        rig.wait(0.3)
    else:
        rig.link_up()
    rig.say({"key": "/x", "value": 1})
    assert rig.sets() == [
        ("/RoboRoute/RunPlan", "boolean", False),
        ("RoboRoute/RunRoute", "boolean", False),
        ("/x", "int", 1),
    ]
    rig.wait(0.03)
    assert [(put.op, put.topic) for put in rig.orders()] == [
        (PutOp.UNPUBLISH, "/RoboRoute/RunPlan"),
        (PutOp.UNPUBLISH, "RoboRoute/RunRoute"),
    ]


def _connected():
    return Connected("10.22.7.2:5810")


def test_a_run_pulse_of_another_live_link_is_not_lowered():
    rig = CoreRig()
    rig.say({"key": "/RoboRoute/RunPose", "value": True})
    rig.accept()
    rig.link_up(2)
    assert rig.orders() == []


def heartbeats(rig, seconds):
    found = []
    for _ in range(int(seconds * 20)):
        rig.wait(0.05)
        rig.lines()
        found += rig.core.take_publications()
    return found


def test_the_heartbeat_beats_only_while_a_live_phone_reads():
    rig = CoreRig()
    assert heartbeats(rig, 2) == []
    rig.say(subscribe("/a"))
    beats = heartbeats(rig, 5)
    assert len(beats) in (10, 11)
    assert all(beat.topic == "/RoboRoute/Heartbeat" and beat.type == "double" for beat in beats)
    assert beats[-1].value == pytest.approx(1_000_000 + rig.now, abs=0.6)
    data = b""
    while not data:
        rig.wait(0.1)
        data = rig.core.take_bytes(1, rig.now)
    rig.core.on_bytes_accepted(1, 0, rig.now)
    rig.core.take_publications()
    rig.wait(0.9)
    assert len(rig.core.take_publications()) == 1
    rig.wait(0.2)
    (withdrawal,) = rig.core.take_publications()
    assert type(withdrawal).__name__ == "Withdrawal"


def test_no_heartbeat_without_robot():
    rig = CoreRig()
    rig.say(subscribe("/a"))
    rig.lines()
    assert heartbeats(rig, 1)
    rig.disconnect()
    assert [type(item).__name__ for item in heartbeats(rig, 1)] == ["Withdrawal"] or heartbeats(rig, 1) == []


def test_an_orderly_stop():
    rig = CoreRig()
    rig.announce("/a", "int", 1)
    rig.say(subscribe("/a"), {"key": "/RoboRoute/RunPose", "value": True})
    rig.accept()
    rig.lines()
    rig.update("/a", 2)
    rig.core.begin_stop(rig.now)
    assert rig.sets() == [("/RoboRoute/RunPose", "boolean", False)]
    rig.say({"key": "/x", "value": 1})
    error, last = rig.lines()
    assert error["error"]["code"] == "not-connected"
    assert last == {"disconnect": True}
    rig.say({"key": "/x", "value": 1})
    assert rig.lines() == []
    assert rig.orders() == []


def test_a_type_change_drops_our_publisher():
    rig = CoreRig()
    rig.say({"key": "/x", "value": 1})
    rig.accept()
    rig.announce("/x", "string")
    assert [(put.op, put.topic) for put in rig.orders()] == [(PutOp.UNPUBLISH, "/x")]
    assert rig.error({"key": "/x", "value": 2}) == "type-mismatch"


def test_a_core_without_a_link_sleeps_until_something_is_due():
    rig = CoreRig(link=False)
    assert rig.core.next_deadline(rig.now) == rig.now + IDLE_SLEEP_S
    rig.link_up()
    assert rig.core.next_deadline(rig.now) <= rig.now + MAX_SLEEP_S
    rig.core.on_link_down(1, rig.now)
    rig.wait(1)
    assert rig.core.next_deadline(rig.now) == rig.now + IDLE_SLEEP_S
