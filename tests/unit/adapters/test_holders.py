from pathlib import Path

import pytest

from aoabridge.adapters.holders import holder_of, port_holder

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


ROWS = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:16B0 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  1000        0 {inode} 1 0
"""


def test_who_has_a_port(proc: Path) -> None:
    (proc / "net").mkdir()
    (proc / "net" / "tcp").write_text(ROWS.format(state="0A", inode=77))
    (proc / "net" / "udp6").write_text(ROWS.format(state="07", inode=78))
    process(proc, 20, "other-web", "socket:[77]")
    process(proc, 21, "other-udp", "socket:[78]")
    assert port_holder(5808, "tcp", proc) == "other-web"
    assert port_holder(5808, "udp", proc) == "other-udp"
    assert port_holder(5809, "tcp", proc) == ""
    (proc / "net" / "tcp").write_text(ROWS.format(state="01", inode=77))  # a connection, not who listens
    assert port_holder(5808, "tcp", proc) == ""
