"""The Stream Motion source against the bench robot: topics, silence, byte order, and that nothing can move an arm."""

import math
import struct
from typing import Any

import msgspec
import pytest

from aoabridge.codecs.j519 import FROM_ROBOT, TO_ROBOT, decode, encode
from aoabridge.codecs.j519.packets import ExtStatusV4, Motion, Status
from aoabridge.codecs.j519.robot_model import RobotConfig
from aoabridge.codecs.wpistruct import SchemaRegistry
from aoabridge.simulators.j519 import BenchFaults, BenchRobot, BenchSettings
from aoabridge.sources.base import Source
from aoabridge.sources.j519 import ENDPOINT, J519Source
from aoabridge.sources.j519_topics import SCHEMAS, contact_label, io_label, struct_bytes
from aoabridge.sources.settings import J519Settings
from aoabridge.values import Publication, Withdrawal

ROBOT, PC = ("192.0.2.9", 60015), ("192.0.2.1", 50899)
ROOT = "/J519/arm/"
HOME = (0.0,) * 9
CLASSIC_TOPICS = {
    "Status": "struct:J519Status", "Joint_deg": "float[]", "MotorCurrent_A": "float[]", "Cartesian": "float[]",
    "JointVelocity_degps": "double[]", "Pose": "struct:Pose3d", "PoseFrame": "string", "Ready": "boolean",
    "CommandReceived": "boolean", "SysReady": "boolean", "InMotion": "boolean", "State": "string", "Sequence": "int",
    "Timestamp_ms": "int", "PacketRate": "int", "ReadIO/Class": "string", "ReadIO/Index": "int", "ReadIO/Mask": "int",
    "ReadIO/Value": "int", "Limits/MaxCartSpeed_mmps": "int", "Limits/Interval": "int",
    **{f"Limits/J{axis}/{kind}/{load}": "float[]" for axis in range(1, 7)
       for kind in ("Velocity", "Acceleration", "Jerk") for load in ("NoLoad", "FullLoad")},
}  # fmt: skip
DRIVER_TOPICS = {
    **{name: kind for name, kind in CLASSIC_TOPICS.items() if not name.startswith(("ReadIO", "Status"))},
    "ExtStatus": "struct:J519ExtStatus", "Force": "struct:J519Force", "InError": "boolean", "TpEnabled": "boolean",
    "EStopped": "boolean", "ContactStop": "string", "IO/Status": "raw",
}  # fmt: skip
LINK_TOPICS = {
    "Link/Connected": "boolean",
    **{f"Link/{name}": "int" for name in ("Version", "Received", "LostStatus", "Duplicates", "Reordered", "Restarts",
       "Rejected", "ForeignSource", "NonFinite", "ByteOrderSuspect", "Opens")},
    **{f"Link/{name}": "double" for name in ("Status_hz", "RxAge_ms", "Jitter_ms", "Cycle_ms")},
}  # fmt: skip


class Rig:
    """Source and bench robot in virtual time; remembers what is published."""

    def __init__(
        self, settings: dict[str, Any] | None = None, robot: dict[str, Any] | None = None, **bench: Any
    ) -> None:
        self.source = J519Source(J519Settings(**{"host": ROBOT[0], **(settings or {})}), "arm")
        self.robot = BenchRobot(
            BenchSettings(robot=RobotConfig(**{"feedback_delay_us": 60_000, **(robot or {})}), **bench), 0
        )
        self.now = 0.0
        self.alive = True
        self.topics: dict[str, Publication] = {}
        self.log: list[tuple[float, str, Any]] = []
        self.sent: list[bytes] = []
        source: Source = self.source
        assert source.endpoints()[0].key == ENDPOINT

    def open(self) -> None:
        self.source.on_endpoint(ENDPOINT, PC, self.now)

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now = round(self.now + 0.001, 6)
            now_us = round(self.now * 1_000_000)
            if self.alive:
                self.robot.on_tick(now_us)
                for data, _ in self.robot.take_datagrams():
                    self.source.on_datagram(ENDPOINT, data, ROBOT, self.now)
            self.source.on_tick(self.now)
            for key, data, address in self.source.take_datagrams():
                assert (key, address) == (ENDPOINT, ROBOT)
                self.sent.append(data)
                if self.alive:
                    self.robot.on_datagram(data, PC, now_us)
            self.collect()

    def collect(self) -> None:
        for item in self.source.take_publications():
            if isinstance(item, Withdrawal):
                self.topics.pop(item.topic)
                self.log.append((self.now, item.topic, None))
            else:
                self.topics[item.topic] = item
                self.log.append((self.now, item.topic, item.value))

    def value(self, name: str) -> Any:
        return self.topics[ROOT + name].value

    def types(self) -> dict[str, str]:
        return {name.removeprefix(ROOT): item.type for name, item in self.topics.items() if name.startswith(ROOT)}

    def times(self, name: str) -> list[tuple[float, Any]]:
        return [(now, value) for now, topic, value in self.log if topic == ROOT + name]


