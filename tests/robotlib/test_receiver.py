"""The receiver on real NetworkTables, each check in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("receiver_checks.py")
ROOT = Path(__file__).parents[2]
CHECKS = [
    line[4 : line.index("(")]
    for line in SCRIPT.read_text(encoding="utf-8").splitlines()
    if line.startswith("def ") and line.endswith(("():", "(tmp):"))
]


@pytest.mark.parametrize("check", CHECKS)
def test_receiver(check, tmp_path):
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), check, str(tmp_path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.stdout.endswith("done\n"), done.stderr[-3000:]
    assert done.returncode == 0
