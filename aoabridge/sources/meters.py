"""Figures of a link: rate over the last full second, age, longest gap; a rate limit; sequence numbers."""

from collections.abc import Hashable
from enum import Enum
from math import inf
from typing import Generic, TypeVar

__all__ = ["MEASURE_S", "Meter", "Order", "RateLimit", "SequenceTracker"]

MEASURE_S = 1.0  # what a rate is measured over
MAX_PAIRS = 256  # pairs of sender and receiver whose numbers are remembered; forged senders must not add up
REORDER_S = 1.0  # a number a little behind is late within this, else the sender has begun anew
SEQUENCE_SPACE = 1 << 16
LATE_FROM = 65_533
GAP_TO = 32_767

T = TypeVar("T")


class Meter:
    """Counts arrivals; ``rate_hz`` and ``max_gap_s`` belong to the last full second."""

    def __init__(self) -> None:
        self.last_at: float | None = None
        self.total = 0
        self.rate_hz = 0.0
        self.max_gap_s = 0.0
        self._begin: float | None = None
        self._count = 0
        self._gap_s = 0.0

    def mark(self, now: float) -> None:
        """One arrival."""
        self.roll(now)
        if self._begin is None:
            self._begin = now
        if self.last_at is not None:
            self._gap_s = max(self._gap_s, now - self.last_at)
        self.last_at = now
        self.total += 1
        self._count += 1

    def roll(self, now: float) -> None:
        """Close the second that is over."""
        if self._begin is None or now < self._begin + MEASURE_S:
            return
        seconds = max(1, int((now - self._begin) / MEASURE_S))  # rounding must not make a full second vanish
        self.rate_hz = self._count / MEASURE_S if seconds == 1 else 0.0
        self.max_gap_s = self._gap_s if seconds == 1 else 0.0
        self._begin += seconds * MEASURE_S
        self._count, self._gap_s = 0, 0.0

    def age_s(self, now: float) -> float | None:
        """Time since the last arrival, None before the first."""
        return None if self.last_at is None else max(0.0, now - self.last_at)

    def is_fresh(self, now: float, limit_s: float) -> bool:
        """Whether something arrived less than ``limit_s`` ago."""
        return self.last_at is not None and now < self.last_at + limit_s


class RateLimit(Generic[T]):
    """At most ``per_second`` items a second at once; of the rest the newest waits for the next second."""

    def __init__(self, per_second: int) -> None:
        self.dropped = 0
        self._limit = per_second
        self._begin = -inf
        self._count = 0
        self._waiting: T | None = None

    def offer(self, item: T, now: float) -> bool:
        """True if it may be used now; else it waits, and takes the place of one that waited."""
        if not self._begin <= now < self._begin + 1.0:
            self.dropped += self._waiting is not None  # older than this one
            self._begin, self._count, self._waiting = now, 0, None
        if self._count < self._limit:
            self._count += 1
            return True
        self.dropped += self._waiting is not None
        self._waiting = item
        return False

    def take(self, now: float) -> T | None:
        """The waiting item, once its second has come."""
        if self._waiting is None or now < self._begin + 1.0:
            return None
        item, self._waiting = self._waiting, None
        self._begin, self._count = now, 1
        return item

    def due(self) -> float | None:
        """When the waiting item may be used."""
        return None if self._waiting is None else self._begin + 1.0


class Order(Enum):
    """What a sequence number says about its packet."""

    NEXT = "next"
    DUPLICATE = "duplicate"
    LATE = "late"
    RESTART = "restart"


class SequenceTracker:
    """Sequence numbers of u16 per pair of sender and receiver; ``gaps`` counts the numbers that never came."""

    def __init__(self) -> None:
        self.gaps = self.late = self.duplicates = 0
        self._last: dict[Hashable, tuple[int, float]] = {}

    def judge(self, pair: Hashable, number: int, now: float) -> Order:
        """What the number says; anything but DUPLICATE and LATE is accepted and remembered."""
        before = self._last.pop(pair, None)
        order = Order.RESTART if before is None else self._compare(number, now, *before)
        if before is not None and order in (Order.DUPLICATE, Order.LATE):
            self._last[pair] = before
            return order
        if len(self._last) >= MAX_PAIRS:
            del self._last[next(iter(self._last))]
        self._last[pair] = (number, now)
        return order

    def _compare(self, number: int, now: float, last: int, last_at: float) -> Order:
        distance = (number - last) % SEQUENCE_SPACE
        if distance == 0:
            self.duplicates += 1
            return Order.DUPLICATE
        if distance <= GAP_TO:
            self.gaps += distance - 1
            return Order.NEXT
        if distance >= LATE_FROM and now - last_at <= REORDER_S:
            self.late += 1
            return Order.LATE
        return Order.RESTART
