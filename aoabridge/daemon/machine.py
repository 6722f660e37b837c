"""What is wrong with the machine itself: no USB, or more work than it can do."""

from pathlib import Path

from aoabridge.status import IssueBoard

__all__ = ["MachineWatch"]

LOOK_S = 5.0  # a controller that is switched on is a matter of people, who see it within seconds
MAX_LAG_S = 0.2  # a put that waits so long is felt by who drives
MAX_CPU_PERCENT = 80.0  # of one core: the loop has but one, and needs room for bursts


class MachineWatch:
    """Called with every look of the observer; ``wants_usb``: phones are expected on USB."""

    def __init__(self, board: IssueBoard, *, wants_usb: bool, root: Path = Path("/")) -> None:
        self._board = board
        self._wants_usb = wants_usb
        self._buses = root / "sys/bus/usb/devices"
        self._look_at = float("-inf")

    def tick(self, now: float) -> None:
        """Look for a USB host every few seconds: its controller may be switched on while we run."""
        if self._wants_usb and now >= self._look_at:
            self._look_at = now + LOOK_S
            self._board.set("usb-none", "usb", not any(self._buses.glob("*")), now)

    def note_load(self, late_s: float, cpu_percent: float | None, overloaded: bool, now: float) -> None:
        """How late this look is, this process's share of a core, and whether values are being skipped."""
        busy = cpu_percent is not None and cpu_percent > MAX_CPU_PERCENT
        self._board.set("overload", "machine", overloaded or busy or self.is_late(late_s), now)

    @staticmethod
    def is_late(late_s: float) -> bool:
        """Whether a look that came so late shows that the machine cannot keep up."""
        return late_s > MAX_LAG_S
