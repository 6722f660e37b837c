"""The path without a Debian package: the wheel in an environment of its own, as pipx makes it, in a clean system."""

import json
import subprocess
import zipfile
from pathlib import Path

import pytest

from vm.room import Room
from vm.tree import ROOT, base_tree

pytestmark = pytest.mark.timeout(600)  # the first run makes a root file system
WHEELS_S = 300
VENV = "/usr/local/lib/pipx/venvs/aoabridge"  # where quick-start.md has pipx put it
COMMAND = "/usr/local/bin/aoabridge"
UNIT = "/etc/systemd/system/aoabridge.service"
RULE = "/etc/udev/rules.d/70-aoabridge.rules"
USERS = "/etc/sysusers.d/aoabridge.conf"
DATA = {
    "data/aoabridge.service": "systemd/aoabridge.service",
    "data/aoabridge.conf": "systemd/sysusers.d/aoabridge.conf",
    "data/70-aoabridge.rules": "udev/70-aoabridge.rules",
}


def test_life_of_an_installation_by_pipx(tmp_path: Path) -> None:
    wheels = build_wheels(tmp_path)
    check_wheel(next(wheels.glob("aoabridge-*.whl")))
    with Room(base_tree()) as room:
        install(room, wheels)
        assert room.run("aoabridge", "version", "-q").stdout.strip()
        room.run("aoabridge", "version", "--check")
        room.run("aoabridge", "config", "check")
        check_demo(room)
        check_service(room)


def build_wheels(folder: Path) -> Path:
    """The wheel of the sources and those of everything that it requires, for the system's own Python."""
    subprocess.run(["/usr/bin/python3", "-m", "venv", str(folder / "builder")], check=True, timeout=WHEELS_S)
    pip = [str(folder / "builder" / "bin" / "pip"), "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "-w", str(folder / "wheels"), str(ROOT), "pip"], check=True, timeout=WHEELS_S)
    return folder / "wheels"


def check_wheel(file: Path) -> None:
    """It has every file of the sources and of the service, and no other."""
    with zipfile.ZipFile(file) as wheel:
        packed = {name.removeprefix("aoabridge/") for name in wheel.namelist() if name.startswith("aoabridge/")}
        for name, source in DATA.items():
            assert wheel.read(f"aoabridge/{name}") == (ROOT / source).read_bytes()
    sources = [path for path in (ROOT / "aoabridge").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert packed == {str(path.relative_to(ROOT / "aoabridge")) for path in sources} | set(DATA)


def install(room: Room, wheels: Path) -> None:
    """What pipx does."""
    for wheel in wheels.iterdir():
        (room.path("/packages") / wheel.name).write_bytes(wheel.read_bytes())
    pip = next(wheels.glob("pip-*.whl")).name
    room.run("python3", "-m", "venv", "--without-pip", VENV)
    command = ("-m", "pip", "-q", "install", "--no-index", "--find-links=/packages", "aoabridge")
    room.run("env", f"PYTHONPATH=/packages/{pip}", f"{VENV}/bin/python", *command)
    room.run("ln", "-s", f"{VENV}/bin/aoabridge", COMMAND)


def check_demo(room: Room) -> None:
    """The bridge with its page, whose files are data; where there is no network, as the program says to do it."""
    bare = room.run("aoabridge", "demo", "--seconds", "3", "--json", check=False)
    cure = "ip addr add 10.99.0.1/32 dev lo"
    assert (bare.returncode, cure in bare.stdout) == (1, True), bare.stdout
    room.run(*cure.split())
    done = room.run("aoabridge", "demo", "--seconds", "3", "--json", "--color", "never")
    assert json.loads(done.stdout.splitlines()[-1])["ok"] is True, done.stdout


def check_service(room: Room) -> None:
    """The files, the user and the unit's place among those that start with the machine; and away again."""
    planned = room.run("aoabridge", "service", "install", "--dry-run").stdout.splitlines()
    for path in (UNIT, RULE, USERS):
        assert not room.path(path).exists()
    done = room.run("aoabridge", "service", "install").stdout
    assert all(line in done.splitlines() for line in planned), done
    unit = (ROOT / "systemd" / "aoabridge.service").read_text()
    assert room.path(UNIT).read_text() == unit.replace("/usr/bin/aoabridge", COMMAND)
    assert room.path(RULE).read_text() == (ROOT / "udev" / "70-aoabridge.rules").read_text()
    assert room.run("systemctl", "is-enabled", "aoabridge").stdout == "enabled\n"
    assert room.run("getent", "passwd", "aoabridge").stdout.startswith("aoabridge:")
    assert room.run("systemd-analyze", "verify", "--man=no", UNIT).stdout == ""

    room.run("aoabridge", "service", "remove")
    for path in (UNIT, RULE, USERS):
        assert not room.path(path).exists()
    assert not room.path("/etc/systemd/system/multi-user.target.wants/aoabridge.service").is_symlink()
