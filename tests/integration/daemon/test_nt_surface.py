"""What another client sees of the bridge on NetworkTables: topics, types, rates, and what goes with phone and robot."""

import itertools
import json
import threading
import time
from collections import Counter

import pytest

from contract.realtime import Noise
from rig.daemon_process import DaemonProcess
from rig.nt_process import NtProcess, free_port

CONFIG = """
name = "pit"
[nt]
server = "127.0.0.1"
port = {port}
[devices]
simulated = true
[sources]
frc = {{ enabled = true, listen = ["ds2rio-udp:{udp}"] }}
[web]
enabled = false
"""
ROOT = "/AOABridge/pit/"
ALERTS = "/SmartDashboard/AOABridge Alerts/"
POPUP = "/Elastic/RobotNotifications"
HEARTBEAT = "/RoboRoute/Heartbeat"
PUT = "/phone/x"

ON_CHANGE = {
    "version": "string",
    "buildDate": "string",
    "instanceId": "string",
    "verdict": "string",
    "status": "string",
    "issues": "string[]",
    "ready": "boolean",
    "phoneCount": "int",
    "nt/flaps": "int",
    "record/active": "boolean",
    "record/dropped": "int",
    "devices/phone/connected": "boolean",
    "devices/phone/state": "string",
    "devices/phone/port": "string",
    "devices/phone/app": "string",
    "devices/phone/appVersion": "string",
}
EACH_SECOND = {
    "uptimeSec": "double",
    "cpuPct": "double",
    "rssMiB": "double",
    "relay/toPhoneHz": "double",
    "relay/toRobotHz": "double",
    "relay/coalesced": "int",
    "relay/dropped": "int",
    "relay/refusedPuts": "int",
    "relay/badLines": "int",
    ".timesync/offset_us": "int",
    ".timesync/rtt2_us": "int",
    "sources/frc/hz": "double",
    "sources/frc/bad": "int",
    "sources/frc/gaps": "int",
}
EACH_TICK = {
    "heartbeat": "int",
    "devices/phone/rxHz": "double",
    "devices/phone/txHz": "double",
    "devices/phone/lastSeenAgeSec": "double",
    "devices/phone/latencyMillis": "double",
    "devices/phone/coalesced": "int",
    "devices/phone/dropped": "int",
    "devices/phone/reconnects": "int",
    "devices/phone/subscriptions": "int",
}
OF_THE_BOARD = {"cpuTempC": "double", "throttled": "boolean"}  # only where it has such a sensor
OTHERS = {
    **{f"{ALERTS}{name}": "string[]" for name in ("errors", "warnings", "infos")},
    f"{ALERTS}.type": "string",
    HEARTBEAT: "double",
    PUT: "int",
}
WATCHED_S = 5.0
TOLERANCE = 1.2
UNPUBLISHED_S = 1.0
FROZEN_S = 3.0


@pytest.fixture
def robot():
    with NtProcess.server() as server:
        yield server


@pytest.fixture
def daemon(tmp_path, robot):
    with DaemonProcess(tmp_path, CONFIG.format(port=robot.port, udp=free_port())) as process:
        process.until(lambda: process.status()["robot"]["state"] == "connected")
        yield process


class AnsweringPhone:
    """An app that said hello and keeps its promise to answer pings, until it is unplugged."""

    def __init__(self, daemon):
        self.phone = daemon.plug_in()
        self.phone.say({"action": "hello", "app": "scouting", "version": "2"})
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._answer)
        self._thread.start()

    def _answer(self):
        answered = 0
        while not self._over.wait(0.02):
            lines = self.phone.lines
            pongs = [{"action": "pong", "id": line["ping"]} for line in lines[answered:] if "ping" in line]
            answered += len(lines[answered:])
            if pongs:
                self.phone.say(*pongs)

    def unplug(self):
        self._over.set()
        self._thread.join()
        self.phone.unplug()


@pytest.fixture
def phone(daemon):
    app = AnsweringPhone(daemon)
    lines = app.phone.lines
    daemon.until(lambda: any(line.get("status", {}).get("server") == "connected" for line in lines))
    app.phone.say({"action": "put", "key": PUT, "value": 1, "id": 1})
    daemon.until(lambda: {"ack": 1} in lines)
    daemon.until(lambda: daemon.status()["verdict"] == "ok")
    yield app
    app.unplug()


