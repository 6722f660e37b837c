"""One run, and the rules that end it from outside. Pure; stamps in microseconds of the NT clock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .execute import Executor, State
from .gate import us
from .inputs import Inputs
from .model import Field, Limits, Plan
from .parse import from_dict
from .settings import Settings

__all__ = ["PHONE", "Run", "abort_reason", "cancel_counts", "target_plan"]

PHONE = "phone"
REPLAY_US = 1_000  # a value sent again by a client differs by tens of microseconds


@dataclass(slots=True)
class Run:
    """One run of one plan. `hosted` runs are stepped by their host instead of `update`."""

    executor: Executor
    plan_id: str
    source: str
    started_us: int
    mode: str
    hosted: bool = False

    @property
    def active(self) -> bool:
        """True while RUNNING or PAUSED."""
        return self.executor.state in (State.RUNNING, State.PAUSED)


def target_plan(values: Sequence[float], one_pose: bool, limits: Limits, field: Field) -> Plan:
    """Return the one-step plan of a Pose or Route topic; PlanError by the rules of every plan."""
    poses = [dict(zip(("x", "y", "rotation"), values[i : i + 3], strict=True)) for i in range(0, len(values), 3)]
    step = {"type": "POSE", "pose": poses[0]} if one_pose else {"type": "ROUTE", "routePoses": poses}
    return from_dict(step, limits, field)


def cancel_counts(stamp_us: int, run: Run, now_us: int, seen_us: Iterable[int], settings: Settings) -> bool:
    """Return True if a cancel of that stamp means this run; in doubt it does."""
    if stamp_us < run.started_us - us(settings.cancel_slack_s):
        return False
    # From before a reboot: ahead of the clock, and already seen before.
    ahead = stamp_us > now_us + us(settings.press_max_future_s)
    return not (ahead and any(abs(stamp_us - other_us) <= REPLAY_US for other_us in seen_us))


def abort_reason(run: Run, inputs: Inputs, settings: Settings, alive: bool) -> str:
    """Return why the run has to end now, "" if it may go on."""
    by_phone = run.source == PHONE
    stick = inputs.mode in settings.stick_modes and abs(inputs.stick) > settings.stick_deadband
    link_matters = settings.link_lost_cancels_phone if by_phone else settings.link_lost_cancels_code
    causes = (
        (inputs.estop, "estop"),
        (inputs.brownout, "brownout"),
        (not inputs.enabled, "disabled"),
        (inputs.mode != run.mode, "mode-change"),
        (stick, "stick"),
        (link_matters and not alive, "link-lost"),
    )
    return next((reason for holds, reason in causes if holds), "")
