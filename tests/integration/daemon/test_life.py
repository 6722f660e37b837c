"""The daemon from start to stop: signals, reloads, a second instance, phones and robot coming and going."""

import signal
import subprocess
import sys
import time

import pytest

from contract.realtime import Noise
from rig.daemon_process import DaemonProcess
from rig.nt_process import NtProcess

STOP_S = 2.0
CONFIG = """
[nt]
server = "127.0.0.1"
port = {port}
[devices]
simulated = true
[web]
enabled = false
"""


@pytest.fixture
def robot():
    with NtProcess.server() as server:
        yield server


@pytest.fixture
def daemon(tmp_path, robot):
    with DaemonProcess(tmp_path, CONFIG.format(port=robot.port)) as process:
        process.until(lambda: process.status()["robot"]["state"] == "connected")
        yield process


def put(key, value, **more):
    return {"action": "put", "key": key, "value": value, **more}


def subscribe(*keys):
    return {"action": "subscribe", "keys": list(keys)}


def settled(daemon, phone):
    daemon.until(lambda: any(line.get("status", {}).get("server") == "connected" for line in phone.lines))


def test_both_ways_and_an_orderly_stop(daemon, robot):
    robot.publish("/robot/x", "double", 1.5)
    phone = daemon.plug_in()
    settled(daemon, phone)
    phone.say(subscribe("/robot/x"), put("/RoboRoute/RunPose", True, id=1))
    daemon.until(lambda: phone.values("/robot/x") == [1.5] and {"ack": 1} in phone.lines)
    robot.wait_value("/RoboRoute/RunPose", True)
    status, seconds = daemon.stop()
    assert (status, seconds < 2.0) == (0, True)
    phone.ended.wait(2)
    assert phone.lines[-1] == {"disconnect": True}
    robot.wait_topic("/RoboRoute/RunPose", gone=True)
    assert robot.values("/RoboRoute/RunPose")[-1] is False


@pytest.mark.parametrize("stops", [5, pytest.param(100, marks=[pytest.mark.soak, pytest.mark.timeout(900)])])
def test_sigterm_under_traffic(tmp_path, robot, stops):
    robot.stream("/load/", 100, 50)
    for _ in range(stops):
        daemon = DaemonProcess(tmp_path, CONFIG.format(port=robot.port)).start()
        phone = daemon.plug_in()
        settled(daemon, phone)
        phone.say(subscribe("/load/"), put("/RoboRoute/RunPose", True))
        robot.wait_value("/RoboRoute/RunPose", True)
        daemon.until(lambda phone=phone: len(phone.lines) > 200)
        noise = Noise()
        status, seconds = daemon.stop()
        noise.stop()
        limit_s = STOP_S + noise.relaxation("stop_s", 1.0)
        assert (status, seconds < limit_s) == (0, True), f"{status} after {seconds:.2f} s\n" + "\n".join(daemon.log)
        phone.ended.wait(2)
        assert phone.lines[-1] == {"disconnect": True}
        robot.wait_topic("/RoboRoute/RunPose", gone=True)
        phone.unplug()


def test_a_phone_that_goes_takes_its_topics_along(daemon, robot):
    phone = daemon.plug_in()
    settled(daemon, phone)
    phone.say(put("/RoboRoute/RunPlan", True), put("/x", 1))
    robot.wait_value("/RoboRoute/RunPlan", True)
    robot.wait_topic("/RoboRoute/Heartbeat")
    phone.unplug()
    for topic in ("/RoboRoute/RunPlan", "/x", "/RoboRoute/Heartbeat"):
        robot.wait_topic(topic, gone=True)
    assert robot.values("/RoboRoute/RunPlan") == [True, False]


