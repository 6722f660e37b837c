"""Runs a bound plan against a simulated clock and an ideal drive; for laptops and team tests."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from .binding import BoundPlan, bind
from .drive import DriveSettings
from .eventlog import Event
from .execute import Executor, State
from .leaves import DriveLeaves
from .model import PlanMeta, Pose2

__all__ = ["DryRun", "IdealDrive", "Recording"]


class IdealDrive:
    """Moves exactly as commanded whenever `advance` is called."""

    def __init__(self, start: Pose2) -> None:
        self._at = start
        self._output = (0.0, 0.0, 0.0)

    def pose(self) -> Pose2:
        """Return the simulated pose."""
        return self._at

    def drive(self, vx: float, vy: float, omega: float) -> None:
        """Take the field-relative command."""
        self._output = (vx, vy, omega)

    def stop(self) -> None:
        """Stand still."""
        self._output = (0.0, 0.0, 0.0)

    def advance(self, dt_s: float) -> None:
        """Move for that time."""
        vx, vy, omega = self._output
        turned = math.remainder(self._at.rotation + omega * dt_s, 2 * math.pi)
        self._at = Pose2(self._at.x + vx * dt_s, self._at.y + vy * dt_s, turned)


@dataclass(frozen=True, slots=True)
class Recording:
    """What a dry run did; `states` has one entry per loop."""

    events: tuple[Event, ...]
    duration_s: float
    end_pose: Pose2
    states: tuple[State, ...]


class DryRun:
    """One simulated run of a plan with its real actions."""

    def __init__(
        self,
        bound: BoundPlan,
        start: Pose2 = Pose2(0.0, 0.0, 0.0),  # noqa: B008  (frozen)
        period_s: float = 0.02,
        settings: DriveSettings = DriveSettings(),  # noqa: B008
    ) -> None:
        self._period_s = period_s
        self._drive = IdealDrive(start)
        actions = {node.action.action_id: node.action for node in bound.nodes.values() if node.action is not None}
        leaves = DriveLeaves(self._drive, settings, bound.paths)
        # The poses are turned for red already; a second binding must not turn them back.
        plan = replace(bound.plan, meta=PlanMeta())
        self._bound = bind(
            plan, actions, leaves=leaves, paths=bound.paths, alliance=bound.alliance, extra_types=bound.extra_types
        )

    def run(self) -> Recording:
        """Run to the end; the plan timeout bounds it."""
        self._bound.prepare(self._drive.pose())
        now = 0.0
        executor = Executor(self._bound, clock=lambda: now)
        executor.start()
        events: list[Event] = []
        states: list[State] = []
        while not executor.finished:
            states.append(executor.execute())
            events += executor.take_events()
            self._drive.advance(self._period_s)
            now += self._period_s
        return Recording(tuple(events), (len(states) - 1) * self._period_s, self._drive.pose(), tuple(states))