def running(settings: dict[str, Any] | None = None, robot: dict[str, Any] | None = None, **bench: Any) -> Rig:
    rig = Rig(settings, robot, **bench)
    rig.open()
    rig.run(3.0)
    return rig


def test_all_topics_of_the_classic_generation() -> None:
    rig = running(sine=True)
    assert rig.types() == {**CLASSIC_TOPICS, **LINK_TOPICS}
    assert (rig.value("State"), rig.value("Ready"), rig.value("SysReady")) == ("ready", True, True)
    assert rig.value("InMotion") is True and rig.value("CommandReceived") is False
    assert rig.value("PoseFrame") == "world -> faceplate" and rig.value("ReadIO/Class") == "none"
    assert (rig.value("Limits/MaxCartSpeed_mmps"), rig.value("Limits/Interval")) == (2000, 8)
    assert rig.value("Limits/J3/Jerk/NoLoad") == [1860.0] * 20
    assert (
        rig.value("Link/Status_hz") == 125.0 and rig.value("Link/Cycle_ms") == 8.0 and rig.value("Link/Jitter_ms") < 1
    )
    assert rig.value("Link/Version") == 1 and rig.value("Link/Opens") == 1
    assert max(map(abs, rig.value("JointVelocity_degps"))) < 20 * 2 * math.pi / 8 + 0.1
    assert max(map(abs, rig.value("JointVelocity_degps"))) > 5


def test_all_topics_of_the_driver_generation() -> None:
    rig = running({"generation": "driver", "version": "query"}, {"generation": "driver", "version": 4})
    assert rig.types() == {**DRIVER_TOPICS, **LINK_TOPICS}
    assert rig.value("ContactStop") == "none" and rig.value("IO/Status") == bytes(256)
    assert len(rig.value("ExtStatus")) == 127 and len(rig.value("Force")) == 28
    assert {int.from_bytes(data[:4], "big") for data in rig.sent} == {2, 7, 3, 200}
    old = running({"generation": "driver", "version": 3}, {"generation": "driver", "version": 4})
    assert "Force" not in old.types() and "ExtStatus" in old.types()


def test_structs_are_what_their_schemas_say() -> None:
    rig = running(sine=True)
    registry = SchemaRegistry()
    for topic, item in rig.topics.items():
        if topic.startswith("/.schema/struct:"):
            assert item.type == "structschema"
            registry.add(topic.removeprefix("/.schema/struct:"), item.value)  # type: ignore[arg-type]
    status = registry.codec("J519Status").decode(rig.value("Status"))
    assert status["version_no"] == 1 and status["ready"] is True and status["sysrdy"] is True
    assert status["sequence_no"] == rig.value("Sequence") and status["time_stamp_ms"] == rig.value("Timestamp_ms")
    assert status["joint_deg"] == rig.value("Joint_deg")
    pose = registry.codec("Pose3d").decode(rig.value("Pose"))
    assert pose["translation"]["x"] == pytest.approx(rig.value("Cartesian")[0] / 1000)
    assert set(SCHEMAS) - {"J519ExtStatus", "J519Force"} == {
        topic.removeprefix("/.schema/struct:") for topic in rig.topics if topic.startswith("/.schema/")
    }


