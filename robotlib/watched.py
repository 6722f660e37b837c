"""One node of a run: guards every call into its step, counts its time, and keeps `end` to exactly once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from .binding import BoundNode
from .errors import MAX_TEXT, StepFailed, clean, sentence
from .steps import Pausable, Step

if TYPE_CHECKING:
    from .execute import Executor

__all__ = ["Abort", "Failure", "Watched"]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run failed: code, JSON path of the step, text for the phone."""

    code: str
    path: str
    text: str


class Abort(BaseException):
    """Leaves the step tree: the run failed, or is to be cancelled. No step can swallow it by `except Exception`."""

    def __init__(self, failure: Failure | None = None, reason: str = "") -> None:
        self.failure = failure
        self.reason = reason
        super().__init__(failure, reason)


class Watched:
    """A step under watch; itself a step, so that groups hold it like any other."""

    __slots__ = ("_limit_fixed_s", "_parked", "_run", "_skip", "_started_s", "_step", "bound")

    def __init__(self, run: Executor, bound: BoundNode) -> None:
        self._run = run
        self.bound = bound
        self._step: Step | None = None  # set while it runs
        self._parked = False  # to be started, or started again, when the pause is over
        self._skip = 0
        self._started_s = 0.0
        self._limit_fixed_s: float | None = None

    @property
    def elapsed_s(self) -> float:
        """Running time since the start, without pauses."""
        return self._run.active_s - self._started_s

    def run(self, now: float) -> bool:
        """Start if need be, execute, and end if finished; return True when over. For the root."""
        if self._step is None and not self._parked:
            self.start(now)
        self.execute(now)
        if not self.finished(now):
            return False
        self.end(False)
        return True

    def start(self, now: float) -> None:
        """Make the step and start it; in a pause a leaf waits for the end of the pause."""
        if self.bound.is_leaf and self._run.holding:
            self._parked = True
            return
        step = self._guard(lambda: self.bound.make(self._run, self._skip))
        self._step = step
        self._started_s = self._run.active_s
        self._run.active.append(self)
        if self.bound.is_leaf:
            self._run.note(self.bound.path, "start", self.bound.label)
        self._guard(lambda: step.start(now))
        if self.bound.is_leaf:
            expected = getattr(step, "expected_s", None)
            self._limit_fixed_s = self._guard(lambda: self._run.bound.timeout_s(self.bound, expected))

    def execute(self, now: float) -> None:
        """Execute once, unless parked."""
        if self._parked:
            if self._run.holding:
                return
            self._unpark(now)
        step = self._step
        if step is None:
            return
        if self.bound.is_leaf:
            self._check_time(step)
        self._guard(lambda: step.execute(now))

    def finished(self, now: float) -> bool:
        """Return what the step says; a parked one is not finished."""
        step = self._step
        if self._parked or step is None:
            return False
        return self._guard(lambda: step.finished(now))

    def end(self, interrupted: bool) -> None:
        """End the step if it runs."""
        self._parked = False
        step, self._step = self._step, None
        if step is None:
            return
        self._run.active.remove(self)
        if self.bound.is_leaf:
            self._run.leaves_done += not interrupted
            note = getattr(step, "note", "")
            if isinstance(note, str) and note:
                self._run.note(self.bound.path, "note", note)
            self._run.note(self.bound.path, "interrupted" if interrupted else "end", self.bound.label)
        self._guard(lambda: step.end(interrupted))

    def park(self, now: float) -> None:
        """Stand still for a pause, if this kind of step does."""
        step = self._step
        if step is None or not self.bound.is_leaf:
            return
        if self.bound.restarts:
            self._skip += int(getattr(step, "reached", 0))
            self.end(True)
            self._parked = True
        elif isinstance(step, Pausable) and self.bound.action is None:
            self._guard(lambda: step.pause(now))
            self._parked = True

    def _unpark(self, now: float) -> None:
        self._parked = False
        step = self._step
        if step is None:
            self.start(now)
        elif isinstance(step, Pausable):
            self._guard(lambda: step.resume(now))

    def _check_time(self, step: Step) -> None:
        limit = self._limit_fixed_s
        expected = getattr(step, "expected_s", None)
        if expected is not None:  # a step that plans while it runs learns its time late
            limit = self._run.bound.timeout_s(self.bound, expected)
        if limit is not None and self.elapsed_s > limit:
            text = f"Step {self.bound.number} ({self.bound.label}) was not finished after {limit:.1f} s."
            raise Abort(failure=Failure("timeout", self.bound.path, sentence(text)))

    def _guard(self, call: Callable[[], _T]) -> _T:
        try:
            result = call()
        except StepFailed as failed:
            raise Abort(failure=Failure(failed.code, self.bound.path, sentence(failed.text))) from failed
        except Exception as error:
            where = f"Step {self.bound.number} ({self.bound.label})" if self.bound.is_leaf else self.bound.node.type
            text = clean(f"{where}: {type(error).__name__}: {error}", MAX_TEXT)
            raise Abort(failure=Failure("exception", self.bound.path, text)) from error
        reason = self._run.take_cancel()
        if reason:
            raise Abort(reason=reason)
        return result
