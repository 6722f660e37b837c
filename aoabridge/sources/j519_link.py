"""Figures of a stream of Status: rate, age, jitter, controller cycle, and the share of refused datagrams."""

from collections import deque
from statistics import median

from aoabridge.sources.meters import MEASURE_S, Meter

__all__ = ["LinkFigures", "RefusalWindow"]

CLOCK_MODULUS = 1 << 32
PERCENTILE = 0.99
WINDOW_S = 10.0  # over which the share of refused datagrams is taken
SUSPECT_MEMORY_S = 10.0  # a wrong byte order is reported for so long after the last sign of it
MIN_DATAGRAMS = 20  # fewer say nothing about a share
REFUSED_SHARE = 0.05


class LinkFigures:
    """Rates of one stream; ``jitter_ms`` and ``cycle_ms`` belong to the last full second."""

    def __init__(self) -> None:
        self.meter = Meter()
        self.jitter_ms = 0.0
        self.cycle_ms = 0.0
        self._last: tuple[float, int] | None = None
        self._late_ms: list[float] = []
        self._steps_ms: list[int] = []
        self._close_at: float | None = None

    def mark(self, now: float, time_stamp_ms: int) -> None:
        """One usable Status with the controller's clock."""
        self.roll(now)
        self.meter.mark(now)
        if self._last is not None:
            before, clock_ms = self._last
            step_ms = (time_stamp_ms - clock_ms) % CLOCK_MODULUS
            if 0 < step_ms <= MEASURE_S * 1000:
                self._steps_ms.append(step_ms)
                self._late_ms.append(abs((now - before) * 1000 - step_ms))
        self._last = (now, time_stamp_ms)

    def roll(self, now: float) -> None:
        """Close the second that is over."""
        self.meter.roll(now)
        if self._close_at is None:
            self._close_at = now + MEASURE_S
        if now < self._close_at:
            return
        self._close_at = now + MEASURE_S
        late = sorted(self._late_ms)
        self.jitter_ms = late[min(int(len(late) * PERCENTILE), len(late) - 1)] if late else 0.0
        self.cycle_ms = float(median(self._steps_ms)) if self._steps_ms else 0.0
        self._late_ms.clear()
        self._steps_ms.clear()


class RefusalWindow:
    """What of the datagrams of the last ten seconds was refused, and whether they looked byte-swapped."""

    def __init__(self) -> None:
        self._seconds: deque[tuple[int, int, int]] = deque()  # (second, datagrams, refused)
        self._suspect_at: float | None = None

    def mark(self, now: float, *, refused: bool, suspect: bool) -> None:
        """One datagram."""
        second = int(now)
        if not self._seconds or self._seconds[-1][0] != second:
            self._seconds.append((second, 0, 0))
        _, datagrams, bad = self._seconds.pop()
        self._seconds.append((second, datagrams + 1, bad + refused))
        if suspect:
            self._suspect_at = now
        self._forget(now)

    def _forget(self, now: float) -> None:
        while self._seconds and self._seconds[0][0] < now - WINDOW_S:
            self._seconds.popleft()

    def refused_percent(self, now: float) -> int | None:
        """Share of refused datagrams if it is worth an issue, else None."""
        self._forget(now)
        datagrams = sum(second[1] for second in self._seconds)
        refused = sum(second[2] for second in self._seconds)
        if datagrams < MIN_DATAGRAMS or refused <= datagrams * REFUSED_SHARE:
            return None
        return round(100 * refused / datagrams)

    def looks_swapped(self, now: float) -> bool:
        """True while suspect packets arrive."""
        return self._suspect_at is not None and now - self._suspect_at <= SUSPECT_MEMORY_S
