"""Rig `usbfs`: the daemon as a child process with its normal command line, on real libusb over emulated usbfs."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from aoabridge.cli.client import connect
from aoabridge.cli.exits import CommandError
from contract.evidence import Refused
from contract.hostconfig import config_of, config_text
from contract.realtime import RealTimeRig
from rig.rigctl import UmockPhones

__all__ = ["UNSEEN", "UsbfsRig", "play_usbfs"]

REPOSITORY = Path(__file__).resolve().parent.parent.parent
POLL_S = 0.04
STATS_S = 0.2
STOP_S = 8.0
READY_S = 20.0
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# What no process shows from outside; the pyusb backend and the source check have them.
UNSEEN = ("pending_values", "thread_stall_s", "usb_calls_on_loop_thread")
TICKS = os.sysconf("SC_CLK_TCK")


class Daemon:
    """One process of the daemon and what it wrote."""

    def __init__(self, rig):
        self.socket = str(rig.umock.directory / "control.sock")
        environment = {**os.environ, **rig.umock.environment, "STATE_DIRECTORY": str(rig.umock.directory)}
        command = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "aoabridge", "run", "--json"]
        self.process = subprocess.Popen(
            [*command, "--config", str(rig.config_file), "--socket", self.socket],
            env=environment,
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines = []
        self._times = []
        self.baseline = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self._times.append(time.monotonic())
            self.lines.append(line.rstrip("\n"))

    @property
    def alive(self):
        return self.process.poll() is None

    def wait_ready(self):
        """Until it says that it is ready; False if it ends or takes too long."""
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline and self.alive:
            if any(record.get("text") == "ready" for record in self._records()):
                return True
            time.sleep(0.01)
        return False

    def status(self):
        """The snapshot, None if the daemon does not answer."""
        try:
            with connect(self.socket, timeout_s=2.0) as daemon:
                return daemon.request("status")
        except (CommandError, OSError):
            return None

    def figures(self):
        """Threads, descriptors, resident MiB and CPU seconds, from /proc."""
        base = Path(f"/proc/{self.process.pid}")
        stat = (base / "stat").read_text().rsplit(")", 1)[1].split()
        return {
            "threads": int(stat[17]),
            "fds": sum(1 for _ in (base / "fd").iterdir()),
            "rss_mib": int(stat[21]) * PAGE_BYTES / (1 << 20),
            "cpu_s": (int(stat[11]) + int(stat[12])) / TICKS,
            "at": time.monotonic(),
        }

    def end(self, number):
        """Signals it and waits; seconds from its own "stopping" to its "stopped", None without these lines."""
        if self.alive:
            self.process.send_signal(number)
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._reader.join(2)
        self.process.stdout.close()
        told = {record.get("text"): at for record, at in zip(self._records(), self._times, strict=True)}
        return told["stopped"] - told["stopping"] if {"stopping", "stopped"} <= set(told) else None

    def _records(self):
        for line in self.lines:
            try:
                yield json.loads(line)
            except ValueError:
                yield {"level": "error", "text": line}  # not a log record: a traceback, a warning of a library

    def errors(self):
        """Texts logged as errors; a line that is no log record counts too."""
        return [record["text"] for record in self._records() if record.get("level") in ("error", "critical")]


class UsbfsRig(RealTimeRig):
    """Plays one run with the phones in one process, the daemon in another and the robot in a third."""

    def __init__(self, run, shorten=None):
        super().__init__(run, shorten)
        self.umock = UmockPhones({"phones": list(run.phones), "inject": list(run.inject)})
        self.profiles = {}
        for index, phone in enumerate(run.phones):
            name = phone.get("name", "p1" if index == 0 else f"p{index + 1}")
            at = phone.get("at", "1-1" if index == 0 else f"1-{index + 1}")
            self.profiles[name] = (at, phone.get("accessory_at") or at)
        self.phones = list(self.profiles)
        self.config_file = self.umock.directory / "aoabridge.toml"
        host = {"nt.server": f"127.0.0.1:{self.robot.port}", "web.enabled": False, **run.host}
        self.config_file.write_text(config_text(host), encoding="utf-8")
        self.daemon = None
        self.errors = []
        self.stop_times_s = []
        self.coalesced = 0
        self.answer_s = 0.0
        self.exit_codes = []
        self._stats = None
        self._polled = self._stats_at = 0.0

    # surface of the script

    def select(self, phone):
        if phone == "*":
            return self.phones
        return [phone] if phone else self.phones[:1]

    def do(self, item, phone=None, **arguments):
        self.umock.do(item, phone, **arguments)
        self._stats_at = 0.0

    def _recent(self):
        if time.monotonic() - self._stats_at > STATS_S:
            self._stats = self.umock.do("progress")
            self._stats_at = time.monotonic()
        return self._stats

    def busy(self):
        return self._recent()["busy"]

    def cut_hits(self):
        return self.umock.do("progress")["cut_hits"]

    def host_runs(self):
        return self.daemon is not None and self.daemon.alive

    def host_start(self):
        if not self.host_runs():
            self.note("host_start")
            self.daemon = Daemon(self)
            if not self.daemon.wait_ready():
                self.problems.append(f"daemon did not become ready: {self.daemon.lines[-3:]}")

    def _ended(self, expected):
        daemon = self.daemon
        if daemon.process.returncode != expected:
            self.problems.append(f"daemon ended with {daemon.process.returncode}: {daemon.lines[-3:]}")
        self.errors += daemon.errors()
        self.daemon = None
        self.umock.do("host_gone")
        for name in self.phones:
            self.seen.state(name, "ABSENT", self.now())

    def host_stop(self):
        if self.daemon is not None:
            self.note("host_stop")
            stop_s = self.daemon.end(signal.SIGTERM)
            if stop_s is None:
                self.problems.append(f"daemon did not stop: {self.daemon.lines[-3:]}")
            else:
                self.stop_times_s.append(stop_s)
            self._ended(0)

    def host_kill(self):
        if self.daemon is not None:
            self.note("host_kill")
            self.daemon.end(signal.SIGKILL)
            self._ended(-signal.SIGKILL)

    def host_stop_link(self):
        self.host_stop()
        self.host_start()

    def observe(self):
        """Asks the daemon for its snapshot, at most every 40 ms."""
        now = time.monotonic()
        if now - self._polled < POLL_S or self.daemon is None:
            return
        self._polled = now
        snapshot = self.daemon.status()
        if snapshot is None:
            if not self.daemon.alive:
                self._ended(None)
            return
        self.answer_s = max(self.answer_s, time.monotonic() - now)
        self._take(snapshot)

    def _take(self, snapshot):
        now = self.now()
        ignored = self._ignored()
        for name, ports in self.profiles.items():
            views = [view for view in snapshot["phones"] if view["port"] in ports]
            state = "IGNORED" if not views and set(ports) & ignored else "ABSENT"
            for view in views:
                state = view["state"].upper()
                self.seen.name(name, view["name"])
                self.coalesced = max(self.coalesced, view["coalesced"])
                if view.get("aoa_version") is not None:
                    self.seen.aoa_versions[name] = view["aoa_version"]
            self.seen.state(name, state, now)
        self.seen.open_issues([issue["code"] for issue in snapshot["issues"]])
        if self.daemon.baseline is None and any(self.seen.current(name) == "LIVE" for name in self.phones):
            self.daemon.baseline = self.daemon.figures()

    def _ignored(self):
        try:
            with connect(self.daemon.socket, timeout_s=2.0) as daemon:
                return {entry["port"] for entry in daemon.request("devices")["ignored"]}
        except (CommandError, OSError):
            return set()

    # evidence

    def device_metrics(self):
        stats = self.umock.stats()
        self.problems += stats["problems"]
        return stats["phones"]

    def host_metrics(self):
        grown = self._growth()
        self.host_stop()
        return {
            **grown,
            "errors_logged": len(self.errors),
            "error_texts": self.errors,
            "stop_s": max(self.stop_times_s, default=None),
            "nt_block_ms": self.answer_s * 1000,
            "coalesced": self.coalesced,
            "async_usb_api_used": False,  # judged by the source
            "event_poller_thread": False,
        }

    def _growth(self):
        """What the running daemon has more than when its phone first was live."""
        daemon = self.daemon
        if daemon is None or not daemon.alive or daemon.baseline is None:
            return {"threads_left": 0, "fds_left": 0, "rss_growth_mib": 0.0}
        before, now = daemon.baseline, daemon.figures()
        return {
            "threads_left": max(0, now["threads"] - before["threads"]),
            "fds_left": max(0, now["fds"] - before["fds"]),
            "rss_growth_mib": now["rss_mib"] - before["rss_mib"],
            "cpu_pct": 100 * (now["cpu_s"] - before["cpu_s"]) / max(0.1, now["at"] - before["at"]),
        }

    def close(self):
        if self.daemon is not None:
            self.daemon.end(signal.SIGKILL)
        if self.umock.close():
            self.problems.append("the rig saw a call that must not happen")
        self.robot.close()


def config_error(run):
    """What the daemon's own check says of the configuration, "" if nothing."""
    _, error = config_of(run.host)
    return error


def play_usbfs(run, shorten=None):
    """The metrics of one run."""
    error = config_error(run)
    if run.wants_config_error or error:
        return Refused(error)
    rig = UsbfsRig(run, shorten)
    try:
        evidence = rig.play()
    finally:
        rig.close()
    evidence.problems = [*rig.problems, *(f"condition {name} never came" for name in rig.script.never)]
    return evidence
