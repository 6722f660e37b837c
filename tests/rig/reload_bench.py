"""A bridge whose configuration is read again and again, with a robot and a phone that stays linked."""

import http.client
import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contract.realtime import Noise
from rig.daemon_process import DaemonProcess, RawPhone
from rig.nt_process import NtProcess, free_port

__all__ = ["BASE", "PAUSE_S", "Bench", "put", "text_of"]

BASE: dict[str, dict[str, str]] = {
    "relay": {"put_rate": "5000", "put_burst": "50000", "error_lines_per_s": "1000"},
    "nt": {"server": '"127.0.0.1"'},
    "record": {"min_free_mib": "0"},
    "devices": {"simulated": "true"},
    "web": {"bind": '"127.0.0.1"'},
}
PAUSE_S = 0.02


def text_of(sections: dict[str, dict[str, str]]) -> str:
    lines = []
    for name, keys in sections.items():
        lines += [f"[{name}]", *(f"{key} = {value}" for key, value in keys.items())]
    return "\n".join(lines) + "\n"


def put(key: str, number: int) -> dict[str, Any]:
    return {"action": "put", "key": key, "value": number, "id": f"{key}{number}"}


class Bench:
    """A running bridge with a robot and a phone that stays linked through every reload."""

    def __init__(self, directory: Path, robot: NtProcess) -> None:
        self.robot = robot
        self.web_port = free_port()
        self.sections = {name: dict(keys) for name, keys in BASE.items()}
        self.sections["nt"]["port"] = str(robot.port)
        self.sections["web"]["port"] = str(self.web_port)
        self.directory = directory
        self.daemon = DaemonProcess(directory, text_of(self.sections)).start()
        self.phone: RawPhone = self.daemon.plug_in()
        self.daemon.until(self.connected)
        self.phone.say({"action": "subscribe", "keys": ["/robot/"]})
        self.before = self.effective()
        self.since = 0
        self.numbers = iter(range(1, 1 << 30))

    def connected(self) -> bool:
        states = [line["status"]["server"] for line in self.phone.lines if "status" in line]
        return states[-1:] == ["connected"]

    def seconds_until(self, condition: Callable[["Bench"], object], section: str = "", **keys: str) -> float:
        """Reload; how long it took until the check that found the condition true began, on a quiet machine."""
        noise = Noise()
        try:
            took_s = self._seconds_until(condition, section, **keys)
        finally:
            noise.stop()
        return took_s - noise.relaxation("visible_s", 1.0)

    def _seconds_until(self, condition: Callable[["Bench"], object], section: str, **keys: str) -> float:
        self.since = len(self.phone.lines)
        self.reload(section, **keys)
        began = time.monotonic()
        while True:
            asked = time.monotonic()
            if condition(self):
                return asked - began
            assert asked - began < 10, (keys, self.daemon.log[-5:])
            time.sleep(PAUSE_S)

    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = self.daemon.status()["record"]
        return found

    def reload(self, section: str = "", **keys: str) -> None:
        """The base file with these keys, taken over."""
        sections = {name: dict(old) for name, old in self.sections.items()}
        if section:
            sections.setdefault(section, {}).update(keys)
        self.write(text_of(sections))

    def write(self, text: str) -> None:
        self.daemon.config.write_text(text)
        self.daemon.process.send_signal(signal.SIGHUP)

    def page(self, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.web_port, timeout=10)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def effective(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.page("/api/config")[1])["effective"]
        return answer

    def puts(self, count: int) -> list[dict[str, Any]]:
        """Puts at once; their answers."""
        numbers = [next(self.numbers) for _ in range(count)]
        since = len(self.phone.lines)
        self.phone.say(*(put("/n", number) for number in numbers), put("/last", next(self.numbers)))
        began = time.monotonic()
        while time.monotonic() < began + 0.4:  # answers are limited here, so there is none to wait for
            time.sleep(PAUSE_S)
        return [line for line in self.phone.lines[since:] if "ack" in line or "error" in line]
