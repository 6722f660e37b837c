"""What a port machine keeps an eye on: whether the phone is there, whether its link is stuck, whether it flaps."""

from collections import deque
from enum import Enum
from typing import Final

import msgspec

from aoabridge.phone.aoa import UsbDevice

__all__ = ["Cure", "Gone", "LinkWatch", "LossLog", "Presence", "Returned"]

NEVER: Final = float("-inf")

STALE_SNAPSHOT_S: Final = 1.0  # sysfs may still show a device that libusb already calls gone

# Seconds since the link opened, without one byte accepted. An app that reads takes the first in milliseconds.
CLEAR_HALTS_S: Final = 3.0  # the mildest cure first: a toggle or half a transfer that an unclean end left behind
REOPEN_S: Final = 6.0  # the halts were cleared as long ago, and it did not help
CANDIDATE_S: Final = 5.0  # on the other interface of this shape; the halts of this one have been cleared by then

CANDIDATE_ROUNDS: Final = 3  # of all interfaces: nothing helps a phone whose app is merely closed
CANDIDATE_SLOW_S: Final = 30.0  # then still now and then, for the app may open later
RESET_S: Final = 15.0  # without an accepted byte, after the milder cures: the phone leaves, and something pops up on it
RESET_EVERY_S: Final = 300.0  # a phone with a closed app would be reset for ever otherwise

FLAPPING_COUNT: Final = 3  # a hand plugs in a second time, a bad contact does not stop there
FLAPPING_WINDOW_S: Final = 60.0  # losses farther apart are single events
STABLE_LINK_S: Final = 60.0  # as long as the window: a link that outlives it does not flap
FORGOTTEN_S: Final = 300.0  # quiet for so long, a port is no longer called flapping even without a link


class Gone(msgspec.Struct, frozen=True):
    """The device left the port."""

    device: UsbDevice


class Returned(msgspec.Struct, frozen=True):
    """A device is on the port that was empty for ``gap_s``; ``other`` = its serial says it is another one."""

    device: UsbDevice
    gap_s: float
    other: bool


class Presence:
    """The device on one port, from scans and from transfers that found it gone."""

    def __init__(self) -> None:
        self.device: UsbDevice | None = None
        self.empty_since: float = NEVER
        self.last: UsbDevice | None = None
        self._dead: tuple[int, int] | None = None
        self._dead_until = NEVER

    def on_scan(self, device: UsbDevice | None, now: float, at: float | None = None) -> list[Gone | Returned]:
        """What changed, and did so ``at`` this time if that is earlier; a new address without a gap seen is both."""
        at = now if at is None else at
        if device is not None and device.address == self._dead and now < self._dead_until:
            device = None
        before, self.device = self.device, device
        if before is not None and device is not None and before.address == device.address:
            self.last = device
            return []
        edges: list[Gone | Returned] = []
        if before is not None:
            self.empty_since = at
            edges.append(Gone(before))
        if device is not None:
            never_left = device.address == self._dead
            edges.append(Returned(device, 0.0 if never_left else at - self.empty_since, self._is_other(device)))
            self.last = device
        return edges

    def on_lost(self, address: tuple[int, int], now: float, at: float | None = None) -> list[Gone | Returned]:
        """A transfer said NO_DEVICE, ``at`` this time: a scan that still shows this enumeration is out of date."""
        self._dead, self._dead_until = address, now + STALE_SNAPSHOT_S
        if self.device is None or self.device.address != address:
            return []
        return self.on_scan(None, now, at)

    def _is_other(self, device: UsbDevice) -> bool:
        last = self.last
        if last is None or not last.serial or not device.serial:
            return False
        # A serial need not survive the switch between native and accessory mode.
        return last.is_accessory == device.is_accessory and last.serial != device.serial


class Cure(Enum):
    """What to do about a link over which nothing moves."""

    CLEAR_HALTS = "clear halts"
    REOPEN = "reopen"
    NEXT_CANDIDATE = "next candidate"
    RESET = "reset"


class LinkWatch:
    """Signs of one link, and the cures for one without any."""

    def __init__(self) -> None:
        self.since = NEVER
        self.valid_line = False
        self.turn = 0
        self._candidates = 1
        self._accepted = False
        self._received = False
        self._accepted_at = NEVER
        self._done: set[Cure] = set()
        self._reset_at = NEVER

    def on_arrival(self) -> None:
        """Another enumeration: its interfaces are tried from the first."""
        self.turn = 0

    def on_open(self, candidates: int, now: float, *, next_candidate: bool = False) -> None:
        """A link begins; ``next_candidate`` = only the interface is another one."""
        self.since = now
        self.valid_line = False
        self._candidates = candidates
        self._accepted = self._received = False
        self._done = set()
        if not next_candidate:
            self._accepted_at = now

    def on_reset(self, now: float) -> None:
        """The device was reset."""
        self._reset_at = now

    def on_accepted(self, now: float) -> None:
        """The phone took bytes."""
        self._accepted = True
        self._accepted_at = now

    def on_received(self) -> None:
        """The phone sent bytes."""
        self._received = True

    def is_stable(self, now: float) -> bool:
        """True for a link that is old enough to be trusted."""
        return now - self.since >= STABLE_LINK_S

    def take_cure(self, now: float, *, may_reset: bool) -> Cure | None:
        """The cure that is due, once."""
        cure = next((c for c, at in self._plan(may_reset) if now >= at), None)
        if cure in (Cure.CLEAR_HALTS, Cure.REOPEN):
            self._done.add(cure)
        elif cure is Cure.NEXT_CANDIDATE:
            self.turn += 1
        return cure

    def deadline(self, *, may_reset: bool) -> float | None:
        """When a cure may be due."""
        return min((at for _, at in self._plan(may_reset)), default=None)

    def _plan(self, may_reset: bool) -> list[tuple[Cure, float]]:
        plan = []
        if may_reset:
            plan.append((Cure.RESET, max(self._accepted_at + RESET_S, self._reset_at + RESET_EVERY_S)))
        if not self._accepted:
            if self._candidates > 1 and not self._received:
                slow = self.turn >= CANDIDATE_ROUNDS * self._candidates
                plan.append((Cure.NEXT_CANDIDATE, self.since + (CANDIDATE_SLOW_S if slow else CANDIDATE_S)))
            plan += [(c, at) for c, at in self._recoveries() if c not in self._done]
        return plan

    def _recoveries(self) -> list[tuple[Cure, float]]:
        clear = (Cure.CLEAR_HALTS, self.since + CLEAR_HALTS_S)
        reopen = (Cure.REOPEN, self.since + REOPEN_S)
        return [clear] if self._candidates > 1 else [clear, reopen]  # the next candidate is a reopening, too


class LossLog:
    """Disappearances of the device that we did not cause."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=FLAPPING_COUNT)
        self._flapping = False

    @property
    def count(self) -> int:
        """How many of the last ones are remembered."""
        return len(self._times)

    def on_loss(self, now: float) -> None:
        """The device disappeared."""
        self._times.append(now)
        if len(self._times) == FLAPPING_COUNT and now - self._times[0] <= FLAPPING_WINDOW_S:
            self._flapping = True

    def is_flapping(self, now: float, *, stable: bool) -> bool:
        """True from three within a minute until a link was stable for a minute."""
        if self._flapping and (stable or now - self._times[-1] >= FORGOTTEN_S):
            self._flapping = False
            self._times.clear()
        return self._flapping
