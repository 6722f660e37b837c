"""``version --check`` with the real libraries, in a process of its own."""

import json
import resource
import subprocess
import sys


def test_the_installation_passes_in_three_seconds_and_ends_cleanly() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "aoabridge", "version", "--check", "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["ok"] is True
    assert [check["name"] for check in found["checks"]] == [
        "imports",
        "libusb",
        "networktables",
        "configuration",
        "rendering",
    ]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 3  # a busy machine's wall clock lies
