"""The doctor as a whole: output, statuses, with and without a daemon."""

import json
import zipfile
from pathlib import Path

import pytest

from aoabridge.cli import main
from aoabridge.cli.checks.order import all_checks
from aoabridge.config import load_config
from aoabridge.status import ConfigView, IssueBoard, build_snapshot
from fakes.daemon import fake_daemon
from fakes.views import PIXEL, SCOUT, inputs


def arguments(tmp_path: Path, *more: str) -> list[str]:
    (tmp_path / "c.toml").write_text("[nt]\nembedded = true\n")
    return ["doctor", "--socket", str(tmp_path / "s"), "--config", str(tmp_path / "c.toml"), *more]


def test_every_complaint_has_its_cure_below_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(arguments(tmp_path))
    lines = capsys.readouterr().out.splitlines()
    assert status == int(any(line.startswith("FAIL") for line in lines))
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        assert line.startswith(("PASS  ", "WARN  ", "FAIL  ", "      fix: "))
        assert line.startswith(("PASS", "      ")) or following.startswith("      fix: ")


def test_the_daemons_issues_are_checks_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    board = IssueBoard()
    board.set("phone-lost", "scout", True, 0.0, data={"port": "1-1.3"})
    board.set("schema-missing", "/x", True, 0.0, hold=False)
    snapshot = build_snapshot(inputs(phones=(SCOUT, PIXEL)), board.open_issues())
    with fake_daemon(tmp_path / "s", {"status": snapshot}):
        assert main(arguments(tmp_path, "--json")) == 1
        found = json.loads(capsys.readouterr().out)
        assert main(arguments(tmp_path, "1-1.3", "--json")) == 1
        about_one = json.loads(capsys.readouterr().out)
    assert found["ok"] is False
    assert {"code": "phone-lost", "result": "FAIL", "text": "scout lost"}.items() <= found["checks"][-2].items()
    assert {"code": "schema-missing", "result": "WARN"}.items() <= found["checks"][-1].items()
    assert about_one["checks"][-1]["code"] == "phone-lost"


def test_a_refused_configuration_fails_and_the_network_is_not_guessed(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("[nt]\nteam = 0\n")
    loaded = load_config(tmp_path / "c.toml")
    codes = [(check.code, check.outcome.value) for check in all_checks(tmp_path, loaded, str(tmp_path / "s"))]
    assert ("config-rejected", "FAIL") in codes
    assert not any(code.startswith("nt-") for code, _ in codes)
    assert codes[-1] == ("daemon", "WARN")


def test_the_file_of_the_running_daemon_is_the_one_that_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.toml").write_text("[nt]\nteam = 0\n")
    snapshot = build_snapshot(inputs(config=ConfigView(str(tmp_path / "mine.toml"))), [])
    with fake_daemon(tmp_path / "s", {"status": snapshot}):
        assert main(["doctor", "--socket", str(tmp_path / "s")]) == 1
    assert f"Configuration refused: {tmp_path}"[:50] in capsys.readouterr().out


def test_the_bundle_is_written_or_the_reason_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(tmp_path, "--bundle", str(tmp_path / "b.zip"))) in (0, 1)
    assert "serials hashed" in capsys.readouterr().out
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        assert "checks.json" in archive.namelist()
    assert main(arguments(tmp_path, "--bundle", str(tmp_path / "no" / "b.zip"))) == 73
