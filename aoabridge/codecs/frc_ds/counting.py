"""Which values of a packet no table knows; for counters, never an error."""

from enum import IntEnum
from functools import cache
from typing import Any, get_args, get_type_hints

from aoabridge.codecs.frc_ds.enums import ModeByte, Station

__all__ = ["INVALID_MODE", "unknown_values"]

INVALID_MODE = "invalid"


@cache
def _watched(packet_class: type) -> tuple[str, ...]:
    """Attributes that hold an enumeration, a mode or a station."""
    watched = []
    for name, hint in get_type_hints(packet_class).items():
        kinds = [kind for kind in (hint, *get_args(hint)) if isinstance(kind, type)]
        if any(issubclass(kind, IntEnum | ModeByte | Station) for kind in kinds):
            watched.append(name)
    return tuple(watched)


def unknown_values(*packets: Any) -> int:
    """Number of enumerations without a name, modes 3 and stations beyond 5 among the packets' own attributes."""
    return sum(_is_unknown(getattr(packet, name)) for packet in packets for name in _watched(packet.__class__))


def _is_unknown(value: int) -> bool:
    if isinstance(value, ModeByte):
        return value.mode == INVALID_MODE
    if isinstance(value, Station):
        return not value.known
    return not isinstance(value, IntEnum)
