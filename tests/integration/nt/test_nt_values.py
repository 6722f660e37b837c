"""From the robot to us: every topic, value, type and time, against a server in another process."""

import math

import pytest

from aoabridge.values import Announced, Connected, Unannounced, Update
from rig.nt_loop import NtLoop
from rig.nt_process import NtProcess
from rig.nt_websocket import HostileClient

INT64 = (-(2**63), -(2**53) - 1, 0, 2**53 + 1, 2**63 - 1)

VALUES = [
    ("boolean", True),
    ("int", 2**60 + 1),
    ("double", 0.1),
    ("float", 0.5),
    ("string", "ä\x00\n"),
    ("json", '{"a": [1, null]}'),
    ("raw", b"\x00\xff"),
    ("boolean[]", [True, False]),
    ("int[]", [1, -1]),
    ("double[]", [0.1, 2.0]),
    ("float[]", [0.5, 2.0]),
    ("string[]", ["", "ß"]),
    ("double[]", []),
    ("boolean[]", []),
    ("string[]", []),
    ("struct:Pose2d", bytes(24)),
    ("struct:Pose2d[]", b""),
    ("struct:Pose2d", b"no multiple of the size"),
    ("proto:geometry.Pose", b"\x08\x01"),
    ("photonstruct:PhotonPipelineResult:4b2ff16a", b"p"),
    ("msgpack", b"\x90"),
    ("anything at all", b"?"),
]


@pytest.mark.parametrize(("type_string", "value"), VALUES)
def test_value_arrives_with_its_type(robot: NtProcess, bridge: NtLoop, type_string: str, value: object) -> None:
    assert robot.publish("/t", type_string, value)
    bridge.until(lambda: bool(bridge.values("/t")))
    assert bridge.types()["/t"] == type_string
    [got] = bridge.values("/t")
    assert got == value
    assert type(got) is type(value)
    if isinstance(got, list):
        assert [type(element) for element in got] == [type(element) for element in value]  # type: ignore[attr-defined]


@pytest.mark.parametrize("value", INT64)
def test_integers_are_exact(robot: NtProcess, bridge: NtLoop, value: int) -> None:
    robot.publish("/i", "int", value)
    bridge.until_value("/i", value)


def test_nan_and_infinities(robot: NtProcess, bridge: NtLoop) -> None:
    bridge.client.set_every_sample(["/d"])
    robot.publish("/d", "double", 0.0)
    bridge.until_value("/d", 0.0)  # of a topic that is new, a server sends the newest value only
    for value in (math.nan, math.nan, math.inf, -math.inf):
        robot.publish("/d", "double", value)
    bridge.until_value("/d", -math.inf)
    _, first, second, third, fourth = bridge.values("/d")
    assert math.isnan(first)
    assert math.isnan(second)
    assert (third, fourth) == (math.inf, -math.inf)


def test_every_value_in_order_and_repeats_too(robot: NtProcess, bridge: NtLoop) -> None:
    bridge.client.set_every_sample(["/edge"])
    robot.publish("/edge", "boolean", False)
    bridge.until_value("/edge", False)
    for value in (True, False, False, True):
        robot.publish("/edge", "boolean", value, flush=False)
    robot.publish("/end", "int", 1)
    bridge.until_value("/end", 1)
    assert bridge.values("/edge") == [False, True, False, False, True]


@pytest.mark.parametrize("name", ["bare", "//two", "/with blank", "/ü/ö", "/" + "n" * 600, "/a/.hidden"])
def test_names_are_kept_verbatim(robot: NtProcess, bridge: NtLoop, name: str) -> None:
    robot.publish(name, "int", 7)
    bridge.until_value(name, 7)
    assert bridge.types()[name] == "int"


def test_topic_with_properties_is_announced(robot: NtProcess, bridge: NtLoop) -> None:
    robot.publish("/unit", "double", 12.0, {"unit": "V"})
    bridge.until_value("/unit", 12.0)
    assert bridge.types()["/unit"] == "double"


def test_meta_topics_stay_out(robot: NtProcess, bridge: NtLoop) -> None:
    robot.publish("/x", "int", 1)
    bridge.until_value("/x", 1)
    assert not [topic for topic in bridge.types() if topic.startswith("$")]


