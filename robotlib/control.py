"""The state machine behind RoboRoute, a function of its Inputs: start gate, cancelling, status.

A plan text never starts motion. A start needs a fresh press that passes every test of the gate, or robot code.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from .binding import BoundPlan
from .errors import PlanError
from .eventlog import Event, EventLog
from .execute import Executor, State
from .fitting import Robot
from .gate import REASONS, WAITING, Heartbeat, PressMemory, us
from .inputs import FALSE, TRUE, Inputs
from .model import Pose2
from .runs import PHONE, Run, abort_reason, cancel_counts, target_plan
from .settings import Settings
from .staging import Staging
from .status import StartResult, Status
from .status_fill import fill_status
from .worker import InlineWorker, Worker

__all__ = ["PlanControl"]


@dataclass(slots=True)
class _Held:
    """An accepted press of RunPose or RunRoute that waits for its target."""

    kind: str
    stamp_us: int
    since_us: int


class PlanControl:
    """One `update` per robot loop; all other calls come from the same thread.

    `launch` is asked to begin an accepted run and returns "" or who is in the way; None begins it directly.
    """

    def __init__(
        self,
        robot: Robot,
        settings: Settings = Settings(),  # noqa: B008  (frozen)
        worker: Worker | None = None,
        boot_us: int = 0,
        launch: Callable[[Run], str] | None = None,
    ) -> None:
        self.robot = robot
        self.settings = settings
        self.launch = launch
        self.heartbeat = Heartbeat()
        self.log = EventLog()
        self.inputs = Inputs(now_us=boot_us)
        self.staging = Staging(robot, settings, InlineWorker() if worker is None else worker, self.log)
        self.staging.fresh = self._on_fresh_plan
        self.run: Run | None = None
        self.run_count = 0
        self.refused = ""
        self.status = Status()
        self.actions_revision = -1
        self._boot_us = boot_us
        self._presses = {name: PressMemory() for name in ("plan", "run_plan", "run_pose", "run_route")}
        self._cancels_us: deque[int] = deque(maxlen=16)
        self._newest_cancel_us = 0
        self._held: _Held | None = None
        self._plan_press_us: int | None = None  # start_on="plan": a text that may start once it is ready
        self._after_changes = -1  # the staging that the last run's end is shown with
        self._begun_changes = -1  # the staging that the last run began with

    # Robot code's calls

    @property
    def running(self) -> bool:
        """True while a run is RUNNING or PAUSED."""
        return self.run is not None and self.run.active

    def start(self, source: str = "code") -> StartResult:
        """Start the staged plan from robot code; a refusal is a falsy result, never an exception."""
        return self._start_by_code(source, self.launch)

    def start_hosted(self, source: str = "code") -> StartResult:
        """As `start`, for a host that already runs and calls `step` itself."""
        return self._start_by_code(source, _hosted)

    def start_bound(self, bound: BoundPlan, source: str = "code") -> StartResult:
        """As `start_hosted`, with a plan of robot code's own instead of the staged one."""
        reason = next(iter(self._world_reasons("code")), "")
        return self._refuse(reason) if reason else self._begin(bound, bound.plan.plan_id, source, _hosted)

    def cancel(self, reason: str = "code") -> None:
        """Cancel the run, and a press that still waits for its target or plan."""
        self._held = self._plan_press_us = None
        if self.run is not None:
            self.run.executor.cancel(reason)

    def pause(self) -> None:
        """Pause the run."""
        if self.run is not None:
            self.run.executor.pause()

    def resume(self) -> None:
        """Resume a paused run."""
        if self.run is not None:
            self.run.executor.resume()

    def pose(self) -> Pose2:
        """Return the pose of this loop's inputs; drive steps see it, so that a replay sees the same."""
        return Pose2(self.inputs.pose_x, self.inputs.pose_y, self.inputs.pose_rotation)

    def take_events(self) -> list[Event]:
        """Remove and return the events of staging and runs."""
        return self.log.take()

    def step(self, enabled: bool) -> State:
        """Run the current plan one loop; `update` does it unless the run is hosted."""
        return State.READY if self.run is None else self.run.executor.execute(enabled)

    def clock(self) -> float:
        """Return the time of this loop in seconds."""
        return self.inputs.now_us / 1e6

    # One loop

    def update(self, inputs: Inputs, replay: bool = False) -> Status:
        """Take one loop's inputs, run the plan one loop, and return the status; a replay repeats recorded calls."""
        self.inputs = inputs
        self.log.now_s = self.clock()
        if replay:
            self._repeat_calls(inputs)
        self.heartbeat.on_inputs(inputs, self.settings)
        self.staging.on_jobs(inputs.jobs_done)
        presses = self._arrived(inputs)
        if inputs.plan_texts:
            # A press that is older than the new text means the plan that was staged when it was made.
            newest_us = inputs.plan_stamps_us[-1]
            self._take_presses([press for press in presses if press[2] < newest_us])
            presses = [press for press in presses if press[2] >= newest_us]
        self._take_plan(inputs)
        self.staging.refresh((inputs.alliance, self._finite_pose()))
        self._start_by_plan()
        self._start_held()
        self._take_presses(presses)
        self._take_cancels(inputs)
        self._watch_run()
        if self.run is not None and (self.run.executor.finished or not self.run.hosted):
            self.step(inputs.enabled)  # a finished run may still have to stop the drive
        return self.refresh_status()

    def refresh_status(self) -> Status:
        """Return the status of this moment; moves the run's events to the log."""
        self._keep_events()
        fill_status(self)
        return self.status

    def _keep_events(self) -> None:
        if self.run is not None:
            for event in self.run.executor.take_events():
                self.log.append(event)

    def shown_state(self) -> str:
        """Return the state for the phone."""
        run = self.run
        if run is not None:
            if run.active:
                self._after_changes = self.staging.changes
                return str(run.executor.state)
            if self._after_changes == self.staging.changes and run.executor.finished:
                return str(run.executor.state)
        if self.staging.rejected:
            return "REJECTED"
        if self.staging.staged is None:
            return "NO_PLAN"
        return "STAGED" if self.waiting() else "READY"

    def waiting(self) -> list[str]:
        """Return what keeps a fresh press of RunPlan from being accepted now."""
        reasons = [WAITING[code] for code in self._world_reasons(PHONE)]
        if self.staging.gone:
            reasons.append("plan topic gone")
        missing = self.staging.missing
        if missing:
            reasons.append(missing)
        elif self.staging.bound is not None and not self.staging.bound.leaf_count:
            reasons.append(REASONS["nothing-to-do"])
        return reasons

    def _repeat_calls(self, inputs: Inputs) -> None:
        for call in inputs.calls:
            name, _, argument = call.partition(":")
            if name == "start":
                self.start(argument)
            elif name == "cancel":
                self.cancel(argument)
            elif name == "pause":
                self.pause()
            elif name == "resume":
                self.resume()

    def _finite_pose(self) -> Pose2 | None:
        pose = self.pose()
        return pose if all(map(math.isfinite, (pose.x, pose.y, pose.rotation))) else None

    # Staging

    def _take_plan(self, inputs: Inputs) -> None:
        if inputs.plan_texts:
            text, kind, stamp_us = inputs.plan_texts[-1], inputs.plan_kinds[-1], inputs.plan_stamps_us[-1]
            age_us = inputs.now_us - stamp_us  # negative after a reboot of the robot
            fresh = -us(self.settings.press_max_future_s) <= age_us <= us(self.settings.press_max_age_s)
            retained = stamp_us <= self._boot_us or not fresh
            self._plan_press_us = stamp_us if self.settings.start_on == "plan" and kind == "text" else None
            self.staging.on_text(text, kind, stamp_us, retained, (inputs.alliance, self._finite_pose()))
        if not inputs.plan_exists:
            self.staging.on_topic_gone()
            self._plan_press_us = None

    def _on_fresh_plan(self) -> None:
        new = self.staging.changes != self._begun_changes  # not the plan of this run, bound again
        if self.settings.preempt and new and self.running and self.run is not None:
            self.run.executor.cancel("preempted")

    def _start_by_plan(self) -> None:
        stamp_us = self._plan_press_us
        if stamp_us is None or (self.staging.staged is not None and self.staging.staged.job):
            return
        self._plan_press_us = None
        if self.staging.staged is not None and not self.staging.rejected:
            self._press("plan", TRUE, stamp_us)

    # Starting

    def _arrived(self, inputs: Inputs) -> list[tuple[str, int, int]]:
        """Return the presses of this loop as topic, value, stamp; false is no press."""
        columns = (
            ("run_plan", inputs.run_plan_values, inputs.run_plan_stamps_us),
            ("run_pose", inputs.run_pose_values, inputs.run_pose_stamps_us),
            ("run_route", inputs.run_route_values, inputs.run_route_stamps_us),
        )
        return [
            (topic, value, stamp_us)
            for topic, values, stamps_us in columns
            for value, stamp_us in zip(values, stamps_us, strict=True)
            if value != FALSE
        ]

    def _take_presses(self, presses: list[tuple[str, int, int]]) -> None:
        for topic, value, stamp_us in presses:
            self._press(topic, value, stamp_us)

    def _press(self, topic: str, value: int, stamp_us: int) -> None:
        now_us = self.inputs.now_us
        reason = self._presses[topic].consider(value, stamp_us, now_us, self._boot_us, self.settings)
        reason = reason or next(iter(self._world_reasons(PHONE)), "")
        if reason:
            self._refuse(reason)
        elif stamp_us < self._newest_cancel_us:  # topics may overtake each other
            self._refuse("already-used", "A cancel came after this press.")
        elif topic in ("run_pose", "run_route") and self.robot.leaves is None:
            self._refuse("not-ready", "This robot has no way to drive.")
        elif topic in ("run_pose", "run_route"):
            self._held = _Held(topic, stamp_us, now_us)
        else:
            self._start_staged(PHONE, self.launch)

    def _world_reasons(self, source: str) -> list[str]:
        """Return the failing tests 5 to 8 of the gate, in order; robot code passes 5 and 6."""
        inputs, settings = self.inputs, self.settings
        found: list[str] = []
        if source == PHONE:
            if settings.require_heartbeat and not self.heartbeat.alive(inputs.now_us, settings):
                found.append("no-heartbeat")
            if inputs.fms and not settings.allow_phone_start_fms:
                found.append("fms-locked")
            if inputs.mode and inputs.mode not in settings.phone_modes:
                found.append("mode")
        if inputs.estop:
            found.append("estop")
        if not inputs.enabled:
            found.append("disabled")
        if self.running and not (settings.restart and source == PHONE):
            found.append("running")
        return found

    def _start_by_code(self, source: str, launch: Callable[[Run], str] | None) -> StartResult:
        reason = next(iter(self._world_reasons(source if source != PHONE else "code")), "")
        return self._refuse(reason) if reason else self._start_staged(source, launch)

    def _start_staged(self, source: str, launch: Callable[[Run], str] | None) -> StartResult:
        staging = self.staging
        if source == PHONE and staging.gone:
            return self._refuse("not-ready", "The plan topic is gone.")
        bound, plan = staging.bound, staging.plan
        if staging.missing or bound is None or plan is None:
            return self._refuse("not-ready", staging.missing)
        return self._begin(bound, plan.plan_id, source, launch)

    def _start_held(self) -> None:
        held, inputs = self._held, self.inputs
        if held is None or inputs.now_us <= held.since_us:
            return
        reason = next(iter(self._world_reasons(PHONE)), "")
        if reason:
            self._held = None
            self._refuse(reason)
            return
        pose = held.kind == "run_pose"
        seen = inputs.pose_seen if pose else inputs.route_seen
        stamp_us = inputs.pose_stamp_us if pose else inputs.route_stamp_us
        values = inputs.pose_values if pose else inputs.route_values
        limit = self.settings.pose_max_age_s
        if not (seen and values and (limit is None or abs(held.stamp_us - stamp_us) <= us(limit))):
            if inputs.now_us - held.since_us >= us(self.settings.pose_hold_s):
                self._held = None
                self._refuse("stale-pose")
            return
        self._held = None
        try:
            plan = target_plan(values, pose, self.robot.limits, self.robot.field)
            bound = self.robot.bind(plan, None)
        except PlanError as error:
            self._refuse("not-ready", error.message)
            return
        self._begin(bound, plan.plan_id, PHONE, self.launch)

    def _begin(self, bound: BoundPlan, plan_id: str, source: str, launch: Callable[[Run], str] | None) -> StartResult:
        if not bound.leaf_count:
            return self._refuse("nothing-to-do")
        if self.run is not None and self.run.executor.stop_due:
            return self._refuse("not-ready", "The drive could not be stopped.")
        if self.run is not None and self.running:
            self.run.executor.cancel("restarted")
        self._keep_events()
        settings, inputs = self.settings, self.inputs
        executor = Executor(
            bound,
            clock=self.clock,
            plan_timeout_s=settings.plan_timeout_s,
            max_gap_s=settings.max_gap_s,
            run_id=self.run_count + 1,
            plan_id=plan_id,
        )
        before = self.run
        self.run = run = Run(executor, plan_id, source, inputs.now_us, inputs.mode, hosted=launch is not None)
        busy = launch(run) if launch is not None else ""
        if busy:
            self.run = before
            return self._refuse("drive-busy", busy)
        self.run_count += 1
        self._after_changes = self._begun_changes = self.staging.changes
        self.refused = ""
        self._held = None
        self.log.add("press" if source == PHONE else "call", source, plan_id, self.run_count)
        if executor.state is State.READY and not executor.finished:
            executor.start()
        return StartResult(True)

    def _refuse(self, code: str, text: str = "") -> StartResult:
        result = StartResult(False, code, text or REASONS[code])
        self.refused = f"{code}: {result.text}"
        self.log.add("refused", self.refused)
        return result

    # Cancelling

    def _take_cancels(self, inputs: Inputs) -> None:
        for value, stamp_us in zip(inputs.cancel_values, inputs.cancel_stamps_us, strict=True):
            if value == FALSE:
                continue
            if value != TRUE:
                self.refused = f"wrong-value-type: {REASONS['wrong-value-type']}"
                self.log.add("refused", self.refused)
            if (
                not self.running
                or self.run is None
                or cancel_counts(stamp_us, self.run, inputs.now_us, self._cancels_us, self.settings)
            ):
                self.cancel(PHONE)
            self._cancels_us.append(stamp_us)
            if stamp_us <= inputs.now_us + us(self.settings.press_max_future_s):
                self._newest_cancel_us = max(self._newest_cancel_us, stamp_us)

    def _watch_run(self) -> None:
        if self.running and self.run is not None:
            alive = not self.settings.require_heartbeat or self.heartbeat.alive(self.inputs.now_us, self.settings)
            reason = abort_reason(self.run, self.inputs, self.settings, alive)
            if reason:
                self.cancel(reason)


def _hosted(_run: Run) -> str:
    return ""
