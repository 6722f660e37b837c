"""Versions, and the smoke test of an installation."""

import json
from pathlib import Path

import pytest

from aoabridge import __version__
from aoabridge.cli import main, smoke


def test_versions_of_everything_that_matters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"aoabridge", "python", "pyntcore", "libusb", "pyusb", "platform"}
    assert found["aoabridge"] == __version__
    assert main(["version", "--quiet"]) == 0
    assert capsys.readouterr().out == f"{__version__}\n"


def test_the_smoke_test_names_the_part_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_library() -> str:
        raise OSError("no libusb")

    (tmp_path / "c.toml").write_text("[nt]\nteam = 0\n")
    monkeypatch.setattr(smoke, "_imports", lambda: "not here")
    monkeypatch.setattr(smoke, "_networktables", lambda: "not here")
    monkeypatch.setattr(smoke, "_libusb", no_library)
    assert main(["version", "--check", "--json", "--config", str(tmp_path / "c.toml")]) == 1
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert [name for name, check in checks.items() if not check["ok"]] == ["libusb", "configuration"]
    assert checks["libusb"]["text"] == "OSError: no libusb"
    assert "nt.team" in checks["configuration"]["text"]
