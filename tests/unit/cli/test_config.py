"""``config check``, ``show`` and ``path``: statuses, and output for people and programs."""

import json
from pathlib import Path

import pytest

from aoabridge.cli import main

BAD = "[nt]\nteam = 99999\n[acess]\n"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.delenv("AOABRIDGE_CONFIG", raising=False)
    (tmp_path / "state").mkdir()
    return tmp_path / "aoabridge.toml"


def test_every_error_is_listed_with_its_place_and_hint(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(BAD)
    assert main(["config", "check", str(file)]) == 78
    shown = capsys.readouterr().err.splitlines()
    assert shown[0] == f"{file}:2:8: nt.team: 99999 is not in 1..25599"
    assert shown[1].startswith(f"{file}:3:1: acess: unknown key")
    assert shown[2] == '  did you mean "access"?'


def test_the_errors_as_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(BAD)
    assert main(["config", "check", "--json", "--config", str(file)]) == 78
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is False
    assert found["restart_needed"] == []
    assert found["errors"][0] == {
        "file": str(file),
        "line": 2,
        "column": 8,
        "key": "nt.team",
        "message": "99999 is not in 1..25599",
        "hint": None,
    }


def test_a_good_file_is_ok_and_names_what_waits_for_a_restart(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("[web]\nport = 5809\n[nt]\nteam = 1\n")
    (file.parent / "state" / "last-good.toml").write_text("[nt]\nteam = 2\n")
    assert main(["config", "check", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}: ok; needs a restart: web.port\n"
    assert main(["config", "check", "--quiet", str(file)]) == 0
    assert capsys.readouterr().out == ""


def test_the_environment_names_the_file(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AOABRIDGE_CONFIG", str(file))
    assert main(["config", "check"]) == 0
    assert capsys.readouterr().out == "no file, the defaults apply\n"
    file.write_text(BAD)
    assert main(["config", "check"]) == 78
    assert main(["config", "show"]) == 78


def test_a_named_file_that_is_not_there_or_is_a_directory_is_66(file: Path) -> None:
    assert main(["config", "check", str(file)]) == 66
    assert main(["config", "check", str(file.parent)]) == 66
    assert main(["config", "show", "--config", str(file)]) == 66


def test_show_prints_what_the_file_sets_or_everything(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("[nt]\nteam = 6458")
    assert main(["config", "show", "--config", str(file)]) == 0
    assert capsys.readouterr().out == "[nt]\nteam = 6458\n"
    assert main(["config", "show", "--effective", "--json", "--config", str(file)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["origins"]["nt.team"] == "file"
    assert found["origins"]["web.port"] == "default"
    assert "port = 5808  # default" in found["toml"]


def test_path_names_the_file_and_the_last_good_copy(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "path", "--json", "--config", str(file)]) == 0
    assert json.loads(capsys.readouterr().out) == {"path": str(file), "exists": False, "last_good": None}
    good = file.parent / "state" / "last-good.toml"
    good.write_text("")
    assert main(["config", "path", "--config", str(file)]) == 0
    assert f"last good: {good}" in capsys.readouterr().out


def test_a_strict_run_with_a_bad_file_is_78(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(BAD)
    assert main(["run", "--strict", "--config", str(file)]) == 78
    assert "nt.team" in capsys.readouterr().err
