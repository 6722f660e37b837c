"""What a bridge does, over real NT through a cable that can be pulled; the robot is another process.

Usage: nt_phone.py SCENARIO REPETITIONS. Exits 0 if the robot never moved by itself.
"""

import contextlib
import json
import random
import selectors
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import ntcore

sys.path.insert(0, str(Path(__file__).parent))
from robotlib import plan_id

PLAN = json.dumps({"type": "POSE", "pose": {"x": 14.0, "y": 2.0, "rotation": 0.0}})
DEADLINE_S = 20.0
WATCH_S = 0.3


def free_port():
    """A port below those that the system hands to outgoing connections, which would take it in the meantime."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Cable(threading.Thread):
    """A TCP relay; `pull` cuts all connections until `plug`."""

    def __init__(self, to_port):
        super().__init__(daemon=True)
        self.to_port = to_port
        self.plugged = True
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.peers = {}
        self.start()

    def run(self):
        while True:
            for key, _ in self.selector.select(0.02):
                if key.fileobj is self.listener:
                    self._accept()
                elif key.fileobj in self.peers:
                    self._relay(key.fileobj)
            if not self.plugged:
                for end in list(self.peers):
                    self._drop(end)

    def _accept(self):
        near, _ = self.listener.accept()
        try:
            if not self.plugged:
                raise OSError
            far = socket.create_connection(("127.0.0.1", self.to_port), 1.0)
        except OSError:
            near.close()
            return
        for one, other in ((near, far), (far, near)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.peers[one] = other
            self.selector.register(one, selectors.EVENT_READ)

    def _relay(self, end):
        try:
            data = end.recv(65536)
            if not data:
                raise OSError
            self.peers[end].sendall(data)
        except OSError:
            self._drop(end)

    def _drop(self, end):
        other = self.peers.pop(end, None)
        if other is not None:
            self.peers.pop(other, None)
            for one in (end, other):
                self.selector.unregister(one)
                one.close()


class Robot:
    def __init__(self, port):
        script = Path(__file__).with_name("nt_robot.py")
        self.process = subprocess.Popen(
            [sys.executable, str(script), str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout.readline().strip() == "ready"

    def ask(self, command="status"):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Bridge:
    """One NT client. Equal puts are sent again with a new stamp, as a bridge does."""

    def __init__(self, port):
        self.instance = ntcore.NetworkTableInstance.create()
        options = ntcore.PubSubOptions(keepDuplicates=True, periodic=0.01)
        table = self.instance
        for name, text in (
            ("struct:Translation2d", "double x;double y"),
            ("struct:Rotation2d", "double value"),
            ("struct:Pose2d", "Translation2d translation;Rotation2d rotation"),
        ):
            table.addSchema(name, "structschema", text)
        self.options = options
        self.topics = {}
        self.beats = None
        self.heartbeat_topic = "/RoboRoute/Heartbeat"
        self.count = time.time()
        self.instance.setServer("127.0.0.1", port)
        self.instance.startClient4("phone")

    def put(self, name, value):
        if name not in self.topics:
            path = f"/RoboRoute/{name}"
            if isinstance(value, bool):
                self.topics[name] = self.instance.getBooleanTopic(path).publish(self.options)
            elif isinstance(value, str):
                self.topics[name] = self.instance.getStringTopic(path).publish(self.options)
            elif isinstance(value, bytes):
                kind = "struct:Pose2d" if name == "Pose" else "struct:Pose2d[]"
                self.topics[name] = self.instance.getRawTopic(path).publish(kind, self.options)
            else:
                self.topics[name] = self.instance.getDoubleTopic(path).publish(self.options)
        self.topics[name].set(value)
        self.instance.flush()

    def beat(self):
        self.count += 0.05
        self.beats = self.beats or self.instance.getDoubleTopic(self.heartbeat_topic).publish(self.options)
        self.beats.set(self.count)
        self.instance.flush()

    def close(self):
        self.topics.clear()
        self.beats = None
        self.instance.stopClient()
        ntcore.NetworkTableInstance.destroy(self.instance)


class Rig:
    def __init__(self):
        self.port = free_port()
        self.cable = Cable(self.port)
        self.robot = Robot(self.port)
        self.bridge = Bridge(self.cable.port)

    def close(self):
        self.bridge.close()
        self.robot.kill()

    def until(self, what, condition):
        """Beat and ask until the condition on the robot's answer holds."""
        end = time.monotonic() + DEADLINE_S
        while True:
            self.bridge.beat()
            answer = self.robot.ask()
            if condition(answer):
                return answer
            if time.monotonic() > end:
                raise SystemExit(f"{what}: {answer}")
            threading.Event().wait(0.02)

    def watch(self, what, condition):
        """The condition must hold all the time."""
        end = time.monotonic() + WATCH_S
        while time.monotonic() < end:
            self.bridge.beat()
            answer = self.robot.ask()
            if not condition(answer):
                raise SystemExit(f"{what}: {answer}")
            threading.Event().wait(0.02)

    def stage(self):
        self.bridge.put("Plan", PLAN)
        self.until("not ready", lambda a: a["plan_id"] == plan_id(PLAN) and not a["waiting"])

    def press_works(self, runs):
        pressed = 0.0

        def started(answer):
            nonlocal pressed
            if answer["run_id"] == runs + 1:
                return True
            if time.monotonic() - pressed > 2.0:  # again only if a busy machine let the press grow too old
                pressed = time.monotonic()
                self.bridge.put("RunPlan", False)
                self.bridge.put("RunPlan", True)
            return False

        self.until("a new press does not start", started)
        self.robot.ask("cancel")

    def leave_everything_true(self):
        """The worst last values: what a bridge that dies at the wrong moment leaves behind."""
        self.bridge.put("Pose", struct.pack("<3d", 5.0, 2.0, 0.0))
        self.bridge.put("Route", struct.pack("<6d", 5.0, 2.0, 0.0, 6.0, 2.0, 0.0))
        for name in ("RunPlan", "RunPose", "RunRoute", "CancelPlan"):
            self.bridge.put(name, True)
        self.until("cancel", lambda a: a["cancels"] == 1 and a["state"] != "RUNNING")
        # Whatever was still on its way has arrived when one more beat has been answered twice.
        self.watch("cancelled", lambda a: a["state"] != "RUNNING")
        return self.robot.ask()["run_id"]

    def autonomous_goes_on(self, runs):
        self.robot.ask("start")
        self.watch("a later autonomous", lambda a: a["state"] == "RUNNING" and a["run_id"] == runs + 1)


