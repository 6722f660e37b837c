"""What a phone may do: access patterns and the rate of its puts."""

import re
from collections import deque
from collections.abc import Iterable, Sequence

__all__ = ["AccessRules", "RateWindow", "TokenBucket", "compile_patterns"]


def compile_patterns(patterns: Iterable[str]) -> re.Pattern[str] | None:
    """One expression for all globs: ``*`` is any run of characters, ``/`` included, ``?`` one character.

    A pattern without a leading slash gets one, unless it begins with ``*``. None if there are no patterns.
    """
    alternatives = [_translate(pattern) for pattern in patterns]
    return re.compile("|".join(alternatives), re.DOTALL) if alternatives else None


def _translate(pattern: str) -> str:
    rooted = pattern if pattern.startswith(("/", "*")) else "/" + pattern
    runs = [re.escape(run).replace(r"\?", ".") for run in re.split(r"\*+", rooted)]
    if len(runs) == 1:
        return rf"(?:{runs[0]})\Z"
    # The first fit of each middle run is as good as any later one: atomic groups keep every pattern linear.
    middle = "".join(f"(?>.*?{run})" for run in runs[1:-1])
    return rf"(?:{runs[0]}{middle}.*{runs[-1]})\Z"


class AccessRules:
    """deny before allow before refused, for one direction (put or subscribe) of one phone."""

    def __init__(self, allow: Sequence[str], deny: Sequence[str]) -> None:
        self._allow = compile_patterns(allow)
        self._deny = compile_patterns(deny)

    def permits(self, key: str) -> bool:
        """True if a key (with its leading slash) is allowed and not denied."""
        if self._deny is not None and self._deny.match(key):
            return False
        return self._allow is not None and self._allow.match(key) is not None


class TokenBucket:
    """At most ``rate`` takes per second over time, ``burst`` at once."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = burst
        self._at: float | None = None

    def take(self, now: float) -> bool:
        """Take one token at ``now`` (monotonic seconds); False if there is none."""
        if self._at is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class RateWindow:
    """At most ``limit`` takes in any second; unlike a bucket it allows no burst on top."""

    def __init__(self, limit: int) -> None:
        self._taken: deque[float] = deque(maxlen=limit)
        self._limit = limit

    def take(self, now: float) -> bool:
        """Take one at ``now`` (monotonic seconds); False if the second is full."""
        if len(self._taken) >= self._limit and (not self._taken or now < self._taken[0] + 1.0):
            return False
        self._taken.append(now)
        return True
