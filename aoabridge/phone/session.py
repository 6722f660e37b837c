"""What one phone asked for, and whether it still answers: subscriptions, and the pings of an app that said hello."""

from collections import deque

import msgspec

from aoabridge.errors import LinkError
from aoabridge.phone.keys import parents

__all__ = ["Options", "PingSession", "Subscriptions"]

STALE_PINGS = 3  # unanswered, and for as many seconds: one lost answer is not yet a dead app
STALE_S = 3.0
IDLE_PING_S = 1.0
CREDIT_S = 0.25  # the next values wait that long for a pong, so that at most one transfer is unread


class Options(msgspec.Struct, frozen=True, gc=False):
    """How a phone wants a topic: every sample or the newest, and at most one per ``period_s`` (0 = no limit)."""

    every_sample: bool = False
    period_s: float = 0.0


class Subscriptions:
    """Keys and subtrees that a phone subscribed to; a subtree's key ends in ``/``."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._keys: dict[str, Options] = {}
        self._subtrees: dict[str, Options] = {}

    def __len__(self) -> int:
        return len(self._keys) + len(self._subtrees)

    def add(self, key: str, options: Options) -> None:
        """Add or change one key or subtree; raises LinkError ``too-many`` at the limit."""
        table = self._subtrees if key.endswith("/") else self._keys
        if key not in table and len(self) >= self._limit:
            raise LinkError(f"more than {self._limit} subscriptions", "too-many", topic=key)
        table[key] = options

    def remove(self, key: str) -> bool:
        """Forget one key or subtree; False if it is unknown."""
        return (self._subtrees if key.endswith("/") else self._keys).pop(key, None) is not None

    def clear(self) -> None:
        """Forget all."""
        self._keys.clear()
        self._subtrees.clear()

    def find(self, key: str) -> Options | None:
        """How the phone wants this topic, None if it does not; its own key before the longest subtree."""
        options = self._keys.get(key)
        if options is not None or not self._subtrees:
            return options
        return next((self._subtrees[parent] for parent in parents(key) if parent in self._subtrees), None)


class PingSession:
    """Pings to an app that said hello, and what its pongs tell. Times are monotonic seconds."""

    def __init__(self, now: float) -> None:
        self._number = 0
        self._unanswered: deque[tuple[int, float]] = deque(maxlen=64)
        self._pong_at = now
        self._pinged_at = now
        self._credit_at = now
        self.rtt_s: float | None = None

    def ping(self, now: float, *, after_values: bool) -> int:
        """Return the number of the ping that goes out now."""
        self._number += 1
        self._unanswered.append((self._number, now))
        self._pinged_at = now
        if after_values:
            self._credit_at = now + CREDIT_S
        return self._number

    def pong(self, number: int, now: float) -> None:
        """An answer came; it answers every earlier ping too."""
        while self._unanswered and self._unanswered[0][0] <= number:
            sent, at = self._unanswered.popleft()
            self._pong_at = now
            if sent == number:
                self.rtt_s = now - at
        if not self._unanswered:
            self._credit_at = now

    def unsent(self) -> None:
        """The last ping did not leave: it needs no answer, and nothing waits for one."""
        if self._unanswered:
            self._unanswered.pop()
        self._credit_at = float("-inf")

    def resume(self, now: float) -> None:
        """The app reads again: the time in which it could not be asked does not count against it."""
        if not self.stale(now):
            self._pong_at = now

    def ping_due(self, now: float) -> bool:
        """True after a second without a ping."""
        return now >= self.next_ping()

    def next_ping(self) -> float:
        """When the next idle ping is due."""
        return self._pinged_at + IDLE_PING_S

    def next_credit(self, now: float) -> float | None:
        """When values may go although the last pong is missing; None if they may go now."""
        return self._credit_at if self._credit_at > now else None

    def stale(self, now: float) -> bool:
        """True if the app no longer answers: values pause until it does."""
        return len(self._unanswered) >= STALE_PINGS and now - self._pong_at >= STALE_S