def cable_pulled(rig):
    rig.stage()
    rig.press_works(0)
    runs = rig.leave_everything_true()
    rig.cable.plugged = False
    rig.until("cable", lambda a: "plan topic gone" in a["waiting"])
    moved = rig.robot.ask()["commands"]
    rig.cable.plugged = True
    rig.until("back", lambda a: "plan topic gone" not in a["waiting"] and a["link"] == "ok" and not a["waiting"])
    rig.watch("moved by itself", lambda a: a["run_id"] == runs and a["commands"] == moved and a["still"])
    rig.robot.ask("start")
    rig.cable.plugged = False
    rig.until("cable", lambda a: "plan topic gone" in a["waiting"])
    rig.cable.plugged = True
    rig.until("back", lambda a: "plan topic gone" not in a["waiting"] and a["link"] == "ok")
    rig.watch("an old cancel ended the run", lambda a: a["state"] == "RUNNING" and a["run_id"] == runs + 1)
    rig.robot.ask("cancel")
    rig.press_works(runs + 1)


def bridge_restart(rig):
    rig.stage()
    rig.press_works(0)
    runs = rig.leave_everything_true()
    rig.bridge.close()
    rig.bridge = Bridge(rig.cable.port)
    moved = rig.robot.ask()["commands"]
    rig.until("gone", lambda a: "plan topic gone" in a["waiting"] and a["link"] == "ok")
    rig.watch("moved by itself", lambda a: a["run_id"] == runs and a["commands"] == moved)
    rig.bridge.put("RunPlan", True)
    rig.until("refused", lambda a: "not-ready" in a["refusals"])
    rig.stage()
    rig.watch("moved by itself", lambda a: a["run_id"] == runs and a["commands"] == moved)
    rig.autonomous_goes_on(runs)
    rig.robot.ask("cancel")
    rig.press_works(runs + 1)


def robot_reboot(rig):
    rig.stage()
    rig.press_works(0)
    rig.leave_everything_true()
    rig.robot.kill()
    rig.robot = Robot(rig.port)
    answer = rig.until(
        "staged again", lambda a: a["plan_id"] == plan_id(PLAN) and a["link"] == "ok" and not a["waiting"]
    )
    assert answer["retained"], answer
    rig.watch("moved by itself", lambda a: a["run_id"] == 0 and a["commands"] == 0 and a["still"])
    rig.autonomous_goes_on(0)
    rig.robot.ask("cancel")
    rig.press_works(1)


def odd_values(rig):
    """Values of the wrong kind are shown and move nothing."""
    rig.stage()
    raw = rig.bridge.instance
    number = raw.getIntegerTopic("/RoboRoute/RunPlan").publish(rig.bridge.options)
    number.set(1)
    raw.flush()
    rig.until("int press", lambda a: "wrong-value-type" in a["refusals"])
    del number
    rig.bridge.put("Pose", struct.pack("<2d", 5.0, 2.0))
    rig.bridge.put("RunPose", True)
    rig.until("short struct", lambda a: "stale-pose" in a["refusals"])
    rig.watch("moved", lambda a: a["commands"] == 0)
    rig.bridge.topics.pop("Plan")
    raw.flush()
    rig.until("gone", lambda a: "plan topic gone" in a["waiting"])
    wrong = raw.getIntegerTopic("/RoboRoute/Plan").publish(rig.bridge.options)
    wrong.set(5)
    raw.flush()
    rig.until("plan of a wrong type", lambda a: a["state"] == "REJECTED" and a["error"] == "wrong-type")
    del wrong


def no_slash_heartbeat(rig):
    rig.bridge.heartbeat_topic = "RoboRoute/Heartbeat"
    rig.stage()
    rig.press_works(0)


def main():
    scenario = globals()[sys.argv[1]]
    for _ in range(int(sys.argv[2])):
        rig = Rig()
        with contextlib.closing(rig):
            scenario(rig)
    print("done", flush=True)


if __name__ == "__main__":
    main()
