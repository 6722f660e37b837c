"""The receiver on a real NT server; run as a process of its own by test_receiver.py.

Usage: receiver_checks.py NAME
"""

import json
import random
import socket
import struct
import sys
import threading
import time
from pathlib import Path

import ntcore
from websockets.sync.client import connect

sys.path.insert(0, str(Path(__file__).parent))
from plan_rig import EXAMPLE, FakeDrive, act, par, pose, seq, write_path

from robotlib import Actions, DriveLeaves, Inputs, PlanControl, Pose2, RoboRoute, plan_id
from robotlib.fitting import Robot
from robotlib.host import HostState, ManualHost
from robotlib.worker import InlineWorker

DEADLINE_S = 20.0
STATUS = {
    "Protocol": "int", "Version": "string", "State": "string", "Ready": "boolean", "Waiting": "string[]",
    "Refused": "string", "PlanId": "string", "RunningId": "string", "PlanName": "string", "RunId": "int",
    "Retained": "boolean", "RunSource": "string", "Running": "string[]", "RunningText": "string[]",
    "Progress": "double", "StepElapsed": "double", "Error": "string", "ErrorCode": "string", "ErrorPath": "string",
    "Warnings": "string[]", "Link": "string", "Alliance": "string", "Actions": "string", "Paths": "string[]",
    "PlanPoses": "struct:Pose2d[]", "ActivePose": "struct:Pose2d", "Timeline": "string",
}  # fmt: skip


class Robot2:
    """A receiver with a clock that is moved by hand."""

    def __init__(self, folder=None, server=False):
        self.instance = ntcore.NetworkTableInstance.create()
        if server:
            self.port = random.randrange(20_000, 32_000)
            self.instance.startServer("", "127.0.0.1", 0, self.port)
            self.wait_for_server()
        self.host = ManualHost(HostState(enabled=True, mode="teleop", alliance="blue"), folder)
        self.drive = FakeDrive(Pose2(1.0, 2.0, 0.0))
        self.rr = RoboRoute(host=self.host, drive=self.drive, instance=self.instance, worker=InlineWorker())
        self.rr.action(1, "Intake", lambda: None)
        self.options = ntcore.PubSubOptions(keepDuplicates=True)
        self.beat = self.instance.getDoubleTopic("/RoboRoute/Heartbeat").publish()
        self.count = 0.0

    def wait_for_server(self):
        """The server begins to listen some time after the call."""
        end = time.monotonic() + DEADLINE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1.0).close()
            except OSError:
                if time.monotonic() > end:
                    raise
                threading.Event().wait(0.01)
            else:
                return

    def loop(self, count=1):
        for _ in range(count):
            self.count += 1
            self.beat.set(self.count)
            self.rr.periodic()
            self.drive.move()

    def until(self, condition):
        end = time.monotonic() + DEADLINE_S
        while not condition(self.rr.status):
            self.loop()
            threading.Event().wait(0.005)
            if time.monotonic() > end:
                raise SystemExit(str(self.rr.status))

    def close(self):
        del self.beat
        self.rr.close()
        ntcore.NetworkTableInstance.destroy(self.instance)


def status_topics():
    robot = Robot2()
    plan = robot.instance.getStringTopic("/RoboRoute/Plan").publish()
    press = robot.instance.getBooleanTopic("/RoboRoute/RunPlan").publish(robot.options)
    text = json.dumps({**seq(pose(3.0, 2.0, 1.0), act(1)), "name": "Test"})
    robot.loop(2)
    plan.set(text)
    robot.until(lambda s: s.ready)
    press.set(True)
    robot.until(lambda s: s.state == "RUNNING" and s.active_pose is not None)
    threading.Event().wait(0.11)
    robot.loop(1)
    topics = {t.getName(): t.getTypeString() for t in robot.instance.getTopics("/RoboRoute/Status/")}
    assert topics == {f"/RoboRoute/Status/{name}": kind for name, kind in STATUS.items()}
    get = robot.instance.getEntry
    assert get("/RoboRoute/Status/State").getString("") == "RUNNING"
    assert get("/RoboRoute/Status/PlanId").getString("") == plan_id(text)
    assert get("/RoboRoute/Status/PlanName").getString("") == "Test"
    assert get("/RoboRoute/Status/Running").getStringArray([]) == ["$.children[0]"]
    assert struct.unpack("<3d", get("/RoboRoute/Status/PlanPoses").getRaw(b"")) == (3.0, 2.0, 1.0)
    assert struct.unpack("<3d", get("/RoboRoute/Status/ActivePose").getRaw(b"")) == (3.0, 2.0, 1.0)
    assert json.loads(get("/RoboRoute/Status/Actions").getString("")) == {"1": "Intake"}
    assert json.loads(get("/RoboRoute/Status/Timeline").getString(""))[0]["type"] == "SEQUENCE"
    assert robot.instance.hasSchema("struct:Pose2d")
    robot.rr.cancel("code")
    assert robot.drive.still
    robot.loop()
    assert get("/RoboRoute/Status/State").getString("") == "CANCELLED"
    del plan, press
    robot.close()


