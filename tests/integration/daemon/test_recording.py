"""Recordings: what other tools read in them, and what a replay gives back."""

import json
import signal
import subprocess
import sys
import time

import pytest
from wpiutil.log import DataLogReader

from rig.daemon_process import DaemonProcess
from rig.nt_process import NtProcess, free_port

CONFIG = """
[nt]
server = "127.0.0.1"
port = {port}
[devices]
simulated = true
[web]
enabled = false
"""


def records(path):
    """Entry -> (type, [(time, raw)])."""
    names, found = {}, {}
    for record in DataLogReader(str(path)):
        if record.isStart():
            start = record.getStartData()
            names[start.entry] = start.name
            found.setdefault(start.name, (start.type, start.metadata, []))
        elif not record.isControl():
            found[names[record.getEntry()]][2].append((record.getTimestamp(), bytes(record.getRaw())))
    return found


@pytest.fixture
def recorded(tmp_path):
    with NtProcess.server() as robot:
        config = CONFIG.format(port=robot.port) + "[record]\nphone_lines = true\nmin_free_mib = 0\n"
        with DaemonProcess(tmp_path, config) as daemon:
            daemon.until(lambda: daemon.status()["robot"]["state"] == "connected")
            robot.publish("/x", "int", 1)
            robot.publish("/name", "string", "a")
            robot.publish_schema("Pose2d", "Translation2d translation;Rotation2d rotation")
            daemon.until(lambda: "/x" in {topic["name"] for topic in daemon.request("topics")["topics"]})
            started = daemon.request("record-start", out=None, topics=None)
            assert started["active"]
            phone = daemon.plug_in()
            daemon.until(lambda: any(line.get("status", {}).get("server") == "connected" for line in phone.lines))
            for number in range(2, 12):
                robot.publish("/x", "int", number)
                phone.say({"action": "put", "key": "/put", "value": number / 2, "id": number})
                daemon.until(lambda number=number: {"ack": number} in phone.lines)
            phone.say({"action": "subscribe", "keys": ["/x"]})
            daemon.until(lambda: phone.values("/x")[-1:] == [11])
            time.sleep(0.3)  # the last flush
            ended = daemon.request("record-stop")
            assert not ended["active"]
            assert ended["dropped"] == 0
        yield ended["file"]


def test_other_tools_find_entries_types_and_values(recorded):
    found = records(recorded)
    type_, metadata, values = found["NT:/x"]
    assert (type_, json.loads(metadata)) == ("int64", {"source": "NT"})
    assert [int.from_bytes(raw, "little") for _, raw in values] == list(range(1, 12))
    assert found["NT:/.schema/struct:Pose2d"][0] == "structschema"
    assert len(found["NT:/put"][2]) == 10
    assert found["systemTime"][0] == "int64"
    lines = [json.loads(raw) for _, raw in found["AOA:/phone/rx"][2]]
    assert [line["id"] for line in lines if "id" in line] == list(range(2, 12))
    times = [at for _, _, values in found.values() for at, _ in values]
    assert max(times) - min(times) < 60e6


def test_replay_gives_the_final_values_back(recorded):
    port = free_port()
    command = [sys.executable, "-m", "aoabridge", "replay", recorded, "--listen", str(port), "--loop", "--json"]
    command += ["--speed", "5"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as replay:
        deadline = time.monotonic() + 10
        while not _listens(port):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        with NtProcess.client(port) as witness:
            witness.wait_value("/x", 11)
            witness.wait_value("/put", 5.5)
            types = witness.types()
            assert (types["/x"], types["/put"]) == ("int", "double")
        replay.send_signal(signal.SIGINT)
        output, _ = replay.communicate(timeout=10)
    assert replay.returncode == 0
    assert json.loads(output.splitlines()[-1])["topics"] >= 3


def _listens(port):
    import socket

    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_full_disk_stops_the_recording_not_the_bridge(tmp_path):
    with NtProcess.server() as robot:
        config = CONFIG.format(port=robot.port) + "[record]\nenabled = true\nmin_free_mib = 1048576\n"
        with DaemonProcess(tmp_path, config) as daemon:
            issues = daemon.until(lambda: [i for i in daemon.status()["issues"] if i["code"] == "record-stopped"])
            assert "free space" in issues[0]["sentence"]
            daemon.until(lambda: daemon.status()["robot"]["state"] == "connected")
