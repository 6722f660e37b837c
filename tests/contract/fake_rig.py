"""Rig `fake`: the daemon's adapters, threads and loop over the emulated phone as a pyusb backend."""

import os
import threading
from pathlib import Path

from aoabridge.adapters.nt import NtClient
from aoabridge.daemon.settings import nt_settings
from contract.evidence import Refused
from contract.fake_host import ErrorCount, FakeHost
from contract.hostconfig import config_of
from contract.realtime import RealTimeRig
from fakes.bus import FakeBus

__all__ = ["FakeRig", "play_fake"]

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
FAST = 5.0
# What a faster clock does not distort: counts, states, and times with seconds of slack.
FAST_METRICS = frozenset(
    {
        *("get_protocol", "send_string", "start", "vendor_requests", "hid_requests", "audio_requests", "stalls"),
        *("string_indices", "string_min_bytes", "string_max_bytes", "empty_strings_sent", "string_descriptor_requests"),
        *("set_configuration", "reset", "claims", "claims_native", "state", "issue", "issue_seen", "names"),
        *("identity_swaps", "aoa_version", "errors_logged", "min_start_gap_s", "start_times_s", "udev_sets_power_on"),
        *("link_after_host_start_s", "usb_calls_on_loop_thread", "bytes_to_other_interfaces", "out_multiple_of_mps"),
        *("zlp_out", "out_max_bytes", "first_out_byte", "out_order_violations", "lines_corrupt", "lines_duplicated"),
        *("links_ended", "live_after_plug_s", "link_after_replug_s"),
    }
)
SLOW_ITEMS = frozenset({"app_flood", "app_chunks", "app_bytes", "app_mute"})


class FakeRig(RealTimeRig):
    """Plays one run in this process."""

    def __init__(self, run, shorten=None):
        speed = FAST if self._may_be_fast(run) else 1.0
        super().__init__(run, shorten, speed)
        self.bus = FakeBus(run.phones, run.inject, speed)
        self.bus.clock._origin = self.origin
        self.profiles = {name: phone.profile for name, phone in self.bus.board.phones.items()}
        self.phones = list(self.profiles)
        self.config, _ = config_of({**run.host, "nt.server": f"127.0.0.1:{self.robot.port}"})
        self.errors = ErrorCount()
        self.host = None
        self.hosts = []
        self._warm_up()
        self._fds = self._open_fds()
        self._rss = None

    @staticmethod
    def _may_be_fast(run):
        items = {item["do"] for item in run.script}
        return all(entry[0] in FAST_METRICS for entry in run.expect) and not items & SLOW_ITEMS

    def _warm_up(self):
        """What ntcore keeps for the life of a process must not count as left over."""
        client = NtClient(nt_settings(self.config), wake=lambda: None)
        client.open()
        client.close()

    @staticmethod
    def _open_fds():
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 (names only)

    @staticmethod
    def _rss_mib():
        return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES / (1 << 20)

    # surface of the script

    def select(self, phone):
        if phone == "*":
            return self.phones
        return [phone] if phone else self.phones[:1]

    def do(self, item, phone=None, **arguments):
        self.bus.do(item, phone, **arguments)

    def busy(self):
        return self.bus.busy

    def cut_hits(self):
        return self.bus.board.cut_hits

    def host_runs(self):
        return self.host is not None and self.host.alive

    def observe(self):
        """The host notes its states itself."""
        if self._rss is None and any(self.seen.current(name) == "LIVE" for name in self.phones):
            self._rss = self._rss_mib()

    def host_start(self):
        if not self.host_runs():
            self.note("host_start")
            self.host = FakeHost(self, self.config)
            self.hosts.append(self.host)

    def host_stop(self):
        self.note("host_stop")
        self.host.stop()

    def host_kill(self):
        self.note("host_kill")
        self.host.kill()

    def host_stop_link(self):
        self.note("host_stop")
        self.host.restart_phones()
        self.note("host_start")

    # evidence

    def device_metrics(self):
        return self.bus.metrics()

    def host_metrics(self):
        growth = self._rss_mib() - self._rss if self._rss is not None else 0.0
        loops = {host.thread_ident for host in self.hosts}
        on_loop = sum(count for ident, count in self.bus.calls_by_thread.items() if ident in loops)
        cpu_pct = self.host.cpu_pct() if self.host_runs() else 0.0
        self._end_hosts()
        worst = {
            "pending_values": max((host.pending_values for host in self.hosts), default=0),
            "coalesced": max((host.coalesced for host in self.hosts), default=0),
            "thread_stall_s": max((host.thread_stall_s for host in self.hosts), default=0.0),
            "nt_block_ms": max((host.loop_lag_s for host in self.hosts), default=0.0) * 1000,
            "stop_s": max((time for host in self.hosts for time in host.stop_times_s), default=None),
        }
        return {
            **worst,
            "cpu_pct": cpu_pct,
            "rss_growth_mib": growth,
            "usb_calls_on_loop_thread": on_loop,
            "errors_logged": len(self.errors.texts),
            "error_texts": self.errors.texts,
            "threads_left": self._usb_threads(),
            "fds_left": max(0, self._open_fds() - self._fds),
            "event_poller_thread": False,
        }

    @staticmethod
    def _usb_threads():
        return sum(thread.name.startswith("usb-") for thread in threading.enumerate())

    def _end_hosts(self):
        for host in self.hosts:
            host.stop()

    def close(self):
        self._end_hosts()
        self.bus.close()
        self.robot.close()


def play_fake(run, shorten=None):
    """The metrics of one run."""
    _, error = config_of(run.host)
    if run.wants_config_error or error is not None:
        return Refused(error)
    rig = FakeRig(run, shorten)
    try:
        with rig.errors:
            return rig.play()
    finally:
        rig.close()
