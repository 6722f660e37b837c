"""The commands that ask a daemon: output for people and programs, exit statuses, behaviour without a daemon."""

import json
from pathlib import Path
from typing import Any

import pytest

from aoabridge.adapters.control import RequestError
from aoabridge.cli import main
from aoabridge.status import IssueBoard, build_snapshot
from fakes.daemon import fake_daemon
from fakes.views import PIXEL, SCOUT, inputs

DEVICE = {"name": "pi\x1bxel", "port": "1-1.2", "serial": "…1234", "state": "live", "app": "scouting", "rx_hz": 50.2}
IGNORED = {"port": "1-1.1", "id": "046d:c31c", "reason": "hid"}
TOPIC = {
    "name": "/a",
    "type": "double",
    "hz": 50,
    "age_s": 12.0,
    "source": "robot",
    "subscribers": ["p"],
    "stale": True,
}
LINE = {"time": "10:00:00", "level": "warning", "text": "lo\x1bst", "device": "scout", "seq": 1}


def snapshot(verdict: str) -> dict[str, Any]:
    board = IssueBoard()
    if verdict == "problem":
        board.set("phone-lost", "scout", True, 749.1, data={"port": "1-1.3"})
    phones = {"ok": (PIXEL,), "problem": (SCOUT, PIXEL), "waiting": ()}[verdict]
    return build_snapshot(inputs(phones=phones), board.open_issues())


