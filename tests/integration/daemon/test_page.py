"""The daemon's page: rules that change on SIGHUP, and what it says about a refused file."""

import contextlib
import http.client
import json
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from rig.daemon_process import DaemonProcess

CONFIG = """
[devices]
simulated = true
[web]
port = {port}
bind = "127.0.0.1"
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@pytest.fixture
def port() -> int:
    return free_port()


def get(port: int, path: str = "/", host: str = "localhost") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.putrequest("GET", path, skip_host=True)
        connection.putheader("Host", f"{host}:{port}")
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def config_of(port: int) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(get(port, "/api/config")[1])
    return result


def opened(daemon: DaemonProcess) -> None:
    daemon.until(lambda: any("status page on port" in line for line in daemon.log))


def test_who_may_ask_changes_on_reload(tmp_path: Path, port: int) -> None:
    text = CONFIG.format(port=port)
    with DaemonProcess(tmp_path, text) as daemon:
        opened(daemon)
        assert get(port)[0] == 200
        assert get(port, host="bridge.example")[0] == 421
        assert config_of(port)["origins"]["web.port"] == "file"
        assert config_of(port)["origins"]["web.hosts"] == "default"
        daemon.config.write_text(text + 'hosts = ["bridge.example"]\n')
        daemon.process.send_signal(signal.SIGHUP)
        daemon.until(lambda: get(port, host="bridge.example")[0] == 200)
        assert config_of(port)["origins"]["web.hosts"] == "file"
        daemon.config.write_text(text + 'allow_from = ["10.0.0.0/8"]\n')
        daemon.process.send_signal(signal.SIGHUP)
        daemon.until(lambda: get(port)[0] == 403)
        daemon.config.write_text(text.replace(str(port), str(port) + "0"))
        daemon.process.send_signal(signal.SIGHUP)
        daemon.until(lambda: daemon.log[-1] and any("config-rejected" in i["code"] for i in daemon.status()["issues"]))
        assert get(port)[0] == 403  # a refused file opens nothing


def test_a_refused_file_is_on_the_page(tmp_path: Path, port: int) -> None:
    (tmp_path / "last-good.toml").write_text(CONFIG.format(port=port))
    with DaemonProcess(tmp_path, "[nt]\nteam = 99999\n[acess]\n") as daemon:
        opened(daemon)
        assert get(port, "/healthz")[0] == 200
        assert get(port, "/healthz?ready")[0] == 503
        page = get(port)[1].decode()
        assert "PROBLEM" in page
        assert "nt.team: 99999" in page
        found = config_of(port)
        assert found["state"] == "last-good"
        assert len(found["errors"]) == 2
        daemon.config.write_text(CONFIG.format(port=port))
        daemon.process.send_signal(signal.SIGHUP)
        daemon.until(lambda: config_of(port)["errors"] == [])


def test_the_page_goes_with_the_daemon(tmp_path: Path, port: int) -> None:
    with contextlib.ExitStack() as idle, DaemonProcess(tmp_path, CONFIG.format(port=port)) as daemon:
        opened(daemon)
        for _ in range(3):
            idle.enter_context(socket.create_connection(("127.0.0.1", port)))
        assert get(port)[0] == 200
        status, seconds = daemon.stop()
        assert (status, seconds < 2.0) == (0, True), f"{seconds:.1f} s\n" + "\n".join(daemon.log)
