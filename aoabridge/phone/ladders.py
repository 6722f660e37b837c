"""Waiting times that grow with every failure, and the caps on how often a phone is asked to switch."""

from collections import deque
from collections.abc import Sequence
from typing import Final

__all__ = [
    "BUSY_WAITS_S",
    "FLAP_STEPS",
    "FLAP_WAITS_S",
    "REOPEN_WAITS_S",
    "SLOW_WAITS_S",
    "Ladder",
    "StartLog",
]

SLOW_WAITS_S: Final = (30.0, 60.0, 120.0, 300.0)  # failed probes, phones that do not switch, phones that refuse
FLAP_WAITS_S: Final = (5.0, 20.0, 60.0, 120.0, 300.0)  # a phone that left by itself: its app must not pop up in a loop
FLAP_STEPS: Final = 8  # over 20 minutes: nobody sits before an app that leaves every time
BUSY_WAITS_S: Final = (0.2, 0.5, 1.0, 2.0, 5.0)  # a probe of the desktop lets go at once, another host never
REOPEN_WAITS_S: Final = (0.5, 1.0, 2.0, 5.0)  # the phone is still there and nothing pops up on it: much sooner

# STARTs of one port. Each may launch an app or show a dialog on the phone.
_WINDOW_S: Final = 300.0  # the longest wait of a ladder, so that no ladder alone reaches a cap
_MAX_UNPROVOKED: Final = 5  # the most that a ladder asks for in the window; more is two ladders taking turns
_MAX_FRUITLESS: Final = 20  # replugs count here: a bad contact looks like a hand


class Ladder:
    """Yields its waits one after the other, the last one for ever (or for ``steps`` in all)."""

    def __init__(self, waits_s: Sequence[float], steps: int | None = None) -> None:
        self._waits_s = waits_s
        self._steps = steps
        self.count = 0

    def climb(self) -> float | None:
        """The wait after one more failure; None once the steps are used up."""
        if self._steps is not None and self.count >= self._steps:
            return None
        wait_s = self._waits_s[min(self.count, len(self._waits_s) - 1)]
        self.count += 1
        return wait_s

    def reset(self) -> None:
        """Starts over."""
        self.count = 0


class StartLog:
    """The STARTs of one port, and when the next one is allowed.

    In any 300 s at most 5 that neither a replug nor a link with a valid line preceded, and at most 20 that no such
    link preceded.
    """

    def __init__(self) -> None:
        self._unprovoked: deque[float] = deque(maxlen=_MAX_UNPROVOKED)
        self._fruitless: deque[float] = deque(maxlen=_MAX_FRUITLESS)
        self._replugged = True  # the first plug is one
        self._linked_well = False

    def on_replug(self) -> None:
        """The port was empty long enough for a hand."""
        self._replugged = True

    def on_valid_line(self) -> None:
        """A link brought a valid line: whatever follows is not a loop of ours."""
        self._linked_well = True

    def on_retry(self) -> None:
        """Somebody asked for it: only the cap of 20 still holds."""
        self._unprovoked.clear()

    def allowed_at(self, now: float) -> float:
        """The earliest moment of the next START, ``now`` or later."""
        if self._linked_well:
            return now
        allowed = self._after(self._fruitless, now)
        if not self._replugged:
            allowed = max(allowed, self._after(self._unprovoked, now))
        return allowed

    def on_start(self, now: float) -> None:
        """A START was sent."""
        if not self._linked_well:
            self._fruitless.append(now)
            if not self._replugged:
                self._unprovoked.append(now)
        self._replugged = self._linked_well = False

    @staticmethod
    def _after(starts: deque[float], now: float) -> float:
        full = len(starts) == starts.maxlen
        return max(now, starts[0] + _WINDOW_S) if full else now
