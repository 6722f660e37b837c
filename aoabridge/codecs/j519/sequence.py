"""What the sequence number of a received Status says about the ones before it."""

from enum import Enum

import msgspec

__all__ = ["MAX_GAP", "MODULUS", "Arrival", "SequenceTracker", "Step", "signed_distance"]

MODULUS = 1 << 32
MAX_GAP = 10  # up to nine lost cycles can be made good, more cannot
RESTART_RUN = 4  # so many ascending numbers from the past are a controller that counts anew


class Step(Enum):
    """How a number follows the last one."""

    FIRST = "first"
    NEXT = "next"
    GAP = "gap"
    JUMP = "jump"
    DUPLICATE = "duplicate"
    REORDERED = "reordered"
    RESTART = "restart"


class Arrival(msgspec.Struct, frozen=True):
    """One number judged; ``lost`` numbers are missing before it."""

    step: Step
    lost: int = 0

    @property
    def usable(self) -> bool:
        """True if the Status is newer than all before it."""
        return self.step not in (Step.DUPLICATE, Step.REORDERED)


def signed_distance(new: int, old: int) -> int:
    """How far ``new`` is after ``old`` on the ring of 2^32 numbers; negative = before it."""
    distance = (new - old) % MODULUS
    return distance if distance <= MODULUS // 2 else distance - MODULUS


class SequenceTracker:
    """Follows one controller's counter; the first number may be any."""

    def __init__(self) -> None:
        self.last: int | None = None
        self._past: int | None = None  # last number that came from the past
        self._run = 0

    def observe(self, number: int) -> Arrival:
        """Judge one number and remember it."""
        if self.last is None:
            self.last = number
            return Arrival(Step.FIRST)
        distance = signed_distance(number, self.last)
        if distance == 0:
            return Arrival(Step.DUPLICATE)
        if distance < 0:
            return self._observe_past(number)
        self.last, self._past, self._run = number, None, 0
        if distance == 1:
            return Arrival(Step.NEXT)
        return Arrival(Step.GAP if distance <= MAX_GAP else Step.JUMP, distance - 1)

    def _observe_past(self, number: int) -> Arrival:
        ascends = self._past is not None and signed_distance(number, self._past) > 0
        self._run = self._run + 1 if ascends else 1
        self._past = number
        if self._run < RESTART_RUN:
            return Arrival(Step.REORDERED)
        self.last, self._past, self._run = number, None, 0
        return Arrival(Step.RESTART)
