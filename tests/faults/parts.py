"""The campaign's processes and threads: the robot, and the phones' traffic that feeds the judge."""

import json
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from faults.oracles import Judge
from rig.nt_process import power_off

__all__ = ["RobotProcess", "Traffic"]

PROGRAM = Path(__file__).with_name("robot.py")
CYCLE_S = 0.1
PRESS_EVERY = 30  # cycles
FALL_AFTER = 5  # cycles a run pulse stays true
PLANS = [json.dumps({"type": "POSE", "pose": {"x": x, "y": 2.0, "rotation": 0.0}}) for x in (1.4, 1.0)]


class RobotProcess:
    """robot.py on one port; its notes go to the judge under the lock."""

    def __init__(self, port: int, judge: Judge, lock: threading.Lock) -> None:
        self._port = port
        self._judge = judge
        self._lock = lock
        self.variant = 0
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        command = [sys.executable, str(PROGRAM), str(self._port), str(self.variant)]
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.process = process
        assert process.stdout is not None
        assert process.stdin is not None
        self._take(process.stdout.readline())
        self._reader = threading.Thread(target=self._read, args=(process,), daemon=True)
        self._reader.start()
        process.stdin.write("go\n")
        process.stdin.flush()

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.endswith("\n"):
                self._take(line)

    def _take(self, line: str) -> None:
        note = json.loads(line)
        with self._lock:
            self._judge.on_robot(note)

    def kill(self) -> None:
        """Power off."""
        process, self.process = self.process, None
        if process is not None:
            power_off(process, self._reader.join)

    def send(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)


class Traffic:
    """Ten times a second each phone puts a number, one presses now and then, and all that they heard is judged."""

    def __init__(self, rig: Path, names: tuple[str, ...], judge: Judge, lock: threading.Lock) -> None:
        self._judge = judge
        self._lock = lock
        self._names = names
        self._since = dict.fromkeys(names, 0)
        self.number = 0
        self.error: BaseException | None = None
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(rig))
        self._file = self._socket.makefile("rw")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()
        self.listen()
        self._file.close()
        self._socket.close()

    def _do(self, name: str, phone: str, **arguments: object) -> object:
        self._file.write(json.dumps({"do": name, "phone": phone, **arguments}) + "\n")
        self._file.flush()
        answer = json.loads(self._file.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["result"]

    def _run(self) -> None:
        try:
            while not self._ended.wait(CYCLE_S):
                self._cycle()
        except BaseException as error:
            self.error = error
            raise

    def _cycle(self) -> None:
        self.number += 1
        for name in self._names:
            self._put(name)
        self.listen()
        turn = self.number % PRESS_EVERY
        if turn == 0:
            plan = PLANS[self.number // PRESS_EVERY % len(PLANS)]
            self._say("p1", {"action": "put", "key": "/RoboRoute/Plan", "value": plan})
        elif turn in (FALL_AFTER, 2 * FALL_AFTER):
            pressed = turn == FALL_AFTER
            if pressed:
                with self._lock:
                    self._judge.on_press("p1", time.monotonic())
            said = self._say("p1", {"action": "put", "key": "/RoboRoute/RunPlan", "value": pressed})
            if pressed and not said:
                with self._lock:
                    self._judge.on_unpressed()

    def _put(self, name: str) -> None:
        topic = f"/phone/{name}"
        with self._lock:
            self._judge.on_said(topic, self.number, time.monotonic())
        if not self._say(name, {"action": "put", "key": topic, "value": self.number, "id": self.number}):
            with self._lock:
                self._judge.on_unsaid(topic, self.number)

    def _say(self, name: str, message: dict[str, object]) -> bool:
        return bool(self._do("say", name, text=json.dumps(message) + "\n"))

    def listen(self) -> None:
        """Judge what the apps have heard since the last time."""
        for name in self._names:
            heard = self._do("hear", name, since=self._since[name])
            assert isinstance(heard, dict)
            self._since[name] = heard["next"]
            with self._lock:
                self._judge.on_lines(name, [tuple(line) for line in heard["lines"]])
