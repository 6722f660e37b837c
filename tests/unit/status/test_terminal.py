"""The status on a terminal: what is broken stands first, with its cure, within the width."""

from typing import Any

import msgspec
import pytest

from aoabridge.issues import ISSUES
from aoabridge.status import IssueBoard, RobotView, SourceView, build_snapshot
from aoabridge.status.terminal import age_text, changed, status_lines, without_daemon
from fakes.views import PIXEL, SCOUT, inputs


def problem() -> dict[str, Any]:
    board = IssueBoard()
    board.set("phone-lost", "scout", True, 749.1, data={"port": "1-1.3"})
    return build_snapshot(inputs(phones=(PIXEL, SCOUT)), board.open_issues())


def test_a_lost_phone_comes_first_with_one_imperative() -> None:
    assert status_lines(problem()) == [
        "PROBLEM  1 of 2 phones lost; robot connected          pi-left  team 6458  v1.4.0",
        " X   scout   usb 1-1.3  lost 12 s",
        "     fix: push the plug in at port 1-1.3, then unlock it",
        " OK  pixel7  usb 1-1.2  82%  rx 50/s tx 12/s  4 ms",
        " OK  robot   10.64.58.2:5810 as aoabridge-pi-left@1  flaps 1  clock +0.4 ms",
    ]


def test_a_phone_that_is_not_on_usb_says_where_it_is() -> None:
    simulated = msgspec.structs.replace(PIXEL, port="simulated")
    lines = status_lines(build_snapshot(inputs(phones=(simulated,)), []))
    assert lines[1] == " OK  pixel7  simulated  82%  rx 50/s tx 12/s  4 ms"


def test_a_wide_terminal_has_the_cure_on_the_same_line() -> None:
    assert status_lines(problem(), 120)[1] == (
        " X   scout   usb 1-1.3  lost 12 s   fix: push the plug in at port 1-1.3, then unlock it"
    )


def test_a_robot_that_is_away_has_its_cause_and_cure() -> None:
    board = IssueBoard()
    board.set("nt-refused", "10.64.58.2", True, 700.0)
    snapshot = build_snapshot(inputs(robot=RobotView("connecting", since_s=61.2)), board.open_issues())
    assert status_lines(snapshot)[1:3] == [
        " X   robot   10.64.58.2 answers, but no robot program 61 s",
        "     fix: robot code is not running: deploy or restart it",
    ]


@pytest.mark.parametrize("code", ISSUES)
def test_every_issue_fits_80_columns_and_shows_its_fix(code: str) -> None:
    board = IssueBoard()
    board.set(code, "x" * 40, True, 0.0, hold=False, data={"port": "1-1.3", "error": "y" * 100})
    source = SourceView("teleop", "t", True, 50.0, 0.02, relays=True)
    lines = status_lines(build_snapshot(inputs(sources=(source,)), board.open_issues()))
    assert max(map(len, lines)) <= 80
    assert "fix:" in "\n".join(lines)


def test_without_a_daemon_the_last_snapshot_is_marked() -> None:
    snapshot = without_daemon(problem(), 75.0)
    assert (snapshot["verdict"], snapshot["stale"], snapshot["stale_age_s"]) == ("down", True, 75.0)
    assert status_lines(snapshot)[0].startswith("DOWN  no daemon runs; last seen 75 s ago")
    assert status_lines(without_daemon(None, None))[0] == "DOWN  no daemon runs"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (99, "99 s"), (180, "3 min"), (7200, "2 h"), (864000, "10 d"), (None, "?")]
)
def test_ages(seconds: float | None, text: str) -> None:
    assert age_text(seconds) == text


def test_only_the_passing_of_time_is_no_change() -> None:
    before = problem()
    assert not changed(before, {**before, "uptime_s": 5, "time": {}})
    assert changed(before, {**before, "verdict": "ok"})
