"""The motion guard: decides whether one command may follow the commands before it. A pure checker, sends nothing."""

import math
from collections.abc import Sequence

import msgspec

from aoabridge.codecs.j519.enums import DataStyle, ThresholdType
from aoabridge.codecs.j519.limits import LimitTables
from aoabridge.codecs.j519.packets import AXES, EXT_STYLE_JOINT, AnyStatus, ExtCommand, Motion
from aoabridge.errors import EncodeError

__all__ = ["MICROSECONDS", "ROTARY_PLACES", "CartesianCaps", "History", "MotionGuard", "Violation"]

MAX_MAGNITUDE = 100_000.0  # controllers raise MOTN-625 beyond it
MM_PER_DEG_OF_TOLERANCE = 5.0  # the start tolerance is given in degrees; places in mm get five times as much
SEQUENCE_MODULUS = 1 << 32
MICROSECONDS = 1_000_000
LINEAR_PLACES = 3  # X, Y, Z come first in a Cartesian command, then W, P, R
ROTARY_PLACES = frozenset((3, 4, 5))

_DYNAMIC = (
    (ThresholdType.VELOCITY, "velocity"),
    (ThresholdType.ACCELERATION, "acceleration"),
    (ThresholdType.JERK, "jerk"),
)


class Violation(msgspec.Struct, frozen=True):
    """One broken rule: ``axis`` counts from 1 (None: the whole command), ``value`` against ``limit`` if it has one."""

    code: str
    axis: int | None = None
    value: float | None = None
    limit: float | None = None


class CartesianCaps(msgspec.Struct, frozen=True):
    """What a Cartesian command may do: (velocity, acceleration, jerk) in mm/s… for X Y Z and deg/s… for the rest."""

    linear: tuple[float, float, float]
    angular: tuple[float, float, float]


class History(msgspec.Struct, frozen=True):
    """The last admitted command: axes, their velocity and acceleration per second, its number, style and end mark."""

    axes: tuple[float, ...]
    velocity: tuple[float, ...]
    acceleration: tuple[float, ...]
    sequence_no: int
    style: int
    last: bool


class _Command(msgspec.Struct, frozen=True):
    """What the rules look at, whichever generation the command is of."""

    axes: tuple[float, ...]
    sequence_no: int
    style: int
    last: bool
    writes_io: bool


def _command(motion: Motion | ExtCommand) -> _Command:
    if isinstance(motion, Motion):
        style, last, writes_io = int(motion.data_style), motion.last_data != 0, motion.write_io_type != 0
    else:
        # Only the joint style of the driver generation is known to be safe; every other number is no style here.
        style = int(DataStyle.JOINT) if motion.data_style == EXT_STYLE_JOINT else -1
        last, writes_io = motion.is_last_command != 0, any(motion.io_command)
    return _Command(tuple(motion.axes), motion.sequence_no, style, last, writes_io)