SIGNALLING = bytes.fromhex("7f800001")


@pytest.mark.parametrize("order", ["big", "little"])
def test_struct_bytes_keep_every_bit(order: Any) -> None:
    built = encode(Status(1, 2, 0x9F, 99, 3, 4, 5, 6, *(tuple(float(i) for i in range(9)),) * 3), byte_order=order)
    word = SIGNALLING if order == "big" else SIGNALLING[::-1]
    data = built[:24] + word + built[28:]
    packet = decode(FROM_ROBOT, data, byte_order=order)
    assert isinstance(packet, Status)
    result = struct_bytes(packet)
    assert len(result) == 128 and result[12] == 0x9F
    assert result[:20] == struct.pack("<IIIBBHHH", 1, 2, 6, 0x9F, 99, 3, 4, 5)
    assert result[20:24] == SIGNALLING[::-1]
    assert result[24:] == struct.pack("<26f", *range(1, 9), *range(9), *range(9))


def test_ext_struct_bytes() -> None:
    data = encode(ExtStatusV4(4, 2, 0x0F, 7, 2, 0, 6, HOME, HOME, HOME, 0.5, 1, 2, 3, 4, 5, 6, 2, bytes(256)))
    packet = decode(FROM_ROBOT, data)
    assert isinstance(packet, ExtStatusV4)
    result = struct_bytes(packet)
    assert len(result) == 127
    assert result[:15] == struct.pack("<IIIBBB", 4, 2, 6, 0x0F, 7, 2) and result[-4:] == struct.pack("<f", 0.5)


def test_labels() -> None:
    packet = decode(FROM_ROBOT, encode(Status(1, 1, 0, 35, 0, 0, 0, 0, HOME, HOME, HOME)))
    assert isinstance(packet, Status)
    assert (io_label(packet.read_io_type), io_label(99), contact_label(9)) == ("F", "unknown(99)", "unknown(9)")


def test_silence_and_recovery() -> None:
    rig = running({"forget_s": 1.0})
    rig.alive, stopped = False, rig.now
    rig.run(0.5)
    [(fell, _)] = [(now, value) for now, value in rig.times("Link/Connected") if value is False and now > stopped]
    assert 0.24 <= fell - stopped <= 0.35
    assert rig.value("State") == "lost" and "Joint_deg" in rig.types()
    assert any(issue.sentence == "j519: no Status from 192.0.2.9" for issue in rig.source.status(rig.now).issues)
    rig.run(0.6)
    assert set(rig.types()) == set(LINK_TOPICS)
    before = len(rig.sent)
    rig.run(2.5)
    assert rig.sent[before][:4] == b"\0\0\0\x02"  # three seconds of silence: begins again with Stop
    rig.alive = True
    rig.run(6.0)
    assert rig.types() == {**CLASSIC_TOPICS, **LINK_TOPICS}
    assert rig.value("Link/Connected") is True and rig.value("State") == "ready" and rig.value("Link/Opens") == 2


def test_what_is_sent_cannot_move_anything() -> None:
    rig = running(robot={"version": 3}, ready_after_s=0.5, faults=BenchFaults(drop=0.02, dup=0.02, reorder=0.02))
    rig.run(5.0)
    rig.source.close(rig.now)
    rig.run(0.01)
    kinds = [int.from_bytes(data[:4], "big") for data in rig.sent]
    assert set(kinds) == {0, 2, 3} and kinds[0] == kinds[-1] == 2
    assert not hasattr(rig.source, "on_updates")


def test_an_implanted_command_does_not_leave() -> None:
    rig = running()
    command = Motion(1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, HOME)
    rig.source._session._datagrams.append(encode(command))
    before = len(rig.sent)
    rig.run(0.1)
    assert len(rig.sent) == before


