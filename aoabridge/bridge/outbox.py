"""What waits to be sent to one phone: control lines first, then values, round robin by the oldest.

A value waits as a mark on its topic, not as a copy: whatever is newest when the phone has room is what it gets. Only
topics subscribed with ``"all"`` keep their samples, in a bounded lane each.
"""

import heapq
from collections import Counter, deque
from enum import IntEnum

import msgspec

from aoabridge.bridge.topics import MemoryBudget, Topic, value_bytes
from aoabridge.errors import LinkError
from aoabridge.phone.lines import LineKind, OutLine
from aoabridge.phone.session import Options
from aoabridge.values import NtValue

__all__ = ["ControlKind", "Outbox", "Sample", "Slot"]

MAX_CONTROL = 64  # error lines are rate-limited to 20/s: more than this and the phone has not read for seconds

MAX_FAULTS = 64  # between two ticks; each topic is told once anyway


class ControlKind(IntEnum):
    """What a control line is, for what a full queue gives up."""

    ANSWER = 0
    ERROR = 1
    TOPICS = 2


class Sample(msgspec.Struct, frozen=True, gc=False):
    """One value of an every-sample topic; ``line`` once it has been built."""

    value: NtValue
    time_us: int
    held: int
    line: bytes = b""


class Place(IntEnum):
    """Where a slot waits."""

    NOWHERE = 0
    READY = 1
    DEFERRED = 2  # until its period is over


class Slot:
    """One topic that one phone gets. ``next_at``: no value before that time (monotonic seconds)."""

    __slots__ = ("dead", "dropped", "lane", "next_at", "options", "outbox", "place", "topic")

    def __init__(self, topic: Topic, options: Options, outbox: "Outbox") -> None:
        self.topic = topic
        self.outbox = outbox
        self.options = options
        self.lane: deque[Sample] | None = deque() if options.every_sample else None
        self.place = Place.NOWHERE
        self.dead = False
        self.next_at = 0.0
        self.dropped = 0


