"""``aoabridge simulate`` as a child process, and what a test of a source watches on the robot's server."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Self

from aoabridge.codecs.wpistruct import SchemaRegistry
from rig.nt_process import NtProcess

START_S = 20.0


def udp_ports(count: int) -> list[int]:
    """Different UDP ports that nothing listens on."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def tcp_ports(count: int) -> list[int]:
    """Different TCP ports that nothing listens on."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


class Simulation:
    """One far end; ``events`` are its ticks and, at the end, its summary."""

    def __init__(self, kind: str, *arguments: str) -> None:
        self.command = [sys.executable, "-m", "aoabridge", "simulate", kind, *arguments, "--json"]
        self.events: list[dict[str, Any]] = []
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> Self:
        """Start it; it speaks a second later for the first time."""
        self.process = subprocess.Popen(
            self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
        )
        self._reader = threading.Thread(target=self._collect, args=(self.process,), daemon=True)
        self._reader.start()
        return self

    def _collect(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.events.append(json.loads(line))

    def stop(self) -> int:
        """End it as Ctrl-C does; returns the exit status. Idempotent."""
        process, self.process = self.process, None
        if process is None:
            return 0
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        return self._finish(process)

    def kill(self) -> None:
        """End it without a word, as a cable that is cut."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            self._finish(process)

    def wait(self, seconds: float) -> int:
        """Let it end by itself; returns the exit status."""
        process, self.process = self.process, None
        assert process is not None
        process.wait(seconds)
        return self._finish(process)

    def _finish(self, process: subprocess.Popen[str]) -> int:
        process.wait(START_S)
        self._reader.join(START_S)
        assert process.stdout is not None
        assert process.stderr is not None
        errors = process.stderr.read()
        process.stdout.close()
        process.stderr.close()
        assert "Traceback" not in errors, errors
        return process.returncode


class Watch:
    """What the robot's server shows below one root."""

    def __init__(self, robot: NtProcess, root: str) -> None:
        self.robot = robot
        self.root = root
        self._taken = 0
        self._last: dict[str, Any] = {}

    def newest(self) -> dict[str, Any]:
        """The newest value of every topic so far, full names, also of what is gone since."""
        self.robot.take()
        for sample in self.robot.samples[self._taken :]:
            self._last[sample["topic"]] = sample["value"]
        self._taken = len(self.robot.samples)
        return self._last

    def types(self) -> dict[str, str]:
        """Type by name below the root, of what exists now."""
        return {
            name.removeprefix(self.root): kind
            for name, kind in self.robot.types().items()
            if name.startswith(self.root)
        }

    def value(self, name: str) -> Any:
        """The newest value below the root, None if there was none."""
        return self.newest().get(self.root + name)

    def until(self, condition: Callable[[], object], seconds: float = 15.0) -> float:
        """Wait; returns the seconds it took."""
        began = time.monotonic()
        while not condition():
            shown = {name.removeprefix(self.root): value for name, value in self._last.items()}
            assert time.monotonic() < began + seconds, f"{self.types()}\n{shown}"
            time.sleep(0.02)
        return time.monotonic() - began

    def until_value(self, name: str, value: Any, seconds: float = 15.0) -> float:
        """Wait for a value."""
        return self.until(lambda: self.value(name) == value, seconds)

    def until_types(self, expected: dict[str, str], seconds: float = 15.0) -> None:
        """Wait until every one of these topics exists with its type."""
        self.until(lambda: expected.items() <= self.types().items(), seconds)

    def struct(self, name: str) -> Any:
        """A struct topic, decoded with the schema that stands on the server."""
        type_string = self.types()[name].removeprefix("struct:")
        registry = SchemaRegistry()
        for topic, value in self.newest().items():
            if topic.startswith("/.schema/struct:"):
                registry.add(topic.removeprefix("/.schema/struct:"), value)
        codec = registry.codec(type_string.removesuffix("[]"))
        data = self.value(name)
        assert len(data) % codec.size == 0
        items = [codec.decode(data[at : at + codec.size]) for at in range(0, len(data), codec.size)]
        return items if type_string.endswith("[]") else items[0]
