"""Stretches of time, and how much of them the machine stood still. Pure."""

from bisect import bisect_right
from typing import NamedTuple

__all__ = ["Span", "StallLog"]


class Span(NamedTuple):
    """A time in which something could not be expected."""

    begin: float
    end: float

    def overlap(self, begin: float, end: float) -> float:
        """Seconds of another stretch that lie in this one."""
        return max(0.0, min(self.end, end) - max(self.begin, begin))


class StallLog:
    """When the machine held up those who are judged; told in order."""

    def __init__(self) -> None:
        self._ends: list[float] = []
        self._sums: list[float] = [0.0]

    def add(self, end: float, seconds: float) -> None:
        """A stall that ended at a moment."""
        self._sums.append(self._sums[-1] + seconds)
        self._ends.append(end)

    def within(self, begin: float, end: float) -> float:
        """Seconds of stall between two moments."""
        return self._sums[bisect_right(self._ends, end)] - self._sums[bisect_right(self._ends, begin)]
