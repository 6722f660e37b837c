"""The umockdev rig proves itself with raw pyusb: real libusb sees the right results, and nothing is left behind."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rig.fault_script import PHONE
from rig.rigctl import UmockPhones, sweep

pytestmark = pytest.mark.usbfs
TESTS = Path(__file__).resolve().parent.parent


@pytest.fixture
def rig(request):
    with UmockPhones({"phones": [{**PHONE, **getattr(request, "param", {})}]}) as phones:
        phones.do("plug")
        yield phones
        assert phones.stats()["problems"] == []


def child(rig, script, *arguments):
    environment = {**os.environ, **rig.environment, "PYTHONPATH": str(TESTS)}
    command = [sys.executable, str(TESTS / "rig" / script), *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def test_fault_script_has_the_right_results(rig):
    process = child(rig, "fault_script.py", rig.socket_path)
    results = json.loads(process.communicate(timeout=60)[0])
    assert {name: results[name][0] for name in ("timeout", "stall", "babble", "hung_control", "claim_held")} == {
        "timeout": 110,
        "stall": 32,
        "babble": 75,
        "hung_control": 110,
        "claim_held": 16,
    }
    assert 50 <= results["timeout"][1] < 500
    assert 300 <= results["hung_control"][1] < 1000
    assert results["whole_packets"] == [True, 513]
    assert results["round_trip"] is True
    assert results["unplug"][0] == 19
    assert [errno for errno, _ in results["after_unplug"]] == [19, 19, 19]


@pytest.mark.parametrize("rig", [{"app": "silent"}], indirect=True)
def test_idle_read_costs_no_cpu(rig):
    process = child(rig, "idle_reader.py", "2")
    output = process.communicate(timeout=60)[0].split()
    assert output[2] == "110"
    assert float(output[1]) < 0.05


@pytest.mark.parametrize("rig", [{"app": "silent"}], indirect=True)
def test_killed_process_loses_no_byte_of_the_phone(rig):
    first = child(rig, "idle_reader.py", "60")
    assert first.stdout.readline() == "reading\n"
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=10)
    rig.do("host_gone")
    rig.do("app_lines", count=1)
    second = child(rig, "idle_reader.py", "5")
    assert "/in/p1" in second.communicate(timeout=60)[0]
    assert rig.stats()["phones"]["p1"]["claims"] == 2


def test_rig_leaves_nothing_behind():
    with UmockPhones({"phones": [PHONE]}) as phones:
        phones.do("plug")
        directory = phones.directory
    assert not directory.exists()


def test_directory_of_a_killed_run_is_swept_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "aoabridge-rig-999999999-x").mkdir()
    (tmp_path / f"aoabridge-rig-{os.getpid()}-y").mkdir()
    sweep()
    assert [path.name for path in tmp_path.iterdir()] == [f"aoabridge-rig-{os.getpid()}-y"]
