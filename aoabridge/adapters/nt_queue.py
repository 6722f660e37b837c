"""The batch between the poller thread and the loop: complete while the loop keeps up, merged when it does not."""

import threading
from collections import deque
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from aoabridge.values import Announced, ClockSync, Connected, Disconnected, NtEvent, Unannounced, Update

__all__ = ["LANE_SAMPLES", "Control", "EventQueue"]

LANE_SAMPLES = 1_000  # samples kept of one every-sample topic while the loop is busy; more would only be older

Control: TypeAlias = Announced | Unannounced | Connected | Disconnected | ClockSync
_Slot: TypeAlias = NtEvent | deque[Update]


class EventQueue:
    """Events in order, from one producer thread to one consumer thread.

    ``put`` returns True if the consumer must be woken. A batch that finds the previous one still waiting is merged into
    it: the newest value per topic stays (at the place of the first), every-sample topics keep their last
    ``LANE_SAMPLES``, all other events stay in order, and no value ever moves across an event of its own topic or of the
    connection.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots: list[_Slot] = []
        self._control: list[Control] = []
        self._index: dict[str, int] | None = None
        self._every_sample: frozenset[str] = frozenset()
        self.coalesced = 0
        self.lane_dropped = 0

    def set_every_sample(self, topics: Iterable[str]) -> None:
        """Name the topics whose values are not merged."""
        self._every_sample = frozenset(topics)

    def put(self, events: Sequence[NtEvent], control: Sequence[Control]) -> bool:
        """Add a batch; ``control`` is what in it is not a value. True if nothing was waiting before."""
        with self._lock:
            self._control.extend(control)
            if not self._slots:
                self._slots = list(events)
                self._index = None
                return bool(events)
            if self._index is None:
                first, self._slots, self._index = self._slots, [], {}
                self._merge(first, self._index)
            self._merge(events, self._index)
            return False

    def take(self) -> tuple[list[NtEvent], list[Control]]:
        """Remove and return everything that waits, and the control events of it once more on their own."""
        with self._lock:
            slots, self._slots = self._slots, []
            control, self._control = self._control, []
            merged, self._index = self._index is not None, None
        if not merged:
            return slots, control  # type: ignore[return-value]  # lanes exist in merged batches only
        events: list[NtEvent] = []
        for slot in slots:
            if isinstance(slot, deque):
                events.extend(slot)
            else:
                events.append(slot)
        return events, control

    def _merge(self, events: Iterable[_Slot], index: dict[str, int]) -> None:
        slots = self._slots
        for event in events:
            if isinstance(event, Update):
                self._merge_update(event, index)
                continue
            if isinstance(event, Announced | Unannounced):
                index.pop(event.topic, None)
            elif isinstance(event, Connected | Disconnected):
                index.clear()
            slots.append(event)

    def _merge_update(self, event: Update, index: dict[str, int]) -> None:
        slots = self._slots
        place = index.get(event.topic)
        if event.topic in self._every_sample:
            lane = slots[place] if place is not None else None
            if not isinstance(lane, deque):
                lane = deque(maxlen=LANE_SAMPLES)
                index[event.topic] = len(slots)
                slots.append(lane)
            self.lane_dropped += len(lane) == LANE_SAMPLES
            lane.append(event)
        elif place is None or isinstance(slots[place], deque):
            index[event.topic] = len(slots)
            slots.append(event)
        else:
            slots[place] = event
            self.coalesced += 1
