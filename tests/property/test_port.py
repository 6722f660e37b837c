"""The port table against a phone that does anything: never two STARTs at once, caps hold, and it ends in a link."""

import random
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from aoabridge.errors import UsbError
from aoabridge.phone.actions import Action, Close, Open, PortState, Probe, Reopen, Reset
from aoabridge.phone.aoa import UsbDevice, UsbInterface
from aoabridge.phone.ports import DeviceRules, PortTable

KINDS = [
    "TIMEOUT",
    "BUSY",
    "IO",
    "PIPE",
    "OVERFLOW",
    "NO_DEVICE",
    "ACCESS",
    "NOT_FOUND",
    "NO_MEM",
    "INTERRUPTED",
    "OTHER",
]
BOUND_S = 700.0  # the longest wait of any ladder is 300 s, and a cap of 300 s may follow it


@dataclass
class World:
    """A phone on a bus, and the host's side of every action, on one clock."""

    random: random.Random
    native_again: int = 0
    companion: bool = False
    healthy: bool = False
    now: float = 1000.0
    table: PortTable = field(default_factory=lambda: PortTable(DeviceRules()))
    device: UsbDevice | None = None
    devnum: int = 1
    agenda: list[tuple[float, int, object]] = field(default_factory=list)
    pending: dict[int, str] = field(default_factory=dict)
    starts: list[tuple[float, bool]] = field(default_factory=list)  # (time, counts against the five)
    linked: bool = False
    valid_line: bool = False
    empty_since: float = float("-inf")
    replugged: bool = True
    order: int = 0

    def at(self, delay: float, what: object) -> None:
        self.order += 1
        self.agenda.append((self.now + delay, self.order, what))

    def put(self, mode: str | None, port: str = "1-1") -> None:
        self.devnum += 1
        vendor, product = (0x18D1, 0x2D00) if mode == "accessory" else (0x04E8, 0x6860)
        interfaces = (UsbInterface(0, 0xFF, 0xFF, 0),) if mode == "accessory" else (UsbInterface(0, 6, 1, 1),)
        peer = "2-1" if port == "1-1" else "1-1"
        if self.device is not None:
            self.empty_since = self.now
        elif mode is not None and self.now - self.empty_since >= 2.9:
            self.replugged = True
        self.device = mode and UsbDevice(  # type: ignore[assignment]
            port, vendor, product, int(port[0]), self.devnum, serial="SER1", interfaces=interfaces, peer=peer
        )

    def scan(self) -> None:
        self.perform(self.table.on_scan([self.device] if self.device else [], self.now))

    def perform(self, actions: list[tuple[int, Action]]) -> None:
        for port_id, action in actions:
            if not isinstance(action, Probe | Open | Reopen | Close | Reset):
                continue
            assert port_id not in self.pending, "two actions under way on one port"
            self.pending[port_id] = type(action).__name__.lower()
            if isinstance(action, Close | Reset):
                self.linked = False
            self.at(self.random.uniform(0.01, 1.0), (port_id, action))

    def answer(self, port_id: int, action: Action) -> None:
        step = self.pending.pop(port_id)
        result: int | UsbError | None = None
        if isinstance(action, Probe):
            result = self.probed(action)
        elif isinstance(action, Open | Reopen):
            result = self.opened(action)
        elif isinstance(action, Reset) and self.device is not None:
            self.put(None)
            self.at(0.5, "native")
        self.perform(self.table.on_result(port_id, step, result, self.now))

    def fault(self, steps: list[str]) -> UsbError:
        return UsbError("?", errno=None, kind=self.random.choice(KINDS), step=self.random.choice(steps), port="1-1")

    def probed(self, action: Probe) -> int | UsbError:
        if self.device is None or self.device.address != action.device.address:
            return UsbError("gone", errno=19, kind="NO_DEVICE", step="get_protocol", port="1-1")
        if not self.healthy and self.random.random() < 0.4:
            return self.fault(["open", "get_protocol", "send_string:3"])
        assert not self.device.is_accessory, "a handshake in accessory mode"
        self.starts.append((self.now, not self.valid_line and not self.replugged))
        self.valid_line = self.replugged = False
        if self.healthy or self.random.random() < 0.6:
            self.at(0.015, "gone")
            for number in range(self.native_again):
                self.at(0.2 + number * 0.4, "native again")
                self.at(0.4 + number * 0.4, "gone")
            self.at(1.5, "accessory")
        return 2

    def opened(self, action: Open | Reopen) -> int | UsbError:
        if self.device is None or self.device.address != action.device.address:
            return UsbError("gone", errno=19, kind="NO_DEVICE", step="claim", port="1-1")
        if not self.healthy and self.random.random() < 0.3:
            return self.fault(["open", "claim"])
        self.linked = True
        return 1

    def happen(self, what: object) -> None:
        if isinstance(what, tuple):
            self.answer(*what)
        elif what == "gone":
            self.put(None)
        elif what == "accessory":
            self.put("accessory", "2-1" if self.companion else "1-1")
        elif self.device is None:
            self.put("native")

    def run(self, seconds: float, chaos: float = 0.0) -> None:
        end = self.now + seconds
        next_scan = self.now
        while self.now < end:
            due = [t for t, _, _ in self.agenda] + [next_scan, end]
            deadline = self.table.next_deadline()
            if deadline is not None:
                assert deadline > self.now - 400
                due.append(deadline)
            before, self.now = self.now, max(self.now, min(due))
            happening = sorted(item for item in self.agenda if item[0] <= self.now)
            self.agenda = [item for item in self.agenda if item[0] > self.now]
            for _, _, what in happening:
                self.happen(what)
            if happening or self.now >= next_scan:
                self.scan()
                next_scan = self.now + self.table.scan_interval_s
                if chaos and self.random.random() < chaos:
                    self.disturb()
            self.perform(self.table.on_tick(self.now))
            self.check()
            if self.now == before and not happening:
                deadline = self.table.next_deadline()
                assert deadline is None or deadline > self.now, f"stuck at {self.now}: {self.table.views()}"

    def disturb(self) -> None:
        kind = self.random.randrange(6)
        linked = [v.port_id for v in self.table.views() if v.state.has_link]
        if kind == 0:
            self.put(None)
            gap = self.random.choice([0.5, 1.5, 3.5, 8.0])
            self.agenda = [item for item in self.agenda if isinstance(item[2], tuple)]
            self.at(gap, "native")
        elif kind == 1 and linked:
            self.perform(self.table.on_result(linked[0], "link", self.fault(["read", "write"]), self.now))
        elif kind == 2 and linked:
            machine = self.table.machine(linked[0])
            machine.on_accepted(self.now)
            machine.on_link_status(self.now, live=True)
            self.valid_line = True
        elif kind == 3 and linked and self.device is not None:
            self.put(None)
            self.at(0.5, "native")
        elif kind == 4 and linked:
            self.table.machine(linked[0]).on_received()

    def check(self) -> None:
        recent = [counted for t, counted in self.starts if t > self.now - 300.0]
        assert sum(recent) <= 5