class Outbox:
    """Lines and marks that wait for one phone; counts into ``counters``. Times are monotonic seconds."""

    def __init__(self, budget: MemoryBudget, lane_limit: int, counters: Counter[str]) -> None:
        self._budget = budget
        self._lane_limit = lane_limit
        self._control: deque[tuple[ControlKind, bytes]] = deque()
        self._ready: deque[Slot] = deque()
        self._deferred: list[tuple[float, int, Slot]] = []
        self._serial = 0
        self._faults: list[LinkError] = []
        self._counters = counters

    def put_control(self, line: bytes, kind: ControlKind = ControlKind.ANSWER) -> None:
        """Queue a control line; a topic list replaces an older one, a full queue gives up errors first."""
        if kind is ControlKind.TOPICS or len(self._control) >= MAX_CONTROL:
            self._drop_control(ControlKind.TOPICS, count=kind is not ControlKind.TOPICS)
        if len(self._control) >= MAX_CONTROL and not self._drop_control(ControlKind.ERROR):
            self._counters["dropped_control"] += 1
            return
        self._control.append((kind, line))

    def _drop_control(self, kind: ControlKind, *, count: bool = True) -> bool:
        for index, (queued, _) in enumerate(self._control):
            if queued is kind:
                del self._control[index]
                self._counters["dropped_control"] += count
                return True
        return False

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
        self._budget.used += held
        while lane and (len(lane) > self._lane_limit or not self._budget.fits(0)):
            self._drop_oldest(slot, lane)

    def _drop_oldest(self, slot: Slot, lane: deque[Sample]) -> None:
        self._budget.used -= lane.popleft().held
        slot.dropped += 1
        self._counters["dropped"] += 1

    def shed(self, extra: int) -> None:
        """Drop the oldest samples of every lane until ``extra`` more bytes fit, or nothing is left to drop."""
        lanes = [(slot, slot.lane) for slot in self._waiting_slots() if slot.lane]
        while lanes and not self._budget.fits(extra):
            for slot, lane in lanes:
                self._drop_oldest(slot, lane)
            lanes = [(slot, lane) for slot, lane in lanes if lane]

    def _waiting_slots(self) -> list[Slot]:
        deferred = (slot for _, _, slot in self._deferred if slot.place is Place.DEFERRED)
        return [*self._ready, *dict.fromkeys(deferred)]

    def refresh(self, slot: Slot) -> None:
        """Send the current value at once, whatever the slot's period says, even if it was sent before."""
        if slot.topic.value is None or slot.topic.render is None:
            return
        if slot.lane is not None and not slot.lane:
            self._offer_sample(slot, slot.lane)
        if slot.place is not Place.READY:
            slot.next_at = 0.0
            self._make_ready(slot)

    def _make_ready(self, slot: Slot) -> None:
        slot.place = Place.READY
        self._ready.append(slot)

    def _defer(self, slot: Slot) -> None:
        slot.place = Place.DEFERRED
        self._serial += 1
        heapq.heappush(self._deferred, (slot.next_at, self._serial, slot))

    def remove(self, slot: Slot) -> None:
        """The phone no longer gets this topic."""
        slot.dead = True
        if slot.lane is not None:
            self._budget.used -= sum(sample.held for sample in slot.lane)
            slot.lane.clear()

    def drop_values(self) -> None:
        """Forget every waiting value; the slots stay."""
        for slot in self._waiting_slots():
            slot.place = Place.NOWHERE
            if slot.lane is not None:
                self._budget.used -= sum(sample.held for sample in slot.lane)
                slot.lane.clear()
        self._ready.clear()
        self._deferred.clear()

    def drop_control(self) -> None:
        """Forget every waiting control line."""
        self._control.clear()

    @property
    def waiting(self) -> int:
        """Topics of which a value waits."""
        return len(self._ready) + len(self._deferred)

    def next_due(self) -> float | None:
        """When the next value that waits for its period may go."""
        return self._deferred[0][0] if self._deferred else None

    def pull(self, room: int, now: float, *, empty: bool, values: bool) -> OutLine | None:
        """The next line that fits ``room`` (any length if ``empty``); ``values`` False gives control lines only."""
        if self._control:
            kind, line = self._control[0]
            if not empty and len(line) > room:
                return None
            self._control.popleft()
            return OutLine(line, LineKind.CONTROL, kind)
        return self._pull_value(room, now, empty) if values else None

    def _pull_value(self, room: int, now: float, empty: bool) -> OutLine | None:
        while self._deferred and self._deferred[0][0] <= now:
            due, _, slot = heapq.heappop(self._deferred)
            if slot.place is Place.DEFERRED and slot.next_at == due:  # else it was refreshed meanwhile
                self._make_ready(slot)
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
                self._budget.used -= slot.lane.popleft().held
                raise
            slot.lane[0] = Sample(sample.value, sample.time_us, sample.held, line)
            return line
        return b""

    def _sent(self, slot: Slot, line: bytes, now: float) -> OutLine:
        slot.next_at = now + slot.options.period_s if slot.options.period_s else 0.0
        if slot.lane is None:
            return OutLine(line, LineKind.VALUE, slot)
        sample = slot.lane.popleft()
        self._budget.used -= sample.held
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
                self._control.appendleft((owner, line.data))
            elif isinstance(owner, Slot):
                self._mark_first(owner)
            elif isinstance(owner, tuple):
                slot, sample = owner
                if not slot.dead:
                    slot.lane.appendleft(sample)
                    self._budget.used += sample.held
                    self._mark_first(slot)

    def _mark_first(self, slot: Slot) -> None:
        slot.next_at = 0.0
        if not slot.dead and slot.place is not Place.READY:
            slot.place = Place.READY
            self._ready.appendleft(slot)

    def add_fault(self, fault: LinkError) -> None:
        """A value of a subscribed topic cannot be sent."""
        if len(self._faults) < MAX_FAULTS:
            self._faults.append(fault)

    def take_faults(self) -> list[LinkError]:
        """Values that could not be sent, since the last call."""
        faults, self._faults = self._faults, []
        return faults

    def take_dropped(self) -> list[tuple[str, int]]:
        """Keys of every-sample topics that lost samples, and how many, since the last call."""
        losers = [slot for slot in self._waiting_slots() if slot.dropped]
        lost = [(slot.topic.key, slot.dropped) for slot in losers]
        for slot in losers:
            slot.dropped = 0
        return lost
