"""The document's example plan, end to end in WPILib simulation, in all three frameworks."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("sim_robot.py")
ROOT = Path(__file__).parents[2]
GOAL = (4.0, 7.0, 2.68)


@pytest.mark.parametrize("how", ["phone", "auto"])
@pytest.mark.parametrize("example", ["timed_robot", "command_robot", "magicbot_robot"])
def test_example(example, how, tmp_path):
    command = [sys.executable, str(SCRIPT), str(ROOT / "examples" / f"{example}.py"), how]
    answers = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        done = subprocess.run(
            command,
            cwd=folder,
            env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(folder)},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-500:]
        line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))
        answers.append(json.loads(line.removeprefix("RESULT ")))
    for answer in answers:
        assert answer["end"] == "DONE"
        assert answer["pieces"] == 1
        assert answer["source"] == how
        assert not answer["moved_after"]
        assert math.hypot(answer["pose"][0] - GOAL[0], answer["pose"][1] - GOAL[1]) < 0.05
        assert abs(answer["pose"][2] - GOAL[2]) < math.radians(3)
    assert answers[0]["trace"] == answers[1]["trace"]


@pytest.mark.parametrize("example", ["timed_robot", "command_robot", "magicbot_robot"])
def test_example_is_short(example):
    assert len((ROOT / "examples" / f"{example}.py").read_text(encoding="utf-8").splitlines()) < 80
