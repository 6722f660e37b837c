"""The process ends with status 0, quickly and without a word, whatever the traffic."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rig.nt_process import NtProcess

ROOT = Path(__file__).parents[3]
SCRIPT = Path(__file__).with_name("exit_under_traffic.py")
SLOWEST_S = 1.0


def run(robot: NtProcess, how: str) -> tuple[int, str, float]:
    """Exit status, standard error, seconds from the last order to the end of the process."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), robot.address, how],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    ended = time.monotonic()
    return done.returncode, done.stderr, ended - float(done.stdout)


@pytest.mark.parametrize("how", ["close"] * 20)
def test_close_under_traffic(robot: NtProcess, how: str) -> None:
    robot.stream("/s/", 50, 100)
    status, errors, seconds = run(robot, how)
    assert (status, errors) == (0, "")
    assert seconds < SLOWEST_S
    robot.still()
    robot.wait_topic("/RoboRoute/RunPose", gone=True)
    assert robot.values("/RoboRoute/RunPose")[-1] is False
    assert "/AOABridge/x/n" not in robot.topics()


@pytest.mark.parametrize(("how", "expected"), [("forget", 0), ("raise", 3)])
def test_exit_without_close(robot: NtProcess, how: str, expected: int) -> None:
    """A thread that waits in ntcore at interpreter exit would abort the process (status 134)."""
    robot.stream("/s/", 50, 100)
    status, errors, seconds = run(robot, how)
    assert (status, errors) == (expected, "")
    assert seconds < SLOWEST_S
    robot.still()
    robot.wait_topic("/RoboRoute/RunPose", gone=True)
    assert robot.values("/RoboRoute/RunPose")[-1] is False
