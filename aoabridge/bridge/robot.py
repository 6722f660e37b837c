"""The connection to the robot's server: whether it is there, and whether its topics are all known yet."""

from aoabridge.codecs.host_port import host_of
from aoabridge.values import Connected, Disconnected

__all__ = ["RobotConnection"]

SETTLE_S = 0.25  # after connecting, announces come for a while; until then "unknown topic" is not yet true
SETTLE_GAP_S = 0.05
SETTLE_MAX_S = 1.0


class RobotConnection:
    """Times are monotonic seconds. ``address`` is that of the last server."""

    def __init__(self) -> None:
        self.settled = False
        self.address = ""
        self._connected_at: float | None = None
        self._announced_at = 0.0

    @property
    def state(self) -> str:
        """What phones are told: ``connected`` only once settled."""
        return "connected" if self.settled else "disconnected"

    def on_event(self, event: Connected | Disconnected, now: float) -> None:
        """The connection came or went; it is not settled in either case."""
        self.settled = False
        self._connected_at = None
        if isinstance(event, Connected):
            self.address = host_of(event.address)
            self._connected_at = self._announced_at = now

    def on_announce(self, now: float) -> None:
        """The server named one more topic."""
        self._announced_at = now

    def next_due(self) -> float | None:
        """When ``tick`` settles if no announce comes first."""
        if self.settled or self._connected_at is None:
            return None
        quiet_at = max(self._connected_at + SETTLE_S, self._announced_at + SETTLE_GAP_S)
        return min(quiet_at, self._connected_at + SETTLE_MAX_S)

    def tick(self, now: float) -> bool:
        """True at the moment of settling."""
        due = self.next_due()
        if due is None or now < due:
            return False
        self.settled = True
        return True
