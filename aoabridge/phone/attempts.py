"""What to do after an open, a claim or a handshake that failed."""

from enum import Enum
from typing import Final

import msgspec

from aoabridge.errors import UsbError
from aoabridge.phone.ladders import BUSY_WAITS_S, Ladder

__all__ = ["Attempts", "Next", "Outcome", "refuses"]

OPEN_RETRY_S: Final = 2.0  # udev sets the group of a node a moment after it appears
OPEN_RETRY_STEP_S: Final = 0.1  # an open costs microseconds, and a driver waits
BLOCKED_RETRY_S: Final = 5.0  # only a human helps; soon enough after that
BURST_GAPS_S: Final = (0.5, 1.0)  # a phone that starts up misses a request or two

_NOT_YET_OURS: Final = frozenset({"ACCESS", "NOT_FOUND", "IO", "NO_DEVICE"})


class Next(Enum):
    """How it goes on."""

    RETRY = "retry"
    BLOCKED = "blocked"
    GONE = "gone"
    GIVE_UP = "give up"


class Outcome(msgspec.Struct, frozen=True):
    """``wait_s`` until the next attempt, for RETRY and BLOCKED."""

    next: Next
    wait_s: float = 0.0


class Attempts:
    """The failed attempts on one enumeration of a device since the last one that worked."""

    def __init__(self) -> None:
        self.busy_since: float | None = None
        self._failed = 0
        self._open_failing_since: float | None = None
        self._busy = Ladder(BUSY_WAITS_S)

    def reset(self) -> None:
        """An attempt worked, or the device is another one."""
        self.busy_since = self._open_failing_since = None
        self._failed = 0
        self._busy.reset()

    def after(self, error: UsbError, now: float, *, handshake: bool) -> Outcome:
        """What follows ``error``; a handshake is tried three times in a row before it counts as failed."""
        at_open = error.step == "open"
        if error.kind == "ACCESS" or (at_open and error.kind in _NOT_YET_OURS):
            return self._not_open(error, now)
        self._open_failing_since = None
        if error.kind == "NO_DEVICE":
            return Outcome(Next.GONE)
        if error.kind == "BUSY" and (at_open or not handshake):
            if self.busy_since is None:
                self.busy_since = now
            return Outcome(Next.RETRY, self._busy.climb() or 0.0)
        self.busy_since = None
        if self._failed < len(BURST_GAPS_S) and (handshake or error.kind == "INTERRUPTED"):
            gap_s = 0.0 if error.kind == "INTERRUPTED" else BURST_GAPS_S[self._failed]
            self._failed += 1
            return Outcome(Next.RETRY, gap_s)
        self._failed = 0
        return Outcome(Next.GIVE_UP)

    def _not_open(self, error: UsbError, now: float) -> Outcome:
        """The node may not be ours yet: try again for a while, then call it a matter of permission."""
        if self._open_failing_since is None:
            self._open_failing_since = now
        if now - self._open_failing_since < OPEN_RETRY_S:
            return Outcome(Next.RETRY, OPEN_RETRY_STEP_S)
        if error.kind == "NO_DEVICE":
            self._open_failing_since = None
            return Outcome(Next.GONE)
        return Outcome(Next.BLOCKED, BLOCKED_RETRY_S)


def refuses(error: UsbError) -> bool:
    """True if the very first request was answered with a clear no."""
    return error.step == "get_protocol" and error.kind in ("PIPE", "OVERFLOW")
