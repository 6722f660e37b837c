"""SIGHUP, key by key: what takes effect at once, what waits for a restart, and a refused file that changes nothing."""

import http.client
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aoabridge.config.schema import ROOT, Key, Reload, Table
from contract.realtime import Noise
from rig.daemon_process import DaemonProcess, RawPhone
from rig.nt_process import NtProcess, free_port

BASE: dict[str, dict[str, str]] = {
    "relay": {"put_rate": "5000", "put_burst": "50000", "error_lines_per_s": "1000"},
    "nt": {"server": '"127.0.0.1"'},
    "record": {"min_free_mib": "0"},
    "devices": {"simulated": "true"},
    "web": {"bind": '"127.0.0.1"'},
}
VISIBLE_S = 1.0
PAUSE_S = 0.02
ASK = """
import http.client, json
found = {}
for path in ("/healthz", "/healthz?ready", "/"):
    connection = http.client.HTTPConnection("127.0.0.1", 5808, timeout=10)
    connection.request("GET", path)
    found[path] = connection.getresponse().status
print(json.dumps(found))
"""


def text_of(sections: dict[str, dict[str, str]]) -> str:
    lines = []
    for name, keys in sections.items():
        lines += [f"[{name}]", *(f"{key} = {value}" for key, value in keys.items())]
    return "\n".join(lines) + "\n"


def put(key: str, number: int) -> dict[str, Any]:
    return {"action": "put", "key": key, "value": number, "id": f"{key}{number}"}


class Bench:
    """A running bridge with a robot and a phone that stays linked through every reload."""

    def __init__(self, directory: Path, robot: NtProcess) -> None:
        self.robot = robot
        self.web_port = free_port()
        self.sections = {name: dict(keys) for name, keys in BASE.items()}
        self.sections["nt"]["port"] = str(robot.port)
        self.sections["web"]["port"] = str(self.web_port)
        self.directory = directory
        self.daemon = DaemonProcess(directory, text_of(self.sections)).start()
        self.phone: RawPhone = self.daemon.plug_in()
        self.daemon.until(self.connected)
        self.phone.say({"action": "subscribe", "keys": ["/robot/"]})
        self.since = 0
        self.numbers = iter(range(1, 1 << 30))

    def connected(self) -> bool:
        states = [line["status"]["server"] for line in self.phone.lines if "status" in line]
        return states[-1:] == ["connected"]

    def seconds_until(self, condition: Callable[["Bench"], object], section: str = "", **keys: str) -> float:
        """Reload; how long it took until the check that found the condition true began, on a quiet machine."""
        noise = Noise()
        try:
            took_s = self._seconds_until(condition, section, **keys)
        finally:
            noise.stop()
        return took_s - noise.relaxation("visible_s", 1.0)

    def _seconds_until(self, condition: Callable[["Bench"], object], section: str, **keys: str) -> float:
        self.since = len(self.phone.lines)
        self.reload(section, **keys)
        began = time.monotonic()
        while True:
            asked = time.monotonic()
            if condition(self):
                return asked - began
            assert asked - began < 10, (keys, self.daemon.log[-5:])
            time.sleep(PAUSE_S)

    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = self.daemon.status()["record"]
        return found

    def reload(self, section: str = "", **keys: str) -> None:
        """The base file with these keys, taken over."""
        sections = {name: dict(old) for name, old in self.sections.items()}
        if section:
            sections.setdefault(section, {}).update(keys)
        self.write(text_of(sections))

    def write(self, text: str) -> None:
        self.daemon.config.write_text(text)
        self.daemon.process.send_signal(signal.SIGHUP)

    def page(self, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.web_port, timeout=10)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def effective(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.page("/api/config")[1])["effective"]
        return answer

    def puts(self, count: int) -> list[dict[str, Any]]:
        """Puts at once; their answers."""
        numbers = [next(self.numbers) for _ in range(count)]
        since = len(self.phone.lines)
        self.phone.say(*(put("/n", number) for number in numbers), put("/last", next(self.numbers)))
        began = time.monotonic()
        while time.monotonic() < began + 0.4:  # answers are limited here, so there is none to wait for
            time.sleep(PAUSE_S)
        return [line for line in self.phone.lines[since:] if "ack" in line or "error" in line]


@pytest.fixture
def robot() -> Iterator[NtProcess]:
    with NtProcess.server() as server:
        server.publish("/robot/x", "int", 1)
        yield server


@pytest.fixture
def bench(tmp_path: Path, robot: NtProcess) -> Iterator[Bench]:
    bench = Bench(tmp_path, robot)
    try:
        yield bench
    finally:
        bench.daemon.__exit__()


def code_of(bench: Bench, key: str) -> str | None:
    """How a put of this topic ends."""
    message = put(key, next(bench.numbers))
    since = len(bench.phone.lines)
    bench.phone.say(message)

    def answer() -> dict[str, Any] | None:
        for line in bench.phone.lines[since:]:
            if line.get("ack") == message["id"] or line.get("error", {}).get("id") == message["id"]:
                return line
        return None

    found: dict[str, Any] = bench.daemon.until(answer)
    code: str | None = found.get("error", {}).get("code")
    return code


