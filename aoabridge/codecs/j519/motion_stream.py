"""The commanding half of a PC session: every command passes the guard, and a stream always comes to rest in order."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Self

from aoabridge.codecs.j519.dispatch import encode
from aoabridge.codecs.j519.enums import DataStyle, IoClass, ThresholdType
from aoabridge.codecs.j519.guard import MICROSECONDS, ROTARY_PLACES, History, MotionGuard, Violation
from aoabridge.codecs.j519.limits import LimitTables
from aoabridge.codecs.j519.packets import AXES, EXT_STYLE_JOINT, AnyStatus, ExtCommand, Motion
from aoabridge.codecs.j519.pc_events import PcConfig
from aoabridge.codecs.j519.sequence import MAX_GAP, MODULUS, signed_distance
from aoabridge.codecs.j519.stopping import interpolate, plan_stop
from aoabridge.codecs.packets import ByteOrder
from aoabridge.errors import EncodeError

__all__ = ["MotionStream"]

FINAL_REPEATS = 20  # so many cycles at the final pose before the last command


class MotionStream:
    """Turns setpoints into numbered commands, one per cycle, and ends by decelerating to a held pose.

    ``take_commands`` yields the encoded datagrams. ``ended`` is True once the last command was handed out.
    """

    def __init__(
        self, guard: MotionGuard, *, version: int, driver: bool, byte_order: ByteOrder, style: DataStyle
    ) -> None:
        self.guard = guard
        self.version = version
        self.ended = False
        self._driver = driver
        self._byte_order: ByteOrder = byte_order
        self._style = style
        self._tcp_speed_mm_s: float | None = None
        self._plan: list[tuple[float, ...]] | None = None  # of the stop; None while the caller commands
        self._datagrams: list[bytes] = []

    @classmethod
    def of(cls, config: PcConfig, version: int, limits: LimitTables, byte_order: ByteOrder) -> Self:
        """The stream of a session with these settings and what its controller has answered."""
        guard = MotionGuard(
            config.cycle_us,
            config.axes,
            limits if len(limits) else None,
            config.max_step,
            config.margin,
            config.payload_ratio,
            config.start_tolerance,
            allow_io_write=config.allow_io_write,
            cartesian=config.cartesian,
        )
        driver = config.generation == "driver"
        return cls(guard, version=version, driver=driver, byte_order=byte_order, style=config.data_style)

    @property
    def stopping(self) -> bool:
        """True once the stop has begun: no more setpoints are taken."""
        return self._plan is not None

    def arm(self, status: AnyStatus) -> bool:
        """Begin anew from the pose of this Status."""
        self._plan = None
        self.ended = False
        self._datagrams.clear()
        return self.guard.arm(status)

    def disarm(self) -> None:
        """After a fault: what was not sent yet is dropped."""
        self.guard.disarm()
        self._plan = None
        self._datagrams.clear()

    def take_commands(self) -> list[bytes]:
        """Remove and return the datagrams to send."""
        taken, self._datagrams = self._datagrams, []
        return taken

    def offer(self, axes: Sequence[float], tcp_speed_mm_s: float | None, status_no: int) -> list[Violation]:
        """The setpoint of the Status numbered ``status_no``; cycles that were lost before it are interpolated.

        All or nothing: with a violation nothing is sent and nothing remembered. ``not-due`` = already answered.
        """
        target = (*axes, *(0.0,) * (AXES - len(axes)))
        history = self.guard.history
        if self.stopping or len(target) != AXES:
            return [Violation("not-armed")]
        if history is None:
            return self._admit_all([target], tcp_speed_mm_s)
        due = signed_distance(status_no, history.sequence_no)
        if not 1 <= due <= MAX_GAP:
            return [Violation("not-due", None, due, MAX_GAP)]
        period_s = self.guard.cycle_us / MICROSECONDS
        between = interpolate(history, self._nearest(target, history), due, period_s)[:-1]
        return self._admit_all([*between, target], tcp_speed_mm_s)

    def _nearest(self, target: tuple[float, ...], history: History) -> tuple[float, ...]:
        """The target with W, P, R continued from the last command, so that what lies between goes the short way."""
        if self._style != DataStyle.CARTESIAN:
            return target
        return tuple(
            old + math.remainder(new - old, 360.0) if place in ROTARY_PLACES else new
            for place, (new, old) in enumerate(zip(target, history.axes, strict=True))
        )

    def begin_stop(self) -> None:
        """Plan deceleration and the held final pose; ``continue_stop`` sends it."""
        history = self.guard.history
        if history is None or self.stopping:
            return
        period_s = self.guard.cycle_us / MICROSECONDS
        bound = partial(self._bound, history)
        plan = plan_stop(history, period_s, self.guard.axes, bound)
        rest = plan[-1] if plan else history.axes
        self._plan = [*plan, *(rest,) * (FINAL_REPEATS + 1)]

    def _bound(self, history: History, place: int, kind: ThresholdType) -> float | None:
        return self.guard.bound(history.style, place, kind, self._tcp_speed_mm_s)

    def continue_stop(self, status_no: int) -> bool:
        """Send the commands that are due by the Status numbered ``status_no``; False if the guard refuses one."""
        history = self.guard.history
        if history is None or self._plan is None:
            return True
        due = signed_distance(status_no, history.sequence_no)
        for _ in range(min(max(due, 0), len(self._plan))):
            if self._admit_all([self._plan[0]], self._tcp_speed_mm_s, last=len(self._plan) == 1):
                return False
            self._plan.pop(0)
            self.ended = not self._plan
        return True

    def _admit_all(
        self, targets: list[tuple[float, ...]], tcp_speed_mm_s: float | None, *, last: bool = False
    ) -> list[Violation]:
        """Admit and encode the commands in order, or none of them."""
        before = self.guard.history
        datagrams = []
        for target in targets:
            command = self._command(target, last=last)
            violations = self.guard.check(command, tcp_speed_mm_s)
            if not violations:
                try:
                    datagrams.append(encode(command, byte_order=self._byte_order))
                except EncodeError:
                    violations = [Violation("nonfinite")]
            if violations:
                self.guard.restore(before)
                return violations
            self.guard.admit(command, tcp_speed_mm_s)
        self._tcp_speed_mm_s = tcp_speed_mm_s
        self._datagrams += datagrams
        return []

    def _command(self, axes: tuple[float, ...], *, last: bool) -> Motion | ExtCommand:
        number = (self.guard.next_sequence_no or 0) % MODULUS
        if self._driver:
            return ExtCommand(self.version, number, int(last), 1, EXT_STYLE_JOINT, axes, bytes(256))
        none = IoClass.NONE
        return Motion(self.version, number, int(last), none, 0, 0, self._style, none, 0, 0, 0, 0, axes)
