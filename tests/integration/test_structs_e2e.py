"""Structs and puts from a phone's line to another program and back: real Relay, real ntcore server elsewhere."""

import json
import struct
from typing import Any

import pytest

from rig.nt_process import NtProcess
from rig.relay_thread import Phone, RelayThread

POSE2D = {
    "Translation2d": "double x;double y",
    "Rotation2d": "double value",
    "Pose2d": "Translation2d translation;Rotation2d rotation",
}
INLINE = (
    "struct Pose2d {struct Translation2d {double x; double y;} translation; "
    "struct Rotation2d {double value;} rotation;}"
)
POSE_VALUE = {"translation": {"x": 1.0, "y": 2.5}, "rotation": {"value": -0.5}}


def pose(x: float, y: float, angle: float) -> bytes:
    return struct.pack("<3d", x, y, angle)


def shown(x: float, y: float, angle: float) -> dict[str, Any]:
    return {"translation": {"x": x, "y": y}, "rotation": {"value": angle}}


# What the robot publishes.


def test_a_late_joiner_gets_the_value_before_its_schema(robot: NtProcess) -> None:
    robot.publish("/robot/pose", "struct:Pose2d", pose(1, 2, 3))
    for name in ("Pose2d", "Rotation2d", "Translation2d"):  # outermost first
        robot.publish_schema(name, POSE2D[name])
    with RelayThread(robot.address) as bridge:
        phone = bridge.phone()
        phone.say({"subscribe": ["/robot/pose"]})
        phone.wait_value("/robot/pose", shown(1, 2, 3))
        (line,) = [line for line in phone.lines if "key" in line]
        assert list(line) == ["key", "time", "schema", "value"]
        assert line["schema"] == INLINE


def test_nested_schemas_in_the_wrong_order_hold_the_value_back(robot: NtProcess, phone: Phone) -> None:
    phone.say({"subscribe": ["/robot/pose"]})
    robot.publish("/robot/pose", "struct:Pose2d", pose(1, 1, 1))
    robot.publish_schema("Pose2d", POSE2D["Pose2d"])
    robot.publish_schema("Rotation2d", POSE2D["Rotation2d"])
    robot.publish("/robot/pose", "struct:Pose2d", pose(4, 5, 6))
    robot.publish("/fence", "int", 1)
    phone.say({"subscribe": ["/fence"]})
    phone.wait_value("/fence", 1)
    assert phone.values("/robot/pose") == []
    robot.publish_schema("Translation2d", POSE2D["Translation2d"])
    phone.wait(lambda: phone.values("/robot/pose"))
    assert phone.values("/robot/pose") == [shown(4, 5, 6)]


def test_a_schema_redefined_while_running(robot: NtProcess, phone: Phone) -> None:
    phone.say({"subscribe": ["/v"]})
    robot.publish_schema("V", "double a;double b")
    robot.publish("/v", "struct:V", struct.pack("<2d", 1, 2))
    phone.wait_value("/v", {"a": 1.0, "b": 2.0})
    robot.publish_schema("V", "double a;double b;int32 c")
    robot.publish("/v", "struct:V", struct.pack("<2di", 3, 4, 5))
    phone.wait_value("/v", {"a": 3.0, "b": 4.0, "c": 5})
    robot.publish_schema("Inner", "int32 c")
    robot.publish_schema("V", "Inner inner;double a")
    robot.publish("/v", "struct:V", struct.pack("<id", 7, 8))
    phone.wait_value("/v", {"inner": {"c": 7}, "a": 8.0})
    robot.publish_schema("Inner", "float c")  # dependents follow
    robot.publish("/v", "struct:V", struct.pack("<fd", 1.5, 8))
    phone.wait_value("/v", {"inner": {"c": 1.5}, "a": 8.0})


def test_a_redeployed_robot_never_has_its_values_read_by_the_old_schema(robot: NtProcess) -> None:
    robot.publish("/v", "struct:V", struct.pack("<2f", 1, 2))
    robot.publish_schema("V", "float x;float y")
    with RelayThread(robot.address) as bridge:
        phone = bridge.phone()
        phone.say({"subscribe": ["/v"]})
        phone.wait_value("/v", {"x": 1.0, "y": 2.0})
        for turn in range(3):
            robot.kill()
            phone.wait(lambda: not bridge.ask(lambda: bridge.core.settled))
            robot.start()
            names = ("y", "x") if turn % 2 == 0 else ("x", "y")
            robot.publish("/v", "struct:V", struct.pack("<2f", 20 + turn, 10 + turn))
            robot.publish_schema("V", ";".join(f"float {name}" for name in names))
            expected = dict(zip(names, (20.0 + turn, 10.0 + turn), strict=True))
            phone.wait_value("/v", expected)
            wrong = {"x": expected["y"], "y": expected["x"]}
            assert wrong not in phone.values("/v")