def test_type_change_arrives_as_unpublish_and_publish(robot: NtProcess, bridge: NtLoop) -> None:
    robot.publish("/x", "int", 1)
    bridge.until_value("/x", 1)
    robot.unpublish("/x")
    robot.publish("/x", "double[]", [1.5])
    bridge.until_value("/x", [1.5])
    topic_events = [event for event in bridge.events if isinstance(event, Announced | Unannounced)]
    assert topic_events == [Announced("/x", "int"), Unannounced("/x"), Announced("/x", "double[]")]


def test_a_late_loop_gets_the_type_of_each_announce(robot: NtProcess, witness: NtProcess, bridge: NtLoop) -> None:
    """Asked later, the topic would already have its next type, or none."""
    types = ["int", "string", "boolean", "double[]", "struct:X"]
    values = [1, "a", True, [1.0], b"x"]
    robot.publish("/begin", "int", 1)
    bridge.until_value("/begin", 1)
    for type_string, value in zip(types, values, strict=True):
        robot.publish("/x", type_string, value)
        witness.wait_topic("/x")
        robot.unpublish("/x")
        witness.wait_topic("/x", gone=True)
    robot.publish("/end", "int", 1)
    bridge.until_value("/end", 1)
    assert [e.type for e in bridge.events if isinstance(e, Announced) and e.topic == "/x"] == types
    assert bridge.values("/x") == values


def test_on_connect_values_come_before_their_schemas(robot: NtProcess) -> None:
    robot.publish("/pose", "struct:P", bytes(8))
    robot.publish_schema("P", "double x")
    with NtLoop(robot.address) as late:
        late.until(lambda: bool(late.values("/.schema/struct:P")))
        order = [event.topic for event in late.events if isinstance(event, Update)]
        assert order == ["/pose", "/.schema/struct:P"]
        assert late.types() == {"/pose": "struct:P", "/.schema/struct:P": "structschema"}


def test_schema_text_and_its_change_arrive(robot: NtProcess, bridge: NtLoop) -> None:
    robot.publish_schema("P", "double x")
    bridge.until_value("/.schema/struct:P", b"double x")
    robot.publish_schema("P", "double x;double y")
    bridge.until_value("/.schema/struct:P", b"double x;double y")


def test_a_late_loop_gets_the_newest_value(robot: NtProcess, bridge: NtLoop) -> None:
    """While nobody takes events, values of one topic are merged; what is published meanwhile is not lost."""
    robot.publish("/x", "int", -1)
    bridge.until_value("/x", -1)
    for value in range(50):
        robot.publish("/x", "int", value)
    robot.publish("/y", "int", 1)
    poller_read = bridge.client.counters
    robot.wait(lambda: bridge.client.counters != poller_read)
    bridge.until_value("/x", 49)
    bridge.until_value("/y", 1)
    assert len(bridge.values("/x")) < 50


def test_times_are_the_servers(robot: NtProcess, bridge: NtLoop) -> None:
    before_us = robot.now_us()
    robot.publish("/x", "int", 1)
    after_us = robot.now_us()
    bridge.until_value("/x", 1)
    [update] = bridge.updates("/x")
    assert before_us - 1_000 <= update.time_us <= after_us + 1_000
    estimate_us = bridge.client.server_now_us()
    assert estimate_us is not None
    assert 0 <= estimate_us - update.time_us < 5_000_000


def test_unstamped_value_gets_the_present_time(robot: NtProcess, bridge: NtLoop) -> None:
    before_us = robot.now_us()
    with HostileClient(robot.port) as hostile:
        hostile.send(hostile.publish("/old", "int"), 5, time_us=0)
        bridge.until_value("/old", 5)
    [update] = bridge.updates("/old")
    assert update.time_us >= before_us - 1_000


def test_bad_utf8_is_replaced_and_counted(robot: NtProcess, bridge: NtLoop) -> None:
    with HostileClient(robot.port) as hostile:
        hostile.send(hostile.publish("/s", "string"), b"a\xffb", robot.now_us())
        bridge.until_value("/s", "a\N{REPLACEMENT CHARACTER}b")
    assert bridge.client.counters["nt_bad_utf8"] == 1


