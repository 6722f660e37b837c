"""The service unit: its exact text, accepted by the service manager's own checker, with the promised exposure."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "systemd" / "aoabridge.service"
SYSUSERS = ROOT / "systemd" / "sysusers.d" / "aoabridge.conf"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A tree in which the unit is installed beside an executable of its name; returns the tree's root."""
    units = tmp_path / "usr/lib/systemd/system"
    units.mkdir(parents=True)
    shutil.copy(UNIT, units)
    for source in (Path("/usr/lib/systemd/system"), Path("/lib/systemd/system")):
        if source.is_dir():
            for needed in ("sysinit.target", "basic.target", "network.target", "shutdown.target", "multi-user.target"):
                if (source / needed).exists():
                    shutil.copy(source / needed, units)
            for service in ("systemd-udevd.service",):
                if (source / service).exists():
                    (units / service).write_text("[Service]\nExecStart=/bin/true\n")
    for program in ("usr/bin/aoabridge", "bin/kill", "bin/true"):
        path = tmp_path / program
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    return tmp_path


def test_the_text_is_the_reviewed_one() -> None:
    assert UNIT.read_text() == (ROOT / "tests" / "vectors" / "aoabridge.service").read_text()


def test_the_checker_has_nothing_to_say(installed: Path) -> None:
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", f"--root={installed}", "aoabridge.service"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_checker_sees_a_misspelt_key(installed: Path) -> None:
    unit = installed / "usr/lib/systemd/system/aoabridge.service"
    unit.write_text(unit.read_text().replace("WatchdogSec", "WatchdogSecs"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", f"--root={installed}", "aoabridge.service"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "WatchdogSecs" in done.stderr


def test_the_exposure_stays_at_most_one_and_a_half() -> None:
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=15", "--no-pager", str(UNIT)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout


def test_the_user_is_a_static_one_of_its_own_group() -> None:
    lines = SYSUSERS.read_text().splitlines()
    assert lines == [
        "g aoabridge -",
        'u aoabridge - "aoabridge USB to NetworkTables bridge" /var/lib/aoabridge /usr/sbin/nologin',
    ]