def test_another_schema_of_the_robot_refuses_the_put_and_publishes_nothing(
    robot: NtProcess, bridge: RelayThread, phone: Phone
) -> None:
    robot.publish_schema("Pose2d", "double x;double y;double angle")
    phone.wait(lambda: bridge.ask(lambda: "Pose2d" in bridge.core.registry))
    put = {"action": "put", "key": "/RoboRoute/Pose", "schema": INLINE, "value": POSE_VALUE}
    assert phone.answer(json.dumps(put)) == ("error", "schema-conflict")
    assert phone.answer('{"action":"put","key":"/fence","value":1}')[0] == "ack"
    robot.wait_topic("/fence")
    found = robot.topics()
    assert "/RoboRoute/Pose" not in found
    assert [name for name in found if ".schema" in name] == ["/.schema/struct:Pose2d"]


@pytest.mark.parametrize("size", [0, 1, 23, 25, 48])
def test_a_value_too_short_or_too_long_is_told_and_not_sent(robot: NtProcess, phone: Phone, size: int) -> None:
    for name, text in POSE2D.items():
        robot.publish_schema(name, text)
    robot.publish("/robot/pose", "struct:Pose2d", b"\0" * size)
    phone.say({"subscribe": ["/robot/pose"]})
    phone.wait(phone.errors)
    assert phone.errors() == ["bad-value"]
    robot.publish("/robot/pose", "struct:Pose2d", pose(1, 2, 3))
    phone.wait(lambda: phone.values("/robot/pose"))
    assert phone.values("/robot/pose") == [shown(1, 2, 3)]


def test_an_array_that_is_no_multiple_is_told(robot: NtProcess, phone: Phone) -> None:
    for name, text in POSE2D.items():
        robot.publish_schema(name, text)
    robot.publish("/route", "struct:Pose2d[]", pose(1, 2, 3) + b"\0")
    phone.say({"subscribe": ["/route"]})
    phone.wait(phone.errors)
    assert phone.values("/route") == []


def test_pose_arrays_of_none_one_and_five_hundred(robot: NtProcess, phone: Phone) -> None:
    for name, text in POSE2D.items():
        robot.publish_schema(name, text)
    phone.say({"subscribe": ["/route"]})
    for count in (0, 1, 500):
        robot.publish("/route", "struct:Pose2d[]", b"".join(pose(n, n / 2, -n) for n in range(count)))
        phone.wait_value("/route", [shown(n, n / 2, -n) for n in range(count)])
    (schema,) = {line["schema"] for line in phone.lines if line.get("key") == "/route"}
    assert schema == INLINE


def test_a_thousand_struct_topics(robot: NtProcess, phone: Phone) -> None:
    phone.say({"action": "subscribe", "keys": ["/many/"]})
    for number in range(1000):
        robot.publish(f"/many/{number}", "struct:Pose2d", pose(number, 0, 1), flush=False)
    for name, text in POSE2D.items():
        robot.publish_schema(name, text)
    phone.wait(lambda: len({line["key"] for line in phone.lines if "key" in line}) == 1000)
    for line in phone.lines:
        if "key" in line:
            assert line["value"] == shown(float(line["key"].rpartition("/")[2]), 0, 1)


# What the phone publishes, as another program sees it.


def schemas_of(witness: NtProcess) -> dict[str, str]:
    """Texts of all schema topics, by type name."""
    witness.take()
    prefix = "/.schema/struct:"
    return {
        sample["topic"].removeprefix(prefix): sample["value"].decode()
        for sample in witness.samples
        if sample["topic"].startswith(prefix)
    }


def read_by(schemas: dict[str, str], name: str, data: bytes) -> tuple[dict[str, Any], bytes]:
    """A strict reader of its own: declarations split at ``;``, tokens at one blank, doubles and nested types."""
    fields: dict[str, Any] = {}
    for declaration in schemas[name].split(";"):
        type_name, field = declaration.split(" ")
        if type_name == "double":
            (fields[field],), data = struct.unpack_from("<d", data), data[8:]
        else:
            fields[field], data = read_by(schemas, type_name, data)
    return fields, data


def test_a_dashboard_reads_a_phones_struct_by_the_schema_it_finds(witness: NtProcess, phone: Phone) -> None:
    put = {"action": "put", "key": "/RoboRoute/Pose", "schema": INLINE, "value": POSE_VALUE}
    assert phone.answer(json.dumps(put))[0] == "ack"
    witness.wait_value("/RoboRoute/Pose", pose(1, 2.5, -0.5))
    witness.wait(lambda: len(schemas_of(witness)) == 3)
    found = witness.topics()
    for name in POSE2D:
        assert found[f"/.schema/struct:{name}"] == {"type": "structschema", "properties": {"retained": True}}
    assert found["/RoboRoute/Pose"]["type"] == "struct:Pose2d"
    assert schemas_of(witness) == POSE2D
    assert read_by(schemas_of(witness), "Pose2d", witness.values("/RoboRoute/Pose")[-1]) == (POSE_VALUE, b"")


