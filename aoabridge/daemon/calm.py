"""When a look at everything would find nothing new but the time: an idle bridge leaves a small machine alone."""

from collections.abc import Hashable

__all__ = ["LOOK_S", "QUIET_S", "Calm"]

QUIET_S = 3.0  # by then the rates of what passed before have fallen to 0, and that has been shown
LOOK_S = 5.0  # what time alone changes: the wall clock, the state file, issues that expire


class Calm:
    """``signs`` is whatever differs as soon as a look could find something new."""

    def __init__(self) -> None:
        self._signs: Hashable = None
        self._changed_at = float("-inf")
        self._looked_at = float("-inf")

    def wants_look(self, signs: Hashable, now: float, *, busy: bool) -> bool:
        """Whether to look now; ``busy`` = something is going on that signs cannot tell."""
        if busy or signs != self._signs:
            self._signs, self._changed_at = signs, now
        wanted = now - self._changed_at < QUIET_S or now - self._looked_at >= LOOK_S
        if wanted:
            self._looked_at = now
        return wanted
