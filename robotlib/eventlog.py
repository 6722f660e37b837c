"""What happened, for logs: events of runs and of staging, bounded."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

__all__ = ["MAX_EVENTS", "Event", "EventLog"]

MAX_EVENTS = 1024  # more means that nobody takes them


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at `t` seconds, in run number `run` (0 outside of runs) of plan `plan_id`.

    kind: start, end, interrupted, failed, state (of a run); plan (text is the raw text), stage, press, refused.
    """

    t: float
    run: int
    path: str
    kind: str
    text: str
    plan_id: str = ""


class EventLog:
    """Collects events; the oldest are dropped and counted."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque(maxlen=MAX_EVENTS)
        self.now_s = 0.0
        self.dropped = 0

    def add(self, kind: str, text: str, plan_id: str = "", run: int = 0, path: str = "$") -> None:
        """Add an event of this moment."""
        self.append(Event(self.now_s, run, path, kind, text, plan_id))

    def append(self, event: Event) -> None:
        """Add an event."""
        if len(self._events) == MAX_EVENTS:
            self.dropped += 1
        self._events.append(event)

    def take(self) -> list[Event]:
        """Remove and return all events."""
        events = list(self._events)
        self._events.clear()
        return events
