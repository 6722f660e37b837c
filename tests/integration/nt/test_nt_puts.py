"""From us to the robot: types, order, pulses, pacing, ends of publishers; judged by a second client."""

import itertools
import time

import pytest

from aoabridge.values import MAX_VALUE_BYTES, Announced, Publication
from rig.nt_loop import NtLoop
from rig.nt_process import NtProcess

VALUES = [
    ("boolean", True),
    ("int", 2**60 + 1),
    ("int", -(2**63)),
    ("double", 0.1),
    ("float", 0.5),
    ("string", "ä"),
    ("json", '{"a":1}'),
    ("boolean[]", [True, False]),
    ("int[]", [2**60 + 1]),
    ("double[]", [0.1]),
    ("float[]", [0.5]),
    ("string[]", ["a", "ß"]),
    ("int[]", []),
    ("string[]", []),
    ("struct:Pose2d", bytes(range(24))),
    ("struct:Pose2d[]", b""),
    ("raw", b"\x00\xff"),
    ("proto:P", b"p"),
]


@pytest.mark.parametrize(("type_string", "value"), VALUES)
def test_put_on_a_known_topic_arrives(
    robot: NtProcess, witness: NtProcess, bridge: NtLoop, type_string: str, value: object
) -> None:
    robot.publish("/t", type_string, bytes(24) if type_string.startswith(("struct", "raw", "proto")) else value)
    bridge.until_topic("/t")
    assert bridge.code("/t", type_string, value) is None
    robot.wait_value("/t", value)
    witness.wait_value("/t", value)
    assert witness.types()["/t"] == type_string


@pytest.mark.parametrize(("type_string", "value"), VALUES)
def test_put_on_a_new_topic_arrives_with_its_type(
    witness: NtProcess, bridge: NtLoop, type_string: str, value: object
) -> None:
    assert bridge.code("/t", type_string, value) is None
    witness.wait_value("/t", value)
    assert {sample["type"] for sample in witness.samples if sample["topic"] == "/t"} == {type_string}


@pytest.mark.parametrize(
    ("type_string", "value"),
    [
        ("int", True),
        ("int", 1.0),
        ("boolean", 0),
        ("boolean", None),
        ("double", True),
        ("double", "1"),
        ("string", 1),
        ("string", b"x"),
        ("raw", "text"),
        ("struct:P", [1]),
        ("int[]", [1, True]),
        ("boolean[]", [0]),
        ("double[]", 1.0),
        ("string[]", "abc"),
    ],
)
def test_what_ntcore_would_convert_is_refused(
    robot: NtProcess, bridge: NtLoop, type_string: str, value: object
) -> None:
    assert bridge.code("/t", type_string, value) in ("type-mismatch", "bad-value")
    assert bridge.code("/end", "int", 1) is None
    robot.wait_topic("/end")
    assert "/t" not in robot.topics()


@pytest.mark.parametrize(
    ("type_string", "value"),
    [("int", 2**63), ("int[]", [-(2**63) - 1]), ("string", "\ud800"), ("string[]", ["\ud800"])],
)
def test_what_ntcore_cannot_take_is_bad_value(bridge: NtLoop, type_string: str, value: object) -> None:
    assert bridge.code("/t", type_string, value) == "bad-value"
    assert bridge.code("/t\ud800", "int", 1) == "bad-value"
    bridge.run(0.05)
    assert "/t" not in bridge.types()


def test_type_that_changed_under_us_is_a_mismatch(robot: NtProcess, witness: NtProcess, bridge: NtLoop) -> None:
    robot.publish("/t", "string", "text")
    bridge.until_topic("/t")
    assert bridge.code("/t", "int", 1) == "type-mismatch"
    assert bridge.code("/t", "string", "ours") is None
    witness.wait_value("/t", "ours")
    assert witness.types()["/t"] == "string"


