"""The watchdog's conditions as data: every own thread with its last sign of life and how old that may be."""

from collections.abc import Iterable

import msgspec

__all__ = ["NT_S", "RECORDER_S", "USB_S", "LifeSign", "overdue"]

USB_S = 3.0  # a transfer ends within a second, by its own timeout if by nothing else
NT_S = 3.0  # it wakes once per second without any event
RECORDER_S = 10.0  # a worn SD card may stand still for seconds and go on


class LifeSign(msgspec.Struct, frozen=True):
    """One thread or group of threads; ``seen_at`` in monotonic seconds."""

    name: str
    seen_at: float
    limit_s: float


def overdue(signs: Iterable[LifeSign], now: float) -> list[str]:
    """The names of those that have shown no life for too long; the watchdog is fed only if there are none."""
    return [sign.name for sign in signs if now - sign.seen_at > sign.limit_s]
