"""The faults themselves: each is done to the running bench, seen to have happened, and told to the judge."""

import fcntl
import os
import random
import resource
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from faults.ground import SmallDisk, WallClock
from faults.oracles import Judge
from faults.parts import RobotProcess
from faults.schedule import PHONES, Fault
from rig.daemon_process import DaemonProcess
from rig.main_job import MainJob

__all__ = ["Injector", "NotInjectedError"]

# The known app subscribes its pose a second after the rest. If a daemon dies in between, the next one finds the pose
# alone and takes it for all that the app wants, until the app repeats everything after a minute: not injected.
SUBSCRIBED_S = 1.5
REPLUG_S = 3.2  # a hand, not the phone itself: no ladder
RESYNC_S = 0.3  # until the next line of an app that says ten a second
SEEN_S = 15.0  # until a fault must have shown its effect
CUT_S = 3.0  # until the transfer came in which a phone is to be cut off
PIPE_SIZE = 1031  # F_SETPIPE_SZ
FILLER = b"filler " + b"." * 120 + b"\n"
BIG = "x" * 900_000
RESTART_S = 1.0  # as the unit says
MEMORY_SLACK_BYTES = 128 << 10
STEPPED = "wall clock stepped by "


class NotInjectedError(Exception):
    """A fault had no effect, and does not count."""


