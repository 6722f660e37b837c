"""The service for pipx installations: each command shown first, nothing done without root or with a hidden Python."""

import json
import os
import sys
from pathlib import Path

import pytest

from aoabridge.cli import main
from aoabridge.cli import service as service_command


@pytest.fixture
def visible(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation where the service manager can see it."""
    monkeypatch.setattr(sys, "executable", "/usr/local/lib/pipx/venvs/aoabridge/bin/python")
    monkeypatch.setattr(sys, "prefix", "/usr/local/lib/pipx/venvs/aoabridge")
    monkeypatch.setattr("shutil.which", lambda _: "/usr/local/bin/aoabridge")


@pytest.mark.usefixtures("visible")
def test_a_dry_run_shows_every_step_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["service", "install", "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "install -m 0644 aoabridge.conf /etc/sysusers.d/aoabridge.conf",
        "systemd-sysusers /etc/sysusers.d/aoabridge.conf",
        "install -m 0644 70-aoabridge.rules /etc/udev/rules.d/70-aoabridge.rules",
        "install -m 0644 aoabridge.service /etc/systemd/system/aoabridge.service",
        "udevadm control --reload",
        "udevadm trigger --subsystem-match=usb",
        "systemctl daemon-reload",
        "systemctl enable aoabridge.service",
        "systemctl start aoabridge.service",
    ]
    assert main(["service", "remove", "--dry-run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["done"] is False
    assert found["steps"][0] == "systemctl disable --now aoabridge.service"
    assert "rm -f /etc/udev/rules.d/70-aoabridge.rules" in found["steps"]


@pytest.mark.parametrize("hidden", ["/home/pi/.local/bin/aoabridge", "/root/venv/bin/aoabridge"])
@pytest.mark.usefixtures("visible")
def test_a_program_below_a_home_directory_is_refused(
    hidden: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: hidden)
    assert main(["service", "install", "--dry-run"]) == 77
    assert "PIPX_HOME" in capsys.readouterr().err


@pytest.mark.usefixtures("visible")
def test_without_root_the_command_to_type_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main(["service", "install"]) == 77
    assert "service install" in capsys.readouterr().err


@pytest.mark.usefixtures("visible")
def test_files_are_written_with_the_program_that_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = {
        name: (folder, tmp_path / target.relative_to("/")) for name, (folder, target) in service_command._FILES.items()
    }
    monkeypatch.setattr(service_command, "_FILES", moved)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(
        service_command, "_command", lambda *_words, **_options: service_command.Step("true", ("true",))
    )
    assert main(["service", "install", "-q"]) == 0
    unit = (tmp_path / "etc/systemd/system/aoabridge.service").read_text()
    assert "ExecStart=/usr/local/bin/aoabridge run" in unit
    assert "ExecReload=/usr/local/bin/aoabridge config check --quiet" in unit
    rule = tmp_path / "etc/udev/rules.d/70-aoabridge.rules"
    assert rule.stat().st_mode & 0o777 == 0o644
    assert main(["service", "remove"]) == 0
    assert not rule.exists()


@pytest.mark.usefixtures("visible")
def test_a_machine_without_device_manager_gets_the_service(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, status in (("udevadm", 1), ("systemctl", 0), ("systemd-sysusers", 0)):
        (programs / name).write_text(f"#!/bin/sh\nexit {status}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    files = {name: (folder, tmp_path / target.name) for name, (folder, target) in service_command._FILES.items()}
    monkeypatch.setattr(service_command, "_FILES", files)
    assert main(["service", "install"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "systemctl start aoabridge.service"
    (programs / "systemctl").write_text("#!/bin/sh\nexit 1\n")
    assert main(["service", "install"]) == 70
