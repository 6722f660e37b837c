"""``aoabridge demo``: an NT server with a simulated robot, the real bridge, simulated phones; all on this machine."""

import asyncio
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from aoabridge.adapters.host import HostProbe
from aoabridge.adapters.nt_server import BenchServer
from aoabridge.adapters.nt_targets import has_address
from aoabridge.config import Config, DemoOptions, default_config
from aoabridge.config.sections import NtSection
from aoabridge.daemon.service import Bridge
from aoabridge.daemon.simulated import SimulatedPhone
from aoabridge.simulators.phone_app import KnownApp
from aoabridge.simulators.robot import PHONE_CLOCK_PREFIX, ROBOT_CLOCK, RobotSettings, SimulatedRobot

__all__ = ["NO_LINK", "Demo", "percentiles_ms", "run_demo"]

NO_LINK = (
    "This machine has only 127.0.0.1: NetworkTables clients cannot connect to anything. "
    "Plug in a network, or: sudo ip addr add 10.99.0.1/32 dev lo"
)
TICK_S = 1.0
PRESS_PERIOD_S = 2.5
Show = Callable[[dict[str, Any]], None]


class Demo:
    """Robot, bridge and phones of one run."""

    def __init__(self, options: DemoOptions, show: Show) -> None:
        self._options = options
        self._show = show
        self._loop = asyncio.get_running_loop()
        self._server = BenchServer()
        self._robot = SimulatedRobot(RobotSettings(topics=options.topics, rate_hz=options.rate_hz))
        self._phones: list[SimulatedPhone] = []
        self._robot_timer: asyncio.TimerHandle | None = None

    async def run(self, stopped: asyncio.Event) -> bool:
        """Run until the time is over or ``stopped``; True if data flowed both ways without error."""
        port = self._server.start("127.0.0.1", 0)
        self._server.publish(self._robot.start(time.monotonic()))
        bridge = Bridge(_config(port, self._options), None, phones=None)
        started = time.monotonic()
        try:
            await bridge.start()
            self._drive()
            for number in range(self._options.phones):
                self._plug_in(bridge, number)
            while not stopped.is_set() and not self._over(started):
                await self._wait(stopped, started)
                self._show(self._tick(bridge, time.monotonic() - started))
            summary = self._summary(bridge, time.monotonic() - started)
        finally:
            for phone in self._phones:
                phone.stop()
            if self._robot_timer is not None:
                self._robot_timer.cancel()
            await bridge.stop()
            self._server.stop()
        self._show(summary)
        return bool(summary["ok"])

    def _plug_in(self, bridge: Bridge, number: int) -> None:
        app = KnownApp(
            time.monotonic(),
            subtrees=("/demo/", "/robot/"),
            clock_in=ROBOT_CLOCK,
            clock_out=f"{PHONE_CLOCK_PREFIX}/{number + 1}",
            press_period_s=PRESS_PERIOD_S,
        )
        phone = SimulatedPhone(f"phone{number + 1}", app)
        self._phones.append(phone)
        bridge.pipes.open(phone.pipe, phone.name)
        phone.start()

    def _drive(self) -> None:
        """One step of the robot program."""
        items = []
        for arrived, update in self._server.take_arrivals():  # a latency ends when the value came, not when we look
            items += self._robot.on_updates([update], arrived)
        self._server.publish([*items, *self._robot.on_tick(time.monotonic())])
        delay_s = max(0.001, self._robot.next_time() - time.monotonic())
        self._robot_timer = self._loop.call_later(delay_s, self._drive)

    def _over(self, started: float) -> bool:
        return self._options.seconds is not None and time.monotonic() - started >= self._options.seconds

    async def _wait(self, stopped: asyncio.Event, started: float) -> None:
        left_s = TICK_S
        if self._options.seconds is not None:
            left_s = min(TICK_S, max(0.0, started + self._options.seconds - time.monotonic()))
        try:
            await asyncio.wait_for(stopped.wait(), left_s)
        except TimeoutError:
            return

    def _figures(self, bridge: Bridge, seconds: float) -> dict[str, Any]:
        counters = [phone.app.counters for phone in self._phones]
        core = bridge.relay.core
        return {
            "seconds": round(seconds, 1),
            "phone": {
                key: sum(counter[key] for counter in counters)
                for key in ("rx_lines", "tx_lines", "values", "structs", "errors")
            },
            "puts": {"accepted": core.desk.counters["puts"], "refused": sum(core.put_errors.values())},
            "latency_ms": {
                "robot_to_phone": percentiles_ms([s for phone in self._phones for s in phone.app.latency_s]),
                "phone_to_robot": percentiles_ms(list(self._robot.latency_s)),
            },
            "topics": self._options.topics,
        }

    def _tick(self, bridge: Bridge, seconds: float) -> dict[str, Any]:
        snapshot = bridge.observer.snapshot(time.monotonic())
        last = [(phone.app.last_in, phone.app.last_out) for phone in self._phones]
        return {
            "type": "tick",
            **self._figures(bridge, seconds),
            "sentence": snapshot["sentence"],
            "verdict": snapshot["verdict"],
            "phones": snapshot["phones"],
            "robot": snapshot["robot"],
            "rates": {key: snapshot["relay"][key] for key in ("robot_to_phone_hz", "phone_to_robot_hz")},
            "last": [{"to_phone": to_phone, "from_phone": from_phone} for to_phone, from_phone in last],
        }

    def _summary(self, bridge: Bridge, seconds: float) -> dict[str, Any]:
        figures = self._figures(bridge, seconds)
        counters = [phone.app.counters for phone in self._phones]
        both_ways = all(counter["values"] and counter["puts"] for counter in counters) and self._robot.latency_s
        ok = bool(both_ways) and not figures["phone"]["errors"] and not figures["puts"]["refused"]
        return {"type": "summary", "ok": ok, **figures, "rss_mib": HostProbe(None).read().rss_mib}


def run_demo(options: DemoOptions, show: Show) -> int:
    """Run the demo; ``show`` gets every tick and the summary. Returns the exit status."""
    if not has_address():
        show({"type": "summary", "ok": False, "error": NO_LINK})
        return 1
    return 0 if asyncio.run(_main(options, show)) else 1


async def _main(options: DemoOptions, show: Show) -> bool:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    return await Demo(options, show).run(stopped)


def _config(port: int, options: DemoOptions) -> Config:
    config = default_config()
    nt = NtSection(server=("127.0.0.1",), port=port)
    web = msgspec.structs.replace(config.web, port=options.web or 0, bind="127.0.0.1")
    return msgspec.structs.replace(config, name="demo", nt=nt, web=web)


def percentiles_ms(samples_s: Sequence[float]) -> dict[str, float | None]:
    """Median and 99th percentile in milliseconds; None without samples."""
    if not samples_s:
        return {"p50": None, "p99": None}
    ordered = sorted(samples_s)
    return {
        name: round(ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000, 3)
        for name, share in (("p50", 0.5), ("p99", 0.99))
    }