def counts(robot):
    """How many values each topic below the root gets while we watch."""
    robot.take()
    first, began = len(robot.samples), time.monotonic()
    while time.monotonic() < began + WATCHED_S:
        robot.take()
        time.sleep(0.01)
    names = [sample["topic"] for sample in robot.samples[first:]]
    return Counter(name.removeprefix(ROOT) for name in names if name.startswith(ROOT))


def test_exactly_the_promised_topics_types_and_rates(daemon, robot, phone):
    identity = daemon.until(lambda: robot.values(f"{ROOT}instanceId"))[-1]
    expected = {f"{ROOT}{name}": kind for name, kind in (ON_CHANGE | EACH_SECOND | EACH_TICK).items()} | OTHERS
    expected[f"/AOABridge/.bridges/{identity}/name"] = "string"
    of_the_board = {f"{ROOT}{name}": kind for name, kind in OF_THE_BOARD.items()}

    def seen():
        types = {name: kind for name, kind in robot.types().items() if not name.startswith("/FRC/pit/")}
        types.pop(POPUP, None)  # one second of "ready"
        return {name: kind for name, kind in types.items() if of_the_board.get(name) != kind}

    robot.wait(lambda: seen() == expected)
    assert robot.topics()[f"{ALERTS}.type"]["properties"] == {"SmartDashboard": "Alerts"}
    assert robot.values(f"{ALERTS}.type") == ["Alerts"]
    per_second = {name: count / WATCHED_S for name, count in counts(robot).items()}
    assert seen() == expected
    assert 2 / TOLERANCE <= per_second["heartbeat"] <= 2 * TOLERANCE
    assert 1 / TOLERANCE <= per_second["uptimeSec"] <= 1 * TOLERANCE
    limits = (
        dict.fromkeys(ON_CHANGE | OF_THE_BOARD, 0.4) | dict.fromkeys(EACH_SECOND, 1.0) | dict.fromkeys(EACH_TICK, 2.0)
    )
    assert {name: hz for name, hz in per_second.items() if hz > limits[name] * TOLERANCE} == {}
    beats = robot.values(HEARTBEAT)
    assert all(a < b for a, b in itertools.pairwise(beats))
    assert 0.5 / TOLERANCE <= (beats[-1] - beats[0]) / (len(beats) - 1) <= 0.5 * TOLERANCE


def test_what_goes_with_the_phone_goes_within_a_second(daemon, robot, phone):
    robot.wait_topic(HEARTBEAT)
    noise, began = Noise(), time.monotonic()
    phone.unplug()
    robot.wait(lambda: not {HEARTBEAT, PUT} & set(robot.types()))
    took_s = time.monotonic() - began
    noise.stop()
    assert took_s <= UNPUBLISHED_S + noise.relaxation("gone_s", 1.0)
    robot.wait_value(f"{ROOT}verdict", "waiting")
    assert robot.values(f"{ROOT}phoneCount")[-1] == 0


def test_a_robot_that_restarts_shows_no_old_pop_up(daemon, robot, phone):
    shown = daemon.until(lambda: robot.values(POPUP))
    assert [json.loads(text)["title"] for text in shown] == ["Bridge ready"]
    robot.wait_topic(POPUP, gone=True)
    known = len(robot.samples)
    robot.kill()
    daemon.until(lambda: daemon.status()["robot"]["state"] == "lost")
    robot.start()
    beats = len(robot.values(f"{ROOT}heartbeat"))
    robot.wait(lambda: len(robot.values(f"{ROOT}heartbeat")) >= beats + 3)  # all that is sent again has come
    assert POPUP not in robot.types()
    assert POPUP not in [sample["topic"] for sample in robot.samples[known:]]


def test_a_robot_that_stands_still_is_lost_within_three_seconds(daemon, robot, phone):
    noise = Noise()
    robot.suspend()
    began = time.monotonic()
    daemon.until(lambda: "nt-lost" in [issue["code"] for issue in daemon.status()["issues"]])
    took_s = time.monotonic() - began
    noise.stop()
    robot.resume()
    daemon.until(lambda: daemon.status()["verdict"] == "ok")
    assert took_s <= FROZEN_S + noise.relaxation("lost_s", 1.0)
