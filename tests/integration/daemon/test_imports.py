"""What a running daemon has loaded: none of the heavy libraries that cost its budget of start time and memory."""

from pathlib import Path

import pytest

from rig.daemon_process import DaemonProcess
from rig.nt_process import free_port

FORBIDDEN = {"typer", "click", "rich", "pydantic", "structlog", "aiohttp", "prometheus_client", "systemd"}
USED = {"ntcore", "websockets", "msgspec", "orjson", "pyudev"}


def loaded_by_daemon(folder: Path, monkeypatch: pytest.MonkeyPatch, more: str = "") -> set[str]:
    """The names of all modules of a daemon that has started."""
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    config = f'[nt]\nserver = "127.0.0.1"\n[web]\nbind = "127.0.0.1"\nport = {free_port()}\n{more}'
    with DaemonProcess(folder, config) as daemon:
        daemon.until(lambda: any("status page on port" in line for line in daemon.log))
        return {line.rpartition("|")[2].strip() for line in daemon.log if "import time:" in line}


def test_no_heavy_library_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = {name.partition(".")[0] for name in loaded_by_daemon(tmp_path, monkeypatch)}
    assert loaded >= USED
    assert not loaded & FORBIDDEN


def test_codecs_are_loaded_with_the_first_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    codecs = {"aoabridge.codecs.j519", "aoabridge.codecs.teleop", "aoabridge.codecs.frc_ds"}
    (tmp_path / "without").mkdir()
    assert not codecs & loaded_by_daemon(tmp_path / "without", monkeypatch)
    source = f"[sources.j519]\nenabled = true\nport = {free_port()}\n"
    (tmp_path / "with").mkdir()
    assert codecs <= loaded_by_daemon(tmp_path / "with", monkeypatch, source)
