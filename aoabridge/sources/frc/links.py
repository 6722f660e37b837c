"""One protocol id of the driver station source: its counters, its figures, whether it is connected."""

from aoabridge.codecs.frc_ds.datagrams import TaggedPacket, faults_of
from aoabridge.codecs.host_port import join_host_port
from aoabridge.sources.base import Address
from aoabridge.sources.board import Writer
from aoabridge.sources.meters import Meter, SequenceTracker

__all__ = ["LINK_COUNTERS", "Link"]

LINK_COUNTERS = (
    "Received",
    "Rejected",
    "RateLimited",
    "Truncated",
    "Faults",
    "UnknownTags",
    "UnknownValues",
    "SequenceGaps",
    "OutOfOrder",
    "Duplicates",
    "TextReplaced",
)


class Link:
    """Figures of one protocol over all its endpoints; ``stale_s`` is for UDP, a TCP link lives by its connections."""

    def __init__(self, protocol: str, stale_s: float) -> None:
        self.protocol = protocol
        self.is_stream = protocol.endswith("-tcp")
        self.meter = Meter()
        self.sequence = SequenceTracker()
        self.connections: set[tuple[str, int]] = set()
        self.peer: Address | None = None
        self.counts: dict[str, int] = dict.fromkeys(LINK_COUNTERS, 0)
        self._stale_s = stale_s
        self._said_connected: bool | None = None

    def count(self, name: str, amount: int = 1) -> None:
        """Add to one counter."""
        self.counts[name] += amount

    def count_unknown(self, packet: TaggedPacket) -> None:
        """Count what no table knows in a datagram, and what is wrong with it."""
        faults = faults_of(packet)
        if faults:
            self.counts["Faults"] += len(faults)
        self.counts["UnknownTags"] += packet.unknown_tags
        self.counts["UnknownValues"] += packet.unknown_values

    def collect(self, rate_limited: int) -> None:
        """Take over the figures that are counted elsewhere."""
        self.counts["RateLimited"] = rate_limited
        self.counts["SequenceGaps"] = self.sequence.gaps
        self.counts["OutOfOrder"] = self.sequence.late
        self.counts["Duplicates"] = self.sequence.duplicates

    def is_connected(self, now: float) -> bool:
        """A packet within the limit; for a stream an open connection."""
        return bool(self.connections) if self.is_stream else self.meter.is_fresh(now, self._stale_s)

    def stale_at(self) -> float | None:
        """When a live UDP link counts as silent."""
        return None if self.is_stream or self.meter.last_at is None else self.meter.last_at + self._stale_s

    @property
    def bad(self) -> int:
        """What could not be used."""
        return self.counts["Rejected"] + self.counts["Truncated"] + self.counts["Faults"]

    def write_connected(self, out: Writer, now: float) -> None:
        """``Link/<protocol id>/Connected``, if it is not what was written last."""
        connected = self.is_connected(now)
        if connected is not self._said_connected:
            self._said_connected = connected
            out.flag(f"Link/{self.protocol}/Connected", connected)

    def write(self, out: Writer, now: float) -> None:
        """All of ``Link/<protocol id>/``."""
        self.write_connected(out, now)
        self.meter.roll(now)
        below = out.below(f"Link/{self.protocol}/")
        if self.peer is not None:
            below.text("Peer", join_host_port(*self.peer))
        below.real("Rate_hz", self.meter.rate_hz)
        age_s = self.meter.age_s(now)
        if age_s is not None:
            below.real("Age_ms", age_s * 1000)
        for name, value in self.counts.items():
            below.number(name, value)
