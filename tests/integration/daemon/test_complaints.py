"""What users of comparable programs complain about, on the running daemon."""

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.daemon_process import DaemonProcess
from rig.nt_process import NtProcess

GARBAGE_S = 4.0
CONFIG = """
name = "pit"
[nt]
server = "127.0.0.1"
port = {port}
[devices]
simulated = true
[web]
enabled = false
"""


@pytest.fixture
def robot() -> Iterator[NtProcess]:
    with NtProcess.server() as server:
        server.publish("/robot/x", "int", 1)
        yield server


def mounted(command: str, place: str) -> tuple[str, ...]:
    """A mount namespace of its own in which a command was run first; the place is its $0."""
    return ("unshare", "--mount", "sh", "-c", f'{command} && exec "$@"', place)


def codes(daemon: DaemonProcess) -> list[str]:
    return [issue["code"] for issue in daemon.status()["issues"]]


def test_two_bridges_of_one_name_both_say_so_until_one_goes(tmp_path: Path, robot: NtProcess) -> None:
    text = CONFIG.format(port=robot.port)
    daemons = []
    for number in range(2):
        directory = tmp_path / str(number)
        directory.mkdir()
        identity = directory / "machine-id"
        identity.write_text(f"{number}" * 32 + "\n")
        daemons.append(DaemonProcess(directory, text, wrap=mounted('mount --bind "$0" /etc/machine-id', str(identity))))
    first, second = daemons
    with first:
        first.until(lambda: first.status()["robot"]["state"] == "connected")
        assert "name-conflict" not in codes(first)
        with second:
            for daemon in daemons:
                daemon.until(lambda daemon=daemon: "name-conflict" in codes(daemon))
                assert daemon.status()["robot"]["state"] == "connected"
        first.until(lambda: "name-conflict" not in codes(first))


def test_a_read_only_card_costs_files_and_nothing_else(tmp_path: Path, robot: NtProcess) -> None:
    state = tmp_path / "state"
    state.mkdir()
    read_only = mounted('mount --bind -o ro "$0" "$0" && mount -o remount,bind,ro "$0"', str(state))
    wrap = (*read_only, "env", f"STATE_DIRECTORY={state}")
    text = CONFIG.format(port=robot.port) + "[record]\nenabled = true\n"
    with DaemonProcess(tmp_path, text, wrap=wrap) as daemon:
        daemon.until(lambda: {"disk-read-only", "record-stopped"} <= set(codes(daemon)))
        phone = daemon.plug_in()
        daemon.until(lambda: any(line.get("status", {}).get("server") == "connected" for line in phone.lines))
        phone.say({"action": "subscribe", "keys": ["/robot/x"]}, {"action": "put", "key": "/x", "value": 1, "id": 1})
        daemon.until(lambda: phone.values("/robot/x") == [1] and {"ack": 1} in phone.lines)
        robot.wait_value("/x", 1)
        assert daemon.status()["host"]["read_only"] is True
        assert daemon.stop()[0] == 0


def test_endless_garbage_is_one_line_per_minute_whatever_it_says(tmp_path: Path, robot: NtProcess) -> None:
    with DaemonProcess(tmp_path, CONFIG.format(port=robot.port)) as daemon:
        phone = daemon.plug_in()
        daemon.until(lambda: any(line.get("status", {}).get("server") == "connected" for line in phone.lines))
        said = len(daemon.log)
        wrong = [{"action": "put"}, {"action": "put", "key": 1}, {"action": "subscribe"}]  # not a divisor of a second
        began = time.monotonic()
        for number in itertools.count():
            phone.say(*[wrong[number % len(wrong)]] * 100)
            if time.monotonic() > began + GARBAGE_S:
                break
            time.sleep(0.1)
        daemon.until(lambda: daemon.status()["phones"][0]["bad_lines"] > 1000)
        assert len([line for line in daemon.log[said:] if "line refused" in line]) == 1
        assert len(daemon.log[said:]) < 5


# What stands in the way, the code that says so, and the machine: a network of its own with one address beside loopback.
NO_WAY = {
    "refused": ('server = "127.0.0.1"', "nt-refused", "ip addr add 10.64.58.6/24 dev lo"),
    "silent": ('server = "10.64.58.2"', "nt-timeout", "ip addr add 10.64.58.6/32 dev lo"),
    "team": ("team = 6458", "nt-subnet", "ip addr add 192.168.7.6/24 dev lo"),
    "no-link": ("team = 6458", "nt-no-link", "true"),
    "unset": ("", "nt-unset", "ip addr add 10.64.58.6/24 dev lo"),
}
MAX_LINES = 12


@pytest.mark.parametrize("seconds", [5, pytest.param(600, marks=[pytest.mark.soak, pytest.mark.timeout(900)])])
@pytest.mark.parametrize("way", NO_WAY)
def test_a_robot_that_is_not_there_is_explained_once(tmp_path: Path, way: str, seconds: float) -> None:
    target, code, network = NO_WAY[way]
    lone = ("unshare", "--net", "sh", "-c", f'ip link set lo up && {network} && exec "$@"', "sh")
    text = f"[nt]\n{target}\n[devices]\nsimulated = true\n[web]\nenabled = false\n"
    with DaemonProcess(tmp_path, text, wrap=lone) as daemon:
        daemon.until(lambda: code in codes(daemon), 15)
        daemon.plug_in()
        began = time.monotonic()
        while time.monotonic() < began + seconds:
            found = {found for found in codes(daemon) if found.startswith("nt-")}
            assert code in found
            assert found - {code} <= ({"nt-timeout"} if code == "nt-subnet" else set())
            time.sleep(1)
        status = daemon.status()
        assert status["robot"]["flaps"] == 0
        assert "nt_blocked" not in status["relay"]["counters"]  # the only reason to start the client anew
        assert len(daemon.log) <= MAX_LINES, daemon.log
        assert daemon.stop()[0] == 0
