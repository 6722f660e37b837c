"""A write either happens or leaves the old file; nothing else stays behind."""

import os
from pathlib import Path

import pytest

from aoabridge.adapters.state_file import write_atomically


def test_a_file_is_made_readable_for_all_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_atomically(tmp_path / "status.json", b"{}")
    finally:
        os.umask(before)
    assert (tmp_path / "status.json").read_bytes() == b"{}"
    assert (tmp_path / "status.json").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("durable", [True, False])
def test_the_mode_of_the_old_file_is_kept(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    path.chmod(0o600)
    write_atomically(path, b"new", durable=durable)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o600)
    assert [item.name for item in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize("call", ["open", "fchmod", "write", "fsync", "replace"])
def test_a_failure_at_any_step_leaves_the_old_file_and_no_other(
    tmp_path: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path if call == "replace" else os, call, fail)
        with pytest.raises(OSError, match="No space"):
            write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [item.name for item in tmp_path.iterdir()] == ["f"]


def test_short_writes_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: whole(descriptor, bytes(data[:3])))
    write_atomically(tmp_path / "f", b"0123456789")
    assert (tmp_path / "f").read_bytes() == b"0123456789"
