"""The bridge under measurement: everything of the daemon but USB and its control socket, over in-process phones."""

import asyncio
import gc
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, Final

import msgspec

from aoabridge.config import Config, default_config
from aoabridge.config.sections import NtSection
from aoabridge.daemon.service import Bridge
from benchmarks.phone import BenchPipe

START_S: Final = 20.0
LAG_PERIOD_S: Final = 0.005
Row = tuple[str, float, float | None, str]


class RunningBridge:
    """A bridge on an event loop of its own, connected to the robot at ``port``, with phones at ``pipes``.

    ``change`` alters its configuration. ``lags``: watch how late the loop is, into ``lags_s``; that costs about 1 % of
    a core.
    """

    def __init__(
        self,
        port: int,
        pipes: Sequence[BenchPipe],
        *,
        lags: bool = False,
        change: Callable[[Config], Config] = lambda config: config,
    ) -> None:
        self.bridge: Bridge
        self.lags_s: list[float] = []
        self._port = port
        self._pipes = pipes
        self._watching = lags
        self._change = change
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._run, name="bridge-loop")
        self._stop = asyncio.Event()

    def start(self) -> None:
        self._thread.start()
        wait_until(lambda: hasattr(self, "bridge") and self.bridge.relay.core.settled)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def call(self, function: Any, *arguments: Any) -> None:
        """Run something on the loop."""
        self._loop.call_soon_threadsafe(function, *arguments)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._main())
        finally:
            self._loop.close()

    async def _main(self) -> None:
        bridge = Bridge(self._change(_config(self._port)), None, phones=None)
        await bridge.start()
        for number, pipe in enumerate(self._pipes):
            bridge.pipes.open(pipe, f"bench{number}")
        self.bridge = bridge
        watch = asyncio.create_task(self._watch_lag()) if self._watching else None
        await self._stop.wait()
        if watch is not None:
            watch.cancel()
        await bridge.stop()

    async def _watch_lag(self) -> None:
        while True:
            due = self._loop.time() + LAG_PERIOD_S
            await asyncio.sleep(LAG_PERIOD_S)
            self.lags_s.append(self._loop.time() - due)


@contextmanager
def running(port: int, pipes: Sequence[BenchPipe], *, lags: bool = False) -> Iterator[RunningBridge]:
    """A started bridge."""
    subject = RunningBridge(port, pipes, lags=lags)
    subject.start()
    try:
        yield subject
    finally:
        subject.stop()


def _config(port: int) -> Config:
    config = default_config()
    nt = NtSection(server=("127.0.0.1",), port=port)
    web = msgspec.structs.replace(config.web, enabled=False)
    return msgspec.structs.replace(config, name="bench", nt=nt, web=web)


def as_a_service() -> None:
    """Give up real-time priority: these figures are CPU, not latency, and a service has none."""
    if os.sched_getscheduler(0) == os.SCHED_RR:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def wait_until(condition: Any, seconds: float = START_S) -> float:
    """Wait for a condition; returns the seconds that it took."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            raise TimeoutError("the bench waited in vain")
        time.sleep(0.002)
    return time.monotonic() - began


def percentile(values: Sequence[float], share: float) -> float:
    """That share of the values is not above it; nan without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("nan")


def cpu_percent(seconds: float) -> float:
    """This process's CPU over the next seconds, percent of a core."""
    gc.collect()
    cpu_s, began = time.process_time(), time.monotonic()
    time.sleep(seconds)
    return 100 * (time.process_time() - cpu_s) / (time.monotonic() - began)


def rss_mib() -> float:
    """Resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / (1 << 20)
