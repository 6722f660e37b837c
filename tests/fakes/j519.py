"""A controller and a PC session in virtual time, with a lossy wire between them."""

import random
from collections.abc import Callable

from aoabridge.codecs.j519.packets import AnyStatus
from aoabridge.codecs.j519.pc_events import Event, PcConfig, PcState, StatusReceived
from aoabridge.codecs.j519.pc_session import PcSession
from aoabridge.codecs.j519.robot_model import RobotConfig, RobotState
from aoabridge.codecs.j519.robot_session import RobotSession

PC = ("192.0.2.1", 50899)
TICK_US = 500
FEEDBACK_DELAY_US = 60_000


def quintic(s: float) -> float:
    """Smooth way from 0 to 1: velocity and acceleration are 0 at both ends."""
    s = min(max(s, 0.0), 1.0)
    return s * s * s * (10 - 15 * s + 6 * s * s)


class Wire:
    """Both ends and the clock; ``step`` runs half a millisecond."""

    def __init__(self, robot: RobotConfig, pc: PcConfig, *, drop_status: float = 0.0, drop: float = 0.0) -> None:
        self.robot = RobotSession(robot)
        self.pc = PcSession(pc)
        self.now_us = 0
        self.events: list[Event] = []
        self.commands: list[bytes] = []
        self.mute = False  # cut the cable in both directions
        self._random = random.Random(7)
        self._drop_status = drop_status
        self._drop = drop

    def open(self) -> None:
        self.events += self.pc.open(self.now_us)

    def step(self) -> list[AnyStatus]:
        """Half a millisecond; the usable Status that arrived."""
        self.now_us += TICK_US
        self.robot.on_tick(self.now_us)
        events = self.pc.on_tick(self.now_us)
        for data, _ in self.robot.take_datagrams():
            if not self.mute and self._random.random() >= max(self._drop_status, self._drop):
                events += self.pc.on_datagram(data, self.now_us)
        self.flush()
        self.events += events
        return [event.packet for event in events if isinstance(event, StatusReceived)]

    def flush(self) -> None:
        """Deliver what the PC wants to send."""
        for data in self.pc.take_datagrams():
            self.commands.append(data)
            if not self.mute and self._random.random() >= self._drop:
                self.robot.on_datagram(data, PC, self.now_us)

    def run(self, seconds: float, on_status: Callable[[AnyStatus], None] = lambda status: None) -> None:
        """Step until the time is over; ``on_status`` may offer setpoints."""
        end_us = self.now_us + round(seconds * 1_000_000)
        while self.now_us < end_us:
            for status in self.step():
                on_status(status)
                self.flush()

    def run_until(self, state: PcState, limit_s: float = 15.0) -> None:
        """Step until the PC is in this state."""
        end_us = self.now_us + round(limit_s * 1_000_000)
        while self.pc.state is not state:
            assert self.now_us < end_us, f"{self.pc.state} instead of {state}"
            self.step()

    def make_ready(self) -> None:
        """Open, wait for Status, let the controller's program wait for commands."""
        self.open()
        self.run_until(PcState.STATUS)
        self.robot.set_ready(True)
        self.run_until(PcState.READY)


class QuinticMove:
    """Offers one setpoint per Status along a quintic path of every axis, then finishes."""

    def __init__(self, wire: Wire, distance_deg: float, duration_s: float) -> None:
        self.violations: list[object] = []
        self.done = False
        self._wire = wire
        self._distance_deg = distance_deg
        self._duration_s = duration_s
        self._first: AnyStatus | None = None

    def on_status(self, status: AnyStatus) -> None:
        pc = self._wire.pc
        if self.done or pc.state not in (PcState.READY, PcState.STREAMING):
            return
        if self._first is None:
            self._first = status
        elapsed_s = (status.sequence_no - self._first.sequence_no) * pc.config.cycle_us / 1_000_000
        share = quintic(elapsed_s / self._duration_s)
        target = tuple(start + self._distance_deg * share for start in self._first.joint_pose[: pc.config.axes])
        self.violations += pc.offer_setpoint(target)
        if elapsed_s >= self._duration_s:
            self.done = True
            pc.finish()


def wire(cycle_us: int = 8000, *, generation: str = "classic", **losses: float) -> Wire:
    """A matching pair: limits asked for, the newest version of the generation."""
    version = 4 if generation == "driver" else 3
    robot = RobotConfig(
        generation=generation,  # type: ignore[arg-type]
        version=version,
        cycle_us=cycle_us,
        feedback_delay_us=FEEDBACK_DELAY_US,
    )
    pc = PcConfig(control=True, generation=generation, version=version, cycle_us=cycle_us)  # type: ignore[arg-type]
    return Wire(robot, pc, **losses)


__all__ = ["PC", "QuinticMove", "RobotState", "Wire", "quintic", "wire"]