def test_own_publisher_goes_when_the_type_changes(robot: NtProcess, bridge: NtLoop) -> None:
    robot.publish("/t", "int", 1)
    bridge.until_topic("/t")
    assert bridge.code("/t", "int", 2) is None
    assert "/t" in bridge.client._phone
    bridge.client._queue.put([Announced("/t", "double")], [Announced("/t", "double")])
    bridge.turn()
    assert "/t" not in bridge.client._phone


def test_pulse_one_millisecond_apart(witness: NtProcess, bridge: NtLoop) -> None:
    bridge.put("/RoboRoute/RunPose", "boolean", False)
    witness_sees(bridge, witness, "/RoboRoute/RunPose", False)
    for _ in range(3):
        bridge.put("/RoboRoute/RunPose", "boolean", True)
        bridge.turn(0.001)
        time.sleep(0.001)
        bridge.put("/RoboRoute/RunPose", "boolean", False)
        bridge.turn(0.001)
    put = bridge.put("/end", "int", 1)
    bridge.result(put)
    witness.wait_value("/end", 1)
    assert witness.values("/RoboRoute/RunPose") == [False, *[True, False] * 3]


def witness_sees(bridge: NtLoop, witness: NtProcess, topic: str, value: object) -> None:
    bridge.until(lambda: value in witness.values(topic)[-1:])


def test_repeated_value_is_sent_again(witness: NtProcess, bridge: NtLoop) -> None:
    bridge.put("/press", "int", 0)
    witness_sees(bridge, witness, "/press", 0)
    for value in (7, 7, 7):
        bridge.put("/press", "int", value)
    bridge.put("/end", "int", 1)
    witness_sees(bridge, witness, "/end", 1)
    assert witness.values("/press") == [0, 7, 7, 7]


def test_unpublish_takes_the_topic_away_but_not_its_last_value(witness: NtProcess, bridge: NtLoop) -> None:
    """A value set just before its publisher goes must still arrive."""
    for round_ in range(5):
        topic = f"/t{round_}"
        bridge.put(topic, "int", 1)
        bridge.unpublish(topic)
        bridge.until(lambda topic=topic: witness.values(topic) == [1] and topic not in witness.topics())


def test_unpublish_then_put_keeps_the_topic(witness: NtProcess, bridge: NtLoop) -> None:
    bridge.put("/t", "int", 1)
    bridge.unpublish("/t")
    bridge.put("/t", "int", 2)
    witness_sees(bridge, witness, "/t", 2)
    bridge.run(0.1)
    assert witness.types()["/t"] == "int"


def test_unpublish_then_put_of_another_type(witness: NtProcess, bridge: NtLoop) -> None:
    bridge.put("/t", "int", 1)
    witness_sees(bridge, witness, "/t", 1)
    bridge.unpublish("/t")
    bridge.put("/t", "string", "x")
    witness_sees(bridge, witness, "/t", "x")
    assert witness.types()["/t"] == "string"


def test_too_large_value_is_refused(robot: NtProcess, bridge: NtLoop) -> None:
    assert bridge.code("/big", "raw", bytes(MAX_VALUE_BYTES + 1)) == "too-large"
    assert bridge.code("/big", "raw", bytes(MAX_VALUE_BYTES)) is None
    robot.wait(lambda: [len(value) for value in robot.values("/big")] == [MAX_VALUE_BYTES])


def test_values_of_a_megabyte_in_a_row_do_not_block(robot: NtProcess, bridge: NtLoop) -> None:
    puts = [bridge.put(f"/big{number}", "raw", bytes(MAX_VALUE_BYTES)) for number in range(8)]
    bridge.until(lambda: len(bridge.results) == len(puts))
    assert all(result.accepted for result in bridge.results)
    robot.wait(lambda: len({s["topic"] for s in [*robot.take(), *robot.samples]}) == len(puts))
    assert not bridge.client.blocked