class MotionGuard:
    """Checks commands against limits, pose and order; ``check`` asks, ``admit`` also remembers.

    ``cycle_us`` is the nominal time between commands. ``axes`` 1 to 9 may move. Rates are judged against
    ``margin`` * limit; ``max_step`` caps one cycle's step (deg, mm) with or without tables.
    """

    def __init__(  # noqa: PLR0917 — the page of the protocol names them in this order
        self,
        cycle_us: int,
        axes: int,
        limits: LimitTables | None = None,
        max_step: float | None = None,
        margin: float = 0.95,
        payload_ratio: float = 1.0,
        start_tolerance: float = 0.1,
        *,
        allow_io_write: bool = False,
        cartesian: CartesianCaps | None = None,
    ) -> None:
        if cycle_us <= 0 or not 1 <= axes <= AXES:
            raise ValueError(f"cycle of {cycle_us} us, {axes} axes")
        self.cycle_us = cycle_us
        self.axes = axes
        self.limits = limits
        self.max_step = max_step
        self.margin = margin
        self.payload_ratio = payload_ratio
        self.start_tolerance = start_tolerance
        self.allow_io_write = allow_io_write
        self.cartesian = cartesian
        self._status: AnyStatus | None = None
        self._history: History | None = None

    @property
    def armed(self) -> bool:
        """True if commands can be admitted."""
        return self._status is not None and not self.refusal

    @property
    def history(self) -> History | None:
        """The last admitted command, None before the first."""
        return self._history

    @property
    def next_sequence_no(self) -> int | None:
        """The only number that the next command may have, None while not armed."""
        if self._history is not None:
            return (self._history.sequence_no + 1) % SEQUENCE_MODULUS
        return None if self._status is None else self._status.sequence_no

    @property
    def refusal(self) -> str:
        """Why the guard cannot be armed at all, empty if it can."""
        if self.limits is None:
            return "" if self.max_step is not None else "neither limits nor max_step known"
        return self.limits.problem(self.axes)

    def arm(self, status: AnyStatus) -> bool:
        """Start from the pose of this Status, forgetting earlier commands; False if that is impossible."""
        self.disarm()
        usable = not self.refusal and not status.suspect and math.isfinite(sum(status.joint_pose))
        if usable:
            self._status = status
        return usable

    def disarm(self) -> None:
        """After a fault, before a resume: nothing is admitted until armed again."""
        self._status = None
        self._history = None

    def restore(self, history: History | None) -> None:
        """Take back admitted commands that were never sent."""
        self._history = history

    def admit(self, motion: Motion | ExtCommand, tcp_speed_mm_s: float | None = None) -> None:
        """Remember the command as sent. EncodeError with the first field and all codes, and no change, if refused."""
        violations = self.check(motion, tcp_speed_mm_s)
        if violations:
            codes = tuple(dict.fromkeys(violation.code for violation in violations))
            raise EncodeError(f"refused: {', '.join(codes)}", _field_of(violations[0]), codes)
        command = _command(motion)
        velocity, acceleration, _ = self._rates(command)
        self._history = History(command.axes, velocity, acceleration, command.sequence_no, command.style, command.last)

    def check(self, motion: Motion | ExtCommand, tcp_speed_mm_s: float | None = None) -> list[Violation]:
        """Every rule that the command breaks, in a fixed order; empty = it may be sent. Nothing is changed."""
        command = _command(motion)
        violations = [] if self.armed else [Violation("not-armed")]
        if len(command.axes) != AXES:
            return [*violations, Violation("nonfinite", None, len(command.axes), AXES)]
        violations += self._check_values(command)
        if any(violation.code in ("not-armed", "nonfinite") for violation in violations):
            return violations
        violations += self._check_order(command)
        if self._history is None:
            return violations + self._check_start(command)
        return violations + self._check_rates(command, tcp_speed_mm_s)

    def _check_values(self, command: _Command) -> list[Violation]:
        found = []
        for axis, value in enumerate(command.axes, 1):
            if not math.isfinite(value):
                found.append(Violation("nonfinite", axis, value))
            elif abs(value) > MAX_MAGNITUDE:
                found.append(Violation("abnormal-position", axis, value, MAX_MAGNITUDE))
            elif axis > self.axes and value != 0:
                found.append(Violation("unused-axis", axis, value, 0.0))
        if command.style not in (DataStyle.CARTESIAN, DataStyle.JOINT):
            found.append(Violation("style", None, command.style))
        elif command.style == DataStyle.CARTESIAN and self.cartesian is None:
            found.append(Violation("cartesian-unchecked"))
        if command.writes_io and not self.allow_io_write:
            found.append(Violation("io-write"))
        return found

    def _check_order(self, command: _Command) -> list[Violation]:
        found = []
        history, expected = self._history, self.next_sequence_no
        if command.sequence_no != expected:
            found.append(Violation("sequence", None, command.sequence_no, expected))
        if history is not None and command.style != history.style and command.style in (0, 1):
            found.append(Violation("style", None, command.style, history.style))
        if history is not None and history.last:
            found.append(Violation("after-last"))
        return found

    def _check_start(self, command: _Command) -> list[Violation]:
        """The first command against the pose that the guard was armed with."""
        status = self._status
        if status is None:
            return []
        cartesian = command.style == DataStyle.CARTESIAN
        pose = status.cartesian_pose if cartesian else status.joint_pose
        found = []
        for place in range(self.axes):
            tolerance = self.start_tolerance * (MM_PER_DEG_OF_TOLERANCE if cartesian and place < LINEAR_PLACES else 1.0)
            distance = abs(_difference(command, pose, place))
            if not distance <= tolerance:
                found.append(Violation("start", place + 1, distance, tolerance))
        return found

    def _rates(self, command: _Command) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
        """Velocity, acceleration and jerk per axis; all 0 for the first command."""
        rest = (0.0,) * AXES
        history = self._history
        if history is None:
            return rest, rest, rest
        period_s = self.cycle_us / MICROSECONDS
        velocity = tuple(_difference(command, history.axes, place) / period_s for place in range(AXES))
        acceleration = _slope(velocity, history.velocity, period_s)
        return velocity, acceleration, _slope(acceleration, history.acceleration, period_s)

    def _check_rates(self, command: _Command, tcp_speed_mm_s: float | None) -> list[Violation]:
        if tcp_speed_mm_s is not None and not math.isfinite(tcp_speed_mm_s):
            tcp_speed_mm_s = None
        history = self._history
        if history is None:
            return []
        rates = self._rates(command)
        found = []
        for place in range(self.axes):
            step = abs(_difference(command, history.axes, place))
            if self.max_step is not None and step > self.max_step:
                found.append(Violation("step", place + 1, step, self.max_step))
            for (kind, code), values in zip(_DYNAMIC, rates, strict=True):
                limit = self.bound(command.style, place, kind, tcp_speed_mm_s)
                if limit is not None and not abs(values[place]) <= limit:
                    found.append(Violation(code, place + 1, abs(values[place]), limit))
        return found

    def bound(self, style: int, place: int, kind: ThresholdType, tcp_speed_mm_s: float | None) -> float | None:
        """margin * limit of a place (from 0), None where there is none."""
        if style == DataStyle.CARTESIAN:
            caps = self.cartesian
            if caps is None:
                return None
            return self.margin * (caps.linear if place < LINEAR_PLACES else caps.angular)[kind]
        if self.limits is None:
            return None
        return self.margin * self.limits.limit(place + 1, kind, tcp_speed_mm_s, self.payload_ratio)


def _difference(command: _Command, before: Sequence[float], place: int) -> float:
    """How far a place has moved; the angles W, P, R the shorter way round, joints never wrap."""
    distance = command.axes[place] - before[place]
    if command.style == DataStyle.CARTESIAN and place in ROTARY_PLACES:
        return math.remainder(distance, 360.0)
    return distance


def _slope(now: Sequence[float], before: Sequence[float], period_s: float) -> tuple[float, ...]:
    return tuple((new - old) / period_s for new, old in zip(now, before, strict=True))


def _field_of(violation: Violation) -> str | None:
    """Path of the packet's field that a violation is about."""
    if violation.axis is not None:
        return f"axes[{violation.axis - 1}]"
    return {
        "sequence": "sequence_no",
        "style": "data_style",
        "cartesian-unchecked": "data_style",
        "io-write": "write_io_type",
        "after-last": "last_data",
    }.get(violation.code)
