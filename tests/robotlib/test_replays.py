"""What NetworkTables sends again after a reboot, a restart or a pulled cable never moves the robot.

Robot and phone are real NT in separate processes; every row runs 20 times, in processes side by side.
"""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("nt_phone.py")
ROOT = Path(__file__).parents[2]
PROCESSES = 5
REPETITIONS = 4


def play(scenario, processes, repetitions):
    command = [sys.executable, str(SCRIPT), scenario, str(repetitions)]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    running = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(processes)
    ]
    for process in running:
        try:
            out, errors = process.communicate(timeout=110)
        except subprocess.TimeoutExpired:
            process.kill()
            out, errors = process.communicate()
        assert process.returncode == 0, errors[-2000:]
        assert out.strip() == "done"


@pytest.mark.parametrize("scenario", ["robot_reboot", "bridge_restart", "cable_pulled"])
def test_twenty_times(scenario):
    play(scenario, PROCESSES, REPETITIONS)


@pytest.mark.parametrize("scenario", ["odd_values", "no_slash_heartbeat"])
def test_once(scenario):
    play(scenario, 1, 1)