def test_a_robot_that_restarts_finds_nothing_of_the_phone(daemon, robot):
    robot.publish("/robot/x", "int", 1)
    phone = daemon.plug_in()
    settled(daemon, phone)
    phone.say(subscribe("/robot/x"), put("/RoboRoute/RunPose", True))
    robot.wait_value("/RoboRoute/RunPose", True)
    for number in range(2, 5):
        robot.kill()
        daemon.until(lambda: phone.lines[-1].get("status", {}).get("server") == "disconnected")
        phone.say(put("/late", 1, id=number))
        daemon.until(lambda number=number: any(line.get("error", {}).get("id") == number for line in phone.lines))
        robot.start()
        robot.publish("/robot/x", "int", number)
        daemon.until(lambda number=number: phone.values("/robot/x")[-1:] == [number])
        daemon.until(lambda: daemon.status()["robot"]["state"] == "connected")
        time.sleep(0.3)  # long enough for anything that is re-sent to arrive
        assert not {"/RoboRoute/RunPose", "/late"} & set(robot.types())


def test_reload(daemon):
    daemon.config.write_text(daemon.config.read_text() + '[access]\nput_deny = ["/no/*"]\n')
    daemon.process.send_signal(signal.SIGHUP)
    phone = daemon.plug_in()
    settled(daemon, phone)
    daemon.until(lambda: any("read again" in line for line in daemon.log))
    phone.say(put("/no/x", 1, id="a"), put("/yes", 1, id="b"))
    daemon.until(lambda: {"ack": "b"} in phone.lines)
    assert [line["error"]["code"] for line in phone.lines if "error" in line] == ["forbidden"]
    daemon.config.write_text("[acess]\n")
    daemon.process.send_signal(signal.SIGHUP)
    daemon.until(lambda: [issue for issue in daemon.status()["issues"] if issue["code"] == "config-rejected"])
    phone.say(put("/no/x", 1, id="c"), put("/yes", 2, id="d"))
    daemon.until(lambda: {"ack": "d"} in phone.lines)
    assert len([line for line in phone.lines if "error" in line]) == 2
    assert not phone.ended.is_set()


def test_a_bad_file_at_start_keeps_the_relay_off(tmp_path, robot):
    config = CONFIG.format(port=robot.port) + "[access]\nput_denny = []\n"
    with DaemonProcess(tmp_path, config) as daemon:
        status = daemon.status()
        assert status["verdict"] == "problem"
        assert status["config"]["state"] == "rejected"
        assert status["robot"]["state"] != "connected"
        for text, waiting in ((CONFIG.format(port=robot.port), {"nt.server", "nt.port"}), ("", {"schema"})):
            daemon.config.write_text(text)
            daemon.process.send_signal(signal.SIGHUP)
            daemon.until(lambda waiting=waiting: waiting <= set(daemon.status()["config"]["restart_needed"]))
        assert daemon.status()["robot"]["state"] != "connected"


def test_leftovers_of_a_killed_daemon_are_removed_at_the_next_start(tmp_path, robot):
    left = [tmp_path / ".status.json.1.tmp", tmp_path / ".last-good.toml.4194304.tmp"]
    for path in left:
        path.write_text("half")
    with DaemonProcess(tmp_path, CONFIG.format(port=robot.port)) as daemon:
        daemon.until((tmp_path / "status.json").exists)
    assert not any(path.exists() for path in left)


def test_a_second_instance_is_refused(daemon):
    command = [sys.executable, "-m", "aoabridge", "--socket", str(daemon.socket), "run"]
    second = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert second.returncode == 75
    assert "another instance" in second.stderr


def test_the_second_phone_notices_nothing_of_the_first_ones_end(daemon, robot):
    robot.stream("/load/", 20, 50)
    first, second = daemon.plug_in("first"), daemon.plug_in("second")
    for phone in (first, second):
        settled(daemon, phone)
        phone.say(subscribe("/load/"))
        daemon.until(lambda phone=phone: len(phone.lines) > 100)
    first.unplug()
    began = len(second.lines)
    daemon.until(lambda: len(second.lines) > began + 500)
    gaps = [b - a for a, b in zip(second.received_at[began:], second.received_at[began + 1 :], strict=False)]
    assert max(gaps) < 0.25
