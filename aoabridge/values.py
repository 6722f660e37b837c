"""The vocabulary of NetworkTables: what comes from the server, what we publish, what a phone puts.

Type strings are kept verbatim as announced (``double[]``, ``struct:Pose2d``): they are part of a topic's identity.
"""

from enum import Enum
from typing import Final, TypeAlias

import msgspec

__all__ = [
    "MAX_VALUE_BYTES",
    "RUN_PREFIX",
    "SCHEMA_ROOT",
    "SCHEMA_TYPE",
    "Announced",
    "ClockSync",
    "Connected",
    "Disconnected",
    "LinkId",
    "NtEvent",
    "NtValue",
    "Publication",
    "Put",
    "PutOp",
    "PutResult",
    "Unannounced",
    "Update",
    "Withdrawal",
]

SCHEMA_TYPE: Final = "structschema"
SCHEMA_ROOT: Final = "/.schema/struct:"  # a struct's name follows
RUN_PREFIX: Final = "/RoboRoute/Run"  # of the booleans that start a motion in robot code
MAX_VALUE_BYTES: Final = 1_000_000  # ntcore publishes nothing any more once 2 MiB wait; two of these still fit

NtValue: TypeAlias = bool | int | float | str | bytes | list[bool] | list[int] | list[float] | list[str]
LinkId: TypeAlias = int


class Connected(msgspec.Struct, frozen=True, gc=False):
    """The robot's server answered; topics follow. ``client`` is our name as the server knows it, if it said so."""

    address: str
    client: str = ""


class Disconnected(msgspec.Struct, frozen=True, gc=False):
    """The server is gone; every topic of it is unknown from here on."""


class ClockSync(msgspec.Struct, frozen=True, gc=False):
    """One clock measurement: server time = local time + ``offset_us``; not ``valid`` = no server to measure."""

    offset_us: int
    rtt2_us: int
    valid: bool


class Announced(msgspec.Struct, frozen=True, gc=False):
    """A topic exists on the server with this type string; replaces what was known of the name."""

    topic: str
    type: str


class Unannounced(msgspec.Struct, frozen=True, gc=False):
    """The topic no longer exists on the server."""

    topic: str


class Update(msgspec.Struct, frozen=True, gc=False):
    """A value of another client, in server microseconds."""

    topic: str
    value: NtValue
    time_us: int


NtEvent: TypeAlias = Connected | Disconnected | ClockSync | Announced | Unannounced | Update


class Publication(msgspec.Struct, frozen=True):
    """A value that the bridge itself publishes (status, a UDP source, a schema).

    ``type`` ``structschema`` is published retained. ``properties`` are set when the topic is first published.
    ``keep_all`` marks values of which every one counts (events); others may be coalesced to the newest.
    """

    topic: str
    type: str
    value: NtValue
    properties: dict[str, object] | None = None
    keep_all: bool = False


class Withdrawal(msgspec.Struct, frozen=True, gc=False):
    """The bridge stops publishing this topic of its own."""

    topic: str


class PutOp(Enum):
    """What a put asks of NetworkTables. RELEASE: the link is over, sets of it that still wait are refused."""

    SET = "set"
    UNPUBLISH = "unpublish"
    RELEASE = "release"


class Put(msgspec.Struct, frozen=True):
    """One order of the core to NetworkTables on behalf of a phone link, already of exactly the topic's type.

    ``serial`` is unique per core and returns in the PutResult. UNPUBLISH has no value.
    """

    serial: int
    link: LinkId
    op: PutOp
    topic: str
    type: str = ""
    value: NtValue | None = None


class PutResult(msgspec.Struct, frozen=True):
    """What became of a SET: accepted by ntcore and flushed, or refused with a code of the phone protocol."""

    put: Put
    code: str | None = None
    message: str = ""

    @property
    def accepted(self) -> bool:
        """True if the value is on its way to the server."""
        return self.code is None
