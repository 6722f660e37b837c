"""The bench of the main job: emulated phones on real libusb, the daemon and the robot, each in a process of its own."""

import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from rig.daemon_process import DaemonProcess
from rig.nt_process import NtProcess
from rig.rigctl import PREFIX, UmockPhones, sweep

__all__ = ["MainJob", "TalkingPhones", "spread"]

PROGRAM = Path(__file__).with_name("talking_phone.py")
CONFIG = """
[nt]
server = "127.0.0.1"
port = {port}
[web]
enabled = false
"""
LIVE_S = 20.0
LEFT_S = 10.0


class TalkingPhones(UmockPhones):
    """The phones of talking_phone.py."""

    def __init__(self, case, program=PROGRAM):  # the base starts the rig without ears, so it is not asked
        sweep()
        self.directory = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
        self.directory.chmod(0o777)
        file = self.directory / "case.json"
        file.write_text(json.dumps(case))
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", "umockdev-wrapper", "/usr/bin/python3", str(program), str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(self.directory)},
            text=True,
        )
        answer = json.loads(self._process.stdout.readline())
        self.root = Path(answer["root"])
        self.environment = {"UMOCKDEV_DIR": answer["root"], "LD_PRELOAD": answer["preload"]}
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(answer["socket"])
        self._file = self._socket.makefile("rw")

    @property
    def pid(self):
        """The process of the rig."""
        return self._process.pid

    def say(self, *messages, phone=None):
        """Writes messages of the app as lines; a text is written as it is. The app must have the accessory open."""
        parts = [item if isinstance(item, str) else json.dumps(item, separators=(",", ":")) + "\n" for item in messages]
        assert self.do("say", phone, text="".join(parts)), "the app is closed"

    def heard(self, phone=None, since=0):
        """(time, read, text) of the lines that the app heard, from number `since` on."""
        return [tuple(line) for line in self.do("hear", phone, since=since)["lines"]]

    def count(self, phone=None):
        """How many lines the app has heard."""
        return self.do("hear", phone, since=1 << 60)["next"]

    def messages(self, phone=None, since=0):
        """The same as objects."""
        return [json.loads(text) for _, _, text in self.heard(phone, since)]

    def last_event(self, name, phone=None, **fields):
        """Monotonic time of the newest such event of the phone, None if there is none."""
        times = [
            event["t"]
            for event in self.do("events", phone)
            if event["event"] == name and fields.items() <= event.items()
        ]
        return times[-1] if times else None


class MainJob:
    """`robot` False: its port is chosen, but it does not run yet. The daemon is started by `start_daemon`."""

    def __init__(self, *phones, robot=True, program=PROGRAM, **case):
        self.phones = TalkingPhones({"phones": list(phones) or [{}], **case}, program)
        self.robot = NtProcess.server()
        if robot:
            self.robot.start()
        self.daemon = None
        self.killed = False

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        with suppress(ProcessLookupError):
            if self.daemon is not None and self.daemon.process.poll() is None:
                self.daemon.stop()
        if self.killed:
            self.phones.do("forgive_death")
        problems = self.phones.stats()["problems"]
        status = self.phones.close()
        self.robot.kill()
        if kind is None:
            assert problems == []
            assert status == 0

    def start_daemon(self, *wrap, config=""):
        """A new process of the daemon; returns it."""
        variables = [f"{name}={value}" for name, value in self.phones.environment.items()]
        self.daemon = DaemonProcess(
            self.phones.directory,
            CONFIG.format(port=self.robot.port) + config,
            wrap=("setpriv", "--pdeathsig", "KILL", *wrap, "env", *variables),
        )
        return self.daemon.start()

    def stop_daemon(self, *signals):
        """Ends it; exit status and seconds."""
        result = self.daemon.stop(*signals)
        self.killed |= signal.SIGKILL in signals
        self.phones.do("host_gone")
        return result

    def state(self, name="p1"):
        """State of one phone as the daemon shows it, "absent" if it shows none."""
        port = f"1-{name[1:]}"
        return next((view["state"] for view in self.daemon.status()["phones"] if view["port"] == port), "absent")

    def until_live(self, *names, seconds=LIVE_S):
        """Waits until these phones are live and the robot is connected; returns the monotonic time."""
        for name in names or ("p1",):
            self.daemon.until(lambda name=name: self.state(name) == "live", seconds)
        self.daemon.until(lambda: self.daemon.status()["robot"]["state"] == "connected", seconds)
        return time.monotonic()

    def until_flowing(self, after=0.0, phone=None, seconds=LIVE_S):
        """Waits until the app has heard a value of the robot after a moment; returns when it heard the first."""
        self.daemon.until(lambda: self._flowing(after, phone, self.phones.count(phone) - 20), seconds)
        return next(at for at, _, text in self.phones.heard(phone) if at > after and '"/load/' in text[:20])

    def _flowing(self, after, phone, since):
        return any(at > after and '"/load/' in text[:20] for at, _, text in self.phones.heard(phone, max(0, since)))

    def until_heard(self, condition, phone=None, since=0, seconds=LIVE_S):
        """Waits for a line; returns its (time, read, message)."""

        def found():
            for at, read, text in self.phones.heard(phone, since):
                message = json.loads(text)
                if condition(message):
                    return at, read, message
            return None

        return self.daemon.until(found, seconds)

    def figures(self):
        """Threads, descriptors and MiB of the daemon."""
        return self.daemon.threads(), self.daemon.descriptors(), self.daemon.rss_mib()

    def until_no_more_than(self, before):
        """Waits until the daemon has no more threads and descriptors than before; what answers us may linger."""
        deadline = time.monotonic() + LEFT_S
        while any(now > then for now, then in zip(self.figures()[:2], before[:2], strict=True)):
            assert time.monotonic() < deadline, (before, self.figures())
            time.sleep(0.05)


def spread(values):
    """p50 and maximum in ms, as text for a report."""
    ordered = sorted(values)
    return f"p50 {ordered[len(ordered) // 2] * 1000:.0f} ms, max {ordered[-1] * 1000:.0f} ms, n {len(ordered)}"
