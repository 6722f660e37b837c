"""The daemon's parts on an event loop in a thread: real adapters and threads, USB by a given backend."""

import asyncio
import logging
import os
import selectors
import threading
import time
from pathlib import Path

from aoabridge.adapters.nt import NtClient
from aoabridge.adapters.usb import UsbHost
from aoabridge.bridge.core import BridgeCore
from aoabridge.daemon.phones import PhoneHost
from aoabridge.daemon.relay import Relay
from aoabridge.daemon.settings import core_settings, device_rules, identity, nt_settings
from aoabridge.daemon.usb_links import UsbLinks
from contract.hostconfig import usb_device

__all__ = ["ErrorCount", "FakeHost"]

START_S = 10
OBSERVE_S = 0.01
STALLED_S = 2.0
TICKS = os.sysconf("SC_CLK_TCK")


class _ScaledSelector(selectors.DefaultSelector):
    """Waits `speed` times shorter."""

    def __init__(self, speed):
        super().__init__()
        self._speed = speed

    def select(self, timeout=None):
        return super().select(timeout if timeout is None or timeout <= 0 else timeout / self._speed)


class _ScaledLoop(asyncio.SelectorEventLoop):
    """An event loop on the rig's clock."""

    def __init__(self, clock):
        super().__init__(_ScaledSelector(clock.speed))
        self._rig_clock = clock

    def time(self):
        return self._rig_clock.now()


class ErrorCount(logging.Handler):
    """Counts records of level ERROR and above, and keeps their texts."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())

    def __enter__(self):
        logging.getLogger("aoabridge").addHandler(self)
        return self

    def __exit__(self, *_exception):
        logging.getLogger("aoabridge").removeHandler(self)


def _thread_cpu_s(native_id):
    fields = Path(f"/proc/self/task/{native_id}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class FakeHost:
    """One run of the daemon. `rig` gives bus, clock and the record; calls are for the rig's thread."""

    def __init__(self, rig, config):
        self.rig = rig
        self.alive = True
        self.stop_times_s = []
        self.hanging = []
        self.loop_lag_s = 0.0
        self.thread_stall_s = 0.0
        self.pending_values = 0
        self.coalesced = 0
        self.garbage_lines = 0
        self._config = config
        self._backend = rig.bus.backend
        self.loop = _ScaledLoop(rig.bus.clock)
        self._ready = threading.Event()
        self.loop.set_exception_handler(self._on_exception)
        self._thread = threading.Thread(target=self._run, name="host-loop", daemon=True)
        self._began = time.monotonic()
        self._thread.start()
        if not self._ready.wait(START_S):
            raise RuntimeError("the host did not start")
        rig.bus.listeners.append(self._on_hotplug)

    @property
    def thread_ident(self):
        return self._thread.ident

    def cpu_pct(self):
        """What the threads of the host that run now have used of one core."""
        names = ("host-loop", "usb-read", "usb-write", "nt-")
        threads = [thread for thread in threading.enumerate() if thread.name.startswith(names)]
        used_s = sum(_thread_cpu_s(thread.native_id) for thread in threads)
        return 100 * used_s / max(0.1, time.monotonic() - self._began)

    # on the loop

    def _run(self):
        asyncio.set_event_loop(self.loop)
        self.loop.call_soon(self._start)
        try:
            self.loop.run_forever()
        finally:
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()

    def _on_exception(self, loop, context):
        """Nothing may escape to the loop, neither of the product nor of the rig."""
        self.rig.problems.append(f"{context.get('message')}: {context.get('exception')!r}")
        loop.default_exception_handler(context)

    def _start(self):
        asyncio.events._set_running_loop(self.loop)
        self.nt = NtClient(nt_settings(self._config), wake=self._wake)
        self.core = BridgeCore(core_settings(self._config))
        self.relay = Relay(self.core, self.nt, clock=self.loop.time)
        self.links = UsbLinks(self.relay)
        self.relay.on_turn = self._on_turn
        self.nt.open()
        self._new_phones()
        self.relay.turn_soon()
        self._expected = self.loop.time()
        self._observe()
        self._ready.set()

    def _wake(self):
        self.relay.wake()

    def _scan_soon(self):
        self.phones.request_scan()

    def _new_phones(self):
        self.phones = self.links.host = PhoneHost(
            self.links,
            device_rules(self._config),
            identity(self._config),
            machine_id="bench",
            usb=UsbHost(self._backend),
            scan=lambda: tuple(usb_device(shown) for shown in self.rig.bus.scan()),
            open_watcher=lambda: None,
            clock=self.loop.time,
            on_change=self._note_states,
        )
        self.phones.start()

    def _on_turn(self, now):
        self.links.tell_status(now)
        waiting = [link.outbox.waiting for link in self.core.links.values()]
        self.pending_values = max([self.pending_values, *waiting])

    def _observe(self):
        """Looks at everything once per 10 ms, and measures how late the loop is."""
        now = self.loop.time()
        self.loop_lag_s = max(self.loop_lag_s, now - self._expected)
        self._note_states()
        if self.core.links:
            self.thread_stall_s = max(self.thread_stall_s, now - self.phones.seen_at())
        self.coalesced = max([self.coalesced, *(link.counters["coalesced"] for link in self.core.links.values())])
        self._expected = now + OBSERVE_S * self.rig.speed
        self._timer = self.loop.call_at(self._expected, self._observe)

    def _note_states(self):
        if not self.alive:
            return
        seen, now = self.rig.seen, self.loop.time()
        by_port = {view.port: view for view in self.phones.views()}
        for name, profile in self.rig.profiles.items():
            view = by_port.get(profile.at) or by_port.get(profile.accessory_at)
            seen.state(name, view.state.name if view else "ABSENT", now)
            if view:
                seen.name(name, view.name)
                seen.aoa_versions[name] = view.aoa_version
        codes = [code for code, _, _ in self.phones.issues()]
        for link in self.core.links.values():
            if link.stale(now) or (link.blocked_since is not None and now - link.blocked_since > STALLED_S):
                codes.append("app-stalled")
        seen.open_issues(codes)

    async def _stop_phones(self):
        begin = self.loop.time()
        self.hanging += await self.phones.stop()
        self.stop_times_s.append(self.loop.time() - begin)

    async def _restart_phones(self):
        await self._stop_phones()
        self._new_phones()

    async def _stop_all(self):
        self.core.begin_stop(self.loop.time())
        await self._stop_phones()
        self._end()

    def _end(self):
        self.alive = False
        self._timer.cancel()
        self.relay.close()
        self.nt.close()
        self.loop.stop()

    # from the rig's thread

    def _on_hotplug(self):
        if self.alive:
            self.loop.call_soon_threadsafe(self._scan_soon)

    def _call(self, coroutine):
        asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(20)

    def restart_phones(self):
        self._call(self._restart_phones())

    def stop(self):
        """The orderly end."""
        if self.alive:
            self.rig.bus.listeners.remove(self._on_hotplug)
            asyncio.run_coroutine_threadsafe(self._stop_all(), self.loop)
            self._thread.join(20)

    def kill(self):
        """The end of a killed process: whatever its threads still do reaches nobody."""
        if self.alive:
            self.alive = False
            self.rig.bus.listeners.remove(self._on_hotplug)
            self.rig.bus.kill_host()
            asyncio.run_coroutine_threadsafe(self._stop_all(), self.loop)
            self._thread.join(20)
            self.stop_times_s.clear()
