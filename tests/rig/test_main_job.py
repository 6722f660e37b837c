"""The main job end to end: phone app <-> libusb <-> daemon <-> NetworkTables server, value by value."""

import re
import struct

import pytest

from rig.main_job import MainJob

pytestmark = pytest.mark.usbfs

# Byte-exact, as the app's document has it.
POSE2D = (
    "struct Pose2d {struct Translation2d {double x; double y;} translation; "
    "struct Rotation2d {double value;} rotation;}"
)
SCHEMAS = {
    "Translation2d": "double x;double y",
    "Rotation2d": "double value",
    "Pose2d": "Translation2d translation;Rotation2d rotation",
}


def pose(x, y, angle):
    """As the app writes it."""
    return {"translation": {"x": x, "y": y}, "rotation": {"value": angle}}


def packed(x, y, angle):
    return struct.pack("<3d", x, y, angle)


def publish_pose(robot, topic, *values):
    for name, text in SCHEMAS.items():
        robot.publish_schema(name, text)
    robot.publish(topic, "struct:Pose2d", packed(*values))


@pytest.fixture
def job():
    with MainJob({}, keys=["/FMSInfo/IsRedAlliance"]) as job:
        yield job


def values(job, key):
    return [(line["value"], line.get("schema")) for line in job.phones.messages() if line.get("key") == key]


def test_the_known_apps_conversation(job):
    robot, phones = job.robot, job.phones
    robot.publish("FMSInfo/IsRedAlliance", "boolean", True)  # without the slash, as some robots have it
    publish_pose(robot, "/robot/pose", 1.5, -2.25, 0.5)
    job.start_daemon()
    phones.do("plug")
    job.until_live()
    # It subscribes by itself: the alliance on opening, the pose a second later.
    job.until_heard(lambda line: line.get("key") == "/robot/pose")
    assert values(job, "/FMSInfo/IsRedAlliance") == [(True, None)]
    assert values(job, "/robot/pose") == [(pose(1.5, -2.25, 0.5), POSE2D)]
    text = next(text for _, _, text in phones.heard() if "/robot/pose" in text and "topics" not in text)
    start, time_s, rest = re.fullmatch(r'(.*"time":)([0-9.]+)(,.*)', text).groups()
    assert start == '{"key":"/robot/pose","time":'
    assert rest == f',"schema":"{POSE2D}","value":{{"translation":{{"x":1.5,"y":-2.25}},"rotation":{{"value":0.5}}}}}}'
    assert 0 <= robot.now_us() / 1e6 - float(time_s) < 60, "the robot's clock"
    robot.publish("FMSInfo/IsRedAlliance", "boolean", False)
    robot.publish("/robot/pose", "struct:Pose2d", packed(3.0, 4.0, -1.0))
    job.daemon.until(lambda: len(values(job, "/robot/pose")) == 2 and len(values(job, "/FMSInfo/IsRedAlliance")) == 2)
    assert values(job, "/FMSInfo/IsRedAlliance")[-1] == (False, None)
    assert values(job, "/robot/pose")[-1] == (pose(3.0, 4.0, -1.0), POSE2D)

    go(job, "Pose", pose(1.0, 2.0, 0.25), "struct:Pose2d", packed(1.0, 2.0, 0.25))
    route = [pose(1.0, 2.0, 0.0), pose(3.5, -4.0, 3.0)]
    go(job, "Route", route, "struct:Pose2d[]", packed(1.0, 2.0, 0.0) + packed(3.5, -4.0, 3.0))
    plan = '{"steps":[{"path":"É \\"1\\""}]}'
    phones.say({"action": "put", "key": "/RoboRoute/Plan", "value": plan})
    robot.wait_value("/RoboRoute/Plan", plan)

    lists = [line["topics"] for line in phones.messages() if "topics" in line]
    assert lists
    assert all(names == sorted(names) for names in lists)
    assert {"/FMSInfo/IsRedAlliance", "/robot/pose"} <= set(lists[0])
    assert not any("error" in line for line in phones.messages())
    check_the_wire(phones.stats()["phones"]["p1"])


def go(job, name, value, type_string, content):
    """One press: the goal by schema, then the run pulse up and, a second later, down. Gson writes floats."""
    robot, phones = job.robot, job.phones
    topic, pulse = f"/RoboRoute/{name}", f"/RoboRoute/Run{name}"
    phones.say({"action": "put", "key": topic, "schema": POSE2D, "value": value})
    phones.say({"action": "put", "key": pulse, "value": True})
    robot.wait_value(pulse, True)
    assert robot.values(topic) == [content], "the goal must be there before the pulse"
    assert robot.types()[topic] == type_string
    phones.say({"action": "put", "key": pulse, "value": False})
    robot.wait_value(pulse, False)
    assert robot.values(pulse) == [True, False]


def check_the_wire(seen):
    """What every phone must see of a host, whatever else happens."""
    assert (seen["get_protocol"], seen["start"], seen["claims"], seen["claims_native"]) == (1, 1, 1, 0)
    assert seen["string_indices"] == [0, 1, 2, 3, 4, 5]
    assert seen["in_read_bytes"] == [16384]
    assert seen["first_out_byte"] == "0a"
    assert seen["out_max_bytes"] <= 16383
    for never in ("hid_requests", "audio_requests", "set_configuration", "reset", "zlp_out", "out_multiple_of_mps"):
        assert seen[never] == 0, never
    assert (seen["overflow"], seen["lines_corrupt"], seen["empty_strings_sent"]) == (0, 0, 0)


def test_a_phones_own_schemas_reach_the_robot(job):
    job.start_daemon()
    job.phones.do("plug")
    job.until_live()
    go(job, "Pose", pose(1.0, 2.0, 0.25), "struct:Pose2d", packed(1.0, 2.0, 0.25))
    for name, text in SCHEMAS.items():
        assert job.robot.values(f"/.schema/struct:{name}") == [text.encode()]
        assert job.robot.types()[f"/.schema/struct:{name}"] == "structschema"


def test_the_heartbeat_follows_the_link(job):
    job.start_daemon()
    job.phones.do("plug")
    job.until_live()
    job.robot.wait(lambda: len(job.robot.values("/RoboRoute/Heartbeat")) > 3)
    beats = job.robot.values("/RoboRoute/Heartbeat")
    assert beats == sorted(set(beats))
    job.phones.do("unplug")
    job.robot.wait_topic("/RoboRoute/Heartbeat", gone=True, seconds=1.5)
