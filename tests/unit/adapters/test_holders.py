from pathlib import Path

import pytest

from aoabridge.adapters.holders import holder_of

NODE = "/dev/bus/usb/001/005"


def process(proc: Path, pid: int, name: str, target: str, cgroup: str | None = None) -> None:
    (proc / str(pid) / "fd").mkdir(parents=True)
    (proc / str(pid) / "fd" / "7").symlink_to(target)
    (proc / str(pid) / "comm").write_text(f"{name}\n")
    if cgroup is not None:
        (proc / str(pid) / "cgroup").write_text(f"0::{cgroup}\n")


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    process(tmp_path, 10, "aoabridge", NODE)
    (tmp_path / "self").symlink_to("10")
    process(tmp_path, 11, "shell", "/dev/null")
    (tmp_path / "12").mkdir()  # a process that shows nothing
    (tmp_path / "meminfo").write_text("")
    return tmp_path


def test_nobody_else(proc: Path) -> None:
    assert holder_of(1, 5, proc) == ("", "")


def test_a_service(proc: Path) -> None:
    process(proc, 20, "ntoveraoa", NODE, "/system.slice/ntoveraoa.service")
    assert holder_of(1, 5, proc) == ("ntoveraoa", "ntoveraoa.service")
    assert holder_of(1, 6, proc) == ("", "")


@pytest.mark.parametrize("cgroup", [None, "/user.slice/session-1.scope"])
def test_a_program_of_a_user(proc: Path, cgroup: str | None) -> None:
    process(proc, 20, "adb", NODE, cgroup)
    assert holder_of(1, 5, proc) == ("adb", "")
