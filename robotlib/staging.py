"""The staged plan: which text the phone shows, and how far it has come. Never starts anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .binding import BoundPlan
from .errors import PlanError, sentence
from .eventlog import EventLog
from .fitting import Fitted, Robot, fit, needs_alliance
from .model import Plan, Pose2
from .settings import Settings
from .worker import JobResult, Worker

__all__ = ["Staged", "Staging"]


@dataclass(slots=True)
class Staged:
    """One text. `wish` is the alliance and the registry revision that it was last fitted to."""

    text: str
    stamp_us: int
    retained: bool
    plan: Plan | None = None
    bound: BoundPlan | None = None
    error: PlanError | None = None
    job: int = 0
    timeline: str = "[]"
    wish: tuple[str, int] = ("", -1)


class Staging:
    """Takes plan texts, answers what could be started now. `changes` counts what replaces the phone's picture."""

    def __init__(self, robot: Robot, settings: Settings, worker: Worker, log: EventLog) -> None:
        self._robot = robot
        self._settings = settings
        self._worker = worker
        self._log = log
        self._logged_text = ""
        self.staged: Staged | None = None
        self.error: PlanError | None = None
        self.gone = False
        self.changes = 0
        self.fresh: Callable[[], None] = lambda: None  # called when a new plan has become startable

    @property
    def rejected(self) -> bool:
        """True if the newest text is no plan for this robot."""
        return self.error is not None

    @property
    def plan(self) -> Plan | None:
        """The staged plan, None while there is none or it does not fit this robot."""
        return self.staged.plan if self.staged is not None and self.error is None else None

    @property
    def bound(self) -> BoundPlan | None:
        """The staged plan if it is bound and prepared."""
        return self.staged.bound if self.plan is not None and self.staged is not None else None

    @property
    def poses(self) -> tuple[Pose2, ...]:
        """The poses of the staged plan, turned for red if they are once it is bound."""
        plan = self.bound.plan if self.bound is not None else self.plan
        return plan.poses() if plan is not None else ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of the staged plan as "path: text"."""
        if self.plan is None:
            return ()
        found = self.plan.warnings + (self.bound.warnings if self.bound is not None else ())
        return tuple(f"{warning.path}: {warning.message}" for warning in found)

    @property
    def missing(self) -> str:
        """What keeps the staged plan from being started, "" if nothing."""
        if self.error is not None:
            return self.error.message
        staged = self.staged
        if staged is None:
            return "There is no plan."
        if staged.job:
            return "The plan is being prepared."
        if staged.bound is None:
            return "The alliance is not known yet."
        return ""

    def on_topic_gone(self) -> None:
        """The plan topic is gone: no phone starts until it is published again."""
        if self.staged is None and self.error is None:
            return
        if not self.gone:
            self.gone = True
            self._log.add("stage", "plan topic gone")
            if self.error is not None or not self._settings.keep_when_gone:
                self._clear()

    def on_text(self, text: str, kind: str, stamp_us: int, retained: bool, side: tuple[str, Pose2 | None]) -> None:
        """Stage a text; `kind` is text, bad-encoding or wrong-type, `side` the alliance and the robot's pose."""
        self._clear()
        self.gone = False
        if kind == "bad-encoding":
            self._reject(PlanError("bad-encoding", "$", "Plan is not valid UTF-8 text."))
        elif kind != "text":
            self._reject(PlanError("wrong-type", "$", "The plan topic does not hold text."))
        else:
            self.staged = staged = Staged(text, stamp_us, retained)
            small = len(text) <= self._settings.inline_parse_bytes
            if small:
                try:
                    staged.plan = self._robot.parse(text)
                except PlanError as error:
                    self._reject(error)
                    return
            self._fit(staged, side)

    def refresh(self, side: tuple[str, Pose2 | None]) -> None:
        """Bind again if actions were registered or the alliance changed."""
        staged = self.staged
        if staged is None:
            return
        wish = (side[0], self._robot.actions.revision)
        if staged.wish == wish:
            return
        if staged.wish[1] == wish[1] and staged.plan is not None and not needs_alliance(staged.plan):
            staged.wish = wish
        else:
            self._fit(staged, side)

    def on_jobs(self, numbers: list[int]) -> None:
        """Take the result of the job for the newest wish; others were dropped, or belong to running steps."""
        for number in numbers:
            if self.staged is not None and self.staged.job == number:
                self._on_result(self.staged, self._worker.take(number))

    def _fit(self, staged: Staged, side: tuple[str, Pose2 | None]) -> None:
        self._drop_job()
        staged.bound = None
        self.error = None
        robot, (alliance, start), actions = self._robot, side, dict(self._robot.actions)
        staged.wish = (alliance, robot.actions.revision)
        plan, text = staged.plan, staged.text
        if plan is not None and not robot.binds_slowly and len(text) <= self._settings.inline_parse_bytes:
            self._on_fitted(staged, fit(text, plan, robot, alliance, start, actions))
        else:
            staged.job = self._worker.submit(lambda: fit(text, plan, robot, alliance, start, actions))

    def _on_result(self, staged: Staged, result: JobResult) -> None:
        staged.job = 0
        if isinstance(result.value, Fitted):
            self._on_fitted(staged, result.value)
        else:
            text = sentence(f"The plan could not be prepared: {type(result.error).__name__}: {result.error}")
            self._reject(PlanError("not-prepared", "$", text), keep=staged)

    def _on_fitted(self, staged: Staged, fitted: Fitted) -> None:
        if fitted.error is not None:
            staged.plan = fitted.plan
            # A plan that only does not fit this robot is tried again when an action is registered.
            self._reject(fitted.error, keep=staged if fitted.plan is not None else None)
            return
        staged.plan, staged.bound, staged.timeline = fitted.plan, fitted.bound, fitted.timeline
        plan_id = fitted.plan.plan_id if fitted.plan is not None else ""
        if staged.text != self._logged_text:
            self._logged_text = staged.text
            self._log.add("plan", staged.text, plan_id)
        self._log.add("stage", "retained" if staged.retained else "staged", plan_id)
        if staged.bound is not None:
            self.fresh()

    def _reject(self, error: PlanError, keep: Staged | None = None) -> None:
        self.staged = keep
        if error.code == "empty":  # the phone withdrew its plan
            self._log.add("stage", "no plan")
            return
        self.error = error
        self._log.add("stage", f"rejected: {error}")

    def _clear(self) -> None:
        self._drop_job()
        self.staged = None
        self.error = None
        self.changes += 1

    def _drop_job(self) -> None:
        if self.staged is not None and self.staged.job:
            self._worker.drop(self.staged.job)
            self.staged.job = 0
