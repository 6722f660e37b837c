"""What a running daemon has loaded: none of the heavy libraries that cost its budget of start time and memory."""

from pathlib import Path

import pytest

from rig.daemon_process import DaemonProcess
from rig.nt_process import free_port

FORBIDDEN = {"typer", "click", "rich", "pydantic", "structlog", "aiohttp", "prometheus_client", "systemd"}
USED = {"ntcore", "websockets", "msgspec", "orjson", "pyudev"}


def test_no_heavy_library_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    config = f'[nt]\nserver = "127.0.0.1"\n[web]\nbind = "127.0.0.1"\nport = {free_port()}\n'
    with DaemonProcess(tmp_path, config) as daemon:
        daemon.until(lambda: any("status page on port" in line for line in daemon.log))
        loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in daemon.log if "import time:" in line}
    assert loaded >= USED
    assert not loaded & FORBIDDEN
