"""What a PC session is told (its settings) and what it tells (its events)."""

from enum import Enum
from typing import Literal, TypeAlias

import msgspec

from aoabridge.codecs.j519.dispatch import AnyOrder
from aoabridge.codecs.j519.enums import DataStyle
from aoabridge.codecs.j519.guard import CartesianCaps
from aoabridge.codecs.j519.limits import LimitTables
from aoabridge.codecs.j519.packets import AnyStatus, J519Packet
from aoabridge.codecs.j519.sequence import Arrival
from aoabridge.errors import DecodeError

__all__ = [
    "Address",
    "Event",
    "Fault",
    "LimitsReceived",
    "PcConfig",
    "PcState",
    "Rejected",
    "StateChanged",
    "StatusLost",
    "StatusReceived",
    "Suspect",
    "VersionKnown",
]

Address: TypeAlias = tuple[str, int]


class PcState(Enum):
    """Where a session stands."""

    CLOSED = "closed"
    DRAINING = "draining"
    QUERYING = "querying"
    LIMITS = "limits"
    STARTING = "starting"
    STATUS = "status"
    READY = "ready"
    STREAMING = "streaming"
    ENDING = "ending"
    FAULTED = "faulted"


class PcConfig(msgspec.Struct, frozen=True):
    """Settings of one session. Without ``control`` it only listens; ``passive`` also never sends anything.

    ``byte_order`` "auto" needs ``passive``. ``version`` stands if the controller is not asked (``query``) or is silent.
    ``peer`` is the controller; a datagram with another sender is dropped. The rest is for the guard.
    """

    control: bool = False
    passive: bool = False
    generation: Literal["classic", "driver"] = "classic"
    byte_order: AnyOrder = "big"
    version: int = 1
    query: bool = False
    request_limits: bool = True
    axes: int = 6
    peer: Address | None = None
    cycle_us: int = 8000
    data_style: DataStyle = DataStyle.JOINT
    margin: float = 0.95
    payload_ratio: float = 1.0
    max_step: float | None = None
    start_tolerance: float = 0.1
    allow_io_write: bool = False
    cartesian: CartesianCaps | None = None


class StateChanged(msgspec.Struct, frozen=True):
    """The session went on."""

    old: PcState
    new: PcState
    reason: str


class StatusReceived(msgspec.Struct, frozen=True):
    """One Status that is newer than all before; ``gap`` cycles were lost before it."""

    packet: AnyStatus
    arrival: Arrival

    @property
    def gap(self) -> int:
        """Cycles lost before this one."""
        return self.arrival.lost


class LimitsReceived(msgspec.Struct, frozen=True):
    """The limit phase is over; ``complete`` = every table of every axis arrived."""

    tables: LimitTables
    complete: bool


class VersionKnown(msgspec.Struct, frozen=True):
    """The version used from here on; ``reported`` by the controller or taken from the settings."""

    version: int
    reported: bool


class StatusLost(msgspec.Struct, frozen=True):
    """Status stays out."""

    silence_us: int


class Fault(msgspec.Struct, frozen=True):
    """Control has ended until ``rearm()``."""

    code: str
    text: str


class Rejected(msgspec.Struct, frozen=True):
    """A datagram that is no packet of this session."""

    error: DecodeError


class Suspect(msgspec.Struct, frozen=True):
    """A packet that looks like the other byte order; it is not used."""

    packet: J519Packet


Event: TypeAlias = (
    StateChanged | StatusReceived | LimitsReceived | VersionKnown | StatusLost | Fault | Rejected | Suspect
)
