"""Who may put what, and when; and what becomes of a put that was accepted."""

import json
import math

import pytest

from aoabridge.bridge.core import CoreSettings
from aoabridge.bridge.settings import AccessSettings, RelaySettings
from aoabridge.values import PutOp, PutResult
from fakes.core_rig import CoreRig

FORBIDDEN = ["/.schema/struct:X", "/a/.schema/b", "$x", "/$x", "/RoboRoute/Heartbeat", "/AOABridge/pi/x", "/own"]


@pytest.mark.parametrize("key", FORBIDDEN)
def test_reserved_names(key):
    rig = CoreRig(CoreSettings(own_patterns=("/AOABridge/pi/*",)))
    rig.publish("/own", "int", 1)
    rig.lines()
    assert rig.error({"key": key, "value": 1}) == "forbidden"


def test_access_patterns():
    access = AccessSettings(put_allow=("/a/*", "b?"), put_deny=("/a/secret*",))
    for key, allowed in [("/a/x", True), ("/a/secret1", False), ("/bc", True), ("/b/c", False), ("/c", False)]:
        rig = CoreRig(CoreSettings(access=access))
        if allowed:
            rig.say({"key": key, "value": 1})
            assert rig.sets() == [(key, "int", 1)]
        else:
            assert rig.error({"key": key, "value": 1}) == "forbidden"


def test_the_patterns_of_one_phone_are_added():
    rig = CoreRig(link=False)
    rig.link_up(access=AccessSettings(put_allow=(), put_deny=("/RoboRoute/Run*",), subscribe_allow=()))
    assert rig.error({"key": "/RoboRoute/RunPose", "value": True}) == "forbidden"
    rig.say({"key": "/RoboRoute/Pose", "value": 1})
    assert len(rig.sets()) == 1


def test_without_robot_nothing_is_queued():
    rig = CoreRig(connected=False)
    assert rig.error({"key": "/x", "value": 1}) == "not-connected"
    rig.core.on_connection(rig_connected(), rig.now)
    assert rig.error({"key": "/x", "value": 1}) == "not-connected"
    rig.wait(0.3)
    assert rig.sets() == []
    rig.say({"key": "/x", "value": 2})
    assert rig.sets() == [("/x", "int", 2)]


def rig_connected():
    from aoabridge.values import Connected

    return Connected("10.22.7.2:5810")


def test_settling_waits_for_announces_but_not_for_ever():
    rig = CoreRig(connected=False)
    rig.core.on_connection(rig_connected(), rig.now)
    for _ in range(24):
        rig.wait(0.04)
        rig.announce("/t", "int")
    assert not rig.core.settled
    rig.wait(0.05)
    assert rig.core.settled


def test_the_rate_limit():
    rig = CoreRig(CoreSettings(relay=RelaySettings(put_rate=10, put_burst=3)))
    rig.say(*[{"key": "/x", "value": n} for n in range(3)])
    assert len(rig.sets()) == 3
    assert rig.error({"key": "/x", "value": 4}) == "rate-limited"
    rig.wait(0.11)
    rig.say({"key": "/x", "value": 5})
    assert len(rig.sets()) == 1


def test_values_that_would_block_ntcore():
    rig = CoreRig(CoreSettings(relay=RelaySettings(max_line_bytes=8 << 20)))
    assert rig.error({"key": "/x", "value": "a" * 1_000_001}) == "too-large"
    assert rig.error({"key": "/x", "value": [1] * 120_000}) == "too-large"
    rig.say({"key": "/x", "value": "a" * 1_000_000})
    assert len(rig.sets()) == 1


def test_acknowledgements():
    rig = CoreRig()
    rig.say({"action": "put", "key": "/x", "value": 1, "id": 17}, {"action": "put", "key": "/x", "value": 2, "id": "b"})
    assert rig.lines() == []
    rig.accept()
    assert rig.lines() == [{"ack": 17}, {"ack": "b"}]
    rig.say({"action": "put", "key": "/x", "value": None, "id": 18})
    assert rig.lines()[0]["error"]["id"] == 18


def test_what_ntcore_refuses_is_told():
    rig = CoreRig()
    rig.say({"action": "put", "key": "/x", "value": 1, "id": 5})
    (put,) = rig.orders()
    rig.core.on_put_results([PutResult(put, "type-mismatch", "the topic is double now")], rig.now, rig.time_us)
    (line,) = rig.lines()
    assert (line["error"]["code"], line["error"]["topic"], line["error"]["id"]) == ("type-mismatch", "/x", 5)


def test_a_put_under_way_when_the_robot_goes_is_refused():
    rig = CoreRig()
    rig.say({"action": "put", "key": "/x", "value": 1, "id": 5})
    rig.disconnect()
    errors = [line["error"] for line in rig.lines() if "error" in line]
    assert [(error["code"], error["id"]) for error in errors] == [("not-connected", 5)]
    assert [put.op for put in rig.orders()] == [PutOp.UNPUBLISH]


def test_infinities_never_pass():
    rig = CoreRig()
    rig.announce("/x", "double")
    assert rig.error({"key": "/x", "value": math.inf}) == "bad-json"
    assert rig.error('{"key":"/x","value":[1e999],"s":"\\ud800"}') == "bad-value"


@pytest.mark.parametrize(
    ("key", "value", "age_s", "orders"),
    [
        ("/RoboRoute/RunPose", True, 0.9, 1),
        ("/RoboRoute/RunPose", True, 1.1, 0),
        ("/RoboRoute/RunPose", False, 9.0, 1),
        ("/RoboRoute/CancelPlan", True, 9.0, 1),
        ("/x", 1, 9.0, 1),
    ],
)
def test_a_press_that_a_stalled_bridge_finds_late_is_refused(key, value, age_s, orders):
    rig = CoreRig()
    line = json.dumps({"key": key, "value": value, "id": 7}).encode() + b"\n"
    rig.core.on_link_bytes(1, line, rig.now - age_s, age_s=age_s)
    assert len(rig.orders()) == orders
    errors = [line["error"] for line in rig.lines() if "error" in line]
    assert [(error["code"], error["id"]) for error in errors] == [("not-connected", 7)] * (1 - orders)
