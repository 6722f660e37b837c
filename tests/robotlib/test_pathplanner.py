"""The PathPlanner edge, each check in a process of its own: AutoBuilder and HAL are one per process."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("pathplanner_checks.py")
ROOT = Path(__file__).parents[2]
CHECKS = [
    line[4 : line.index("(")]
    for line in SCRIPT.read_text(encoding="utf-8").splitlines()
    if line.startswith("def ") and line.endswith("():")
]


@pytest.mark.parametrize("check", CHECKS)
def test_pathplanner(check, tmp_path):
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    command = [sys.executable, str(SCRIPT), check, str(tmp_path)]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.stdout.endswith("done\n"), done.stderr[-3000:]
