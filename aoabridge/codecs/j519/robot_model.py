"""What the robot side of a session knows about its arm: settings, limits, alarms, and the check of one step."""

import math
from collections.abc import Sequence
from enum import Enum
from typing import Literal

import msgspec

from aoabridge.codecs.j519.enums import ThresholdType
from aoabridge.codecs.j519.packets import AXES, TABLE_ENTRIES, Ack
from aoabridge.codecs.packets import ByteOrder

__all__ = ["Alarm", "ArmLimits", "MotionState", "RobotConfig", "RobotState", "StepCheck"]

MICROSECONDS = 1_000_000
MAX_MAGNITUDE = 100_000.0
START_TOLERANCE_DEG = 0.5
GROSS_STEP = 4.0  # times velocity * T: no motion, a jump
_ULPS = (1, 2, 4)  # differences of binary32 positions carry so many units in the last place: v, a, j


class RobotState(Enum):
    """Where the controller's program stands."""

    IDLE = "idle"
    STATUS = "status"
    READY = "ready"
    STREAMING = "streaming"
    DRAIN = "drain"
    FAULT = "fault"


class Alarm(msgspec.Struct, frozen=True):
    """One alarm as the pendant shows it; numbers are never on the wire."""

    code: str
    text: str
    time_us: int


class ArmLimits(msgspec.Struct, frozen=True):
    """Per axis deg/s, deg/s2, deg/s3, the same at every speed and payload. Defaults: like a CRX-10iA/L."""

    velocity: tuple[float, ...] = (120.0, 120.0, 180.0, 180.0, 180.0, 180.0)
    acceleration: tuple[float, ...] = (265.0, 265.0, 399.0, 399.0, 399.0, 399.0)
    jerk: tuple[float, ...] = (1240.0, 1240.0, 1860.0, 1860.0, 1860.0, 1860.0)
    max_cart_speed_mm_s: int = 2000
    interval: int = 8

    def of(self, kind: int, place: int) -> float:
        """Limit of a place (from 0); an arm of more axes repeats its last one."""
        row = (self.velocity, self.acceleration, self.jerk)[kind]
        return row[min(place, len(row) - 1)]

    def ack(self, version: int, axis: int, kind: int) -> Ack:
        """The answer to one request."""
        entries = (self.of(kind, axis - 1),) * TABLE_ENTRIES
        return Ack(version, axis, kind, self.max_cart_speed_mm_s, self.interval, entries, entries)


class RobotConfig(msgspec.Struct, frozen=True):
    """Settings of one controller. ``version`` is its highest; ``start_move`` commands are queued before it moves."""

    generation: Literal["classic", "driver"] = "classic"
    version: int = 3
    byte_order: ByteOrder = "big"
    cycle_us: int = 8000
    axes: int = 6
    start_move: int = 1
    late_cycles: int = 1
    feedback_delay_us: int = 0
    limits: ArmLimits = ArmLimits()
    home_deg: tuple[float, ...] = (0.0,) * AXES


class MotionState(msgspec.Struct):
    """Commanded joints and their differences per second; ``moved`` after the first command."""

    axes: tuple[float, ...]
    velocity: tuple[float, ...] = (0.0,) * AXES
    acceleration: tuple[float, ...] = (0.0,) * AXES
    moved: bool = False


class StepCheck:
    """Judges one joint command after the ones before it, as a controller does."""

    def __init__(self, config: RobotConfig) -> None:
        self._config = config
        self._period_s = config.cycle_us / MICROSECONDS

    def alarm(self, state: MotionState, axes: Sequence[float]) -> tuple[str, str] | None:
        """(code, text) of the first broken rule, None if the arm can follow."""
        for place, value in enumerate(axes):
            if not math.isfinite(value) or abs(value) > MAX_MAGNITUDE:
                return "MOTN-625", f"abnormal position of J{place + 1}: {value}"
        for place in range(self._config.axes):
            problem = self._axis_alarm(state, axes[place], place)
            if problem is not None:
                return problem
        return None

    def _axis_alarm(self, state: MotionState, value: float, place: int) -> tuple[str, str] | None:
        step = abs(value - state.axes[place])
        if not state.moved:
            if step > START_TOLERANCE_DEG:
                return "MOTN-720", f"J{place + 1} starts {step:.3f} deg away"
            return None
        limits, period_s = self._config.limits, self._period_s
        if step > limits.of(ThresholdType.VELOCITY, place) * period_s * GROSS_STEP:
            return "MOTN-720", f"J{place + 1} steps by {step:.3f} deg"
        if self._config.generation == "driver":
            return None  # filtered by the controller instead
        velocity = (value - state.axes[place]) / period_s
        acceleration = (velocity - state.velocity[place]) / period_s
        jerk = (acceleration - state.acceleration[place]) / period_s
        unit = _ulp(max(abs(value), abs(state.axes[place])))
        for kind, rate in zip(ThresholdType, (velocity, acceleration, jerk), strict=True):
            limit = limits.of(kind, place) + _ULPS[kind] * unit / period_s ** (kind + 1)
            if abs(rate) > limit:
                return f"MOTN-{609 + kind}", f"J{place + 1} {kind.name.lower()} {abs(rate):.1f} above {limit:.1f}"
        return None

    def advance(self, state: MotionState, axes: tuple[float, ...]) -> None:
        """Take the command as done."""
        if state.moved:
            velocity = tuple((new - old) / self._period_s for new, old in zip(axes, state.axes, strict=True))
            rates = zip(velocity, state.velocity, strict=True)
            state.acceleration = tuple((new - old) / self._period_s for new, old in rates)
            state.velocity = velocity
        state.axes = axes
        state.moved = True


def _ulp(magnitude: float) -> float:
    """Distance of neighbouring binary32 numbers of this size."""
    if magnitude == 0:
        return 0.0
    return 2.0 ** (math.frexp(magnitude)[1] - 24)
