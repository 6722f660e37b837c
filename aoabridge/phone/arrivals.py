"""What changes on a port when its phone comes, goes or switches, and what is left of a link that is over."""

from typing import Final

from aoabridge.phone.actions import Action, Close, PortState
from aoabridge.phone.aoa import UsbDevice
from aoabridge.phone.filter import Decision
from aoabridge.phone.record import REPLUG_GAP_S, SEEN_LATE_S, PortRecord
from aoabridge.phone.watch import Gone, Returned

__all__ = ["SWITCH_BUDGET_S", "WAITING", "PortArrivals", "is_complete"]

SWITCH_BUDGET_S: Final = 10.0  # Android drops its own request after that
NATIVE_STAYS_S: Final = 3.0  # a replugged phone that is going to switch has done so by then
SETTLE_S: Final = 0.3  # what a device lacks now may only not be there yet: its configuration, its interfaces
OWN_RESET_S: Final = 10.0  # a disappearance within this time of our reset is not the phone's doing

WAITING: Final = frozenset({PortState.COOLDOWN, PortState.NOT_AOA})


class PortArrivals(PortRecord):
    """The part of a port's machine that follows the device on it. Times are monotonic seconds."""

    def _edges(self, edges: list[Gone | Returned], now: float) -> list[Action]:
        actions: list[Action] = []
        for edge in edges:
            if isinstance(edge, Gone):
                actions += self._on_gone(edge.device, now)
            else:
                self._on_returned(edge, now)
        return actions

    def _on_gone(self, device: UsbDevice, now: float) -> list[Action]:
        if self.state is PortState.SWITCHING:
            self._due = self._started_at + SWITCH_BUDGET_S
            self._replugged = False
        if self.state is PortState.SWITCHING or self._pending == "probe":
            return []  # our own START may be the cause
        own = now - self._own_reset_at < OWN_RESET_S
        if self.state is not PortState.IGNORED and not own:
            self.losses.on_loss(now)
            self._left_at = self._presence.empty_since if device.is_accessory else None
        if self.state in WAITING:
            self._resume = (self.state, self._due, self.reason)
        self._settling = False
        actions = self._close(now) if self.state.has_link else []
        self._enter(PortState.ABSENT, now)
        return actions

    def _on_returned(self, edge: Returned, now: float) -> None:
        self.link.on_arrival()
        self._arrived_at = now
        self._next_candidate = False
        self._attempts.reset()
        if self._pending == "probe":
            return
        after_gap = edge.gap_s >= REPLUG_GAP_S - SEEN_LATE_S
        if self.state is not PortState.SWITCHING:
            if after_gap or edge.other:
                self._on_replug()
            self._judge(edge.device, now)
        elif edge.device.is_accessory:
            self._on_switched(now)
        elif after_gap:
            self._replugged = True
            self._due = now + NATIVE_STAYS_S

    def _on_switched(self, now: float) -> None:
        self.no_switches.reset()
        self._left_at = None
        # A scan may fall between the arrival of a device and the kernel choosing its configuration.
        self._settling = self.device is not None and not is_complete(self.device)
        self._enter(PortState.OPENING, now, due=now + SETTLE_S if self._settling else now)

    def _on_replug(self) -> None:
        self._reset_ladders()
        self.starts.on_replug()
        self._reopens.reset()
        self._resume = self._left_at = None
        self._fresh = self.was_live = self.out_of_memory = False
        self.aoa_version = None

    def _reset_ladders(self) -> None:
        for ladder in (self.failed_probes, self.refusals, self.no_switches, self.flaps):
            ladder.reset()

    def _judge(self, device: UsbDevice, now: float) -> None:
        """Decides what a device is that has come, or that was only ignored so far."""
        self.verdict = self._decide(device)
        if self.verdict.decision is Decision.IGNORE:
            self._enter(PortState.IGNORED, now, reason=self.verdict.reason)
        elif self.verdict.decision is Decision.ADOPT:
            self._on_switched(now)
        elif self._left_at is not None:
            wait_s, left_at, self._left_at = self.flaps.climb(), self._left_at, None
            due = None if wait_s is None else left_at + wait_s
            self._enter(PortState.COOLDOWN, now, due=due, reason="left accessory mode by itself")
        elif self._resume is not None:
            state, due, reason = self._resume
            self._resume = None
            self._enter(state, now, due=due, reason=reason)
        else:
            self._enter(PortState.SEEN, now, due=now if device.interfaces else now + SETTLE_S)

    def _close(self, now: float) -> list[Action]:
        if self.state.has_link:
            self._note_link(now)
        if self._pending is not None:
            return []  # whatever is under way answers first; the answer finds no state that wants it
        self._pending = "close"
        return [Close()]

    def _note_link(self, now: float) -> None:
        """A link is over: a good one clears the slate."""
        if self.link.is_stable(now):
            self._reopens.reset()
            if self.link.valid_line:
                self.flaps.reset()
        self._fresh = False


def is_complete(device: UsbDevice) -> bool:
    """True if the kernel has configured the device and shows its interfaces."""
    return device.configuration != 0 and bool(device.interfaces)
