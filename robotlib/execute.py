"""Runs a bound plan, one call per robot loop. Knows no clock, no thread and no framework.

Every abnormal end stops the drive in the same call, and nothing but BaseException leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from .binding import BoundPlan
from .errors import MAX_TEXT, clean, sentence
from .eventlog import Event, EventLog
from .model import Node
from .watched import Abort, Failure, Watched

__all__ = ["Event", "Executor", "Failure", "State"]


class State(StrEnum):
    """States of a run."""

    READY = "READY"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    DONE = "DONE"
    CANCELLED = "CANCELLED"
    FAILED = "FAILED"


_TERMINAL = frozenset({State.DONE, State.CANCELLED, State.FAILED})


class Executor:
    """One run of one plan."""

    def __init__(
        self,
        bound: BoundPlan,
        *,
        clock: Callable[[], float],
        stop: Callable[[], None] | None = None,
        plan_timeout_s: float = 120.0,
        max_gap_s: float = 0.5,
        run_id: int = 0,
        plan_id: str = "",
    ) -> None:
        self.bound = bound
        self.state = State.READY
        self.reason = ""
        self.error: Failure | None = None
        self.run_id = run_id
        self.active_s = 0.0  # running time without pauses
        self.holding = False  # no new leaf starts
        self.active: list[Watched] = []  # in start order
        self.leaves_done = 0
        self._clock = clock
        self._stop = bound.stop if stop is None else stop
        self._plan_timeout_s = plan_timeout_s
        self._max_gap_s = max_gap_s
        self._plan_id = plan_id or bound.plan.plan_id
        self._events = EventLog()
        self._root = Watched(self, bound.root)
        self._raw = self._now = 0.0
        self._busy = False
        self._cancel_wanted = ""
        self._pause_wanted = False
        self._stop_due = False

    # What others may see

    @property
    def finished(self) -> bool:
        """True in DONE, CANCELLED and FAILED."""
        return self.state in _TERMINAL

    @property
    def stop_due(self) -> bool:
        """True while the drive could not be stopped; `execute` tries again."""
        return self._stop_due

    @property
    def running(self) -> tuple[str, ...]:
        """The JSON paths of the running leaves, in plan order."""
        return tuple(watched.bound.path for watched in self._leaves_in_order())

    @property
    def running_labels(self) -> tuple[str, ...]:
        """The labels of the running leaves, in plan order."""
        return tuple(watched.bound.label for watched in self._leaves_in_order())

    @property
    def progress(self) -> float:
        """The share of leaves that have finished, 0 to 1."""
        if self.state is State.DONE or not self.bound.leaf_count:
            return 1.0 if self.state is State.DONE else 0.0
        return self.leaves_done / self.bound.leaf_count

    @property
    def step_elapsed_s(self) -> float:
        """How long the first running leaf has been running, without pauses."""
        leaves = self._leaves_in_order()
        return leaves[0].elapsed_s if leaves else 0.0

    def _leaves_in_order(self) -> list[Watched]:
        leaves = [watched for watched in self.active if watched.bound.is_leaf]
        return sorted(leaves, key=lambda watched: watched.bound.number)

    @property
    def events_dropped(self) -> int:
        """How many events were dropped because nobody took them."""
        return self._events.dropped

    def take_events(self) -> list[Event]:
        """Remove and return the events so far."""
        return self._events.take()

    # What the robot loop calls

    def start(self) -> None:
        """Begin; the first step starts in the next `execute`."""
        if self.state is not State.READY:
            raise RuntimeError(f"Executor is {self.state}; make a new one")
        self._raw = self._now = self._clock()
        self._enter(State.RUNNING)

    def execute(self, enabled: bool = True) -> State:
        """Run one loop and return the state."""
        if self._busy or self.state is State.READY:
            return self.state
        if self.finished:
            if self._stop_due:
                self._stop_drive()
            return self.state
        gap = self._advance()
        if not enabled:
            self.cancel("disabled")
        elif gap > self._max_gap_s:
            self.cancel("loop-gap")
        else:
            if self.state is State.RUNNING:
                self.active_s += gap
            self._loop()
        return self.state

    def cancel(self, reason: str = "code") -> None:
        """End the run now; from inside a step, as soon as that step's call returns."""
        if self.finished:
            return
        if self._busy:
            self._cancel_wanted = self._cancel_wanted or reason
            return
        self._shut(State.CANCELLED, reason, None)

    def pause(self) -> None:
        """Stand still after the running PATH, if any; drive steps and resumable actions start again on `resume`."""
        if self._busy:
            self._pause_wanted = True
        elif self.state is State.RUNNING and not self.holding:
            self._hold()

    def resume(self) -> None:
        """Go on after `pause`."""
        self._pause_wanted = False
        if self.holding and not self.finished:
            self.holding = False
            if self.state is State.PAUSED:
                self._enter(State.RUNNING)

    def end(self, interrupted: bool) -> None:
        """End as a command ends: a run that is not over is cancelled."""
        self.cancel("interrupted" if interrupted else "code")

    # Inside

    def step(self, node: Node) -> Watched:
        """Return the watched step of a node, for the groups."""
        return Watched(self, self.bound.nodes[node.path])

    def note(self, path: str, kind: str, text: str) -> None:
        """Add an event."""
        self._events.append(Event(self._now, self.run_id, path, kind, text, self._plan_id))

    def take_cancel(self) -> str:
        """Return the reason of a cancel that came from inside a step, once."""
        reason, self._cancel_wanted = self._cancel_wanted, ""
        return reason

    def _advance(self) -> float:
        raw = self._clock()
        gap = max(raw - self._raw, 0.0)  # time that goes backwards counts as standing
        self._raw = raw
        self._now += gap
        return gap

    def _loop(self) -> None:
        self._busy = True
        done = False
        ended: Abort | None = None
        try:
            if self.active_s > self._plan_timeout_s:
                text = f"The plan was not finished after {self._plan_timeout_s:g} s."
                raise Abort(failure=Failure("plan-timeout", "$", text))
            done = self._root.run(self._now)
        except Abort as abort:
            ended = abort
        except BaseException as error:
            self._busy = False
            self._shut(State.FAILED, "", Failure("exception", "$", clean(f"{type(error).__name__}: {error}", MAX_TEXT)))
            raise
        self._busy = False
        if ended is not None:
            self._shut(State.FAILED if ended.failure else State.CANCELLED, ended.reason, ended.failure)
        elif done:
            self._enter(State.DONE)
            if self.bound.drives:  # a path may end at speed
                self._stop_drive()
        elif self._cancel_wanted:
            self.cancel(self.take_cancel())
        else:
            self._settle_pause()

    def _settle_pause(self) -> None:
        if self._pause_wanted:
            self._pause_wanted = False
            self.pause()
        elif self.holding and self.state is State.RUNNING:
            self._paused_if_still()

    def _hold(self) -> None:
        self.holding = True
        try:
            for watched in reversed(self.active.copy()):
                watched.park(self._now)
        except Abort as abort:
            self._shut(State.FAILED, "", abort.failure)
            return
        if not any(watched.bound.finishes_first for watched in self.active) and self.bound.drives:
            self._stop_drive()
        if not self.finished:
            self._paused_if_still()

    def _paused_if_still(self) -> None:
        if not any(watched.bound.finishes_first for watched in self.active):
            self._enter(State.PAUSED)

    def _enter(self, state: State, text: str = "") -> None:
        self.state = state
        self.note("$", "state", f"{state} {text}".strip())

    def _shut(self, state: State, reason: str, failure: Failure | None) -> None:
        """End all steps, the latest first, stop the drive, and only then let anything out."""
        self._busy = True  # whatever the steps call while they end
        fatal: BaseException | None = None
        while self.active:
            try:
                self.active[-1].end(True)
            except Abort as abort:
                failure = failure or abort.failure
            except BaseException as error:  # noqa: BLE001  (raised again below, after the drive was stopped)
                fatal = fatal or error
        self._cancel_wanted = ""
        self.error = failure
        if failure is not None:
            state, reason = State.FAILED, ""
            self.note(failure.path, "failed", f"{failure.code}: {failure.text}")
        self.reason = reason
        self._enter(state, reason)
        try:
            self._stop_drive()
        finally:
            self._busy = False
        if fatal is not None:
            raise fatal

    def _stop_drive(self) -> None:
        self._stop_due = True
        try:
            self._stop()
        except Exception as error:  # noqa: BLE001  (robot code; tried again in every loop)
            if self.error is None or self.error.code != "stop-failed":
                text = sentence(f"The drive could not be stopped: {type(error).__name__}: {error}")
                self.error = Failure("stop-failed", "$", text)
                self.reason = ""
                self.note("$", "failed", f"stop-failed: {text}")
                self._enter(State.FAILED)
        else:
            self._stop_due = False
