"""Datagrams of one kind from one vehicle or the cockpit, and how many of all are bad."""

from aoabridge.codecs.teleop import TeleopPacket
from aoabridge.sources.board import Writer
from aoabridge.sources.meters import Meter

__all__ = ["BadShare", "Flow"]


class Flow:
    """Datagrams of one kind from one vehicle or the cockpit: figures, and the newest that waits to be published."""

    def __init__(self, kind: str, subtree: str, stale_s: float) -> None:
        self.kind = kind
        self.origin = f"{kind}/{subtree}"
        self.subtree = subtree
        self.stale_s = stale_s
        self.meter = Meter()
        self.long_gaps = 0
        self.published_at = float("-inf")
        self.edges: tuple[int, ...] | None = None
        self.waiting: tuple[TeleopPacket, bytes] | None = None
        self.is_published = False

    def mark(self, now: float) -> None:
        """One arrival."""
        age_s = self.meter.age_s(now)
        self.long_gaps += age_s is not None and age_s > self.stale_s
        self.meter.mark(now)

    def is_connected(self, now: float) -> bool:
        """Whether one arrived lately."""
        return self.meter.is_fresh(now, self.stale_s)

    def forget(self) -> None:
        """The topics are gone."""
        self.is_published = False
        self.edges = None
        self.waiting = None

    def deadlines(self, period_s: float, forget_s: float) -> list[float]:
        """When something is due: the waiting packet, the end of the connection, the end of the topics."""
        due = [] if self.waiting is None else [self.published_at + period_s]
        if self.meter.last_at is not None:
            due += [self.meter.last_at + self.stale_s, self.meter.last_at + forget_s]
        return due

    def write_connected(self, out: Writer, now: float) -> None:
        """``Link/…Connected``; ``out`` writes below the root."""
        name = "Connected" if self.kind == "ctrl" else f"{self.kind.title()}Connected"
        out.flag(f"{self.subtree}/Link/{name}", self.is_connected(now))

    def write_figures(self, out: Writer, now: float) -> None:
        """Rate, age, longest gap, count below ``Link/``."""
        self.meter.roll(now)
        below, name = out.below(f"{self.subtree}/Link/"), self.kind.title()
        below.real(f"{name}_hz", self.meter.rate_hz)
        age_s = self.meter.age_s(now)
        if age_s is not None:
            below.real(f"{name}Age_ms", age_s * 1000)
        if self.kind != "downlink":
            below.real(f"{name}MaxGap_ms", self.meter.max_gap_s * 1000)
        if self.kind != "ctrl":
            below.number(f"{name}s", self.meter.total)


class BadShare:
    """Share of bad datagrams between two reports."""

    def __init__(self) -> None:
        self.fraction = 0.0
        self._received = self._bad = 0

    def report(self, received: int, bad: int) -> None:
        """Counts since start, at a report."""
        new, new_bad = received - self._received, bad - self._bad
        self._received, self._bad = received, bad
        self.fraction = new_bad / new if new > 0 else 0.0
