"""The writing thread: a disk that goes, and values that come faster than it can write."""

import os
import shutil
import threading
import time
from pathlib import Path

import pytest

from aoabridge.adapters.recorder import LogRecord, Recorder, read_log


class Told:
    """Takes the reason of the end."""

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self._told = threading.Event()

    def __call__(self, reason: str) -> None:
        self.reasons.append(reason)
        self._told.set()

    def wait(self) -> list[str]:
        assert self._told.wait(5)
        return self.reasons


def test_a_disk_that_goes_ends_the_file_and_not_the_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aoabridge.adapters.recorder.SPACE_S", 0.0)
    told = Told()
    recorder = Recorder(tmp_path / "stick" / "a.wpilog", min_free_bytes=0, failed=told)
    recorder.open()
    shutil.rmtree(tmp_path / "stick")
    recorder.offer(LogRecord("NT:/x", "int", 1, 1))
    assert told.wait() == ["No such file or directory"]
    assert recorder.close()


def test_a_disk_that_fills_up_ends_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aoabridge.adapters.recorder.SPACE_S", 0.0)
    told = Told()
    recorder = Recorder(tmp_path / "a.wpilog", min_free_bytes=0, failed=told)
    recorder.open()
    recorder.offer(LogRecord("NT:/x", "int", 1, 1))
    recorder._min_free_bytes = 1 << 62
    recorder.offer(LogRecord("NT:/x", "int", 2, 2))
    assert told.wait() == ["disk full"]
    assert recorder.close()
    assert [value.value for value in read_log(tmp_path / "a.wpilog")][:1] == [1]


def test_a_disk_that_is_full_all_at_once_ends_the_file_and_not_the_program(tmp_path: Path) -> None:
    told = Told()
    recorder = Recorder(tmp_path / "a.wpilog", min_free_bytes=0, failed=told)
    recorder.open()
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, recorder._descriptor)
    os.close(full)
    recorder.offer(LogRecord("NT:/x", "int", 1, 1))
    assert told.wait() == ["disk full"]
    assert recorder.close()
    assert told.reasons == ["disk full"]


def test_a_power_cut_loses_no_more_than_a_moment(tmp_path: Path) -> None:
    """The file is complete up to the last flush although nobody has closed it."""
    path = tmp_path / "a.wpilog"
    recorder = Recorder(path, min_free_bytes=0, failed=lambda _reason: None)
    recorder.open()
    recorder.offer(LogRecord("NT:/x", "int", 7, 1))
    deadline = time.monotonic() + 5
    while not path.stat().st_size or [value.value for value in read_log(path)] != [7]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert recorder.close()


def test_an_odd_value_costs_itself(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "a.wpilog", min_free_bytes=0, failed=lambda _reason: None)
    recorder.open()
    recorder.offer(LogRecord("NT:/x", "int", "no number", 1))
    recorder.offer(LogRecord("NT:/x", "int", 2, 2))
    assert recorder.close()
    assert [value.value for value in read_log(tmp_path / "a.wpilog")] == [2]


def test_large_values_wait_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aoabridge.adapters.recorder.QUEUE_BYTES", 10_000)
    recorder = Recorder(tmp_path / "a.wpilog", min_free_bytes=0, failed=lambda _reason: None)
    for number in range(15):  # nobody writes yet
        recorder.offer(LogRecord("NT:/x", "raw", bytes(1000), number))
    assert recorder.dropped == 5
    recorder.open()
    deadline = time.monotonic() + 5
    while recorder._written_bytes < 10_000:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    recorder.offer(LogRecord("NT:/x", "raw", bytes(10_000), 15))
    assert recorder.dropped == 5
    assert recorder.close()
    assert len(list(read_log(tmp_path / "a.wpilog"))) == 11


def test_a_file_system_without_modes_takes_a_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FAT, as on most USB sticks, refuses to change them."""

    def refuse(_descriptor: int, _mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchmod", refuse)
    recorder = Recorder(tmp_path / "a.wpilog", min_free_bytes=0, failed=Told())
    recorder.open()
    recorder.offer(LogRecord("NT:/x", "int", 1, 1))
    assert recorder.close()
    assert [value.value for value in read_log(tmp_path / "a.wpilog")] == [1]
