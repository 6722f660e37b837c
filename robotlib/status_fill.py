"""Fills the status from the control's state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import clean
from .execute import State
from .fitting import actions_json
from .model import Pose2

if TYPE_CHECKING:
    from .control import PlanControl
    from .runs import Run

__all__ = ["fill_status"]

_MAX_NAME = 128


def fill_status(control: PlanControl) -> None:
    """Bring `control.status` up to date."""
    status, staging, inputs = control.status, control.staging, control.inputs
    status.state = control.shown_state()
    known = staging.staged is not None or staging.rejected
    status.waiting = tuple(control.waiting()) if known else ()
    status.ready = known and not status.waiting
    status.refused = control.refused
    plan = staging.plan
    status.plan_id = plan.plan_id if plan is not None else ""
    status.plan_name = clean(plan.meta.name or "", _MAX_NAME) if plan is not None else ""
    status.plan_poses = staging.poses
    status.warnings = staging.warnings
    status.timeline = staging.staged.timeline if plan is not None and staging.staged is not None else "[]"
    status.retained = staging.staged is not None and staging.staged.retained
    status.link = control.heartbeat.link(inputs.now_us, control.settings)
    status.alliance = inputs.alliance
    _fill_run(control, control.run)
    _fill_error(control)
    if control.actions_revision != control.robot.actions.revision:
        control.actions_revision = control.robot.actions.revision
        status.actions = actions_json(control.robot.actions)


def _fill_run(control: PlanControl, run: Run | None) -> None:
    status = control.status
    status.run_id = control.run_count
    if run is None:
        return
    executor = run.executor
    status.running_id = run.plan_id if run.active else ""
    status.run_source = run.source
    status.running = executor.running
    status.running_text = executor.running_labels
    status.progress = executor.progress
    status.step_elapsed_s = executor.step_elapsed_s
    status.active_pose = _active_pose(run)


def _active_pose(run: Run) -> Pose2 | None:
    for path in run.executor.running:
        targets = run.executor.bound.nodes[path].node.targets
        if targets:
            return targets[-1]
    return None


def _fill_error(control: PlanControl) -> None:
    status, error, run = control.status, control.staging.error, control.run
    if error is not None:
        status.error, status.error_code, status.error_path = error.message, error.code, error.path
    elif run is not None and run.executor.state is State.FAILED and run.executor.error is not None:
        failure = run.executor.error
        status.error, status.error_code, status.error_path = failure.text, failure.code, failure.path
    else:
        status.error = status.error_code = status.error_path = ""
