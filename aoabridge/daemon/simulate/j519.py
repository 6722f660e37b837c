"""``simulate j519``: a robot arm that speaks Stream Motion, on a real socket."""

import argparse
import asyncio
import time
from typing import Any

from aoabridge.adapters.udp import Address, DatagramSocket
from aoabridge.codecs.j519.robot_model import RobotConfig
from aoabridge.daemon.simulate import Show, conclude, every_second
from aoabridge.daemon.simulate.turns import Turns, address_of
from aoabridge.simulators.j519 import FEEDBACK_DELAY_US, BenchRobot, BenchSettings, parse_faults

__all__ = ["bench_settings", "run"]

ROBOT_PORT = 60015
DRIVER_VERSION = 3  # the lowest of the driver generation
_US = 1_000_000


def bench_settings(args: argparse.Namespace) -> BenchSettings:
    """The arm that the options describe; ValueError."""
    is_driver = args.generation == "driver"
    config = RobotConfig(
        generation=args.generation,
        version=max(args.version, DRIVER_VERSION) if is_driver else args.version,
        byte_order=args.byte_order,
        cycle_us=args.cycle_ms * 1000,
        axes=args.axes,
        feedback_delay_us=FEEDBACK_DELAY_US,
    )
    return BenchSettings(config, args.ready_after, args.motion == "sine", parse_faults(args.faults), args.seed or 1)


async def run(args: argparse.Namespace, show: Show, stopped: asyncio.Event) -> bool:
    """Answer until stopped; True if any controller program sent something."""
    arm = _Arm(args)
    arm.open(address_of(args.bind, ("127.0.0.1", ROBOT_PORT)))
    try:
        await every_second(stopped, lambda: show(arm.figures("tick")))
    finally:
        arm.close()
    return conclude(show, arm.figures("summary"), arm.received > 0)


class _Arm:
    def __init__(self, args: argparse.Namespace) -> None:
        self._began = time.monotonic()
        self.received = 0
        self._robot = BenchRobot(bench_settings(args), _us(self._began))
        self._turns = Turns(self._turn)
        self._socket = DatagramSocket(self._on_datagram)
        self._peer: Address | None = None

    def open(self, address: Address) -> None:
        """Listen. OSError: the port is taken."""
        self._socket.open(*address)
        self._turns.soon()

    def close(self) -> None:
        """End."""
        self._turns.close()
        self._socket.close()

    def _on_datagram(self, data: bytes, sender: Address) -> None:
        self.received += 1
        self._peer = sender
        self._robot.on_datagram(data, sender, _us(time.monotonic()))
        self._turns.soon()

    def _turn(self, now: float) -> float | None:
        self._robot.on_tick(_us(now))
        for data, peer in self._robot.take_datagrams():
            self._socket.send(data, peer)
        due_us = self._robot.next_deadline_us
        return None if due_us is None else due_us / _US

    def figures(self, kind: str) -> dict[str, Any]:
        """What was sent and what came."""
        session = self._robot.session
        return {
            "type": kind,
            "seconds": round(time.monotonic() - self._began, 1),
            "state": session.state.value,
            "received": self.received,
            "sent": self._robot.sent,
            "peer": None if self._peer is None else f"{self._peer[0]}:{self._peer[1]}",
            "joint_deg": [round(value, 3) for value in session.motion.axes],
            "ignored": dict(session.counters),
            "faults": {name: count for name, count in self._robot.injected.items() if count},
            "alarm": f"{session.alarms[-1].code} {session.alarms[-1].text}" if session.alarms else None,
        }


def _us(now: float) -> int:
    return round(now * _US)
