"""Vocabulary of the port machine: its states, and the actions it asks for."""

from enum import Enum
from typing import Final, TypeAlias

import msgspec

from aoabridge.errors import UsbError
from aoabridge.phone.aoa import UsbDevice

__all__ = [
    "Action",
    "ClearHalts",
    "Close",
    "Open",
    "PortSettings",
    "PortState",
    "Probe",
    "Reopen",
    "Reset",
    "StepResult",
]


class PortState(Enum):
    """What a port is doing."""

    ABSENT = "absent"
    IGNORED = "ignored"
    SEEN = "seen"
    PROBING = "probing"
    SWITCHING = "switching"
    OPENING = "opening"
    LINKED = "linked"
    LIVE = "live"
    STALE = "stale"
    REOPEN = "reopen"
    NOT_AOA = "not_aoa"
    COOLDOWN = "cooldown"
    BLOCKED = "blocked"

    @property
    def has_link(self) -> bool:
        """True while an interface is claimed and bytes may flow."""
        return self in _WITH_LINK


_WITH_LINK: Final = frozenset({PortState.LINKED, PortState.LIVE, PortState.STALE})


class PortSettings(msgspec.Struct, frozen=True):
    """What the configuration says about recovery."""

    reset_stuck: bool = False


class Probe(msgspec.Struct, frozen=True):
    """Run one handshake on the native device; answer with step ``probe``: protocol version, 0 = refused, UsbError."""

    device: UsbDevice


class Open(msgspec.Struct, frozen=True):
    """Claim the accessory interface, candidate number ``turn``; answer with step ``open``.

    The result is the number of candidates, 0 = none, or UsbError. ``adopted`` = bytes of an earlier link may be queued.
    """

    device: UsbDevice
    turn: int
    adopted: bool


class Reopen(msgspec.Struct, frozen=True):
    """Close and open the same link once more, keeping it; answer with step ``reopen`` as for Open."""

    device: UsbDevice
    turn: int


class Close(msgspec.Struct, frozen=True):
    """End the link; answer with step ``close``, None."""


class Reset(msgspec.Struct, frozen=True):
    """Reset the device and end the link; answer with step ``reset``: None or UsbError."""


class ClearHalts(msgspec.Struct, frozen=True):
    """Clear the halt of both endpoints of the link; no answer."""


Action: TypeAlias = Probe | Open | Reopen | Close | Reset | ClearHalts
StepResult: TypeAlias = int | UsbError | None