def test_bad_utf8_in_an_array_is_skipped_and_counted(robot: NtProcess, bridge: NtLoop) -> None:
    with HostileClient(robot.port) as hostile:
        number = hostile.publish("/sa", "string[]")
        hostile.send(number, [b"first"], robot.now_us())
        bridge.until_value("/sa", ["first"])
        hostile.send(number, [b"good", b"\xff"], robot.now_us())
        bridge.until(lambda: bridge.client.counters["nt_bad_utf8"] == 1)
        hostile.send(number, [b"good", b"too"], robot.now_us())
        bridge.until_value("/sa", ["good", "too"])
    assert bridge.values("/sa") == [["first"], ["good", "too"]]
    assert bridge.client.counters["nt_bad_utf8"] == 1


def test_value_from_the_future_is_counted(robot: NtProcess, bridge: NtLoop, caplog: pytest.LogCaptureFixture) -> None:
    with HostileClient(robot.port) as hostile:
        number = hostile.publish("/future", "int")
        for value in (1, 2):
            hostile.send(number, value, robot.now_us() + 3_600_000_000)
            bridge.until_value("/future", value)
    assert bridge.client.counters["nt_future_times"] == 2
    assert [record.getMessage() for record in caplog.records if "/future" in record.getMessage()] != []
    assert sum("/future" in record.getMessage() for record in caplog.records) == 1


def test_blind_writers_bytes_arrive_as_they_are(robot: NtProcess, bridge: NtLoop) -> None:
    """The server forwards bytes of another binary type to everyone: whoever decodes must check the length."""
    robot.publish("/pose", "struct:P", bytes(8))
    bridge.until_value("/pose", bytes(8))
    with HostileClient(robot.port) as hostile:
        hostile.send(hostile.publish("/pose", "raw"), b"xyz", robot.now_us())
        bridge.until_value("/pose", b"xyz")
    assert bridge.types()["/pose"] == "struct:P"


def test_value_of_another_type_does_not_disturb(robot: NtProcess, bridge: NtLoop) -> None:
    robot.publish("/t", "int", 1)
    bridge.until_value("/t", 1)
    with HostileClient(robot.port) as hostile:
        hostile.send(hostile.publish("/t", "string"), b"text", robot.now_us())
        number = hostile.publish("/u", "int")
        hostile.send(number, b"text", robot.now_us(), type_id=4)
        hostile.send(number, 5, robot.now_us())
        bridge.until_value("/u", 5)
    robot.publish("/t", "int", 2)
    bridge.until_value("/t", 2)
    assert bridge.values("/t") == [1, 2]
    assert bridge.client.counters["nt_bad_events"] == 0


def test_rpc_topics_are_announced_without_values(robot: NtProcess, bridge: NtLoop) -> None:
    with HostileClient(robot.port) as hostile:
        hostile.send(hostile.publish("/rpc", "rpc"), b"call", robot.now_us())
        hostile.send(hostile.publish("/end", "int"), 1, robot.now_us())
        bridge.until_value("/end", 1)
    assert bridge.types()["/rpc"] == "rpc"
    assert bridge.values("/rpc") == []


def test_5000_topics_within_a_second_of_connecting(robot: NtProcess) -> None:
    robot.fill("/many/", 5_000)
    with NtLoop(robot.address) as late:
        late.until(lambda: any(isinstance(event, Connected) for event in late.events))
        late.until(lambda: len(late.types()) >= 5_000 and bool(late.values("/many/4999")), seconds=1.0)
        assert {e.topic: e.value for e in late.events if isinstance(e, Update)} == {
            f"/many/{number}": float(number) for number in range(5_000)
        }


def test_reduced_subscription_and_back(robot: NtProcess, bridge: NtLoop) -> None:
    """What an overload does to the subscription loses no topic and no last value."""
    from aoabridge.adapters.nt_pacing import Subscribe

    robot.publish("/x", "int", 1)
    bridge.until_value("/x", 1)
    poller = bridge.client._poller
    assert poller is not None
    for how, value in ((Subscribe.NEWEST_ONLY, 2), (Subscribe.EVERY_VALUE, 3)):
        poller._source.resubscribe(how)
        robot.publish("/x", "int", value)
        robot.publish(f"/new{value}", "int", value)
        bridge.until_value("/x", value)
        bridge.until_value(f"/new{value}", value)
    assert set(bridge.types()) == {"/x", "/new2", "/new3"}
