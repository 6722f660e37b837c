"""Issues show when their condition has lasted or repeated, and clear by themselves."""

import pytest

from aoabridge.issues import ISSUES
from aoabridge.status.board import MAX_OPEN, IssueBoard


def codes(board: IssueBoard) -> list[str]:
    return [issue.code for issue in board.open_issues()]


def test_a_condition_shows_once_it_has_lasted_and_clears_at_once() -> None:
    board = IssueBoard()
    board.set("app-silent", "scout", True, 10.0)
    board.on_tick(14.9)
    assert codes(board) == []
    board.on_tick(15.0)
    assert codes(board) == ["app-silent"]
    board.set("app-silent", "scout", False, 15.1)
    assert codes(board) == []
    assert [(edge.raised, edge.issue.code) for edge in board.take_edges()] == [
        (True, "app-silent"),
        (False, "app-silent"),
    ]
    assert board.take_edges() == []


def test_a_condition_that_ends_before_its_time_never_shows() -> None:
    board = IssueBoard()
    board.set("overload", "", True, 0.0)
    board.set("overload", "", False, 9.0)
    board.set("overload", "", True, 9.5)
    board.on_tick(12.0)
    assert codes(board) == []
    assert board.take_edges() == []


def test_a_duration_that_the_caller_has_checked_is_not_waited_for_again() -> None:
    board = IssueBoard()
    board.set("usb-busy", "1-1", True, 10.0, hold=False, data={"process": "adb", "unit": "adb"})
    assert board.open_issues()[0].fix == "Stop adb: `adb kill-server` / `sudo systemctl stop adb`"


def test_three_occurrences_in_a_minute_show_and_go_when_they_are_old() -> None:
    board = IssueBoard()
    for now in (0.0, 30.0, 59.0):
        board.happened("usb-flapping", "scout", now, data={"port": "1-1.3"})
    assert codes(board) == ["usb-flapping"]
    board.on_tick(59.9)
    assert codes(board) == ["usb-flapping"]
    board.on_tick(60.0)
    assert codes(board) == []


def test_occurrences_far_apart_never_show() -> None:
    board = IssueBoard()
    for now in range(0, 600, 40):
        board.happened("nt-flapping", "robot", float(now))
    assert codes(board) == []


def test_the_texts_are_filled_and_foreign_names_made_harmless() -> None:
    board = IssueBoard()
    board.set("phone-lost", "sc\x1b[2Jout", True, 1.0, data={"port": "1-1.3"})
    issue = board.open_issues()[0]
    assert issue.sentence == "sc\\x1b[2Jout lost"
    assert issue.fix == "Push the plug in at port 1-1.3, then unlock it"


def test_what_an_open_issue_says_anew_is_a_change_and_the_same_again_is_none() -> None:
    board, changes = IssueBoard(), []
    for error in ("a", "a", "b", "b"):
        board.set("config-rejected", "config", True, 1.0, data={"error": error})
        changes.append(board.changes)
    assert changes[0] == changes[1] < changes[2] == changes[3]


def test_a_source_may_bring_its_own_sentence() -> None:
    board = IssueBoard()
    board.set("source-bad", "j519", True, 1.0, sentence="j519: peer looks little-endian")
    assert board.open_issues()[0].sentence == "j519: peer looks little-endian"


def test_the_order_is_severity_then_age() -> None:
    board = IssueBoard()
    board.set("usb-power", "", True, 1.0)
    board.set("nt-lost", "robot", True, 3.0)
    board.set("disk-read-only", "", True, 0.0)
    board.set("phone-lost", "a", True, 2.0)
    assert codes(board) == ["phone-lost", "nt-lost", "usb-power", "disk-read-only"]


def test_the_count_survives_clearing_and_grows_with_each_return() -> None:
    board = IssueBoard()
    for now in (0.0, 10.0):
        board.set("nt-lost", "robot", True, now)
        board.set("nt-lost", "robot", False, now + 1)
    board.set("nt-lost", "robot", True, 20.0)
    assert (board.open_issues()[0].count, board.open_issues()[0].since) == (3, 20.0)


def test_the_board_is_bounded() -> None:
    board = IssueBoard()
    for number in range(MAX_OPEN * 2):
        board.set("phone-lost", str(number), True, 0.0)
    assert len(board.open_issues()) == MAX_OPEN


@pytest.mark.parametrize("code", [code for code, spec in ISSUES.items() if not spec.doctor])
def test_every_code_of_the_daemon_can_be_raised_and_clears(code: str) -> None:
    spec, board = ISSUES[code], IssueBoard()
    if spec.window_s:
        for _ in range(spec.times):
            board.happened(code, "s", 100.0)
    else:
        board.set(code, "s", True, 100.0)
        board.on_tick(100.0 + spec.hold_s)
    assert codes(board) == [code]
    if not spec.window_s:
        board.set(code, "s", False, 200.0)
    board.on_tick(100.0 + spec.window_s)
    assert codes(board) == []
