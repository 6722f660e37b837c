"""The daemon as a child process with its normal command line, on a socket of its own."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

START_S = 20.0
STOP_S = 10.0


class DaemonProcess:
    """``config`` is the text of its file; the log is collected in ``log``."""

    def __init__(self, directory: Path, config: str = "", *arguments: str, wrap: tuple[str, ...] = ()) -> None:
        self.directory = directory
        self.config = directory / "aoabridge.toml"
        self.config.write_text(config)
        self.socket = directory / "control.sock"
        self.arguments = arguments
        self.wrap = wrap
        self.log: list[str] = []
        self.phones: list[RawPhone] = []

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.stop()
        for phone in self.phones:
            phone.unplug()

    def start(self) -> Self:
        """Start and wait until it answers."""
        command = [
            *self.wrap, sys.executable, "-m", "aoabridge", "--socket", str(self.socket), "--config", str(self.config),
            "run", *self.arguments,
        ]  # fmt: skip
        environment = {**os.environ, "STATE_DIRECTORY": str(self.directory), "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        self._reader = threading.Thread(target=self._collect, daemon=True)
        self._reader.start()
        self.until(lambda: any("ready" in line for line in self.log) or self.process.poll() is not None, START_S)
        return self

    def _collect(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line.rstrip())

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, float]:
        """End it; returns exit status and seconds."""
        began = time.monotonic()
        self.process.send_signal(number)
        try:
            status = self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self._reader.join(STOP_S)
            assert self.process.stderr is not None
            self.process.stderr.close()
        return status, time.monotonic() - began

    def until(self, condition: Callable[[], Any], seconds: float = 10.0) -> Any:
        """Wait for a condition; returns its value."""
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            assert time.monotonic() < deadline, "\n".join(self.log[-30:])
            time.sleep(0.02)
        return value

    def request(self, name: str, **arguments: Any) -> dict[str, Any]:
        """One answer of the control socket."""
        with self._connect() as connection, connection.makefile("rb") as lines:
            connection.sendall(json.dumps({"request": name, "arguments": arguments}).encode() + b"\n")
            answer = json.loads(lines.readline())
        assert answer["ok"], answer
        result: dict[str, Any] = answer["result"]
        return result

    def status(self) -> dict[str, Any]:
        """The snapshot."""
        return self.request("status")

    def plug_in(self, name: str = "phone") -> "RawPhone":
        """A simulated phone, as raw bytes."""
        connection = self._connect()
        request = {"request": "simulate-phone", "arguments": {"name": name}}
        connection.sendall(json.dumps(request).encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            byte = connection.recv(1)
            assert byte, answer
            answer += byte
        assert json.loads(answer)["ok"], answer
        self.phones.append(RawPhone(connection))
        return self.phones[-1]

    def _connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(10)
        connection.connect(str(self.socket))
        return connection

    def rss_mib(self) -> float:
        """Resident memory."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    def threads(self) -> int:
        """Threads of the process."""
        return len(list(Path(f"/proc/{self.process.pid}/task").iterdir()))

    def descriptors(self) -> int:
        """Open descriptors."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))


class RawPhone:
    """The app's end of a simulated link; a thread collects the lines unless it is told not to read."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._socket.settimeout(0.1)
        self.lines: list[dict[str, Any]] = []
        self.received_at: list[float] = []
        self.blanks = 0
        self.reading = threading.Event()
        self.reading.set()
        self.ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        buffer = b""
        while not self.ended.is_set():
            if not self.reading.wait(0.1):
                continue
            try:
                data = self._socket.recv(65536)
            except TimeoutError:
                continue
            except OSError:
                data = b""
            if not data:
                self.ended.set()
                return
            *lines, buffer = (buffer + data).split(b"\n")
            self.blanks += sum(not line for line in lines)
            now = time.monotonic()
            for line in lines:
                if line:
                    self.lines.append(json.loads(line))
                    self.received_at.append(now)

    def say(self, *messages: dict[str, Any]) -> None:
        """Write messages."""
        self._socket.settimeout(5)
        self._socket.sendall(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def values(self, key: str) -> list[Any]:
        """The values of a topic so far."""
        return [line["value"] for line in self.lines if line.get("key") == key]

    def unplug(self) -> None:
        """Gone."""
        self.ended.set()
        self._socket.close()
        self._thread.join(2)
