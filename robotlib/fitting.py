"""What a plan is fitted to, and the fitting: parsed, bound, prepared. Touches no shared state: the worker runs it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .actions import Action, Actions
from .binding import BoundPlan, bind
from .errors import PlanError
from .extra import ExtraType
from .leaves import Leaves
from .model import FIELD_2026, Field, Limits, PathNode, Plan, Pose2
from .parse import parse
from .pathfile import PathSource
from .timeline import Estimates

__all__ = ["Fitted", "Robot", "actions_json", "fit", "needs_alliance"]


@dataclass(slots=True)
class Robot:
    """What a plan is bound to."""

    actions: Actions
    leaves: Leaves | None = None
    paths: PathSource | None = None
    field: Field = FIELD_2026
    limits: Limits = Limits()  # noqa: RUF009  (frozen)
    extra_types: Mapping[str, ExtraType] | None = None
    estimates: Estimates = Estimates()  # noqa: RUF009

    def parse(self, text: str) -> Plan:
        """Return the plan; PlanError if there is none."""
        return parse(text, self.limits, self.field, extra_types=self.extra_types)

    def bind(self, plan: Plan, alliance: str | None, actions: Mapping[int, Action] | None = None) -> BoundPlan:
        """Return the plan bound to this robot; PlanError if it does not fit."""
        return bind(
            plan,
            self.actions if actions is None else actions,
            leaves=self.leaves,
            paths=self.paths,
            alliance=alliance,
            estimates=self.estimates,
            field=self.field,
            extra_types=self.extra_types,
        )

    @property
    def binds_slowly(self) -> bool:
        """True if binding reads files or the driving steps take long to prepare."""
        return self.paths is not None or bool(getattr(self.leaves, "slow", False))


@dataclass(frozen=True, slots=True)
class Fitted:
    """How far a text has come: `bound` is None without an error if the alliance is missing."""

    plan: Plan | None = None
    bound: BoundPlan | None = None
    error: PlanError | None = None
    timeline: str = "[]"


def needs_alliance(plan: Plan) -> bool:
    """Return True if the plan means different places for red and blue."""
    return plan.meta.by_alliance or any(isinstance(node, PathNode) for node in plan.walk())


def fit(
    text: str, plan: Plan | None, robot: Robot, alliance: str, start: Pose2 | None, actions: Mapping[int, Action]
) -> Fitted:
    """Return the text as a plan bound and prepared for a start at that pose."""
    try:
        if plan is None:
            plan = robot.parse(text)
        sided = needs_alliance(plan)
        if sided and not alliance:
            return Fitted(plan)
        bound = robot.bind(plan, alliance if sided else None, actions)
        bound.prepare(start)
    except PlanError as error:
        return Fitted(plan, error=error)
    entries = [entry.to_dict() for entry in bound.timeline(start)]
    return Fitted(plan, bound, timeline=json.dumps(entries, separators=(",", ":")))


def actions_json(actions: Mapping[int, Any]) -> str:
    """Return the registered actions for the phone."""
    names = {str(key): str(getattr(action, "name", "")) for key, action in sorted(actions.items())}
    return json.dumps(names, separators=(",", ":"))
