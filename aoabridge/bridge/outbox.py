"""What waits to be sent to one phone: control lines first, then values, round robin by the oldest.

A value waits as a mark on its topic, not as a copy: whatever is newest when the phone has room is what it gets. Only
topics subscribed with ``"all"`` keep their samples, in a bounded lane each.
"""

import heapq
from collections import Counter, deque

from aoabridge.bridge.control_queue import ControlKind, ControlQueue
from aoabridge.bridge.slots import Place, Sample, Slot
from aoabridge.bridge.topics import MemoryBudget, value_bytes
from aoabridge.errors import LinkError
from aoabridge.phone.lines import LineKind, OutLine

__all__ = ["ControlKind", "Outbox", "Slot"]

MAX_FAULTS = 64  # between two ticks; each topic is told once anyway
MIN_GARBAGE = 64  # entries of removed slots that are kept before it is worth to sweep them


class Outbox:
    """Lines and marks that wait for one phone; counts into ``counters``. Times are monotonic seconds."""

    def __init__(self, budget: MemoryBudget, lane_limit: int, counters: Counter[str]) -> None:
        self._budget = budget
        self._lane_limit = lane_limit
        self._control = ControlQueue(counters)
        self._ready: deque[Slot] = deque()
        self._deferred: list[tuple[float, int, Slot]] = []
        self._garbage = 0  # entries of both that no longer mean anything
        self._lanes: dict[Slot, deque[Sample]] = {}  # that are not empty
        self._lost: Counter[str] = Counter()  # samples per key
        self._serial = 0
        self._faults: dict[tuple[str | None, str], LinkError] = {}
        self._counters = counters

    # Control lines.

    def put_control(self, line: bytes, kind: ControlKind = ControlKind.ANSWER) -> None:
        """Queue a control line."""
        self._control.put(line, kind)

    def drop_control(self) -> None:
        """Forget every waiting control line."""
        self._control.clear()

    # Values.

    def offer(self, slot: Slot, now: float) -> None:
        """The slot's topic has a new value."""
        if slot.lane is not None:
            self._offer_sample(slot, slot.lane)
        if slot.place:
            if slot.lane is None:
                self._counters["coalesced"] += 1
        elif slot.next_at > now:
            self._defer(slot)
        else:
            self._make_ready(slot)

    def _offer_sample(self, slot: Slot, lane: deque[Sample]) -> None:
        topic = slot.topic
        if topic.value is None or topic.render is None:
            return
        held = value_bytes(topic.value)
        lane.append(Sample(topic.value, topic.time_us, held))
        self._lanes[slot] = lane
        self._budget.used += held
        while lane and (len(lane) > self._lane_limit or not self._budget.fits(0)):
            self._drop_oldest(slot, lane)

    def _drop_oldest(self, slot: Slot, lane: deque[Sample]) -> None:
        self._take_sample(slot, lane)
        self._lost[slot.topic.key] += 1
        self._counters["dropped"] += 1

    def _take_sample(self, slot: Slot, lane: deque[Sample]) -> Sample:
        sample = lane.popleft()
        self._budget.used -= sample.held
        if not lane:
            self._lanes.pop(slot, None)
        return sample

    def shed(self, extra: int) -> None:
        """Drop the oldest samples of every lane until ``extra`` more bytes fit, or nothing is left to drop."""
        while self._lanes and not self._budget.fits(extra):
            for slot, lane in list(self._lanes.items()):
                self._drop_oldest(slot, lane)

    def refresh(self, slot: Slot) -> None:
        """Send the current value at once, whatever the slot's period says, even if it was sent before."""
        if slot.topic.value is None or slot.topic.render is None:
            return
        if slot.lane is not None and not slot.lane:
            self._offer_sample(slot, slot.lane)
        if slot.place is not Place.READY:
            self._leave_deferred(slot)
            slot.next_at = 0.0
            self._make_ready(slot)

    def _make_ready(self, slot: Slot) -> None:
        slot.place = Place.READY
        self._ready.append(slot)

    def _defer(self, slot: Slot) -> None:
        slot.place = Place.DEFERRED
        self._serial += 1
        slot.entry = self._serial
        heapq.heappush(self._deferred, (slot.next_at, slot.entry, slot))

    def _leave_deferred(self, slot: Slot) -> None:
        if slot.place is Place.DEFERRED:
            self._discard_entry()

    def remove(self, slot: Slot) -> None:
        """The phone no longer gets this topic."""
        slot.dead = True
        if slot.lane is not None:
            self._clear_lane(slot, slot.lane)
        if slot.place:
            self._discard_entry()

    def _clear_lane(self, slot: Slot, lane: deque[Sample]) -> None:
        self._budget.used -= sum(sample.held for sample in lane)
        lane.clear()
        self._lanes.pop(slot, None)

    def _discard_entry(self) -> None:
        self._garbage += 1
        if self._garbage > MIN_GARBAGE and self._garbage * 2 > len(self._ready) + len(self._deferred):
            self._ready = deque(slot for slot in self._ready if not slot.dead)
            self._deferred = [entry for entry in self._deferred if _is_due(entry)]
            heapq.heapify(self._deferred)
            self._garbage = 0

    def drop_values(self) -> None:
        """Forget every waiting value."""
        for slot in [*self._ready, *(slot for _, _, slot in self._deferred)]:
            slot.place = Place.NOWHERE
            if slot.lane is not None:
                self._clear_lane(slot, slot.lane)
        self._ready.clear()
        self._deferred.clear()
        self._garbage = 0

    @property
    def waiting(self) -> int:
        """Topics of which a value waits."""
        return len(self._ready) + len(self._deferred) - self._garbage

    def next_due(self) -> float | None:
        """When the next value that waits for its period may go."""
        return self._deferred[0][0] if self._deferred else None

    # To the phone.

    def pull(self, room: int, now: float, *, empty: bool, values: bool) -> OutLine | None:
        """The next line that fits ``room`` (any length if ``empty``); ``values`` False gives control lines only."""
        if self._control:
            return self._control.pull(room, empty=empty)
        return self._pull_value(room, now, empty) if values else None

    def _pull_value(self, room: int, now: float, empty: bool) -> OutLine | None:
        while self._deferred and self._deferred[0][0] <= now:
            entry = heapq.heappop(self._deferred)
            if _is_due(entry):
                self._make_ready(entry[2])
            else:
                self._garbage -= 1
        while self._ready:
            slot = self._ready[0]
            line = b""
            try:
                line = self._build(slot)
            except LinkError as fault:
                self.add_fault(fault)
            if line and not empty and len(line) > room:
                return None
            self._ready.popleft()
            if slot.dead:
                self._garbage -= 1
                continue
            slot.place = Place.NOWHERE
            if line:
                return self._sent(slot, line, now)
            if slot.lane:
                self._make_ready(slot)
        return None

    def _build(self, slot: Slot) -> bytes:
        """The line of the slot's front sample or newest value; b"" if there is none."""
        if slot.dead or slot.topic.render is None:
            return b""
        if slot.lane is None:
            return b"" if slot.topic.value is None else slot.topic.line()
        if slot.lane:
            sample = slot.lane[0]
            if sample.line:
                return sample.line
            try:
                line = slot.topic.line_of(sample.value, sample.time_us)
            except LinkError:
                self._take_sample(slot, slot.lane)
                raise
            slot.lane[0] = Sample(sample.value, sample.time_us, sample.held, line)
            return line
        return b""

    def _sent(self, slot: Slot, line: bytes, now: float) -> OutLine:
        slot.next_at = now + slot.options.period_s if slot.options.period_s else 0.0
        if slot.lane is None:
            return OutLine(line, LineKind.VALUE, slot)
        sample = self._take_sample(slot, slot.lane)
        if slot.lane and slot.next_at:
            self._defer(slot)
        elif slot.lane:
            self._make_ready(slot)
        return OutLine(line, LineKind.SAMPLE, (slot, sample))

    def give_back(self, lines: list[OutLine]) -> None:
        """Lines of which no byte was sent: control lines and samples return to the front, values are marked again."""
        for line in reversed(lines):
            owner = line.owner
            if isinstance(owner, ControlKind):
                self._control.give_back(line.data, owner)
            elif isinstance(owner, Slot):
                self._mark_first(owner)
            elif isinstance(owner, tuple):
                slot, sample = owner
                if not slot.dead:
                    slot.lane.appendleft(sample)
                    self._lanes[slot] = slot.lane
                    self._budget.used += sample.held
                    self._mark_first(slot)

    def _mark_first(self, slot: Slot) -> None:
        if not slot.dead and slot.place is not Place.READY:
            self._leave_deferred(slot)
            slot.next_at = 0.0
            slot.place = Place.READY
            self._ready.appendleft(slot)

    # What the phone is told.

    def add_fault(self, fault: LinkError) -> None:
        """A value of a subscribed topic cannot be sent."""
        self._counters["unsent_values"] += 1
        if len(self._faults) < MAX_FAULTS:
            self._faults[fault.topic, fault.code] = fault

    def take_faults(self) -> list[LinkError]:
        """Topics of which values could not be sent since the last call, each with its last fault."""
        if not self._faults:
            return []
        faults, self._faults = list(self._faults.values()), {}
        return faults

    def take_dropped(self) -> list[tuple[str, int]]:
        """Keys of every-sample topics that lost samples, and how many, since the last call."""
        if not self._lost:
            return []
        lost, self._lost = list(self._lost.items()), Counter()
        return lost


def _is_due(entry: tuple[float, int, Slot]) -> bool:
    _, number, slot = entry
    return slot.place is Place.DEFERRED and slot.entry == number and not slot.dead
