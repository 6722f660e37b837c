"""What is known of one USB port and its phone, and how it is shown."""

from collections.abc import Callable
from typing import Final

from aoabridge.errors import UsbError
from aoabridge.phone.actions import PortSettings, PortState
from aoabridge.phone.aoa import UsbDevice
from aoabridge.phone.attempts import Attempts
from aoabridge.phone.filter import Decision, Verdict
from aoabridge.phone.ladders import FLAP_STEPS, FLAP_WAITS_S, REOPEN_WAITS_S, SLOW_WAITS_S, Ladder, StartLog
from aoabridge.phone.watch import LinkWatch, LossLog, Presence

__all__ = ["REPLUG_GAP_S", "SEEN_LATE_S", "PortRecord"]

REPLUG_GAP_S: Final = 3.0  # a phone comes back by itself in 1 to 2 s, a hand at the plug is slower
SEEN_LATE_S: Final = 0.1  # a busy loop sees a phone leave later than it sees it return: the gap looks shorter

_NEVER: Final = float("-inf")


class PortRecord:
    """The state of a port with everything that decides what comes next; only its machine changes it."""

    def __init__(self, port: str, decide: Callable[[UsbDevice], Verdict], settings: PortSettings | None = None) -> None:
        self.port = port
        self.settings = settings or PortSettings()
        self.state = PortState.ABSENT
        self.since = _NEVER
        self.reason = ""
        self.verdict: Verdict | None = None
        self.aoa_version: int | None = None
        self.fault: UsbError | None = None
        self.was_live = False
        self.links = 0  # since start
        self.out_of_memory = False
        self.losses = LossLog()
        self.link = LinkWatch()
        self.starts = StartLog()
        self.failed_probes = Ladder(SLOW_WAITS_S)
        self.refusals = Ladder(SLOW_WAITS_S)
        self.no_switches = Ladder(SLOW_WAITS_S)
        self.flaps = Ladder(FLAP_WAITS_S, FLAP_STEPS)
        self._reopens = Ladder(REOPEN_WAITS_S)
        self._decide = decide
        self._presence = Presence()
        self._pending: str | None = None
        self._target: UsbDevice | None = None
        self._due: float | None = None
        self._resume: tuple[PortState, float | None, str] | None = None
        self._started_at = _NEVER
        self._replugged = False
        self._fresh = False
        self._left_at: float | None = None
        self._arrived_at = _NEVER
        self._attempts = Attempts()
        self._own_reset_at = _NEVER
        self._next_candidate = False
        self._settling = False

    @property
    def device(self) -> UsbDevice | None:
        """What is on the port now."""
        return self._presence.device

    @property
    def busy_since(self) -> float | None:
        """Since when another process holds the device."""
        return self._attempts.busy_since

    @property
    def last_device(self) -> UsbDevice | None:
        """What is on the port, or was there last."""
        return self._presence.last

    @property
    def wants_scans(self) -> bool:
        """True while a phone may come or change at any moment: scan every 0.1 s."""
        return self._settling or self.state in (PortState.SWITCHING, PortState.SEEN)

    def occupies(self, now: float) -> bool:
        """True if a phone is here, or was a moment ago: it counts against ``devices.max``."""
        if self.state is PortState.ABSENT:
            expected = self.verdict is not None and self.verdict.decision is not Decision.IGNORE
            return expected and now - self._presence.empty_since < REPLUG_GAP_S
        return self.state not in (PortState.IGNORED, PortState.NOT_AOA)

    def is_flapping(self, now: float) -> bool:
        """True from three disappearances within a minute until a link held for a minute."""
        return self.losses.is_flapping(now, stable=self.state.has_link and self.link.is_stable(now))

    def deadline(self) -> float | None:
        """When ``on_tick`` has something to do, None if only an input can change anything."""
        if self._pending is not None:
            return None
        if self.state.has_link:
            return self.link.deadline(may_reset=self.settings.reset_stuck)
        return self._due

    def _enter(self, state: PortState, now: float, *, due: float | None = None, reason: str = "") -> None:
        self._due = due
        self.reason = reason
        if state is not self.state:
            self.state = state
            self.since = now
