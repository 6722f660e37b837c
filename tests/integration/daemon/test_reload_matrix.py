"""SIGHUP, key by key: what takes effect at once, what waits for a restart, and a refused file that changes nothing."""

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aoabridge.config.schema import ROOT, Reload, Table
from aoabridge.status.popups import POPUP_TOPIC
from rig.daemon_process import DaemonProcess, RawPhone
from rig.nt_process import NtProcess
from rig.reload_bench import PAUSE_S, Bench, put, text_of

VISIBLE_S = 1.0
ASK = """
import http.client, json
found = {}
for path in ("/healthz", "/healthz?ready", "/"):
    connection = http.client.HTTPConnection("127.0.0.1", 5808, timeout=10)
    connection.request("GET", path)
    found[path] = connection.getresponse().status
print(json.dumps(found))
"""


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


# Key, also needed in its section, its value, what must be so, within which time. Each begins with the base file.
Row = tuple[str, str, dict[str, str], Callable[[Bench], object], float]
AT_ONCE: list[Row] = [
    ("relay.put_burst", "1", {}, lambda b: refused(b) >= 10, VISIBLE_S),
    ("relay.put_rate", "1", {"put_burst": "1"}, lambda b: refused(b) >= 25, VISIBLE_S),
    (
        "relay.error_lines_per_s",
        "2",
        {"put_rate": "1", "put_burst": "1"},
        lambda b: 1 <= refused(b) <= 3,
        VISIBLE_S,
    ),
    ("record.enabled", "true", {}, lambda b: b.record()["active"], VISIBLE_S),
    ("nt.status", "false", {}, lambda b: not any("/AOABridge/" in name for name in b.robot.types()), VISIBLE_S),
    ("phone.heartbeat", "false", {}, lambda b: "/RoboRoute/Heartbeat" not in b.robot.types(), VISIBLE_S),
    ("phone.topics_period_s", "1", {}, lambda b: lists(b) >= 2, 2 + VISIBLE_S),
    ("access.put_deny", '["/no/*"]', {}, lambda b: code_of(b, "/no/x") == "forbidden", VISIBLE_S),
    ("access.put_allow", '["/yes/*"]', {}, lambda b: code_of(b, "/no/x") == "forbidden", VISIBLE_S),
    ("access.subscribe_deny", '["/robot/*"]', {}, lambda b: not hears(b), VISIBLE_S),
    ("access.subscribe_allow", '["/x/*"]', {}, lambda b: not hears(b), VISIBLE_S),
    # Its effect on a phone that takes nothing for 15 s: tests/unit/phone/test_ports.py.
    ("devices.reset_stuck", "true", {}, lambda b: b.effective()["devices"]["reset_stuck"], VISIBLE_S),
    ("web.hosts", '["bridge.example"]', {}, lambda b: answered_as(b, "bridge.example") == 200, VISIBLE_S),
    ("web.allow_from", '["10.0.0.0/8"]', {}, lambda b: answered_as(b, "localhost") == 403, VISIBLE_S),
]
IN_OTHER_TESTS = {
    *("record.dir", "record.topics", "record.min_free_mib"),  # test_a_running_recording_follows_its_keys
    *("record.rotate_mib", "record.keep_mib", "record.phone_lines"),
    *("log.level", "log.levels"),  # test_what_is_logged
    *("nt.server", "nt.port", "nt.team"),  # test_another_robot
    "nt.elastic",  # test_pop_ups
}


def rows_of(reload: Reload, table: Table = ROOT, prefix: str = "") -> set[str]:
    """The keys outside of lists of tables that take effect then."""
    found: set[str] = set()
    for row in table.rows:
        if isinstance(row, Table):
            found |= rows_of(reload, row, f"{prefix}{row.name}.") if row.several == "no" else set()
        elif row.reload is reload:
            found.add(prefix + row.name)
    return found


