"""When an app is asked to open its accessory again: if what it said on opening may have gone to somebody else.

The known app subscribes only when it opens the accessory, in the old form, in two messages one second apart. Whatever
of it is lost comes again after a minute.
"""

from typing import Final

__all__ = ["PAIR_S", "SILENCE_S", "Reopening"]

SILENCE_S: Final = 1.0  # an app that opens now has subscribed by then
PAIR_S: Final = 1.5  # the second subscribe follows the first after one second


class Reopening:
    """Asks at most once per link, and only where bytes may be lost: an adopted phone, or a read that failed.

    Times are monotonic seconds.
    """

    def __init__(self, now: float, *, adopted: bool) -> None:
        self._doubted_at = now if adopted else None  # since when something may be missing
        self._read_failed = False
        self._first_at: float | None = None  # a subscribe that should be one of two
        self._over = False

    def on_subscribe(self, now: float, *, early: bool, legacy: bool) -> None:
        """The app subscribes; ``early`` = written before the link began, ``legacy`` = in the old form."""
        if self._first_at is not None or not legacy or (early and not self._read_failed):
            self._over = True
        self._first_at = now

    def on_resync(self, now: float) -> None:
        """Bytes of the phone were lost."""
        if self._first_at is not None and now - self._first_at > PAIR_S:
            self._over = True  # it subscribed long ago, and once is its way
        self._read_failed = True
        if self._doubted_at is None:
            self._doubted_at = now

    def next_due(self) -> float | None:
        """When to ask if nothing is heard until then, None = never."""
        if self._over or self._doubted_at is None:
            return None
        return self._doubted_at + SILENCE_S if self._first_at is None else self._first_at + PAIR_S

    def take(self, now: float) -> bool:
        """True, once, if the app is to be asked now."""
        due = self.next_due()
        if due is None or now < due:
            return False
        self._over = True
        return True
