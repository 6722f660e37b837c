"""Run pulses: each asked for by one press on the same link, at the same robot, in time, and taken back. Pure."""

from collections.abc import Mapping, Sequence

from faults.spans import Span, StallLog

__all__ = ["Pulses"]

ARRIVES_S = 1.0  # from a press to its pulse
STALE_S = 0.3  # from the end of a link until nothing of it arrives any more
LOWERED_S = 2.0  # the app lowers after half a second; the end of a link lowers at once


class Pulses:
    """Takes presses of phones and values of the run topic at the robot."""

    def __init__(self, stalls: StallLog) -> None:
        self._stalls = stalls
        self._presses: list[tuple[float, str]] = []
        self._robots: list[float] = []
        self._daemons: list[float] = []
        self._values: list[tuple[float, bool]] = []
        self._pauses: list[Span] = []
        self._losses: list[Span] = []

    def on_press(self, phone: str, at: float) -> None:
        """An app writes a pulse."""
        self._presses.append((at, phone))

    def on_unpressed(self) -> None:
        """The last one was never written."""
        self._presses.pop()

    def on_robot(self, at: float) -> None:
        """A robot starts."""
        self._robots.append(at)

    def on_daemon(self, at: float) -> None:
        """A daemon starts."""
        self._daemons.append(at)

    def on_value(self, at: float, *, high: bool) -> None:
        """The robot hears the topic."""
        self._values.append((at, high))

    def on_pause(self, span: Span) -> None:
        """The robot was frozen, and may have heard later what came meanwhile."""
        self._pauses.append(span)

    def on_loss(self, span: Span) -> None:
        """The robot, or the daemon, was gone: nobody lowers what is gone with it."""
        self._losses.append(span)

    def verdicts(
        self, link_ends: Mapping[str, Sequence[float]], breaks: Mapping[str, Sequence[Span]], until: float
    ) -> list[str]:
        """What is wrong with the pulses up to a moment."""
        faults = []
        free = sorted(self._presses)
        for at, high in self._values:
            if not high:
                continue
            earlier = [press for press in free if press[0] <= at]
            if not earlier:
                faults.append(f"robot: a run pulse that no phone asked for at {at:.3f}")
                continue
            pressed_at, phone = earlier[-1]
            free = free[len(earlier) :]
            faults += self._of_one(pressed_at, at, phone, link_ends.get(phone, ()))
            if at < until - LOWERED_S - self._late(at, until):
                faults += self._not_lowered(at, breaks.get(phone, ()))
        return faults

    def _late(self, begin: float, end: float) -> float:
        """Seconds of that time in which machine or robot stood still."""
        return self._stalls.within(begin, end) + sum(pause.overlap(begin, end) for pause in self._pauses)

    def _of_one(self, pressed_at: float, at: float, phone: str, link_ends: Sequence[float]) -> list[str]:
        faults = []
        if at - pressed_at > ARRIVES_S + self._late(pressed_at, at):
            faults.append(f"robot: a run pulse {at - pressed_at:.2f} s after its press at {at:.3f}")
        if any(pressed_at < robot < at for robot in self._robots):
            faults.append(f"robot: a run pulse of a press before this robot started at {at:.3f}")
        if any(pressed_at < daemon < at for daemon in self._daemons):
            faults.append(f"robot: a run pulse of a press before this daemon started at {at:.3f}")
        for end in link_ends:
            if pressed_at < end and at - end > STALE_S + self._late(end, at):
                faults.append(f"robot: a run pulse {at - end:.2f} s after the end of the link of {phone} at {at:.3f}")
        return faults

    def _not_lowered(self, at: float, breaks: Sequence[Span]) -> list[str]:
        due = at + LOWERED_S
        due += self._late(at, due + 2 * LOWERED_S)
        if any(at <= when <= due and not high for when, high in self._values):
            return []
        if any(span.overlap(at - ARRIVES_S, due) for span in (*self._losses, *self._pauses, *breaks)):
            return []
        return [f"robot: a run pulse was never taken back after {at:.3f}"]