def test_every_key_of_the_file_is_tried() -> None:
    assert {row[0] for row in AT_ONCE} | IN_OTHER_TESTS == rows_of(Reload.LIVE)
    assert not {row[0] for row in AT_ONCE} & IN_OTHER_TESTS
    assert set(WAITING) == rows_of(Reload.RESTART) - {"schema"}  # there is but one
    assert set(NEXT_TIME) == rows_of(Reload.NEXT_CONNECTION)


def test_what_applies_at_once_does_within_a_second_and_drops_no_link(bench: Bench) -> None:
    bench.daemon.until(lambda: hears(bench))
    for key, value, more, condition, limit_s in AT_ONCE:
        section, _, name = key.partition(".")
        took_s = bench.seconds_until(condition, section, **more, **{name: value})
        assert took_s <= limit_s, f"{key}: {took_s:.2f} s\n" + "\n".join(bench.daemon.log[-5:])
        bench.daemon.until(lambda: bench.daemon.status()["config"]["restart_needed"] == [], 2)
        bench.reload()
        bench.daemon.until(lambda: answered_as(bench, "localhost") == 200)
    bench.daemon.until(lambda: hears(bench))
    assert not bench.phone.ended.is_set()
    bench.daemon.until(bench.connected)  # values flow before the bridge has heard of every topic


def test_a_running_recording_follows_its_keys(bench: Bench) -> None:
    elsewhere = bench.directory / "elsewhere"
    bench.sections["record"]["enabled"] = "true"
    bench.seconds_until(lambda b: b.record()["active"])
    bench.sections["record"]["dir"] = f'"{elsewhere}"'
    assert bench.seconds_until(lambda b: b.record()["file"].startswith(str(elsewhere))) <= VISIBLE_S
    assert bench.seconds_until(lambda b: b.effective()["record"]["phone_lines"], "record", phone_lines="true") <= 1
    bench.daemon.until(lambda: code_of(bench, "/x") or b"AOA:/phone/rx" in Path(bench.record()["file"]).read_bytes())
    whole = bench.record()["file"]
    assert bench.seconds_until(lambda b: b.record()["file"] != whole, "record", topics='["/robot/*"]') <= VISIBLE_S
    for number in range(30):
        bench.robot.publish(f"/robot/large{number}", "string", "x" * 50_000)
    bench.daemon.until(lambda: size(bench) > 1 << 20)
    large = bench.record()["file"]
    assert bench.seconds_until(lambda b: b.record()["file"] != large, "record", rotate_mib="1") <= VISIBLE_S
    assert Path(large).exists()
    assert bench.seconds_until(lambda _: not Path(large).exists(), "record", keep_mib="1") <= VISIBLE_S
    assert bench.record()["active"]
    assert bench.seconds_until(lambda b: not b.record()["active"], "record", min_free_mib="1048576") <= VISIBLE_S
    bench.daemon.until(lambda: "record-stopped" in issue_codes(bench))
    assert not bench.phone.ended.is_set()


def size(bench: Bench) -> int:
    return Path(bench.record()["file"]).stat().st_size


def test_pop_ups(bench: Bench) -> None:
    bench.daemon.until(lambda: POPUP_TOPIC in bench.robot.types())  # that it is ready
    bench.daemon.until(lambda: POPUP_TOPIC not in bench.robot.types())
    seen = len(bench.robot.values(POPUP_TOPIC))
    bench.reload("nt", elastic="false")
    bench.daemon.until(lambda: bench.effective()["nt"]["elastic"] is False)
    for popped_up in (False, True):
        bench.write("[nt\n")
        bench.daemon.until(lambda: "config-rejected" in issue_codes(bench))
        deadline = time.monotonic() + 7  # two of them are 5 s apart
        while time.monotonic() < deadline and len(bench.robot.values(POPUP_TOPIC)) == seen:
            time.sleep(PAUSE_S)
        assert (len(bench.robot.values(POPUP_TOPIC)) > seen) is popped_up
        bench.reload()
        bench.daemon.until(lambda: "config-rejected" not in issue_codes(bench))


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
    del bench.sections["nt"]["server"]
    assert bench.seconds_until(lambda b: b.daemon.status()["team"] == 6458, "nt", team="6458") <= VISIBLE_S
    bench.daemon.until(lambda: not bench.connected())
    bench.reload("nt", server='"127.0.0.1"')
    bench.daemon.until(bench.connected)
    assert bench.daemon.status()["team"] is None
    assert not bench.phone.ended.is_set()


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


