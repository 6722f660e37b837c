"""A robot's server in a process of its own, and the daemon as a process with one source."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rig.daemon_process import DaemonProcess
from rig.nt_process import NtProcess

CONFIG = """
name = "pit"
[nt]
server = "127.0.0.1"
port = {port}
[devices]
simulated = true
[web]
enabled = false
"""

RunDaemon = Callable[..., DaemonProcess]


@pytest.fixture
def robot() -> Iterator[NtProcess]:
    with NtProcess.server() as server:
        yield server


@pytest.fixture
def run_daemon(robot: NtProcess, tmp_path: Path) -> Iterator[RunDaemon]:
    """Starts a daemon with these tables in its file and waits for the robot."""
    with ExitStack() as stack:

        def run(sources: str, *, connected: bool = True) -> DaemonProcess:
            daemon = DaemonProcess(tmp_path, CONFIG.format(port=robot.port) + sources)
            stack.enter_context(daemon)
            if connected:
                daemon.until(lambda: daemon.status()["robot"]["state"] == "connected")
            return daemon

        yield run
