"""How fast we may set values, flush and subscribe; pure, time in monotonic seconds as an argument.

ntcore 2026.2.2 loses every later value of an instance once more than 2 MiB of sets wait for its network thread, so the
amount per window is bounded far below that.
"""

from enum import Enum

__all__ = [
    "FLUSH_GAP_S",
    "SET_OVERHEAD_BYTES",
    "WINDOW_BYTES",
    "WINDOW_S",
    "WINDOW_SETS",
    "FlushClock",
    "OverloadWatch",
    "SetWindow",
    "Subscribe",
]

WINDOW_S = 0.010
WINDOW_SETS = 1_000
WINDOW_BYTES = 256 * 1024  # five windows that the network thread did not get to still fit in the 2 MiB
SET_OVERHEAD_BYTES = 136  # what ntcore counts for a value beside its payload
FLUSH_GAP_S = 0.005  # ntcore ignores an earlier flush and the value then waits for the period

OVERLOAD_EVENTS = 100_000  # in one drain: the thread is about a second behind
OVERLOAD_DRAINS = 2
CALM_S = 10.0


class SetWindow:
    """Admits at most ``WINDOW_SETS`` sets and ``WINDOW_BYTES`` per ``WINDOW_S``.

    A value above ``WINDOW_BYTES`` is admitted to an empty window only and closes as many windows as it fills.
    """

    def __init__(self) -> None:
        self._ends = 0.0
        self._sets = 0
        self._bytes = 0

    def admit(self, payload_bytes: int, now: float) -> bool:
        """Count one set, if this window has room for it."""
        if now >= self._ends:
            self._ends, self._sets, self._bytes = now + WINDOW_S, 0, 0
        cost = payload_bytes + SET_OVERHEAD_BYTES
        if self._sets and (self._sets >= WINDOW_SETS or self._bytes + cost > WINDOW_BYTES):
            return False
        self._sets += 1
        self._bytes += cost
        if cost > WINDOW_BYTES:
            self._ends = now + WINDOW_S * -(-cost // WINDOW_BYTES)
        return True

    @property
    def ends(self) -> float:
        """When the next window begins, if this one is full."""
        return self._ends


class FlushClock:
    """Says when a flush is due: at once after a set, but never within ``FLUSH_GAP_S`` of the previous one."""

    def __init__(self) -> None:
        self._last = float("-inf")
        self._wanted = False

    def want(self) -> None:
        """Something was set or dropped."""
        self._wanted = True

    def due(self, now: float) -> bool:
        """True if a flush is wanted and may happen now."""
        return self._wanted and now >= self._last + FLUSH_GAP_S

    def done(self, now: float) -> None:
        """A flush has happened at ``now``."""
        self._last, self._wanted = now, False

    def next_time(self) -> float | None:
        """When the wanted flush may happen; None if nothing waits for one."""
        return self._last + FLUSH_GAP_S if self._wanted else None


class Subscribe(Enum):
    """How all topics are subscribed."""

    EVERY_VALUE = "every value"
    NEWEST_ONLY = "newest only"


class OverloadWatch:
    """Decides, from the size of each drain, when the subscription must shrink and when it may grow back."""

    def __init__(self) -> None:
        self._big = 0
        self._last_big = float("-inf")
        self.overloaded = False

    def on_drain(self, events: int, now: float) -> Subscribe | None:
        """Return the subscription to change to, None to keep the present one."""
        if events > OVERLOAD_EVENTS:
            self._big += 1
            self._last_big = now
        elif events:
            self._big = 0
        if not self.overloaded and self._big >= OVERLOAD_DRAINS:
            self.overloaded, self._big = True, 0
            return Subscribe.NEWEST_ONLY
        if self.overloaded and now >= self._last_big + CALM_S:
            self.overloaded = False
            return Subscribe.EVERY_VALUE
        return None
