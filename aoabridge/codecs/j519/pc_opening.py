"""What a PC asks a controller before Start: its version, and the limit tables one by one."""

import msgspec

from aoabridge.codecs.j519.limits import LimitTables, table_keys
from aoabridge.codecs.j519.packets import Ack, Capability, J519Packet, Request, VersionRequest, VersionResponse
from aoabridge.codecs.j519.pc_events import Event, LimitsReceived, PcConfig, PcState, VersionKnown

__all__ = ["Ask", "Opening"]

QUERY_US = 500_000
LIMITS_US = 1_000_000
TRIES = 2
QUERY_VERSION = 3  # a version request is a packet of version 3
GET_CAPABILITY = 7
NEWEST = {"classic": 3, "driver": 4}  # versions whose packets we know
OLDEST = {"classic": 1, "driver": 3}


class Ask(msgspec.Struct, frozen=True):
    """One question: the state it belongs to, its packet, and how long to wait for the answer."""

    state: PcState
    packet: J519Packet
    wait_us: int


class Opening:
    """The questions of one opening; ``next_question`` after the start, every accepted answer and every silence."""

    def __init__(self, config: PcConfig) -> None:
        self.version = config.version
        self.limits = LimitTables()
        self._config = config
        self._asks_version = config.query
        self._wanted = list(table_keys(config.axes)) if config.request_limits else []
        self._tries = 0
        self._events: list[Event] = []

    def next_question(self) -> Ask | None:
        """Ask again, or the next thing; None when everything is asked. Silence ends a phase after two tries."""
        if self._asks_version:
            if self._tries < TRIES:
                self._tries += 1
                return Ask(PcState.QUERYING, self._version_question(), QUERY_US)
            self._know(self._config.version, reported=False)
        if self._wanted and self._tries < TRIES:
            self._tries += 1
            axis, kind = self._wanted[0]
            return Ask(PcState.LIMITS, Request(self.version, axis, kind), LIMITS_US)
        if self._config.request_limits:
            self._events.append(LimitsReceived(self.limits, not self._wanted))
        return None

    def _version_question(self) -> J519Packet:
        if self._config.generation == "driver":
            return Capability(GET_CAPABILITY, self._config.version, 1, 0, 0, 0, 0)
        return VersionRequest(QUERY_VERSION)

    def accepts(self, packet: J519Packet) -> bool:
        """Take an answer; False if it is not the one that is waited for."""
        if self._asks_version:
            if isinstance(packet, VersionResponse) and self._config.generation == "classic":
                self._know(packet.version_no, reported=True)
                return True
            if isinstance(packet, Capability) and self._config.generation == "driver":
                self._know(packet.available_version, reported=True)
                return True
            return False
        if isinstance(packet, Ack) and self._wanted and self._wanted[0] == (packet.axis_no, packet.threshold_type):
            self.limits.add(packet)
            self._wanted.pop(0)
            self._tries = 0
            return True
        return False

    def _know(self, version: int, *, reported: bool) -> None:
        """Use the newest version that both sides have; a number below ours is no answer."""
        generation = self._config.generation
        self.version = min(version, NEWEST[generation]) if version >= OLDEST[generation] else self._config.version
        self._events.append(VersionKnown(self.version, reported))
        self._asks_version = False
        self._tries = 0

    def take_events(self) -> list[Event]:
        """Remove and return what became known."""
        taken, self._events = self._events, []
        return taken