@pytest.mark.parametrize(("verdict", "status"), [("ok", 0), ("waiting", 1), ("problem", 1)])
def test_the_exit_status_follows_the_verdict(
    verdict: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_daemon(tmp_path / "s", {"status": snapshot(verdict)}):
        assert main(["status", "--socket", str(tmp_path / "s")]) == status
        assert capsys.readouterr().out.startswith(verdict.upper())
        assert main(["status", "--json", "--socket", str(tmp_path / "s")]) == status
    assert json.loads(capsys.readouterr().out) == snapshot(verdict)


def test_colour_is_for_people_or_on_demand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with fake_daemon(tmp_path / "s", {"status": snapshot("problem")}):
        main(["status", "--socket", str(tmp_path / "s")])
        assert "\x1b" not in capsys.readouterr().out
        main(["status", "--color", "always", "--socket", str(tmp_path / "s")])
        assert "\x1b[31m X   scout" in capsys.readouterr().out


def test_without_daemon_the_last_state_is_shown_as_stale(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["status", "--socket", str(tmp_path / "control.sock")]
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out.startswith("DOWN  no daemon runs\n")
    assert "fix: sudo systemctl start aoabridge" in captured.err
    (tmp_path / "status.json").write_text(json.dumps(snapshot("ok")))
    assert main([*arguments, "--json"]) == 2
    shown = json.loads(capsys.readouterr().out)
    assert (shown["verdict"], shown["stale"], shown["name"]) == ("down", True, "pi-left")
    assert 0 <= shown["stale_age_s"] < 60
    (tmp_path / "status.json").write_text("{broken")
    assert main(arguments) == 2


def test_watch_prints_one_snapshot_per_change_and_ends_with_the_last_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = [snapshot("problem"), snapshot("ok")]
    with fake_daemon(tmp_path / "s", events={"watch": changes}):
        assert main(["status", "--watch", "--json", "--socket", str(tmp_path / "s")]) == 0
    assert [json.loads(line)["verdict"] for line in capsys.readouterr().out.splitlines()] == ["problem", "ok"]


@pytest.mark.parametrize("command", [["devices"], ["topics"], ["monitor", "/x"], ["log"], ["status", "--watch"]])
def test_no_daemon_is_2(command: list[str], tmp_path: Path) -> None:
    assert main([*command, "--socket", str(tmp_path / "none")]) == 2


def test_devices_and_what_is_not_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = {"devices": [DEVICE], "ignored": [IGNORED]}
    with fake_daemon(tmp_path / "s", {"devices": answer}):
        assert main(["devices", "--json", "--socket", str(tmp_path / "s")]) == 0
        assert json.loads(capsys.readouterr().out) == answer
        assert main(["devices", "--socket", str(tmp_path / "s")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["NAME", "PORT", "SERIAL", "STATE", "APP", "RX/S", "TX/S", "LAST", "LINE"]
    assert lines[1].split() == ["pi\\x1bxel", "1-1.2", "…1234", "live", "scouting", "50", "0", "never"]
    assert lines[-1].split() == ["1-1.1", "046d:c31c", "hid"]


def test_topics_pass_the_prefix_and_mark_stale_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with fake_daemon(tmp_path / "s", {"topics": {"topics": [TOPIC]}}) as daemon:
        assert main(["topics", "/robot/", "--socket", str(tmp_path / "s")]) == 0
        assert daemon.asked == [("topics", {"prefix": "/robot/"})]
    assert capsys.readouterr().out.splitlines()[1].split() == ["/a", "double", "50", "12", "s", "STALE", "robot", "p"]


def test_monitor_shows_lines_and_values_and_counts_what_was_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = [
        {"time": 1.5, "dir": "rx", "device": "p", "line": '{"a":"\x1b"}'},
        {"dropped": 7},
        {"time": 2.0, "topic": "/x", "value": {"x": 1.5}},
    ]
    with fake_daemon(tmp_path / "s", events={"monitor": events}) as daemon:
        assert main(["monitor", "p", "--hex", "--socket", str(tmp_path / "s")]) == 0
        assert daemon.asked == [("monitor", {"device": "p", "hex": True})]
    captured = capsys.readouterr()
    assert captured.out == '1.500  p  rx  {"a":"\\x1b"}\n2.000  /x  {"x": 1.5}\n'
    assert "2 shown, 7 left out" in captured.err


def test_monitor_ends_after_its_count_or_its_patience(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = [{"time": 1.0, "topic": "/x", "value": n} for n in range(5)]
    with fake_daemon(tmp_path / "s", events={"monitor": events}, hold=True):
        assert main(["monitor", "/x", "--count", "2", "--json", "--socket", str(tmp_path / "s")]) == 0
        assert [json.loads(line)["value"] for line in capsys.readouterr().out.splitlines()] == [0, 1]
        assert main(["monitor", "/x", "--timeout", "0.05", "--socket", str(tmp_path / "s")]) == 0
    with fake_daemon(tmp_path / "t", events={"monitor": []}, hold=True):
        assert main(["monitor", "/x", "--timeout", "0.05", "--socket", str(tmp_path / "t")]) == 1
    assert "nothing from /x within 0.05 s" in capsys.readouterr().err


def test_log_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with fake_daemon(tmp_path / "s", {"log": {"lines": [LINE]}}, {"follow-log": [LINE, LINE]}) as daemon:
        assert main(["log", "--level", "warning", "--device", "scout", "--socket", str(tmp_path / "s")]) == 0
        assert daemon.asked == [("log", {"level": "warning", "device": "scout"})]
        assert capsys.readouterr().out == "10:00:00  WARNING  [scout]  lo\\x1bst\n"
        assert main(["log", "-f", "--json", "--socket", str(tmp_path / "s")]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [LINE, LINE]


def test_a_stream_that_is_refused_after_it_began_shows_no_event(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal = {"ok": False, "error": {"code": "not-found", "message": "no linked phone is called 'x'", "fix": "look"}}
    with fake_daemon(tmp_path / "s", events={"monitor": [refusal]}):
        assert main(["monitor", "x", "--socket", str(tmp_path / "s")]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "aoabridge: no linked phone is called 'x'\n  fix: look\n"


def test_a_refusal_of_the_daemon_has_its_status_and_cure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refusal = RequestError("forbidden", "only root may", "use sudo")
    with fake_daemon(tmp_path / "s", {"devices": refusal}):
        assert main(["devices", "--socket", str(tmp_path / "s")]) == 77
    assert capsys.readouterr().err == "aoabridge: only root may\n  fix: use sudo\n"


def test_a_peer_that_is_no_daemon_or_leaves_is_2(tmp_path: Path) -> None:
    with fake_daemon(tmp_path / "s"):
        assert main(["devices", "--socket", str(tmp_path / "s")]) == 1
    (tmp_path / "file").write_text("")
    assert main(["devices", "--socket", str(tmp_path / "file")]) == 2
