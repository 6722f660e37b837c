"""State machine of one USB port: what to do about the phone in it. Never sleeps; every deadline is data."""

from typing import Final

from aoabridge.errors import UsbError
from aoabridge.phone.actions import (
    Action,
    ClearHalts,
    Close,
    Open,
    PortSettings,
    PortState,
    Probe,
    Reopen,
    Reset,
    StepResult,
)
from aoabridge.phone.aoa import UsbDevice
from aoabridge.phone.arrivals import SWITCH_BUDGET_S, WAITING, PortArrivals, is_complete
from aoabridge.phone.attempts import Next, refuses
from aoabridge.phone.filter import Decision
from aoabridge.phone.watch import Cure

__all__ = [
    "Action",
    "ClearHalts",
    "Close",
    "Open",
    "PortMachine",
    "PortSettings",
    "PortState",
    "Probe",
    "Reopen",
    "Reset",
    "StepResult",
]

FRESH_S: Final = 5.0  # claimed later than this after its arrival, a switched phone may have queued old puts
RESET_SETTLES_S: Final = 2.0  # a phone that leaves after a reset has left by then


class PortMachine(PortArrivals):
    """One port. Inputs are ``on_scan``, ``on_result``, ``on_tick`` and the link's signs; they return actions.

    At most one action that needs an answer is under way. ``decide`` is the probe filter.
    """

    # Inputs.

    def on_scan(self, device: UsbDevice | None, now: float, at: float | None = None) -> list[Action]:
        """What the scan shows on this port, None = nothing; ``at`` = when the event came that asked for the scan."""
        actions = self._edges(self._presence.on_scan(device, now, at), now)
        if self._settling and device is not None and is_complete(device):
            self._settling, self._due = False, now
        return actions + self._advance(now)

    def on_tick(self, now: float) -> list[Action]:
        """Time has passed."""
        return self._advance(now)

    def on_result(self, step: str, result: StepResult, now: float, at: float | None = None) -> list[Action]:
        """The answer to an action, or step ``link``: the link ended by itself (UsbError or None), ``at`` this time."""
        if step == "link":
            return self._on_link_end(result, now, at) + self._advance(now)
        self._pending = None
        actions: list[Action] = []
        if step == "probe":
            self._on_probed(result, now)
        elif step in ("open", "reopen"):
            actions = self._on_opened(step, result, now)
        return actions + self._advance(now)

    def on_accepted(self, now: float) -> None:
        """The phone took bytes of the link."""
        self.link.on_accepted(now)

    def on_received(self) -> None:
        """The phone sent bytes on the link."""
        self.link.on_received()

    def on_link_status(self, now: float, *, live: bool, stale: bool = False, valid_line: bool | None = None) -> None:
        """What the bridge says of the link: ``live`` = valid line received and bytes accepted, ``stale`` = no pongs."""
        if not self.state.has_link:
            return
        if live if valid_line is None else valid_line:
            self.link.valid_line = True
            self.starts.on_valid_line()
        if live or self.state is not PortState.LINKED:
            self.was_live = True
            self._enter(PortState.STALE if stale else PortState.LIVE, now)

    def retry(self, now: float) -> list[Action]:
        """Somebody asks to try again at once: every ladder is cleared, of the caps only the wide one holds."""
        self._reset_ladders()
        self.starts.on_retry()
        self._resume = None
        if self.state in WAITING:
            self._enter(PortState.SEEN, now, due=now)
        elif self.state in (PortState.BLOCKED, PortState.REOPEN):
            self._due = now
        return self._advance(now)

    def reset(self, now: float) -> list[Action]:
        """Somebody asks for a reset of the device, the only way to make Android announce us again."""
        return self._reset_device(now) if self.state.has_link and self._pending is None else []

    # Results.

    def _on_probed(self, result: StepResult, now: float) -> None:
        if isinstance(result, int) and result > 0:
            self._on_start(result, now)
        elif self.device is None:
            self._enter(PortState.ABSENT, now)
        elif self.device.is_accessory:
            self._on_switched(now)
        elif isinstance(result, UsbError) and not refuses(result):
            self._on_probe_failed(result, now)
        else:
            self._on_refused(now)

    def _on_start(self, version: int, now: float) -> None:
        self.aoa_version = version
        self.starts.on_start(now)
        self.failed_probes.reset()
        self.refusals.reset()
        self._attempts.reset()
        self._fresh = True
        self._replugged = False
        self._started_at = now
        self._left_at = None
        self._enter(PortState.SWITCHING, now, due=now + SWITCH_BUDGET_S)
        if self.device is not None and self.device.is_accessory:
            self._on_switched(now)

    def _on_refused(self, now: float) -> None:
        self._attempts.reset()
        retry = self.verdict is not None and self.verdict.retry
        wait_s = self.refusals.climb() if retry else None
        reason = "refuses the accessory request" if retry else "not accessory-capable"
        self._enter(PortState.NOT_AOA, now, due=None if wait_s is None else now + wait_s, reason=reason)

    def _on_probe_failed(self, error: UsbError, now: float) -> None:
        if self._retries(PortState.PROBING, error, now):
            return
        wait_s = self.failed_probes.climb()
        self._enter(PortState.COOLDOWN, now, due=now + (wait_s or 0.0), reason=f"probe failed: {error.kind}")

    def _retries(self, state: PortState, error: UsbError, now: float) -> bool:
        """Goes on after a failed attempt unless there is nothing left to try."""
        self.fault = error
        outcome = self._attempts.after(error, now, handshake=state is PortState.PROBING)
        if outcome.next is Next.RETRY:
            reason = "held by another process" if error.kind == "BUSY" else f"{error.step} failed: {error.kind}"
            self._enter(state, now, due=now + outcome.wait_s, reason=reason)
        elif outcome.next is Next.BLOCKED:
            self._enter(PortState.BLOCKED, now, due=now + outcome.wait_s, reason=f"cannot open: {error.kind}")
        elif outcome.next is Next.GONE and self._target is not None:
            self._due = now
            self._edges(self._presence.on_lost(self._target.address, now), now)
        return outcome.next is not Next.GIVE_UP

    def _on_opened(self, step: str, result: StepResult, now: float) -> list[Action]:
        opened = isinstance(result, int) and result > 0
        device, target = self.device, self._target
        expected = self.state.has_link if step == "reopen" else self.state in (PortState.OPENING, PortState.BLOCKED)
        if not expected or device is None or target is None or device.address != target.address:
            return self._close(now) if opened else []
        if isinstance(result, int) and opened:
            self._on_linked(step, result, now)
            return []
        if self.state.has_link:
            self._note_link(now)
            self._enter(PortState.OPENING, now)
        if isinstance(result, UsbError):
            self._on_open_failed(result, now)
        else:
            self._reopen_later(now, "no accessory interface")
        return []

    def _on_linked(self, step: str, candidates: int, now: float) -> None:
        self._attempts.reset()
        self.fault = None
        if step == "reopen":
            return
        self.links += not self._next_candidate
        self.link.on_open(candidates, now, next_candidate=self._next_candidate)
        self._next_candidate = False
        self._enter(PortState.LINKED, now)

    def _on_open_failed(self, error: UsbError, now: float) -> None:
        if not self._retries(PortState.OPENING, error, now):
            self.out_of_memory = self.out_of_memory or error.kind == "NO_MEM"
            self._reopen_later(now, f"open failed: {error.kind}")

    def _on_link_end(self, result: StepResult, now: float, at: float | None) -> list[Action]:
        if not self.state.has_link:
            return []
        device = self._presence.device
        error = result if isinstance(result, UsbError) else None
        if error is not None and error.kind == "NO_DEVICE" and device is not None:
            return self._edges(self._presence.on_lost(device.address, now, at), now)
        self.fault = error
        self.out_of_memory = error is not None and error.kind == "NO_MEM"
        actions = self._close(now)
        self._reopen_later(now, f"link failed: {error.kind}" if error else "link ended")
        return actions

    # Ends of a link.

    def _reopen_later(self, now: float, reason: str) -> None:
        self._enter(PortState.REOPEN, now, due=now + (self._reopens.climb() or 0.0), reason=reason)

    def _reset_device(self, now: float) -> list[Action]:
        self._note_link(now)
        self.link.on_reset(now)
        self._own_reset_at = now
        self._pending = "reset"
        self._enter(PortState.REOPEN, now, due=now + RESET_SETTLES_S, reason="reset")
        return [Reset()]

    # Time.

    def _advance(self, now: float) -> list[Action]:
        """Does what is due; a transition may make the next one due at once."""
        if self.state is PortState.IGNORED and self.device is not None:
            self._judge(self.device, now)
        actions: list[Action] = []
        while self._pending is None:
            before = self.state, self._due
            actions += self._do_due(now)
            if (self.state, self._due) == before:
                break
        return actions

    def _do_due(self, now: float) -> list[Action]:
        if self.state.has_link:
            return self._cure(now)
        if self._due is None or now < self._due or (self.device is None and self.state is not PortState.SWITCHING):
            return []
        if self.state is PortState.SWITCHING:
            return self._on_budget_end(now)
        if self.device is not None and self.device.is_accessory:
            return self._open(self.device, now)
        return self._probe(now)

    def _cure(self, now: float) -> list[Action]:
        cure = self.link.take_cure(now, may_reset=self.settings.reset_stuck)
        device = self.device
        if cure is None or device is None:
            return []
        if cure is Cure.CLEAR_HALTS:
            return [ClearHalts()]
        if cure is Cure.RESET:
            return self._reset_device(now)
        if cure is Cure.NEXT_CANDIDATE:
            actions = self._close(now)
            self._next_candidate = True
            self._enter(PortState.OPENING, now, due=now)
            return actions
        self._pending = "reopen"
        self._target = device
        return [Reopen(device, self.link.turn)]

    def _on_budget_end(self, now: float) -> list[Action]:
        """No accessory in time: the phone was replugged and stayed as it is, did not switch, or is gone."""
        if self._replugged:
            self._on_replug()
            self._enter(PortState.SEEN, now, due=now)
            return []
        due = self._started_at + (self.no_switches.climb() or 0.0)
        if self.device is None:
            self._resume = (PortState.COOLDOWN, due, "did not switch")
            self._enter(PortState.ABSENT, now)
        else:
            self._enter(PortState.COOLDOWN, now, due=due, reason="did not switch")
        return []

    def _open(self, device: UsbDevice, now: float) -> list[Action]:
        if self.state is not PortState.BLOCKED:
            self._enter(PortState.OPENING, now, due=self._due, reason=self.reason)
        self._pending = "open"
        self._settling = False
        self._target = device
        adopted = not self._fresh or self._next_candidate or now - self._arrived_at > FRESH_S
        return [Open(device, self.link.turn, adopted)]

    def _probe(self, now: float) -> list[Action]:
        device = self.device
        if device is None:
            return []
        self.verdict = self._decide(device)
        if self.verdict.decision is not Decision.PROBE:
            self._judge(device, now)
            return []
        allowed_at = self.starts.allowed_at(now)
        if allowed_at > now:
            self._enter(PortState.COOLDOWN, now, due=allowed_at, reason="asked to switch too often")
            return []
        if self.state is not PortState.BLOCKED:
            self._enter(PortState.PROBING, now, due=self._due, reason=self.reason)
        self._pending = "probe"
        self._target = device
        return [Probe(device)]