@given(
    seed=st.integers(0, 2**32),
    chaos=st.sampled_from([0.0, 0.02, 0.2]),
    again=st.integers(0, 2),
    companion=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_whatever_happens_a_healthy_phone_ends_linked(seed: int, chaos: float, again: int, companion: bool) -> None:
    world = World(random.Random(seed), native_again=again, companion=companion)
    world.put("native")
    world.run(world.random.uniform(1, 900), chaos)
    world.healthy = True
    if world.device is None:
        world.at(4.0, "native")
    world.run(BOUND_S)
    present = [v.state for v in world.table.views() if v.state is not PortState.ABSENT]
    # A phone that left by itself too often, or that refused for good, waits for a hand: that is the rule.
    if present in ([PortState.COOLDOWN], [PortState.NOT_AOA]):
        world.put(None)
        world.agenda.clear()
        world.run(4.0)
        world.put("native")
        world.run(BOUND_S)
        present = [v.state for v in world.table.views() if v.state is not PortState.ABSENT]
    assert present in ([PortState.LINKED], [PortState.LIVE])


@given(again=st.integers(0, 2), companion=st.booleans(), seed=st.integers(0, 999))
def test_a_healthy_phone_is_linked_by_one_start(again: int, companion: bool, seed: int) -> None:
    world = World(random.Random(seed), native_again=again, companion=companion, healthy=True)
    world.put("native")
    world.run(8.0)
    assert [v.state for v in world.table.views()] == [PortState.LINKED]
    assert len(world.starts) == 1


@given(st.lists(st.sampled_from(["native", "accessory", None]), max_size=60), st.integers(0, 2**16))
def test_any_sequence_of_scans_is_survived(modes: list[str | None], seed: int) -> None:
    world = World(random.Random(seed))
    for mode in modes:
        world.put(mode)
        world.scan()
        world.run(world.random.choice([0.01, 0.3, 2.0, 12.0]))