def long_line(bench: Bench, phone: RawPhone) -> bool:
    """True if a line of 5 000 bytes is refused as too long."""
    del bench
    phone.say({"action": "put", "key": "/x", "value": "x" * 5000, "id": 1})
    return answer_of(phone) == "too-large"


def answer_of(phone: RawPhone) -> str | None:
    """The code of the first refusal, None for an acknowledgement."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        for line in list(phone.lines):
            if "error" in line:
                return str(line["error"]["code"])
            if "ack" in line:
                return None
        time.sleep(PAUSE_S)
    raise AssertionError(phone.lines)


def second_subscription(bench: Bench, phone: RawPhone) -> bool:
    """True if only one subscription is taken."""
    del bench
    phone.say({"action": "subscribe", "keys": ["/a"]}, {"action": "subscribe", "keys": ["/b"]})
    phone.say(put("/x", 1))
    return answer_of(phone) == "too-many"


def in_effect(section: str, name: str, value: Any) -> Callable[[Bench, RawPhone], bool]:
    """For what only a phone on USB or a full queue shows: units test how these use the value."""
    return lambda bench, _phone: bool(bench.effective()[section][name] == value)


NEXT_TIME: dict[str, tuple[str, Callable[[Bench, RawPhone], bool]]] = {
    "relay.max_line_bytes": ("4096", long_line),
    "relay.max_subscriptions": ("1", second_subscription),
    "relay.sample_lane": ("7", in_effect("relay", "sample_lane", 7)),
    **{
        f"phone.{name}": ('"another"', in_effect("phone", name, "another"))
        for name in ("manufacturer", "model", "version", "description", "uri")
    },
    "phone.serial": ('"0123456789"', in_effect("phone", "serial", "…6789")),  # the page never shows all of it
    "devices.accept": ('"listed"', in_effect("devices", "accept", "listed")),
    "devices.allow": ('["2b4c:*"]', in_effect("devices", "allow", ["2b4c:*"])),
    "devices.deny": ('["18d1:4e?2"]', in_effect("devices", "deny", ["18d1:4e?2"])),
}


def test_what_applies_to_the_next_phone_leaves_this_one_alone(bench: Bench) -> None:
    for number, (key, (value, holds)) in enumerate(NEXT_TIME.items()):
        section, _, name = key.partition(".")
        bench.reload(section, **{name: value})
        bench.daemon.until(lambda section=section, name=name: changed(bench, section, name))
        phone = bench.daemon.plug_in(f"next{number}")
        bench.daemon.until(lambda phone=phone: any("status" in line for line in phone.lines))
        assert holds(bench, phone), (key, phone.lines)
        phone.unplug()
        assert bench.daemon.status()["config"]["restart_needed"] == []
        bench.daemon.until(lambda number=number: f"next{number}" not in live_phones(bench))
    bench.phone.say({"action": "put", "key": "/x", "value": "x" * 5000, "id": "long"})
    bench.daemon.until(lambda: {"ack": "long"} in bench.phone.lines)
    assert not bench.phone.ended.is_set()


def changed(bench: Bench, section: str, name: str) -> bool:
    return bool(bench.effective()[section][name] != bench.before[section][name])


def live_phones(bench: Bench) -> list[str]:
    return [phone["name"] for phone in bench.daemon.status()["phones"] if phone["state"] != "absent"]


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
