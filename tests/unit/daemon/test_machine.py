"""The machine's own troubles."""

from pathlib import Path

import pytest

from aoabridge.daemon.machine import MachineWatch
from aoabridge.status import IssueBoard


def codes(board: IssueBoard) -> list[str]:
    return [issue.code for issue in board.open_issues()]


def test_a_machine_without_usb_host(tmp_path: Path) -> None:
    board = IssueBoard()
    watch = MachineWatch(board, wants_usb=True, root=tmp_path)
    watch.tick(0)
    assert codes(board) == ["usb-none"]
    (tmp_path / "sys/bus/usb/devices/usb1").mkdir(parents=True)
    watch.tick(4)
    assert codes(board) == ["usb-none"]
    watch.tick(5)
    assert codes(board) == []


def test_simulated_phones_need_no_usb(tmp_path: Path) -> None:
    board = IssueBoard()
    MachineWatch(board, wants_usb=False, root=tmp_path).tick(0)
    assert codes(board) == []


@pytest.mark.parametrize(
    ("late_s", "cpu_percent", "overloaded"), [(0.21, None, False), (0.0, 81.0, False), (0.0, None, True)]
)
def test_too_much_work_for_ten_seconds(late_s: float, cpu_percent: float | None, overloaded: bool) -> None:
    board = IssueBoard()
    watch = MachineWatch(board, wants_usb=False)
    for half_second in range(20):
        watch.note_load(late_s, cpu_percent, overloaded, half_second / 2)
    assert codes(board) == []
    watch.note_load(late_s, cpu_percent, overloaded, 10)
    assert codes(board) == ["overload"]
    watch.note_load(0.1, 79.0, False, 10.5)
    assert codes(board) == []
