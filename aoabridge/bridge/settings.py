"""What the configuration decides about the relay: its limits, and what phones may put and subscribe."""

import msgspec

__all__ = ["AccessSettings", "RelaySettings"]


class RelaySettings(msgspec.Struct, frozen=True, gc=False):
    """Limits of one phone link; the ranges are those of the configuration keys ``relay.*``."""

    max_line_bytes: int = 1_048_576
    max_subscriptions: int = 2_000
    put_rate: int = 500
    """Puts per second that are accepted for ever."""
    put_burst: int = 1_000
    sample_lane: int = 1_000
    """Samples kept per topic that a phone subscribed with ``"all": true``."""
    error_lines_per_s: int = 20


class AccessSettings(msgspec.Struct, frozen=True):
    """Glob patterns for every phone: ``*`` any run including ``/``, ``?`` one character; deny wins over allow."""

    put_allow: tuple[str, ...] = ("*",)
    put_deny: tuple[str, ...] = ()
    subscribe_allow: tuple[str, ...] = ("*",)
    subscribe_deny: tuple[str, ...] = ()
