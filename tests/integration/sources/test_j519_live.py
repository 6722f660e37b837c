"""Stream Motion end to end: the bench robot, the daemon, a robot's server, a phone."""

import json
import time

import pytest
import wpimath.geometry
from wpiutil import wpistruct

from rig.simulation import Simulation, Watch, udp_ports

TOPICS = {
    "Status": "struct:J519Status",
    "Joint_deg": "float[]",
    "MotorCurrent_A": "float[]",
    "Cartesian": "float[]",
    "JointVelocity_degps": "double[]",
    "Pose": "struct:Pose3d",
    "PoseFrame": "string",
    "Ready": "boolean",
    "CommandReceived": "boolean",
    "SysReady": "boolean",
    "InMotion": "boolean",
    "State": "string",
    "Sequence": "int",
    "Timestamp_ms": "int",
    "PacketRate": "int",
    "ReadIO/Class": "string",
    "ReadIO/Index": "int",
    "ReadIO/Mask": "int",
    "ReadIO/Value": "int",
    "Limits/MaxCartSpeed_mmps": "int",
    "Limits/Interval": "int",
    "Link/Connected": "boolean",
    "Link/LastError": "string",
    **dict.fromkeys(("Link/Status_hz", "Link/RxAge_ms", "Link/Jitter_ms", "Link/Cycle_ms"), "double"),
    **dict.fromkeys(
        (
            f"Link/{name}"
            for name in (
                "Version", "Received", "LostStatus", "Duplicates", "Reordered", "Restarts", "Rejected",
                "ForeignSource", "NonFinite", "ByteOrderSuspect", "Opens",
            )
        ),
        "int",
    ),
    **{
        f"Limits/J{axis}/{kind}/{load}": "float[]"
        for axis in range(1, 7)
        for kind in ("Velocity", "Acceleration", "Jerk")
        for load in ("NoLoad", "FullLoad")
    },
}  # fmt: skip
DRIVER = {
    "ExtStatus": "struct:J519ExtStatus",
    "InError": "boolean",
    "TpEnabled": "boolean",
    "EStopped": "boolean",
    "ContactStop": "string",
    "IO/Status": "raw",
}
FORGET_S = 1.0


def table(port: int, **more: object) -> str:
    keys = {"enabled": True, "name": "arm", "host": "127.0.0.1", "port": port, "forget_s": FORGET_S} | more
    return "[sources.j519]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())


def arm(port: int, *options: str) -> Simulation:
    return Simulation("j519", "--bind", f"127.0.0.1:{port}", "--motion", "sine", "--ready-after", "0", *options)


def test_every_topic_stale_in_time_and_back(robot, run_daemon):
    (port,) = udp_ports(1)
    watch = Watch(robot, "/J519/arm/")
    simulation = arm(port, "--version", "3").start()
    watch.until(lambda: simulation.events)  # a robot that does not answer is not asked for its limits again
    try:
        daemon = run_daemon(table(port))
        phone = daemon.plug_in()
        phone.say({"action": "subscribe", "keys": ["/J519/arm/Ready", "/J519/arm/Joint_deg"]})
        without_errors = {name: kind for name, kind in TOPICS.items() if name != "Link/LastError"}
        watch.until_types(without_errors, 30)
        assert watch.types() == without_errors
        watch.until_value("InMotion", True)
        watch.until(lambda: watch.value("Link/Status_hz") > 100)
        status = watch.struct("Status")
        assert (status["ready"], status["sysrdy"], status["version_no"]) == (True, True, 1)
        assert watch.value("Link/Cycle_ms") == pytest.approx(8, abs=2)
        assert watch.value("Limits/J3/Acceleration/NoLoad") == pytest.approx([399.0] * 20)
        assert watch.value("Limits/MaxCartSpeed_mmps") == 2000
        assert watch.value("PoseFrame")
        pose = wpistruct.unpack(wpimath.geometry.Pose3d, watch.value("Pose"))
        assert pose.X() == pytest.approx(watch.value("Cartesian")[0] / 1000, abs=0.5)
        daemon.until(lambda: phone.values("/J519/arm/Ready") and len(phone.values("/J519/arm/Joint_deg")) > 10)
        assert daemon.status()["sources"]["j519"]["hz"] > 100

        simulation.kill()
        stopped = time.monotonic()
        watch.until_value("Link/Connected", False)
        assert time.monotonic() - stopped < 0.25 + 0.6  # stale_ms, and the share of two busy cores
        assert watch.value("State") == "lost"
        watch.until(lambda: all(name.startswith("Link/") for name in watch.types()), FORGET_S + 3)
        daemon.until(lambda: "source-silent" in {issue["code"] for issue in daemon.status()["issues"]}, 15)

        simulation = arm(port, "--version", "3").start()
        watch.until_value("Link/Connected", True, 20)
        watch.until_types({"Status": "struct:J519Status", "Joint_deg": "float[]"})
        daemon.until(lambda: "source-silent" not in {issue["code"] for issue in daemon.status()["issues"]}, 15)
    finally:
        simulation.stop()
    assert "Traceback" not in "\n".join(daemon.log)


def test_the_driver_generation(robot, run_daemon):
    (port,) = udp_ports(1)
    watch = Watch(robot, "/J519/arm/")
    with arm(port, "--generation", "driver", "--version", "3"):
        run_daemon(table(port, generation="driver", version=3))
        watch.until_types(DRIVER, 20)
        assert "Status" not in watch.types()
        assert "Force" not in watch.types()
        assert len(watch.value("IO/Status")) == 256
        assert watch.value("ContactStop") == "none"
        assert watch.struct("ExtStatus")["e_stopped"] is False


def test_byte_order_is_never_guessed_and_little_works_when_chosen(robot, run_daemon):
    (port,) = udp_ports(1)
    watch = Watch(robot, "/J519/arm/")
    with arm(port, "--byte-order", "little"):
        daemon = run_daemon(table(port, request_limits=False))
        daemon.until(lambda: [issue for issue in daemon.status()["issues"] if issue["code"] == "source-silent"], 20)
        assert all(name.startswith(("Link/", "State")) for name in watch.types())
        assert watch.value("Link/Connected") is False
        assert daemon.stop()[0] == 0
        robot.kill()
        robot.start()
        daemon = run_daemon(table(port, request_limits=False, byte_order="little"))
        watch.until_value("Link/Connected", True, 20)
        watch.until_types({"Status": "struct:J519Status"})
        assert watch.struct("Status")["sysrdy"] is True


def test_a_stop_is_the_last_word(robot, run_daemon):
    (port,) = udp_ports(1)
    watch = Watch(robot, "/J519/arm/")
    with arm(port) as simulation:
        daemon = run_daemon(table(port, request_limits=False))
        watch.until_value("Link/Connected", True, 20)
        assert daemon.stop()[0] == 0
        watch.until(lambda: simulation.events and simulation.events[-1]["state"] == "idle", 5)
