"""The Debian package in a clean system without service manager running, and without a network."""

import os
import re
from pathlib import Path

import pytest

from vm.room import Room
from vm.tree import ROOT, base_tree, product, variant

pytestmark = pytest.mark.timeout(600)  # the first run makes a root file system
GOLDEN = Path(__file__).parents[1] / "vectors" / "package_files.txt"
LINK = "/opt/aoabridge/current"
MARKER = "/opt/aoabridge/update-rolled-back"


def files_of(room: Room) -> list[str]:
    """What dpkg knows of the package, without versions and without what is inside of the Python packages."""
    lines = set()
    for line in room.run("dpkg", "-L", "aoabridge").stdout.splitlines():
        name = re.sub(r"/opt/aoabridge/[0-9.]+", "/opt/aoabridge/VERSION", line)
        name = re.sub(r"python3\.\d+", "python3.X", name)
        name = re.sub(r"(/site-packages/[^/]+).*", r"\1", name)
        name = re.sub(r"(/doc/aoabridge)/.*\.md", r"\1/PAGE.md", name)
        name = re.sub(r"/([a-z_]+)-[0-9][0-9.]*\.dist-info", r"/\1-N.dist-info", name)
        lines.add(name)
    return sorted(lines)


def check_files(files: list[str]) -> None:
    """Against the reviewed list; ``GOLDEN=write`` rewrites it."""
    if os.environ.get("GOLDEN") == "write":
        GOLDEN.write_text("\n".join(files) + "\n")
    assert files == GOLDEN.read_text().splitlines()


def version(room: Room) -> str:
    return room.run("aoabridge", "version", "-q").stdout.strip()


def current(room: Room) -> str:
    return str(room.path(LINK).readlink())


def test_life_of_the_package(tmp_path: Path) -> None:
    package = product()
    with Room(base_tree()) as room:
        room.install(package)
        check_files(files_of(room))
        first = check_installation(room, package)
        room.path("/etc/aoabridge/aoabridge.toml").write_text('[nt]\nserver = "10.1.2.3"\n')
        room.path("/var/lib/aoabridge").mkdir(exist_ok=True)
        room.path("/var/lib/aoabridge/last-good.toml").write_text("schema = 1\n")
        room.install(package)  # once more the same: in place, while the old tree is in use
        assert (current(room), version(room)) == (first, first)
        check_upgrades(room, package, tmp_path)
        room.install(package)  # and back
        assert (current(room), version(room)) == (first, first)
        assert "10.1.2.3" in room.path("/etc/aoabridge/aoabridge.toml").read_text()
        check_removal(room, package)


def check_installation(room: Room, package: Path) -> str:
    """Owners, modes, user and unit; returns the version."""
    first = package.name.split("_")[1].split("~")[0]
    assert (current(room), version(room)) == (first, first)
    room.run("aoabridge", "version", "--check")
    user = room.run("getent", "passwd", "aoabridge").stdout.split(":")
    assert user[5:] == ["/var/lib/aoabridge", "/usr/sbin/nologin\n"]
    assert room.run("systemctl", "is-enabled", "aoabridge").stdout == "enabled\n"
    assert room.run("find", "/opt/aoabridge", "!", "-user", "root").stdout == ""
    assert room.run("find", "/opt/aoabridge", "-perm", "/022", "!", "-type", "l").stdout == ""
    assert room.run("grep", "-rlF", str(ROOT), "/opt/aoabridge", check=False).stdout == ""
    return first


def check_upgrades(room: Room, package: Path, folder: Path) -> None:
    """Good, broken, broken again, good."""
    first = version(room)
    room.install(variant(package, folder, "7.0.0"))
    assert (current(room), version(room)) == ("7.0.0", "7.0.0")
    assert not room.path(f"/opt/aoabridge/{first}").exists()
    previous = room.run("/opt/aoabridge/previous/bin/python", "-P", "-m", "aoabridge", "version", "-q")
    assert previous.stdout == f"{first}\n"

    for broken in ("7.0.1", "7.0.2"):
        done = room.install(variant(package, folder, broken, fault="import"), check=False)
        assert done.returncode != 0
        assert "msgspec_is_missing" in done.stdout
        assert "previous version stays in use" in done.stdout
        assert (current(room), version(room)) == ("previous", "7.0.0")
        assert room.path(MARKER).read_text() == f"{broken}\n"
        status = room.run("dpkg-query", "-W", "-f", "${Status}", "aoabridge").stdout
        assert status == "install ok half-configured"

    room.install(variant(package, folder, "7.0.3"))
    assert (current(room), version(room)) == ("7.0.3", "7.0.3")
    assert not room.path(MARKER).exists()


def check_removal(room: Room, package: Path) -> None:
    """Configuration and state outlive a removal, nothing but the user outlives a purge."""
    room.run("dpkg", "--remove", "aoabridge")
    assert not room.path("/opt/aoabridge").exists()
    assert not room.path("/usr/bin/aoabridge").exists()
    assert not room.path("/etc/systemd/system/multi-user.target.wants/aoabridge.service").is_symlink()
    assert room.path("/etc/aoabridge/aoabridge.toml").exists()
    assert room.path("/var/lib/aoabridge/last-good.toml").exists()

    room.install(package)
    assert room.run("systemctl", "is-enabled", "aoabridge").stdout == "enabled\n"
    room.run("dpkg", "--purge", "aoabridge")
    assert not room.path("/opt/aoabridge").exists()
    left = room.run("find", "/etc", "/usr", "/var", "/run", "-name", "*aoabridge*").stdout.split()
    assert left == []
    assert room.run("getent", "passwd", "aoabridge").stdout.startswith("aoabridge:")


def test_first_installation_of_a_broken_version_puts_nothing_in_use(tmp_path: Path) -> None:
    with Room(base_tree()) as room:
        done = room.install(variant(product(), tmp_path, "7.0.1", fault="import"), check=False)
        assert done.returncode != 0
        assert not room.path(LINK).is_symlink()
        assert not room.path(MARKER).exists()
        room.install(product())
        assert current(room) == version(room)


def test_scripts_succeed_without_service_and_device_manager() -> None:
    """A container without systemd and udev: only the user entry is made by the tool that such images have."""
    with Room(base_tree()) as room:
        for tool in ("systemctl", "udevadm", "journalctl"):
            room.path(f"/bin/{tool}").unlink()
        package = product()
        room.install(package)
        assert current(room) == version(room)
        room.install(package)
        room.run("dpkg", "--purge", "aoabridge")
        assert not room.path("/opt/aoabridge").exists()
