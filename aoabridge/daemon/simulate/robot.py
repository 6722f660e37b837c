"""``simulate robot``: an NT4 server with the simulated robot, for app developers and for a bridge on the bench."""

import argparse
import asyncio
import time
from typing import Any

from aoabridge.adapters.nt_server import BenchServer
from aoabridge.codecs.host_port import host_of, join_host_port
from aoabridge.daemon.simulate import Show, conclude, every_second
from aoabridge.simulators.robot import RobotSettings, SimulatedRobot

__all__ = ["run"]

RESTART_PAUSE_S = 1.0


async def run(args: argparse.Namespace, show: Show, stopped: asyncio.Event) -> bool:
    """Serve until stopped; True if any client set a value."""
    robot = _Robot(args)
    robot.open()
    driving = asyncio.create_task(robot.drive())
    try:
        await every_second(stopped, lambda: show(robot.figures("tick")))
    finally:
        driving.cancel()
        await asyncio.gather(driving, return_exceptions=True)
        robot.close()
    summary = robot.figures("summary")
    return conclude(show, summary, bool(summary["received"]))


class _Robot:
    """One server and the robot program in it, restarted at the second that ``--faults restart@S`` names."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._settings = RobotSettings(topics=args.topics, rate_hz=args.rate, seed=args.seed or 1)
        self._host = host_of(args.to or "127.0.0.1")
        self._port = args.port
        self._restarts = sorted(_seconds(args.faults))
        self._started = time.monotonic()
        self._published = 0
        self._received = 0

    def open(self) -> None:
        """A robot program starts."""
        self._server = BenchServer()
        self._port = self._server.start(self._host, self._port)
        self._robot = SimulatedRobot(self._settings)
        self._server.publish(self._robot.start(time.monotonic()))

    def close(self) -> None:
        """The robot program ends."""
        self._server.stop()

    async def drive(self) -> None:
        """The robot program's loop."""
        while True:
            now = time.monotonic()
            items = []
            for arrived, update in self._server.take_arrivals():
                self._received += 1
                items += self._robot.on_updates([update], arrived)
            items += self._robot.on_tick(now)
            self._published += len(items)
            self._server.publish(items)
            if self._restarts and now - self._started >= self._restarts[0]:
                self._restarts.pop(0)
                self.close()
                await asyncio.sleep(RESTART_PAUSE_S)
                self.open()
            await asyncio.sleep(max(0.001, self._robot.next_time() - time.monotonic()))

    def figures(self, kind: str) -> dict[str, Any]:
        """What was sent and what came."""
        return {
            "type": kind,
            "seconds": round(time.monotonic() - self._started, 1),
            "address": join_host_port(self._host, self._port),
            "published": self._published,
            "received": self._received,
            "plan": self._robot.state,
            "counters": dict(self._robot.counters),
        }


def _seconds(faults: str) -> list[float]:
    found = []
    for fault in filter(None, faults.split(",")):
        name, _, at = fault.partition("@")
        if name != "restart":
            raise ValueError(f"unknown fault {fault!r}: only restart@S")
        found.append(float(at))
    return found
