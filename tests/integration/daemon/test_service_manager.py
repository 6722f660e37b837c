"""What service manager and journal are told by a daemon in full traffic, and what a journal that stalls costs."""

import itertools
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rig.daemon_process import DaemonProcess, RawPhone
from rig.nt_process import NtProcess, free_port

CONFIG = """
[nt]
server = "127.0.0.1"
port = {port}
[devices]
simulated = true
[sources]
frc = {{ enabled = true, listen = ["ds2rio-udp:{udp}"] }}
[web]
enabled = false
"""
PATIENCE_S = 2.0
READY_AGAIN_S = 1.0
STOP_S = 2.0
LIVES = 3


class Manager:
    """The manager's end of the notify socket; ``said`` = (monotonic time, message)."""

    def __init__(self, path: Path) -> None:
        self.said: list[tuple[float, str]] = []
        self.on_ready: Callable[[], Any] = lambda: None
        self.at_ready: Any = None
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.settimeout(0.1)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        while not self._over.is_set():
            try:
                message = self._socket.recv(4096).decode()
            except TimeoutError:
                continue
            if message == "READY=1" and self.at_ready is None:
                self.at_ready = self.on_ready()
            self.said.append((time.monotonic(), message))

    def times(self, begin: str) -> list[float]:
        return [at for at, message in self.said if message.startswith(begin)]

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self._socket.close()


