"""Which file a recording goes to when the configuration changes under it."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from wpiutil.log import DataLogReader

from aoabridge.bridge.core import BridgeCore, CoreSettings
from aoabridge.config.sections import RecordSettings
from aoabridge.daemon.recording import RecordHost
from aoabridge.values import Publication

SETTINGS = RecordSettings(min_free_mib=0)
TOPICS = ("/a", "/b")


@pytest.fixture
def host(tmp_path: Path) -> Iterator[RecordHost]:
    core = BridgeCore(CoreSettings())
    core.on_publications([Publication(topic, "int", 1) for topic in TOPICS], 0.0, 0)
    host = RecordHost(SETTINGS, tmp_path, core.topics, lambda: None)
    yield host
    host.stop(9.0)


def entries(path: Path) -> set[str]:
    """The topics that a file holds."""
    starts = [record.getStartData().name for record in DataLogReader(str(path)) if record.isStart()]
    return {name.removeprefix("NT:") for name in starts if name.startswith("NT:")}


def file_of(host: RecordHost) -> Path:
    assert host.active
    return Path(host.view().file or "")


def test_other_topics_are_in_a_file_of_their_own_from_the_start(host: RecordHost) -> None:
    host.start(1.0)
    first = file_of(host)
    host.configure(RecordSettings(min_free_mib=0, topics=("/b",)), 2.0)
    second = file_of(host)
    host.stop(3.0)
    assert (entries(first), entries(second)) == ({"/a", "/b"}, {"/b"})


def test_another_directory_holds_at_once_and_for_later_files(host: RecordHost, tmp_path: Path) -> None:
    host.configure(RecordSettings(min_free_mib=0, dir=str(tmp_path / "x")), 1.0)
    host.start(2.0)
    assert file_of(host).parent == tmp_path / "x"
    host.configure(SETTINGS, 3.0)
    assert file_of(host).parent == tmp_path / "records"


def test_what_does_not_concern_the_file_leaves_it(host: RecordHost) -> None:
    host.start(1.0)
    before = file_of(host)
    host.configure(RecordSettings(min_free_mib=0, keep_mib=1, rotate_mib=7, phone_lines=True), 2.0)
    assert file_of(host) == before


def test_a_file_of_somebodys_choice_is_never_begun_again(host: RecordHost, tmp_path: Path) -> None:
    host.start(1.0, tmp_path / "mine.wpilog")
    host.configure(RecordSettings(topics=("/b",), dir=str(tmp_path / "x"), min_free_mib=1), 2.0)
    assert file_of(host) == tmp_path / "mine.wpilog"
    host.stop(3.0)
    assert entries(tmp_path / "mine.wpilog") == {"/a", "/b"}


def test_topics_of_somebodys_choice_stay(host: RecordHost, tmp_path: Path) -> None:
    host.start(1.0, topics=["/a"])
    host.configure(RecordSettings(min_free_mib=0, topics=("/b",), dir=str(tmp_path / "x")), 2.0)
    second = file_of(host)
    host.stop(3.0)
    assert entries(second) == {"/a"}


def test_no_room_for_the_next_file_ends_the_recording_with_its_reason(host: RecordHost) -> None:
    host.start(1.0)
    host.configure(RecordSettings(min_free_mib=1 << 20), 2.0)
    assert not host.active
    assert "free space" in (host.stopped_because or "")


def test_a_card_that_stands_still_does_not_hold_up_the_change_of_files(
    host: RecordHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = threading.Event()
    write = os.write

    def stand_still(descriptor: int, data: bytes) -> int:
        card.wait(5)
        return write(descriptor, data)

    host.start(1.0)
    first = file_of(host)
    monkeypatch.setattr("aoabridge.adapters.recorder.os.write", stand_still)
    began = time.monotonic()
    host.configure(RecordSettings(min_free_mib=0, topics=("/b",)), 2.0)
    assert time.monotonic() - began < 1.0
    card.set()
    host.stop(3.0)
    assert entries(first) == {"/a", "/b"}


def test_a_file_that_cannot_be_ended_does_not_end_the_next_one(
    host: RecordHost, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    card = threading.Event()
    write = os.write
    host.start(1.0)
    first = host._recorder
    assert first is not None

    def fail(descriptor: int, data: bytes) -> int:
        if descriptor != first._descriptor:
            return write(descriptor, data)
        card.wait(5)
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("aoabridge.adapters.recorder.os.write", fail)
        host.configure(RecordSettings(min_free_mib=0, topics=("/b",)), 2.0)
        card.set()
        assert first.close()
    host.on_tick(20.0)
    assert "the end of" in caplog.text
    assert first.path != file_of(host)
