"""The dead-man for robot code: a number that changes as long as some phone can show the robot's state."""

from typing import Final

from aoabridge.values import Publication, Withdrawal

__all__ = ["HEARTBEAT_TOPIC", "Heartbeat"]

HEARTBEAT_TOPIC: Final = "/RoboRoute/Heartbeat"
HEARTBEAT_S = 0.5


class Heartbeat:
    """Beats every half second while alive. ``wall_offset_s`` + monotonic time is the wall clock, which never steps."""

    def __init__(self, wall_offset_s: float) -> None:
        self._wall_offset_s = wall_offset_s
        self._next_at: float | None = None

    def tick(self, now: float, *, alive: bool) -> list[Publication | Withdrawal]:
        """What to publish now; the topic goes at once when nobody is alive."""
        if not alive:
            beating, self._next_at = self._next_at is not None, None
            return [Withdrawal(HEARTBEAT_TOPIC)] if beating else []
        due = self._next_at
        if due is not None and now < due:
            return []
        on_time = due is not None and now < due + HEARTBEAT_S
        self._next_at = due + HEARTBEAT_S if on_time and due is not None else now + HEARTBEAT_S
        return [Publication(HEARTBEAT_TOPIC, "double", self._wall_offset_s + now)]

    def next_due(self) -> float | None:
        """When the next beat is due."""
        return self._next_at
