"""The page of the real daemon: follows what happens, and says so when it hears nothing any more."""

import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser.chromium import Chromium
from rig.daemon_process import DaemonProcess
from rig.nt_process import NtProcess

CONFIG = """
[nt]
server = "127.0.0.1"
port = {nt}
[devices]
simulated = true
[web]
port = {web}
bind = "127.0.0.1"
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@pytest.fixture
def robot() -> Iterator[NtProcess]:
    with NtProcess.server() as server:
        yield server


@pytest.fixture
def url(tmp_path: Path, robot: NtProcess) -> Iterator[tuple[str, DaemonProcess]]:
    web = free_port()
    with DaemonProcess(tmp_path, CONFIG.format(nt=robot.port, web=web)) as daemon:
        daemon.until(lambda: daemon.status()["robot"]["state"] == "connected")
        daemon.until(lambda: any("status page on port" in line for line in daemon.log))
        yield f"http://127.0.0.1:{web}/", daemon


def test_it_follows_phone_and_robot(chromium: Chromium, url: tuple[str, DaemonProcess], robot: NtProcess) -> None:
    address, daemon = url
    phone = daemon.plug_in("pixel7")
    phone.say({"action": "subscribe", "keys": ["/robot/x"]})
    daemon.until(lambda: daemon.status()["verdict"] == "ok")
    chromium.ask("watch", url=address)
    shown = chromium.ask("expect", selector="[role=status]", contains="OK 1 PHONE FLOWING, ROBOT CONNECTED", seconds=5)
    assert shown["text"].startswith("✓")
    chromium.ask("expect", selector="header", contains="NOT A ROBOT", seconds=5)
    robot.kill()
    chromium.ask("expect", selector="[role=status]", contains="PROBLEM 1 phone flowing; robot lost", seconds=10)
    chromium.ask("expect", selector=".issues .bad", contains="Robot connection lost", seconds=5)
    chromium.ask("expect", selector=".issues .bad", contains="Robot code is not running", seconds=15)
    said = chromium.ask("announced")["said"]
    assert len({*said}) == len(said) <= 3  # a changed verdict is said once, an unchanged one never
    assert chromium.ask("close")["errors"] == []


def test_contact_lost_and_found(chromium: Chromium, url: tuple[str, DaemonProcess]) -> None:
    address, daemon = url
    chromium.ask("watch", url=address)
    chromium.ask("expect", selector="#contact", hidden=True, seconds=2)
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        lost = chromium.ask("expect", selector="#contact", contains="NO CONTACT WITH BRIDGE, values from", seconds=5)
    finally:
        daemon.process.send_signal(signal.SIGCONT)
    assert lost["seconds"] <= 3.0
    assert chromium.ask("expect", selector="#contact", hidden=True, seconds=8)["seconds"] <= 6.0
    chromium.ask("close")
