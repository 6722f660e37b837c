"""``record`` and ``replay``: what is asked of the daemon, and what an old recording may never do."""

import json
from pathlib import Path

import pytest

from aoabridge.adapters.control import RequestError
from aoabridge.cli import main
from fakes.daemon import fake_daemon

RUNNING = {"active": True, "file": "/var/x.wpilog", "size_bytes": 3 << 20, "duration_s": 12.4, "dropped": 0}


def test_start_stop_and_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    socket = ["--socket", str(tmp_path / "s")]
    with fake_daemon(tmp_path / "s", {"record-status": RUNNING}) as daemon:
        assert main(["record", "start", "--out", "x.wpilog", "--topics", "/a/*", "/b", *socket]) == 0
        assert main(["record", "stop", *socket]) == 0
        assert capsys.readouterr().out == "no recording\n" * 2
        assert main(["record", "status", *socket]) == 0
        assert capsys.readouterr().out == "recording  /var/x.wpilog  3.0 MiB  12 s  dropped 0\n"
        assert main(["record", "status", "--json", *socket]) == 0
        assert json.loads(capsys.readouterr().out) == RUNNING
        assert daemon.asked[0] == (
            "record-start",
            {"out": str(Path("x.wpilog").absolute()), "topics": ["/a/*", "/b"]},
        )
    assert main(["record", "status", *socket]) == 2


def test_a_file_that_cannot_be_made_is_73(tmp_path: Path) -> None:
    refusal = RequestError("cannot-create", "disk is full")
    with fake_daemon(tmp_path / "s", {"record-status": refusal}):
        assert main(["record", "status", "--socket", str(tmp_path / "s")]) == 73


def test_replay_needs_a_file_and_a_second_thought_for_another_machine(tmp_path: Path) -> None:
    assert main(["replay", str(tmp_path / "none.wpilog")]) == 66
    (tmp_path / "x.wpilog").write_bytes(b"")
    assert main(["replay", str(tmp_path / "x.wpilog"), "--server", "10.1.2.3"]) == 64
    assert main(["replay", str(tmp_path / "x.wpilog"), "--server", "localhost.evil.example"]) == 64
