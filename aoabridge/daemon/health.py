"""The watchdog's conditions as data: every own thread with its last sign of life and how old that may be."""

from collections.abc import Iterable

import msgspec

__all__ = ["NT_S", "RECORDER_S", "USB_S", "LifeSign", "overdue"]

USB_S = 3.0
NT_S = 3.0
RECORDER_S = 10.0


class LifeSign(msgspec.Struct, frozen=True):
    """One thread or group of threads; ``seen_at`` in monotonic seconds."""

    name: str
    seen_at: float
    limit_s: float


def overdue(signs: Iterable[LifeSign], now: float) -> list[str]:
    """The names of those that have shown no life for too long; the watchdog is fed only if there are none."""
    return [sign.name for sign in signs if now - sign.seen_at > sign.limit_s]
