"""The commands against a running daemon: promised JSON, exit statuses, reload, readiness and the end."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from fakes import shapes

T = TypeVar("T")
DEADLINE_S = 30.0


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Daemon:
    """``aoabridge run`` as its own server, with one simulated phone, told about by a notify socket of our own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.config = folder / "aoabridge.toml"
        self.write("")
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(str(folder / "notify"))
        self.notify.settimeout(DEADLINE_S)
        self.heard: list[str] = []
        environment = {
            **os.environ,
            "NOTIFY_SOCKET": str(folder / "notify"),
            "WATCHDOG_USEC": "2000000",
            "STATE_DIRECTORY": str(folder / "state"),
        }
        (folder / "state").mkdir()
        self.process = subprocess.Popen(
            [*self.command("run"), "--config", str(self.config), "--simulate", "1"],
            env=environment,
            stderr=subprocess.DEVNULL,
        )

    def write(self, more: str) -> None:
        self.config.write_text(
            f'name = "pit"\n[nt]\nembedded = true\nport = {self.port}\n[web]\nenabled = false\n{more}', encoding="utf-8"
        )

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "aoabridge", *words, "--socket", str(self.folder / "control.sock")]

    def ask(self, *words: str, status: int = 0) -> str:
        done = subprocess.run(self.command(*words), capture_output=True, text=True, check=False, timeout=DEADLINE_S)
        assert done.returncode == status, done.stderr
        return done.stdout

    def json(self, shape: type[T], *words: str, status: int = 0) -> T:
        return msgspec.json.decode(self.ask(*words, "--json", status=status), type=shape)

    def snapshot(self) -> dict[str, Any]:
        done = subprocess.run(self.command("status", "--json"), capture_output=True, text=True, check=False, timeout=30)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def until(self, condition: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            snapshot = self.snapshot()
            if condition(snapshot):
                return snapshot
        raise AssertionError(snapshot)

    def hear(self, wanted: str) -> str:
        """Listen until the service manager is told something that begins so."""
        while True:
            said = self.notify.recv(4096).decode()
            self.heard.append(said)
            if said.startswith(wanted):
                return said

    def hang_up(self) -> None:
        self.process.send_signal(signal.SIGHUP)

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(DEADLINE_S)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    found = Daemon(tmp_path)
    try:
        found.hear("READY=1")
        yield found
    finally:
        if found.process.poll() is None:
            found.process.kill()
            found.process.wait(DEADLINE_S)
        found.notify.close()


def test_every_command_keeps_its_promise(daemon: Daemon) -> None:
    daemon.until(lambda snapshot: snapshot["verdict"] == "ok")
    snapshot = daemon.json(shapes.Snapshot, "status")
    assert (snapshot.name, snapshot.sentence) == ("pit", "1 phone flowing, we are the server")
    assert daemon.ask("status").startswith("OK  1 phone flowing, we are the server")
    assert [device.name for device in daemon.json(shapes.Devices, "devices").devices] == ["simulated1"]
    topics = {topic.name: topic for topic in daemon.json(shapes.Topics, "topics", "/AOABridge/pit/").topics}
    assert topics["/AOABridge/pit/verdict"].type == "string"
    assert topics["/AOABridge/pit/verdict"].source == "bridge"
    lines = daemon.ask("log", "--json").splitlines()
    assert next(msgspec.json.decode(line, type=shapes.LogLine).code for line in lines) == "started"
    seen = daemon.ask("monitor", "simulated1", "--count", "1", "--timeout", "20", "--json")
    assert msgspec.json.decode(seen, type=shapes.Line).device == "simulated1"
    seen = daemon.ask("monitor", "/AOABridge/pit/heartbeat", "--count", "1", "--timeout", "20", "--json")
    assert msgspec.json.decode(seen, type=shapes.TopicValue).type == "int"
    assert not daemon.json(shapes.RecordStatus, "record", "status").active
    assert daemon.json(shapes.RecordStatus, "record", "start").active
    assert not daemon.json(shapes.RecordStatus, "record", "stop").active
    assert daemon.json(shapes.ConfigCheck, "config", "check", "--config", str(daemon.config)).ok
    daemon.json(shapes.Version, "version")
    watch = subprocess.Popen(daemon.command("status", "--watch", "--json"), stdout=subprocess.PIPE, text=True)
    with watch:
        assert watch.stdout is not None
        msgspec.json.decode(watch.stdout.readline(), type=shapes.Snapshot)
        watch.send_signal(signal.SIGINT)
        watch.stdout.read()
    assert watch.returncode == 0


def test_a_reload_applies_what_it_can_keeps_the_links_and_refuses_a_bad_file_whole(daemon: Daemon) -> None:
    before = daemon.until(lambda snapshot: snapshot["verdict"] == "ok")
    assert before["config"]["state"] == "ok"
    daemon.write('port = 5809\n[log]\nlevel = "debug"\nring = 100\n[access]\nput_deny = ["/x"]\n')
    daemon.hang_up()
    said = daemon.hear("RELOADING=1")
    assert "MONOTONIC_USEC=" in said
    daemon.hear("READY=1")
    after = daemon.until(lambda snapshot: snapshot["config"]["restart_needed"])
    assert sorted(after["config"]["restart_needed"]) == ["log.ring", "web.port"]
    assert [issue["code"] for issue in after["issues"]] == ["config-restart"]
    assert (after["phones"][0]["reconnects"], after["phones"][0]["state"]) == (0, "live")
    assert "log.level" in daemon.ask("log")
    daemon.write("[nt\n")
    daemon.hang_up()
    daemon.hear("RELOADING=1")
    daemon.hear("READY=1")
    refused = daemon.until(lambda snapshot: snapshot["verdict"] == "problem")
    assert "config-rejected" in [issue["code"] for issue in refused["issues"]]
    assert refused["phones"][0]["state"] == "live"
    daemon.write("")
    daemon.hang_up()
    daemon.until(lambda snapshot: snapshot["verdict"] == "ok" and not snapshot["issues"])


def test_the_service_manager_hears_life_and_the_end_which_is_quick_and_clean(daemon: Daemon) -> None:
    daemon.until(lambda snapshot: snapshot["verdict"] == "ok")
    daemon.hear("WATCHDOG=1")
    if "STATUS=1 phone flowing, we are the server" not in daemon.heard:
        daemon.hear("STATUS=1 phone flowing, we are the server")
    began = time.monotonic()
    assert daemon.end() == 0
    assert time.monotonic() - began < 5  # two seconds on a quiet machine
    daemon.hear("STOPPING=1")
    assert not (daemon.folder / "control.sock").exists()
    assert daemon.ask("status", status=2).startswith("DOWN")