class Injector:
    """``do`` returns when a fault is under way; ``over_at`` is the moment when the last of all causes is gone."""

    def __init__(self, job: MainJob, robot: RobotProcess, judge: Judge, lock: threading.Lock, seed: int) -> None:
        self.job, self.robot, self.judge, self.lock = job, robot, judge, lock
        self.rng = random.Random(seed)
        self.disk: SmallDisk | None = None
        self.clock: WallClock | None = None
        self.udp = 0
        self.config = ""
        self.over_at = 0.0
        self.sockets = {"p1": "1-1", "p2": "1-2"}
        self.of_daemon = Counter[str]()
        self.counts = Counter[str]()
        self.on_daemon: Callable[[], None] = lambda: None
        self.reloads = 0

    def surround(self, clock: WallClock, disk: SmallDisk | None) -> None:
        """Give every daemon to come this clock and this disk."""
        self.clock, self.disk = clock, disk
        variables = self.job.phones.environment
        variables |= clock.environment
        # A large block comes from the kernel every time, not from what an earlier one has left nor from the room that
        # the arena of a thread has reserved: it can be refused.
        variables["MALLOC_MMAP_THRESHOLD_"] = variables["MALLOC_TRIM_THRESHOLD_"] = str(MEMORY_SLACK_BYTES)
        variables["MALLOC_ARENA_MAX"] = "1"
        variables["LD_PRELOAD"] += f":{clock.library}"
        if disk is not None:
            variables["STATE_DIRECTORY"] = str(disk.path)

    @property
    def daemon(self) -> DaemonProcess:
        return self.job.daemon

    def do(self, fault: Fault) -> None:
        """Inject; NotInjectedError if nothing came of it."""
        getattr(self, "_" + fault.kind.replace("-", "_"))(fault)
        self.over_at = max(self.over_at, time.monotonic())

    def start_daemon(self) -> None:
        """A new life."""
        self.of_daemon.clear()
        with self.lock:
            self.judge.on_daemon(time.monotonic())
        self.job.start_daemon(config=self.config)
        self.on_daemon()

    def tell(self, name: str, *arguments: object, **named: object) -> None:
        with self.lock:
            getattr(self.judge, name)(*arguments, **named)

    def until(self, condition: Callable[[], object], seconds: float = SEEN_S) -> bool:
        """Whether it came true in time."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def until_open(self, *phones: str) -> None:
        """A phone that is away cannot be hurt: wait until its app is there."""
        if not self.until(lambda: all(self.job.phones.do("hear", name, since=1 << 60)["open"] for name in phones)):
            raise NotInjectedError("no app")

    # Phones.

    def _unplug(self, fault: Fault) -> None:
        names = PHONES if fault.both else (fault.phone,)
        self.until_open(*names)
        before = {name: self.job.phones.last_event("unplug", name) or 0.0 for name in names}
        for name in names:
            step = self.rng.choice(("read", "write"))
            byte = self.rng.randrange(1, 58 if step == "read" else 600)
            self.job.phones.do("cut", name, step=step, byte=byte, gap_s=REPLUG_S)
        for name in names:
            found = self.until(
                lambda name=name: (self.job.phones.last_event("unplug", name) or 0.0) > before[name], CUT_S
            )
            if not found:
                self.job.phones.do("cut_now", name, gap_s=REPLUG_S)
            self.counts["unplugs at a random byte" if found else "unplugs between transfers"] += 1
            at = self.job.phones.last_event("unplug", name) or time.monotonic()
            self.over_at = max(self.over_at, at + REPLUG_S)

    def _phone_reboot(self, fault: Fault) -> None:
        self.until_open(fault.phone)
        self.job.phones.do("unplug", fault.phone)
        time.sleep(REPLUG_S + 2 * fault.size)
        self.job.phones.do("plug", fault.phone)

    def _swap(self, fault: Fault) -> None:
        self.until_open(*PHONES)
        for name in PHONES:
            self.job.phones.do("unplug", name)
        time.sleep(REPLUG_S)
        self.sockets = {"p1": self.sockets["p2"], "p2": self.sockets["p1"]}
        for name in PHONES:
            self.job.phones.do("move", name, at=self.sockets[name])
            self.job.phones.do("plug", name)

    def _app_restart(self, fault: Fault) -> None:
        self.until_open(fault.phone)
        began, gap_s = time.monotonic(), 0.2 + 2 * fault.size
        self.job.phones.do("app_restart", fault.phone, gap_s=gap_s)
        time.sleep(gap_s)
        self.tell("on_break", fault.phone, began, time.monotonic())

    def _app_deaf(self, fault: Fault) -> None:
        self.until_open(fault.phone)
        began = time.monotonic()
        self.job.phones.do("app_stop_reading", fault.phone)
        time.sleep(0.2 + 2.5 * fault.size)
        self.job.phones.do("app_read", fault.phone)
        self.tell("on_deaf", fault.phone, began, time.monotonic())

    def _stutter(self, fault: Fault) -> None:
        self.until_open(fault.phone)
        self.job.phones.do("accept_out", fault.phone, sweep="every_split", nak_ms=5)

    def _stall(self, fault: Fault) -> None:
        self.until_open(fault.phone)
        began = time.monotonic()
        self.job.phones.do("halt", fault.phone)
        if not self.until(lambda: self.job.phones.do("halts_left", fault.phone) == 0):
            raise NotInjectedError("nothing halted")
        # Whatever was read is dropped up to the end of the next line: it may have lost its beginning.
        self.tell("on_break", fault.phone, began, time.monotonic() + RESYNC_S)

    # The robot.

    def _robot_restart(self, fault: Fault) -> None:
        began = time.monotonic()
        self.robot.kill()
        time.sleep(0.1 + 1.5 * fault.size)
        self.robot.variant += 1
        self.robot.start()
        self.tell("on_loss", began, time.monotonic())
        self.of_daemon["robots"] += 1
        self.counts["server restarts"] += 1

    def _robot_frozen(self, fault: Fault) -> None:
        began = time.monotonic()
        self.robot.send(signal.SIGSTOP)
        time.sleep(0.2 + 4 * fault.size)
        self.robot.send(signal.SIGCONT)
        self.tell("on_loss", began, time.monotonic(), frozen=True)
        self.of_daemon["robots"] += 1

    # The daemon.

    def _until_subscribed(self) -> None:
        """Wait until every app has said all that it wants."""
        since = time.monotonic()
        self.until(lambda: all(min(self.judge.value_s[name], self.judge.put_s[name]) > since for name in PHONES))
        time.sleep(SUBSCRIBED_S)

    def _daemon_killed(self, fault: Fault) -> None:
        self._until_subscribed()
        self._restart(fault.size, signal.SIGKILL)

    def _daemon_restart(self, fault: Fault) -> None:
        self._until_subscribed()
        self._restart(fault.size, signal.SIGTERM)

    def _restart(self, pause_s: float, how: signal.Signals) -> None:
        began = time.monotonic()
        self.job.stop_daemon(how)
        ended = time.monotonic()
        time.sleep(pause_s)
        self.start_daemon()
        for phone in PHONES:
            self.tell("on_link_end", phone, ended)
            self.tell("on_break", phone, began, time.monotonic() + 1.0)  # adopts: what was said meanwhile is refused
        if how is signal.SIGKILL:
            self.tell("on_loss", began, ended)

    def _reload(self, text: str, *, good: bool) -> None:
        """A changed file, then the old one again; the daemon says of each whether it took it."""
        before = self.daemon.config.read_text()
        for content, taken in ((before + text, good), (before, True)):
            draft = self.daemon.config.with_suffix(".new")
            draft.write_text(content)
            draft.replace(self.daemon.config)
            self.daemon.process.send_signal(signal.SIGHUP)
            self.daemon.until(lambda taken=taken: (not self.daemon.status()["config"]["errors"]) is taken, SEEN_S)

    def _reload_good(self, fault: Fault) -> None:
        self._reload(f"\n[relay]\nput_rate = {501 + round(fault.size * 100)}\n", good=True)

    def _reload_bad(self, fault: Fault) -> None:
        self._reload("\n[relay]\nput_rate = 'fast'\n", good=False)

    def _udp_flood(self, fault: Fault) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(2000 + round(8000 * fault.size)):
                sender.sendto(self.rng.randbytes(self.rng.randrange(1, 200)), ("127.0.0.1", self.udp))

    def _log_blocked(self, fault: Fault) -> None:
        """A full pipe that nobody reads: lines are lost, which the daemon says once it is read again."""
        pipe = self.daemon.process.stderr
        assert pipe is not None
        fcntl.fcntl(pipe, PIPE_SIZE, 4 * 4096)
        plain, gate = self.daemon.log, threading.Event()

        class Blocked(list):
            def append(self, line: str) -> None:
                gate.wait()
                if not line.startswith("filler"):
                    super().append(line)

        log = self.daemon.log = Blocked(plain)
        try:
            self._fill(Path(f"/proc/{self.daemon.process.pid}/fd/2"))
            end = time.monotonic() + 0.5 + 2 * fault.size
            while time.monotonic() < end:
                self.reloads += 1
                self._reload(f"\n[relay]\nput_rate = 'fast {self.reloads}'\n", good=False)
        finally:
            gate.set()
        if not self.until(self._says_what_is_lost(log, len(plain))):
            raise NotInjectedError("no line was lost")
        self.of_daemon["blocked"] += 1

    @staticmethod
    def _fill(path: Path) -> None:
        """Until even a short line does not fit; its reader takes a few before it waits."""
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        try:
            full_since = None
            while full_since is None or time.monotonic() < full_since + 0.1:
                try:
                    os.write(descriptor, FILLER)
                    full_since = None
                except BlockingIOError:
                    full_since = full_since or time.monotonic()
        finally:
            os.close(descriptor)

    def _says_what_is_lost(self, log: list[str], since: int) -> Callable[[], bool]:
        def said() -> bool:
            self.reloads += 1
            self._reload(f"\n[relay]\nput_rate = 'fast {self.reloads}'\n", good=False)  # something to say
            return any("log lines lost because nobody read them" in line for line in log[since:])

        return said

    # The machine.

    def _disk_full(self, fault: Fault) -> None:
        """The recording stops and says so; with room again it can be started again."""
        if self.disk is None:
            raise NotInjectedError("no disk of our own")
        if not self.daemon.status()["record"]["active"]:
            self.daemon.request("record-start")
        if not self.disk.fill():
            raise NotInjectedError("there is room left")
        try:
            if not self.until(lambda: self._issue("record-stopped") and not self.daemon.status()["record"]["active"]):
                raise NotInjectedError("the recording goes on")
            time.sleep(fault.size)
        finally:
            self.disk.empty()
        self.daemon.request("record-start")
        if not self.until(lambda: not self._issue("record-stopped")):
            self.tell("on_wrong", "the recording does not go on with room on the disk")

    def _issue(self, code: str) -> bool:
        return any(issue["code"] == code for issue in self.daemon.status()["issues"])

    def _clock_step(self, fault: Fault) -> None:
        if self.clock is None:
            raise NotInjectedError("no clock of our own")
        step_s = self.rng.choice((-1, 1)) * (10 + 5000 * fault.size)
        before = len(self.daemon.log)
        self.clock.step(step_s)
        if not self.until(lambda: any(abs(step_s - seen) < 2 for seen in self._steps(before))):
            raise NotInjectedError("the daemon has not seen the step")

    def _steps(self, since: int) -> list[float]:
        """What the daemon says of its wall clock."""
        lines = [line for line in self.daemon.log[since:] if STEPPED in line]
        return [float(line.partition(STEPPED)[2].split()[0]) for line in lines]

    def _memory_pressure(self, fault: Fault) -> None:
        """The address space may not grow: a big put that got through before gets no answer now."""
        self._until_subscribed()  # the daemon may die of it
        since = time.monotonic()
        if not self.until(lambda: self.judge.put_s[fault.phone] > since) or not self._big_put(fault.phone):
            raise NotInjectedError("a big put is not answered anyhow")
        began, pid = time.monotonic(), self.daemon.process.pid
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + MEMORY_SLACK_BYTES
        resource.prlimit(pid, resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        answered = self._big_put(fault.phone)
        time.sleep(fault.size)
        died = self.daemon.process.poll() is not None
        if not died:
            resource.prlimit(pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        for phone in PHONES:
            self.tell("on_break", phone, began, time.monotonic() + 0.5)
        if died:  # the service manager starts it again
            self.counts["daemons without memory that died"] += 1
            self._restart(RESTART_S, signal.SIGKILL)
            self.tell("on_loss", began, time.monotonic())
        elif answered:
            raise NotInjectedError("there was memory enough")

    def _big_put(self, phone: str) -> bool:
        """Whether a put of a megabyte is answered."""
        self.reloads += 1
        name = f"big {self.reloads}"
        since = self.job.phones.count(phone)
        line = f'{{"action":"put","key":"/big/{phone}","value":"{BIG}","id":"{name}"}}\n'
        self.job.phones.do("say", phone, text=line)
        return self.until(lambda: any(f'"{name}"' in text for _, _, text in self.job.phones.heard(phone, since)), 1.0)
