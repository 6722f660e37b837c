"""The sign of life that the service manager waits for: at half its patience, and not while any thread stands still."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aoabridge.config import Config, default_config
from aoabridge.daemon import service
from aoabridge.daemon.service import Bridge
from rig.nt_process import free_port

PATIENCE_S = 1.0
LIMIT_S = 1.6  # an idle writer shows life once per second
SILENT_S = 2.0  # several times the pause between two signs, after the standstill has been noticed


class Manager:
    """The service manager's end: when it heard the sign of life."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.socket.setblocking(False)

    def signs(self) -> int:
        """How often since the last call."""
        found = 0
        while True:
            try:
                found += self.socket.recv(4096) == b"WATCHDOG=1"
            except BlockingIOError:
                return found


class StandingPipe:
    """A phone whose reads or writes can be made to stand still, as a library that never returns."""

    packet_size = 512

    def __init__(self) -> None:
        self.reads, self.writes = threading.Event(), threading.Event()
        self.reads.set()
        self.writes.set()

    def read(self, timeout_ms: int) -> bytes | None:
        self.reads.wait()
        time.sleep(0.01)
        return None

    def write(self, data: bytes, timeout_ms: int) -> int:
        self.writes.wait()
        return len(data)

    def clear_halt_in(self) -> None:
        """Never halted."""

    def clear_halt_out(self) -> None:
        """Never halted."""

    def close(self) -> None:
        """Nothing is held."""


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Manager]:
    found = Manager(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    monkeypatch.setenv("WATCHDOG_USEC", str(int(PATIENCE_S * 1e6)))
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    yield found
    found.socket.close()


def config() -> Config:
    found = default_config()
    return msgspec.structs.replace(
        found,
        nt=msgspec.structs.replace(found.nt, embedded=True, port=free_port()),
        record=msgspec.structs.replace(found.record, enabled=True, min_free_mib=0),
        web=msgspec.structs.replace(found.web, enabled=False),
    )


def stand(bridge: Bridge, pipe: StandingPipe, which: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """Make one thread stand still; returns what lets it go on."""
    gate: Any = {"phone's reader": pipe.reads, "phone's writer": pipe.writes}.get(which)
    if gate is not None:
        gate.clear()
        return gate.set
    going = threading.Event()
    if which == "recorder":
        recorder: Any = bridge.recording._recorder
        write = recorder._write
        monkeypatch.setattr(recorder, "_write", lambda record: (going.wait(), write(record)))
    else:
        poller: Any = bridge.nt._poller
        source = poller._source
        wait = source.wait
        monkeypatch.setattr(source, "wait", lambda seconds: (going.wait(), wait(seconds)))
    return going.set


@pytest.mark.parametrize("which", ["phone's reader", "phone's writer", "recorder", "NetworkTables"])
def test_it_is_withheld_while_a_thread_stands_still(
    which: str, manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("USB_S", "NT_S", "RECORDER_S"):
        monkeypatch.setattr(service, name, LIMIT_S)

    async def run() -> tuple[int, int, int, bool]:
        bridge = Bridge(config(), None, state_dir=tmp_path, phones=None)
        await bridge.start()
        pipe = StandingPipe()
        bridge.pipes.open(pipe, "phone")
        try:
            await asyncio.sleep(2.0)
            living = manager.signs()
            go_on = stand(bridge, pipe, which, monkeypatch)
            await asyncio.sleep(2.5)
            manager.signs()
            await asyncio.sleep(SILENT_S)
            standing, healthy = manager.signs(), not bridge.stuck()
            go_on()
            await asyncio.sleep(2.0)
            return living, standing, manager.signs(), healthy
        finally:
            pipe.reads.set()
            pipe.writes.set()
            await bridge.stop()
            bridge.surfaces.notifier.close()

    living, standing, again, healthy = asyncio.run(run())
    assert living >= 2
    assert (standing, healthy) == (0, False)
    assert again >= 2
