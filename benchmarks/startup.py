"""Start and memory of the daemon as a process; how soon a robot with many topics is relayed."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from benchmarks.libusb import CONFIG
from benchmarks.phone import Arrival, BenchPipe
from benchmarks.robot import robot
from benchmarks.running import Row, percentile, running, wait_until
from rig.daemon_process import DaemonProcess  # the rig is below tests/

STARTS: Final = 3
LOADED_S: Final = 5.0
MANY: Final = 5_000
READY_S: Final = 20.0
COMMAND_MS: Final = 150.0  # at once, to somebody who waits
SIMULATED: Final = "[devices]\nsimulated = true\n"


def rows() -> list[Row]:
    """Measure everything once: about 30 seconds."""
    return [*exec_rows(), *daemon_rows(), *many_topics_rows()]


def exec_rows() -> list[Row]:
    """From exec to READY=1, and of the commands that must be quick."""
    with tempfile.TemporaryDirectory() as directory:
        ready = [seconds_to_ready(Path(directory)) for _ in range(STARTS)]
    return [
        ("exec to READY=1", percentile(ready, 0.5), 1.0, "s"),
        ("python -c pass, for comparison, wall", wall_ms("-c", "pass"), None, "ms"),
        ("aoabridge version, wall", command_ms("version"), COMMAND_MS, "ms"),
        ("aoabridge config check, wall", command_ms("config", "check"), COMMAND_MS, "ms"),
    ]


def seconds_to_ready(directory: Path) -> float:
    """One start of the daemon, with an empty configuration."""
    config = directory / "aoabridge.toml"
    config.write_text("[web]\nenabled = false\n")
    path = str(directory / "notify.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(path)
        listener.settimeout(READY_S)
        command = [sys.executable, "-m", "aoabridge", "--socket", str(directory / "control.sock")]
        environment = {**os.environ, "NOTIFY_SOCKET": path, "STATE_DIRECTORY": str(directory)}
        began = time.monotonic()
        process = subprocess.Popen(
            [*command, "--config", str(config), "run"], env=environment, stderr=subprocess.DEVNULL
        )
        while b"READY=1" not in listener.recv(4096):
            pass
        seconds = time.monotonic() - began
        process.terminate()
        process.wait()
    Path(path).unlink()
    return seconds


def command_ms(*arguments: str) -> float:
    """Median wall time of a command."""
    return wall_ms("-m", "aoabridge", *arguments)


def wall_ms(*arguments: str) -> float:
    """Median wall time of the interpreter with these arguments."""
    spans = []
    for _ in range(STARTS):
        began = time.monotonic()
        subprocess.run([sys.executable, *arguments], capture_output=True, check=False)
        spans.append((time.monotonic() - began) * 1e3)
    return percentile(spans, 0.5)


def daemon_rows() -> list[Row]:
    """The command of every pit crew; memory while 300 topics come at 50 Hz to one phone."""
    with tempfile.TemporaryDirectory() as directory, robot() as far:
        far.publish(300)
        with DaemonProcess(Path(directory), CONFIG.format(port=far.port) + SIMULATED) as daemon:
            wait_until(lambda: daemon.status()["robot"]["state"] == "connected")
            time.sleep(2.0)
            status_ms = command_ms("--socket", str(daemon.socket), "status")
            phone = daemon.plug_in()
            phone.say({"action": "subscribe", "keys": ["/bench/"]})
            far.stream(15_000, 0.02)
            time.sleep(LOADED_S)
            rss = daemon.rss_mib()
            far.still()
    return [
        ("aoabridge status, wall", status_ms, COMMAND_MS, "ms"),
        ("RSS, one phone, 300 topics at 50 Hz", rss, 60.0, "MiB"),
    ]


def many_topics_rows() -> list[Row]:
    """A robot with 5 000 topics: from the connection to the phone having a value of each."""
    with robot() as far:
        far.publish(MANY)
        pipe = BenchPipe()
        pipe.say(action="subscribe", keys=["/bench/"])
        with running(far.port, [pipe]) as subject:
            wait_until(lambda: len({arrival.key for arrival in pipe.arrivals()}) >= MANY)
            connected_at = subject.bridge.relay.connected_at
            assert connected_at is not None
            last = max(arrival.arrived for arrival in first_of_each(pipe))
    return [("5 000 topics: connection to the last value at the phone", last - connected_at, 1.0, "s")]


def first_of_each(pipe: BenchPipe) -> list[Arrival]:
    """The first arrival of every topic."""
    return list({arrival.key: arrival for arrival in reversed(pipe.arrivals())}.values())
