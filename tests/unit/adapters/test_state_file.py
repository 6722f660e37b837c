"""A write either happens or leaves the old file; nothing else stays behind."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aoabridge.adapters.state_file import remove_leftovers, write_atomically


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


CALLS = ("open", "fchmod", "write", "fsync", "close", "replace")


def write_and_die(path: Path, data: bytes, number: int, *, halfway: bool) -> bool:
    """In a process of its own that is killed before its system call ``number``, ``halfway`` into it if that writes.

    False: it came through without that many calls.
    """
    if (child := os.fork()) == 0:
        made = [0]

        def deadly(call: Callable[..., Any]) -> Callable[..., Any]:
            def wrapped(*arguments: Any, **more: Any) -> Any:
                made[0] += 1
                if made[0] == number:
                    if halfway and call is write:
                        write(arguments[0], arguments[1][: len(arguments[1]) // 2])
                    os.kill(os.getpid(), signal.SIGKILL)
                return call(*arguments, **more)

            return wrapped

        write = os.write
        for name in CALLS:
            setattr(os, name, deadly(getattr(os, name)))
        try:
            write_atomically(path, data)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("halfway", [False, True])
def test_a_process_killed_at_any_step_leaves_the_old_file_or_the_new_one(tmp_path: Path, halfway: bool) -> None:
    path = tmp_path / "last-good.toml"
    old, new = b"old" * 1000, b"new" * 2000
    found = []
    for number in range(1, 30):
        path.write_bytes(old)
        if not write_and_die(path, new, number, halfway=halfway):
            break
        found.append(path.read_bytes())
        write_atomically(path, new)  # what a killed process left behind is in nobody's way
        assert path.read_bytes() == new
        remove_leftovers(path)
        assert [item.name for item in tmp_path.iterdir()] == [path.name]
    assert len(found) == 9  # open, fchmod, write, fsync, close, replace; of the directory open, fsync, close
    assert found == [old] * 6 + [new] * 3


def test_only_leftovers_of_the_file_are_removed(tmp_path: Path) -> None:
    kept = {"f", ".f", ".f.tmp", ".f.1x.tmp", ".g.12.tmp", "f.12.tmp", ".f.12.tmp.1"}
    for name in {*kept, ".f.12.tmp", ".f.13.tmp"}:
        (tmp_path / name).write_bytes(b"")
    remove_leftovers(tmp_path / "f")
    assert {item.name for item in tmp_path.iterdir()} == kept
    remove_leftovers(tmp_path / "none" / "f")
