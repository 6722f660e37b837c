"""Rig `policy`: pure code and the emulated phone on a virtual clock; minutes of script take milliseconds."""

import json

from contract.evidence import Evidence, Observation, Refused
from contract.hostconfig import config_of
from contract.policy_host import PolicyHost
from contract.script import Script
from fakes.board import Board
from fakes.clock import VirtualClock
from fakes.lines import bench_value

__all__ = ["PolicyRig", "play_policy"]

# What cannot happen without threads and a process.
PURE = {
    "rss_growth_mib": 0.0,
    "threads_left": 0,
    "fds_left": 0,
    "cpu_pct": 0.0,
    "thread_stall_s": 0.0,
    "nt_block_ms": 0.0,
    "usb_calls_on_loop_thread": 0,
    "async_usb_api_used": False,
    "event_poller_thread": False,
}


class PolicyRig:
    """Plays one run; `evidence()` gives the metrics."""

    def __init__(self, run, config):
        self.clock = VirtualClock()
        self.board = Board(run.phones, run.inject, self.clock, self)
        self.phones = self.board.phones
        self.seen = Observation()
        self.notes = []
        self.puts = {}
        self.published = {}
        self.robot_values = {}
        self.pending_values = 0
        self.coalesced = 0
        self.hosts = []
        self.host = None
        self._config = config
        self._announced = {}
        self._sequence = 0
        self._begin = self.clock.now()
        self._script = Script(run, self)

    # transport of the board

    def attached(self, phone):
        """Nothing: the host scans."""

    def detached(self, phone):
        """Nothing: transfers have ended already."""

    def removed(self, phone):
        """Nothing more: the device is gone already."""

    def changed(self, phone, action):
        if self.host is not None and self.host.alive:
            self.host.changed()

    # rig of the script

    def now(self):
        return self.clock.now()

    def note(self, event, phone=None, **arguments):
        self.notes.append((self.now(), event, phone, arguments))

    def do(self, item, phone=None, **arguments):
        self.board.do(item, phone, **arguments)

    def busy(self):
        return self.board.busy

    def cut_hits(self):
        return self.board.cut_hits

    def condition(self, name, phone=None):
        states = [self.seen.current(target.profile.name) for target in self.board.select(phone)]
        if self.host is None or not self.host.alive:
            return False
        wanted = {"linked": ("LINKED", "LIVE", "STALE"), "live": ("LIVE",), "unplugged": ("ABSENT",)}[name]
        return all(state in wanted for state in states)

    def host_start(self):
        if self.host is None or not self.host.alive:
            self.note("host_start")
            self.host = PolicyHost(self, self._config)
            self.hosts.append(self.host)

    def host_stop(self):
        self.note("host_stop")
        self.host.stop()

    def host_kill(self):
        self.note("host_kill")
        self.host.kill()

    def announced_to(self, host):
        return self._announced.setdefault(host, set())

    def on_put(self, topic, value):
        self.puts.setdefault(topic, []).append((self.now(), value))

    def nt_publish(self, topics, rate_hz, value_bytes, seconds=10.0):
        end = self.now() + seconds

        def publish():
            if self.now() >= end:
                return
            for index in range(topics):
                self._publish(f"/bench/{index}", value_bytes)
            self.clock.call_later(1 / rate_hz, publish)

        publish()

    def nt_line(self, topic, length):
        now_us = int(self.now() * 1e6)
        bare = len(json.dumps({"key": topic, "time": now_us / 1e6, "value": ""}, separators=(",", ":"))) + 1
        self._publish(topic, length - bare)

    def nt_stall(self, seconds):
        """Nothing comes from the robot by itself here."""

    def _publish(self, topic, value_bytes):
        self._sequence += 1
        now = self.now()
        value = bench_value(self._sequence, now, value_bytes)
        self.published.setdefault(topic, []).append((self._sequence, now))
        self.robot_values[topic] = (value, int(now * 1e6))
        if self.host is not None and self.host.alive and self.host.core.settled:
            self.host.on_value(topic, value, int(now * 1e6))

    # playing

    def play(self):
        clock = self.clock
        for wait in self._script.play():
            while clock.now() < wait.when and not (wait.until is not None and wait.until()):
                step = clock.next_deadline()
                clock.run_until(min(wait.when, step if step is not None else wait.when))
        return self

    def evidence(self):
        return Evidence(
            device=self.board.metrics(),
            seen=self.seen,
            notes=self.notes,
            puts=self.puts,
            published=self.published,
            begin=self._begin,
            end=self.now(),
            host={
                **PURE,
                "errors_logged": sum(host.errors_logged for host in self.hosts),
                "coalesced": self.coalesced,
                "stop_s": max((host.stop_s for host in self.hosts if host.stop_s is not None), default=None),
                "pending_values": self.pending_values,
            },
            problems=[f"condition {name} never came" for name in self._script.never],
        )


def play_policy(run):
    """The metrics of one run."""
    config, error = config_of(run.host)
    if run.wants_config_error or error is not None:
        return Refused(error)
    return PolicyRig(run, config).play().evidence()