@pytest.fixture
def robot() -> Iterator[NtProcess]:
    with NtProcess.server() as server:
        server.stream("/load/", 50, 50)
        yield server


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Manager]:
    found = Manager(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    monkeypatch.setenv("WATCHDOG_USEC", str(int(PATIENCE_S * 1e6)))
    yield found
    found.close()


def listening(path: Path, udp: int) -> tuple[bool, bool]:
    """Whether the control socket answers and the source's port is taken."""
    with socket.socket(socket.AF_UNIX) as control, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        answers = control.connect_ex(str(path)) == 0
        try:
            datagrams.bind(("127.0.0.1", udp))
        except OSError:
            return answers, True
        return answers, False


def flowing(daemon: DaemonProcess) -> RawPhone:
    """A phone with the robot's whole load."""
    phone = daemon.plug_in()
    phone.say({"action": "subscribe", "keys": ["/load/"]})
    daemon.until(lambda: any(line.get("status", {}).get("server") == "connected" for line in phone.lines))
    daemon.until(lambda: len(phone.lines) > 100)
    return phone


def test_the_sockets_come_first_then_sentence_life_and_reloads(
    tmp_path: Path, robot: NtProcess, manager: Manager
) -> None:
    udp = free_port()
    text = CONFIG.format(port=robot.port, udp=udp)
    manager.on_ready = lambda: listening(tmp_path / "control.sock", udp)
    with DaemonProcess(tmp_path, text) as daemon:
        flowing(daemon)
        assert manager.at_ready == (True, True)
        daemon.until(lambda: daemon.status()["verdict"] == "ok")
        sentence = f"STATUS={daemon.status()['sentence']}"
        daemon.until(lambda: manager.times(sentence))
        first = len(manager.times("WATCHDOG=1"))
        daemon.until(lambda: len(manager.times("WATCHDOG=1")) >= first + 4)
        signs = manager.times("WATCHDOG=1")[first:]
        assert (signs[-1] - signs[0]) / (len(signs) - 1) == pytest.approx(PATIENCE_S / 2, rel=0.5)
        assert max(b - a for a, b in itertools.pairwise(signs)) < PATIENCE_S
        for number, refused in enumerate((False, True, False), 1):
            daemon.config.write_text(text + "[acess]\n" if refused else text)
            before_us = time.monotonic_ns() // 1000
            daemon.process.send_signal(signal.SIGHUP)
            daemon.until(lambda number=number: len(manager.times("READY=1")) == number + 1)
            _, message = [item for item in manager.said if item[1].startswith("RELOADING=1")][-1]
            told_us = int(message.partition("MONOTONIC_USEC=")[2])
            assert before_us <= told_us <= before_us + READY_AGAIN_S * 1e6
            assert manager.times("READY=1")[-1] - before_us / 1e6 < READY_AGAIN_S


def test_stopping_is_said_before_anything_ends(tmp_path: Path, robot: NtProcess, manager: Manager) -> None:
    for life in range(1, LIVES + 1):
        daemon = DaemonProcess(tmp_path, CONFIG.format(port=robot.port, udp=free_port())).start()
        phone = flowing(daemon)
        status, seconds = daemon.stop()
        assert (status, seconds < STOP_S) == (0, True), "\n".join(daemon.log)
        phone.ended.wait(STOP_S)
        assert phone.lines[-1] == {"disconnect": True}
        assert len(manager.times("STOPPING=1")) == life
        assert manager.times("STOPPING=1")[-1] <= phone.received_at[-1]
        assert manager.said[-1][1] in ("STOPPING=1", "WATCHDOG=1")
        phone.unplug()


def round_trips(daemon: DaemonProcess, phone: RawPhone, count: int) -> list[float]:
    """Seconds from a put to its answer, sorted."""
    found = []
    for number in range(count):
        ident = f"{time.monotonic()}-{number}"
        asked, since = time.monotonic(), len(phone.lines)
        phone.say({"action": "put", "key": "/x", "value": number, "id": ident})
        while {"ack": ident} not in phone.lines[since:]:
            refusals = [line for line in phone.lines[since:] if "error" in line]
            assert time.monotonic() < asked + 5, refusals
            time.sleep(0.0005)
        found.append(time.monotonic() - asked)
    return sorted(found)


# The journal is known by where stderr goes; its socket is where the system has it, in a mount namespace of its own.
AS_A_SERVICE = """
import os, sys
os.environ["JOURNAL_STREAM"] = "{0.st_dev}:{0.st_ino}".format(os.fstat(2))
print("ready to become the service", file=sys.stderr)  # all that its log says there
os.execv(sys.argv[1], sys.argv[1:])
"""


def fields(record: bytes) -> dict[str, str]:
    """The one-line fields of a record."""
    pairs = (line.partition(b"=") for line in record.split(b"\n"))
    return {name.decode(): value.decode() for name, equals, value in pairs if equals}


def test_a_journal_that_never_reads_costs_lines_and_no_time(tmp_path: Path, robot: NtProcess) -> None:
    run = tmp_path / "run"
    (run / "systemd/journal").mkdir(parents=True)
    private = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /run && exec "$@"', str(run))
    as_a_service = (*private, sys.executable, "-c", AS_A_SERVICE)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
        journal.bind(str(run / "systemd/journal/socket"))
        journal.settimeout(10)
        udp = free_port()
        text = CONFIG.format(port=robot.port, udp=udp)
        with DaemonProcess(tmp_path, text, wrap=as_a_service) as daemon:
            daemon.until(lambda: listening(tmp_path / "control.sock", udp)[0])
            phone = flowing(daemon)
            usual = round_trips(daemon, phone, 100)
            for number in range(1, 40):  # each adds a line of its own
                daemon.config.write_text(f"{text}[relay]\nput_rate = {1000 + number}\n")
                daemon.process.send_signal(signal.SIGHUP)
                daemon.until(lambda number=number: f"-> {1000 + number}" in ring(daemon))
            stalled = round_trips(daemon, phone, 100)
            assert stalled[50] < usual[50] * 2 + 0.002
            assert stalled[-1] < 0.2
            waiting = drained(journal)
            assert all("AOABRIDGE_DROPPED" not in record for record in waiting)
            assert waiting[0]["MESSAGE_ID"] == "f12612ba0c4a5ecc851014350f116207"
            daemon.config.write_text(text)
            daemon.process.send_signal(signal.SIGHUP)
            assert int(fields(journal.recv(1 << 18))["AOABRIDGE_DROPPED"]) > 0


def ring(daemon: DaemonProcess) -> str:
    """The lines that the daemon keeps in memory."""
    return str(daemon.request("log", level="info", device=None)["lines"])


def drained(journal: socket.socket) -> list[dict[str, str]]:
    """Everything that waits in the journal's socket."""
    found = []
    journal.setblocking(False)
    while True:
        try:
            found.append(fields(journal.recv(1 << 18)))
        except BlockingIOError:
            journal.settimeout(10)
            return found