def test_the_schemas_are_there_again_after_the_robot_restarted(
    robot: NtProcess, bridge: RelayThread, phone: Phone
) -> None:
    put = json.dumps({"action": "put", "key": "/RoboRoute/Pose", "schema": INLINE, "value": POSE_VALUE})
    assert phone.answer(put)[0] == "ack"
    robot.wait_topic("/.schema/struct:Pose2d")
    robot.kill()
    phone.wait(lambda: not bridge.ask(lambda: bridge.core.settled))
    robot.start()
    phone.wait(lambda: bridge.ask(lambda: bridge.core.settled))
    assert "/RoboRoute/Pose" not in robot.topics()
    assert phone.answer(put)[0] == "ack"
    robot.wait_value("/RoboRoute/Pose", pose(1, 2.5, -0.5))
    for name in POSE2D:
        robot.wait_topic(f"/.schema/struct:{name}")


def test_the_conversation_of_the_known_app(robot: NtProcess, witness: NtProcess, bridge: RelayThread) -> None:
    for name, text in POSE2D.items():
        robot.publish_schema(name, text)
    robot.publish("/FMSInfo/IsRedAlliance", "boolean", True)
    robot.publish("/robot/pose", "struct:Pose2d", pose(1.0, 2.5, -0.5))
    phone = bridge.phone()
    phone.wait(lambda: len(phone.lines) >= 2)
    assert [next(iter(line)) for line in phone.lines[:2]] == ["topics", "status"]
    phone.say('{"subscribe":["/FMSInfo/IsRedAlliance"]}')
    phone.wait_value("/FMSInfo/IsRedAlliance", True)
    phone.say('{"subscribe":["/robot/pose"]}')
    phone.wait_value("/robot/pose", POSE_VALUE)
    (line,) = [line for line in phone.raw if b'"/robot/pose"' in line and b'"key"' in line]
    time_text = line.split(b'"time":')[1].split(b",")[0]
    body = b'{"translation":{"x":1.0,"y":2.5},"rotation":{"value":-0.5}}'
    expected = b'{"key":"/robot/pose","time":%s,"schema":"%s","value":%s}' % (time_text, INLINE.encode(), body)
    assert line == expected
    assert abs(float(time_text) - robot.now_us() / 1e6) < 60

    value = '{"translation":{"x":1.0,"y":2.5},"rotation":{"value":-0.5}}'
    schema = json.dumps(INLINE)
    phone.say(f'{{"action":"put","key":"/RoboRoute/Pose","schema":{schema},"value":{value}}}')
    phone.say('{"action":"put","key":"/RoboRoute/RunPose","value":true}')
    witness.wait_value("/RoboRoute/RunPose", True)
    assert witness.values("/RoboRoute/Pose") == [pose(1, 2.5, -0.5)]
    phone.say('{"action":"put","key":"/RoboRoute/RunPose","value":false}')
    witness.wait_value("/RoboRoute/RunPose", False)
    phone.say(f'{{"action":"put","key":"/RoboRoute/Route","schema":{schema},"value":[{value},{value}]}}')
    phone.say('{"action":"put","key":"/RoboRoute/RunRoute","value":true}')
    witness.wait_value("/RoboRoute/RunRoute", True)
    assert witness.values("/RoboRoute/Route") == [pose(1, 2.5, -0.5) * 2]
    phone.say('{"action":"put","key":"/RoboRoute/Plan","value":"{\\"steps\\":[]}"}')
    witness.wait_value("/RoboRoute/Plan", '{"steps":[]}')
    types = witness.types()
    assert {name: types[f"/RoboRoute/{name}"] for name in ("Pose", "RunPose", "Route", "RunRoute", "Plan")} == {
        "Pose": "struct:Pose2d",
        "RunPose": "boolean",
        "Route": "struct:Pose2d[]",
        "RunRoute": "boolean",
        "Plan": "string",
    }
    assert phone.errors() == []

    phone.unplug()  # with RunRoute true
    witness.wait_value("/RoboRoute/RunRoute", False)
    for name in ("Pose", "RunPose", "Route", "RunRoute", "Plan"):
        witness.wait_topic(f"/RoboRoute/{name}", gone=True)
    assert witness.values("/RoboRoute/RunPose") == [True, False]
    assert witness.values("/RoboRoute/RunRoute") == [True, False]