def test_flushes_are_never_within_five_milliseconds(bridge: NtLoop) -> None:
    flushes: list[float] = []
    flush = bridge.client._sender._flush
    bridge.client._sender._flush = lambda: (flushes.append(time.monotonic()), flush())[1]
    for value in range(50):
        bridge.put("/t", "int", value)
        bridge.turn(0.001)
    bridge.until(lambda: len(bridge.results) == 50)
    assert min(b - a for a, b in itertools.pairwise(flushes)) >= 0.0049


def test_properties_reach_the_server(robot: NtProcess, bridge: NtLoop) -> None:
    bridge.publish("/FRC/volts", "double", 12.5, properties={"unit": "V"})
    bridge.publish("/SmartDashboard/A/.type", "string", "Alerts", properties={"SmartDashboard": "Alerts"})
    bridge.until(lambda: len(robot.topics()) == 2)
    assert robot.topics()["/FRC/volts"]["properties"] == {"unit": "V"}
    assert robot.topics()["/SmartDashboard/A/.type"]["properties"] == {"SmartDashboard": "Alerts"}


def test_schema_goes_before_the_value_that_needs_it(witness: NtProcess, bridge: NtLoop) -> None:
    bridge.put("/pose", "struct:P", bytes(8))
    bridge.publish("/.schema/struct:P", "structschema", "double x")
    witness_sees(bridge, witness, "/pose", bytes(8))
    witness.wait_value("/.schema/struct:P", b"double x")
    assert [s["topic"] for s in witness.samples] == ["/.schema/struct:P", "/pose"]
    assert witness.topics()["/.schema/struct:P"]["properties"] == {"retained": True}


def test_changed_schema_text_replaces_the_old_one(witness: NtProcess, bridge: NtLoop) -> None:
    for text in ("double x", "double x", "double x;double y"):
        bridge.publish("/.schema/struct:P", "structschema", text)
        witness_sees(bridge, witness, "/.schema/struct:P", text.encode())


def test_own_values_coalesce_and_the_newest_arrives(witness: NtProcess, bridge: NtLoop) -> None:
    for value in range(5_000):
        bridge.client.publish(
            [Publication("/AOABridge/x/n", "int", value), Publication("/AOABridge/x/m", "int", -value)]
        )
    witness_sees(bridge, witness, "/AOABridge/x/m", -4_999)
    witness_sees(bridge, witness, "/AOABridge/x/n", 4_999)
    assert bridge.client.counters["nt_coalesced"] == 9_998


def test_keep_all_values_all_arrive(witness: NtProcess, bridge: NtLoop) -> None:
    bridge.publish("/Elastic/RobotNotifications", "string", "0", keep_all=True)
    witness_sees(bridge, witness, "/Elastic/RobotNotifications", "0")
    for value in ("1", "2", "3"):
        bridge.publish("/Elastic/RobotNotifications", "string", value, keep_all=True)
    bridge.withdraw("/Elastic/RobotNotifications")
    bridge.until(lambda: "/Elastic/RobotNotifications" not in witness.topics())
    assert witness.values("/Elastic/RobotNotifications") == ["0", "1", "2", "3"]


def test_withdrawn_topic_goes_and_comes_back(witness: NtProcess, bridge: NtLoop) -> None:
    bridge.publish("/FRC/x", "int", 1)
    witness_sees(bridge, witness, "/FRC/x", 1)
    bridge.withdraw("/FRC/x")
    bridge.until(lambda: "/FRC/x" not in witness.topics())
    bridge.publish("/FRC/x", "double", 1.5)
    witness_sees(bridge, witness, "/FRC/x", 1.5)


def test_own_value_refused_by_its_topic_is_counted(robot: NtProcess, bridge: NtLoop) -> None:
    robot.publish("/FRC/x", "string", "theirs")
    bridge.until_topic("/FRC/x")
    bridge.publish("/FRC/x", "int", 1)
    bridge.until(lambda: bridge.client.counters["nt_publish_refused"] == 1)