class TestByteOrder:
    def test_wrong_setting_publishes_counters_and_the_issue_only(self) -> None:
        rig = Rig({"request_limits": False}, {"byte_order": "little"})
        rig.open()
        rig.run(0.2)
        little = encode(Status(1, 1, 5, 0, 0, 0, 0, 0, HOME, HOME, HOME), byte_order="little")
        for _ in range(100):
            rig.source.on_datagram(ENDPOINT, little, ROBOT, rig.now)
            rig.run(0.008)
        rig.run(1.0)
        assert set(rig.types()) <= {*LINK_TOPICS, "Link/LastError", "State"}
        assert rig.value("Link/ByteOrderSuspect") >= 90 and rig.value("Link/Connected") is False
        assert rig.value("Link/LastError") == "peer looks little-endian"
        status = rig.source.status(rig.now)
        assert "j519: peer looks little-endian" in [issue.sentence for issue in status.issues] and status.bad >= 90

    def test_right_setting(self) -> None:
        rig = running({"byte_order": "little"}, {"byte_order": "little"})
        assert rig.types() == {**CLASSIC_TOPICS, **LINK_TOPICS}
        assert {int.from_bytes(data[:4], "little") for data in rig.sent} == {0, 2, 3}

    def test_little_set_and_a_big_peer(self) -> None:
        rig = Rig({"byte_order": "little", "request_limits": False})
        rig.open()
        rig.run(0.2)
        rig.source.on_datagram(ENDPOINT, encode(Status(1, 1, 5, 0, 0, 0, 0, 0, HOME, HOME, HOME)), ROBOT, rig.now)
        rig.run(0.01)
        assert rig.value("Link/LastError") == "peer looks big-endian"