def idle_loop_is_cheap():
    robot = Robot2()
    robot.loop(50)
    typical = []
    for _ in range(5):
        samples = []
        for _ in range(400):
            begin = time.thread_time()
            robot.rr.periodic()
            samples.append(time.thread_time() - begin)
        typical.append(sorted(samples)[len(samples) // 2])
    print(f"idle {min(typical) * 1e6:.1f} us", file=sys.stderr)
    assert min(typical) < 60e-6
    robot.close()


def paths_of_the_deploy_folder(tmp):
    write_path(Path(tmp) / "pathplanner" / "paths")
    robot = Robot2(Path(tmp))
    assert robot.rr.status.paths == ("LeaveStart",)
    plan = robot.instance.getStringTopic("/RoboRoute/Plan").publish()
    robot.loop(2)
    plan.set(EXAMPLE)
    robot.until(lambda s: s.ready)
    del plan
    robot.close()


def ill_formed_string():
    """A client that is not ours sends bytes that are no UTF-8."""
    robot = Robot2(server=True)
    address = f"ws://127.0.0.1:{robot.port}/nt/hostile"
    with connect(address, subprotocols=["v4.1.networktables.first.wpi.edu"], close_timeout=0.1) as client:
        announce = {"name": "/RoboRoute/Plan", "pubuid": 1, "type": "string", "properties": {}}
        client.send(json.dumps([{"method": "publish", "params": announce}]))
        stamp = ntcore._now().to_bytes(8, "big")
        client.send(b"\x94\x01\xcf" + stamp + b"\x04" + b"\xa4\xff\xfe{}")
        robot.until(lambda s: s.error_code == "bad-encoding")
        assert robot.rr.status.state == "REJECTED"
        good = json.dumps(pose(3.0, 2.0)).encode()
        stamp = ntcore._now().to_bytes(8, "big")
        client.send(b"\x94\x01\xcf" + stamp + b"\x04\xd9" + bytes([len(good)]) + good)
        robot.until(lambda s: s.ready)
    robot.until(lambda s: "plan topic gone" in s.waiting)
    robot.close()


def robot_code_that_raises():
    """The host or the drive of the team raises: the loop goes on, the run ends, the drive stands still."""
    robot = Robot2()
    plan = robot.instance.getStringTopic("/RoboRoute/Plan").publish()
    robot.loop(2)
    plan.set(json.dumps(par(pose(9.0, 2.0), act(1))))
    robot.until(lambda s: s.ready)
    for name in ("host", "pose"):
        assert robot.rr.start("auto"), robot.rr.status.refused
        robot.loop(5)
        assert robot.rr.running
        if name == "host":
            read, robot.host.read = robot.host.read, lambda: 1 / 0
        else:
            where, robot.drive.pose = robot.drive.pose, lambda: 1 / 0
        robot.loop(2)
        assert not robot.rr.running
        assert robot.drive.still
        if name == "host":
            robot.host.read = read
        else:
            assert robot.rr.status.error_code == "bad-pose"
            robot.drive.pose = where
        robot.loop(2)
    del plan
    robot.close()


def live_recording_replays():
    robot = Robot2()
    plan = robot.instance.getStringTopic("/RoboRoute/Plan").publish()
    press = robot.instance.getBooleanTopic("/RoboRoute/RunPlan").publish(robot.options)
    live, recorded = [], []
    boot = robot.rr.control._boot_us
    for step in range(120):
        if step == 3:
            plan.set(json.dumps(pose(9.0, 2.0)))
        if step == 10:
            press.set(True)
        if step == 60:
            robot.rr.cancel("code")
        if step == 70:
            robot.rr.start("auto")
        robot.loop()
        threading.Event().wait(0.002)
        live.append((robot.rr.status.state, robot.rr.status.run_source, robot.rr.status.refused))
        recorded.append(json.loads(json.dumps(robot.rr.inputs.to_dict())))
    assert {state for state, _, _ in live} == {"NO_PLAN", "READY", "RUNNING", "CANCELLED"}

    class Seen(FakeDrive):
        def pose(self):
            return control.pose()

    actions = Actions()
    actions.register(1, "Intake", lambda: None)
    control = PlanControl(Robot(actions, DriveLeaves(Seen())), boot_us=boot)
    again = []
    for obj in recorded:
        control.update(Inputs.from_dict(obj), replay=True)
        again.append((control.status.state, control.status.run_source, control.status.refused))
    assert again == live

    del plan, press
    robot.close()


check = globals()[sys.argv[1]]
check(sys.argv[2]) if check.__code__.co_argcount else check()
print("done", flush=True)