def refused(bench: Bench) -> int:
    return len([answer for answer in bench.puts(30) if "error" in answer])


def hears(bench: Bench) -> bool:
    """True if a new value of the robot reaches the phone."""
    number = next(bench.numbers)
    bench.robot.publish("/robot/x", "int", number)
    deadline = time.monotonic() + 0.3
    while time.monotonic() < deadline and bench.phone.values("/robot/x")[-1:] != [number]:
        time.sleep(PAUSE_S)
    return bench.phone.values("/robot/x")[-1:] == [number]


def lists(bench: Bench) -> int:
    return sum("topics" in line for line in bench.phone.lines[bench.since :])


def issue_codes(bench: Bench) -> list[str]:
    return [issue["code"] for issue in bench.daemon.status()["issues"]]


def answered_as(bench: Bench, host: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", bench.web_port, timeout=10)
    try:
        connection.request("GET", "/healthz", headers={"Host": f"{host}:{bench.web_port}"})
        return connection.getresponse().status
    finally:
        connection.close()


# section, keys, what must be so, within which time. Each begins with the base file.
AT_ONCE: list[tuple[str, dict[str, str], Callable[[Bench], object], float]] = [
    ("relay", {"put_rate": "1", "put_burst": "1"}, lambda b: refused(b) >= 25, VISIBLE_S),
    (
        "relay",
        {"put_rate": "1", "put_burst": "1", "error_lines_per_s": "2"},
        lambda b: 1 <= refused(b) <= 3,
        VISIBLE_S,
    ),
    ("record", {"enabled": "true"}, lambda b: b.record()["active"], VISIBLE_S),
    ("nt", {"status": "false"}, lambda b: not any("/AOABridge/" in name for name in b.robot.types()), VISIBLE_S),
    ("nt", {"elastic": "false"}, lambda b: b.effective()["nt"]["elastic"] is False, VISIBLE_S),
    ("phone", {"heartbeat": "false"}, lambda b: "/RoboRoute/Heartbeat" not in b.robot.types(), VISIBLE_S),
    ("phone", {"topics_period_s": "1"}, lambda b: lists(b) >= 2, 2 + VISIBLE_S),
    ("access", {"put_deny": '["/no/*"]'}, lambda b: code_of(b, "/no/x") == "forbidden", VISIBLE_S),
    ("access", {"put_allow": '["/yes/*"]'}, lambda b: code_of(b, "/no/x") == "forbidden", VISIBLE_S),
    ("access", {"subscribe_deny": '["/robot/*"]'}, lambda b: not hears(b), VISIBLE_S),
    ("access", {"subscribe_allow": '["/x/*"]'}, lambda b: not hears(b), VISIBLE_S),
    ("devices", {"reset_stuck": "true"}, lambda b: b.effective()["devices"]["reset_stuck"], VISIBLE_S),
    ("web", {"hosts": '["bridge.example"]'}, lambda b: answered_as(b, "bridge.example") == 200, VISIBLE_S),
    ("web", {"allow_from": '["10.0.0.0/8"]'}, lambda b: answered_as(b, "localhost") == 403, VISIBLE_S),
]


def test_what_applies_at_once_does_within_a_second_and_drops_no_link(bench: Bench) -> None:
    bench.daemon.until(lambda: hears(bench))
    for section, keys, condition, limit_s in AT_ONCE:
        took_s = bench.seconds_until(condition, section, **keys)
        assert took_s <= limit_s, f"{keys}: {took_s:.2f} s\n" + "\n".join(bench.daemon.log[-5:])
        bench.daemon.until(lambda: bench.daemon.status()["config"]["restart_needed"] == [], 2)
        bench.reload()
        bench.daemon.until(lambda: answered_as(bench, "localhost") == 200)
    bench.daemon.until(lambda: hears(bench))
    assert not bench.phone.ended.is_set()
    assert bench.connected(), [line["status"] for line in bench.phone.lines if "status" in line] + bench.daemon.log


def test_a_running_recording_follows_its_keys(bench: Bench) -> None:
    bench.sections["record"]["enabled"] = "true"
    bench.seconds_until(lambda b: b.record()["active"])
    elsewhere = bench.directory / "elsewhere"
    bench.sections["record"]["dir"] = f'"{elsewhere}"'
    assert bench.seconds_until(lambda b: b.record()["file"].startswith(str(elsewhere))) <= VISIBLE_S
    whole = bench.record()["file"]
    assert bench.seconds_until(lambda b: b.record()["file"] != whole, "record", topics='["/robot/*"]') <= VISIBLE_S
    assert bench.record()["active"]
    assert bench.seconds_until(lambda b: not b.record()["active"], "record", min_free_mib="1048576") <= VISIBLE_S
    bench.daemon.until(lambda: "record-stopped" in issue_codes(bench))


def test_what_is_logged(bench: Bench) -> None:
    bench.sections["log"] = {"level": '"error"'}
    assert bench.seconds_until(lambda b: b.effective()["log"]["level"] == "error") <= VISIBLE_S
    said = len(bench.daemon.log)
    bench.phone.say({"action": "put"})
    bench.daemon.until(lambda: any("error" in line for line in bench.phone.lines))
    assert bench.daemon.log[said:] == []
    bench.sections["log"]["levels"] = '{ "aoabridge.relay" = "info" }'
    bench.seconds_until(lambda b: b.effective()["log"]["levels"])
    bench.daemon.plug_in("second").say({"action": "put"})  # one line per phone in a while
    bench.daemon.until(lambda: any("second: line refused" in line for line in bench.daemon.log[said:]))


def test_another_robot(bench: Bench) -> None:
    with NtProcess.server() as second:
        second.publish("/robot/x", "int", -2)
        bench.reload("nt", port=str(second.port))
        bench.daemon.until(lambda: bench.phone.values("/robot/x")[-1:] == [-2])
        second.wait_topic("/RoboRoute/Heartbeat")
        bench.reload("nt", server='"localhost"')
        bench.daemon.until(lambda: bench.phone.values("/robot/x")[-1:] != [-2])
    assert not bench.phone.ended.is_set()


def restart_rows(table: Table, prefix: str = "") -> list[str]:
    """The keys outside of lists of tables that wait for a restart."""
    found = []
    for row in table.rows:
        if isinstance(row, Key):
            found += [prefix + row.name] if row.reload is Reload.RESTART else []
        elif row.several == "no":
            found += restart_rows(row, f"{prefix}{row.name}.")
    return found


WAITING = {
    "name": '"other"',
    "log.format": '"text"',
    "log.ring": "100",
    "nt.embedded": "true",
    "nt.listen": '"0.0.0.0"',
    "nt.period_ms": "50",
    "nt.alerts": '"Other"',
    "devices.max": "2",
    "devices.simulated": "false",
    "web.enabled": "false",
    "web.port": "5809",
    "web.bind": '"::1"',
    "web.control": "true",
    "web.token_file": '"/nowhere/token"',
}


def test_what_waits_for_a_restart_is_named_and_not_applied(bench: Bench) -> None:
    assert set(WAITING) == set(restart_rows(ROOT)) - {"schema"}
    before = bench.effective()
    sections = {name: dict(keys) for name, keys in bench.sections.items()}
    del sections["nt"]["server"]
    top = ""
    for key, value in WAITING.items():
        section, _, name = key.rpartition(".")
        if section:
            sections.setdefault(section, {})[name] = value
        else:
            top += f"{name} = {value}\n"
    sections["sources"] = {"teleop": "{ enabled = true }"}
    bench.write(top + text_of(sections))
    waiting = bench.daemon.until(lambda: bench.daemon.status()["config"]["restart_needed"])
    assert {key for key in waiting if not key.startswith("sources.")} == set(WAITING)
    assert any(key.startswith("sources.teleop") for key in waiting)
    after = bench.effective()
    after["nt"]["server"] = before["nt"]["server"]  # the one key that applies at once
    assert after == before
    assert "config-restart" in issue_codes(bench)
    bench.reload()
    bench.daemon.until(lambda: bench.daemon.status()["config"]["restart_needed"] == [])
    assert not bench.phone.ended.is_set()


@pytest.mark.parametrize("text", ["[nt\n", "[acess]\n", '[nt]\nteam = 0\n[access]\nput_deny = ["/x"]\n', "\x00"])
def test_a_refused_file_leaves_every_byte(bench: Bench, text: str) -> None:
    before = json.dumps(bench.effective())
    bench.write(text)
    bench.daemon.until(lambda: "config-rejected" in issue_codes(bench))
    assert json.dumps(bench.effective()) == before
    assert code_of(bench, "/x") is None
    assert not bench.phone.ended.is_set()


def test_without_any_usable_file_the_page_says_why_and_nothing_is_relayed(tmp_path: Path, robot: NtProcess) -> None:
    # The defaults hold then, so the page's port is the default one, in a network of its own.
    text = f'[nt]\nserver = "127.0.0.1"\nport = {robot.port}\n[acess]\n'
    lone = ("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
    with DaemonProcess(tmp_path, text, wrap=lone) as daemon:
        daemon.until(lambda: any("status page on port 5808" in line for line in daemon.log))
        within = ("nsenter", "--net", f"--target={daemon.process.pid}", sys.executable, "-c", ASK)
        done = subprocess.run(within, capture_output=True, text=True, check=True, timeout=30)
        assert json.loads(done.stdout) == {"/healthz": 200, "/healthz?ready": 503, "/": 200}
        status = daemon.status()
        assert (status["verdict"], status["config"]["state"]) == ("problem", "rejected")
        assert status["robot"]["state"] != "connected"