class TestPassive:
    def rig(self, **settings: Any) -> Rig:
        rig = Rig({"host": "", "byte_order": "auto", **settings})
        rig.open()
        return rig

    def feed(self, rig: Rig, number: int, bits: int = 5, sender: str = "127.0.0.1", **values: Any) -> None:
        status = Status(1, number, bits, 0, 0, 0, 0, 8 * number, HOME, HOME, HOME)
        data = encode(msgspec.structs.replace(status, **values))
        rig.source.on_datagram(ENDPOINT, data, (sender, 60015), rig.now)
        rig.run(0.008)

    def test_listens_and_sends_nothing(self) -> None:
        rig = self.rig()
        endpoint = rig.source.endpoints()[0]
        assert (endpoint.direction, endpoint.bind, endpoint.port) == ("listen", "127.0.0.1", 60015)
        for number in range(1, 50):
            self.feed(rig, number)
        assert rig.value("State") == "ready"
        self.feed(rig, 50, 0x07)
        assert rig.value("State") == "streaming"
        rig.run(5.0)
        assert rig.value("Link/Connected") is False
        self.feed(rig, 1, 0x04)
        assert rig.value("State") == "status" and rig.value("Link/Restarts") == 0
        rig.source.close(rig.now)
        rig.run(0.1)
        assert rig.sent == []

    def test_foreign_senders_are_counted_and_dropped(self) -> None:
        rig = self.rig(allow_from=("192.0.2.0/24",))
        self.feed(rig, 1, sender="198.51.100.1")
        assert rig.source.counters["ForeignSource"] == 1 and rig.source.counters["Received"] == 0
        self.feed(rig, 1, sender="192.0.2.77")
        assert rig.source.counters["Received"] == 1

    def test_port_taken(self) -> None:
        rig = Rig({"host": ""})
        rig.source.on_endpoint(ENDPOINT, None, 0.0)
        assert [issue.code for issue in rig.source.status(0.0).issues] == ["source-bind"]
        rig.open()
        assert rig.source.status(0.0).issues == ()

    def test_counters(self) -> None:
        rig = self.rig()
        for number in (1, 2, 2, 5, 4):
            self.feed(rig, number)
        rig.source.on_datagram(ENDPOINT, b"junk", ("127.0.0.1", 1), rig.now)
        self.feed(rig, 6, cartesian_pose=(math.nan, *HOME[1:]))
        rig.run(1.1)
        expected = {"Received": 6, "LostStatus": 2, "Duplicates": 1, "Reordered": 1, "Rejected": 1, "NonFinite": 1}
        assert {name: rig.value(f"Link/{name}") for name in expected} == expected
        assert rig.value("Link/LastError").startswith("4 octets")
        status = rig.source.status(rig.now)
        assert (status.bad, status.gaps) == (1, 2)

    def test_pose_stays_while_it_is_not_finite(self) -> None:
        rig = self.rig(publish_hz=0)
        self.feed(rig, 1, cartesian_pose=(1000.0, *HOME[1:]))
        pose = rig.value("Pose")
        assert struct.unpack("<7d", pose) == (1.0, 0, 0, 1.0, 0, 0, 0)
        self.feed(rig, 2, cartesian_pose=(math.inf, *HOME[1:]))
        assert rig.value("Pose") == pose and rig.value("Cartesian")[0] == math.inf

    def test_velocity_needs_a_time_step(self) -> None:
        rig = self.rig(publish_hz=0)
        self.feed(rig, 1, time_stamp=0xFFFFFFFC)
        self.feed(rig, 2, time_stamp=4, joint_pose=(0.08, *HOME[1:]))
        assert rig.value("JointVelocity_degps")[0] == pytest.approx(10.0, rel=1e-6)
        count = len(rig.times("JointVelocity_degps"))
        self.feed(rig, 3, time_stamp=4, joint_pose=(9.0, *HOME[1:]))
        self.feed(rig, 4, time_stamp=1006, joint_pose=(9.0, *HOME[1:]))
        assert len(rig.times("JointVelocity_degps")) == count

    def test_refused_share(self) -> None:
        rig = self.rig()
        for number in range(1, 94):
            self.feed(rig, number)
        for _ in range(7):
            rig.source.on_datagram(ENDPOINT, b"junk", ("127.0.0.1", 1), rig.now)
        assert "j519: 7 % of datagrams refused" in [issue.sentence for issue in rig.source.status(rig.now).issues]


@pytest.mark.parametrize(("publish_hz", "low", "high"), [(50, 45, 51), (10, 9, 11), (0, 124, 126), (500, 124, 126)])
def test_publish_rate(publish_hz: int, low: int, high: int) -> None:
    rig = running({"publish_hz": publish_hz}, sine=True)
    before = len(rig.times("Status"))
    rig.run(1.0)
    assert low <= len(rig.times("Status")) - before <= high


def test_bits_leave_at_once() -> None:
    rig = running({"publish_hz": 1})
    rig.robot.session.e_stop(True)
    rig.run(0.01)
    assert rig.times("SysReady")[-1][0] > rig.now - 0.01 and rig.value("SysReady") is False


def test_deadlines_are_enough() -> None:
    """A loop that only wakes at the deadlines sees silence in time."""
    rig = running()
    now, deadline = rig.now, 0.0
    while rig.source.status(now).issues == ():
        next_at = rig.source.next_deadline(now)
        assert next_at is not None
        now = deadline = max(next_at, now + 1e-6)
        rig.source.on_tick(now)
        rig.source.take_publications()
        rig.source.take_datagrams()
    assert deadline - rig.now <= 0.35


def test_unused_parts_of_the_interface() -> None:
    source = J519Source(J519Settings(), "pi-left")
    assert source.name == "pi-left" and J519Source(J519Settings(name="arm"), "pi-left").name == "arm"
    source.on_connection(ENDPOINT, 1, ROBOT, 0.0)
    source.on_stream(ENDPOINT, 1, b"", 0.0)
    assert source.take_closures() == [] and source.take_datagrams() == []
    assert source.next_deadline(0.0) is not None and TO_ROBOT
