"""A plan bound to one robot: its actions, its drive, its path files, its alliance."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from .actions import Action, Actions
from .drive import Drive
from .errors import PlanError, StepFailed, clean, sentence
from .extra import ExtraType
from .leaves import DriveLeaves, Leaves
from .model import (
    FIELD_2026,
    ActionNode,
    Field,
    Node,
    ParallelNode,
    PathNode,
    Plan,
    PlanWarning,
    Pose2,
    PoseNode,
    RouteNode,
    SequenceNode,
)
from .pathfile import PathFolder, PathSource
from .steps import ParallelStep, SequenceStep, Step, StepMaker, as_step
from .timeline import Estimates, TimelineEntry, build_timeline, drive_estimate, label_of

__all__ = ["BoundNode", "BoundPlan", "bind"]

FRAME_JUMP_M = 2.0
PATH_TIMEOUT_S = 20.0  # of a path whose length is not known
TIMEOUT_FACTOR, TIMEOUT_EXTRA_S = 1.5, 2.0

Maker = Callable[[StepMaker, int], Step]


@dataclass(frozen=True, slots=True)
class BoundNode:
    """One node with all that running it needs. `number` counts leaves from 1, it is 0 for a group."""

    node: Node
    label: str
    number: int
    make: Maker
    requires: tuple[object, ...] = ()
    action: Action | None = None
    drives: bool = False

    @property
    def path(self) -> str:
        """The node's JSON path."""
        return self.node.path

    @property
    def is_leaf(self) -> bool:
        """True for a node that does something itself."""
        return self.number > 0

    @property
    def restarts(self) -> bool:
        """True if a pause ends the step and a resume makes a new one."""
        if self.action is not None:
            return self.action.resumable
        return self.drives and self.is_leaf and not isinstance(self.node, PathNode)

    @property
    def finishes_first(self) -> bool:
        """True if a pause waits for the end of this step."""
        return isinstance(self.node, PathNode)


class BoundPlan:
    """A plan whose every step can be made. `prepare` may be slow; the rest is quick."""

    def __init__(
        self,
        plan: Plan,
        nodes: Sequence[BoundNode],
        leaves: Leaves | None,
        warnings: tuple[PlanWarning, ...],
        alliance: str | None,
        estimates: Estimates,
        paths: PathSource | None,
        extra_types: Mapping[str, ExtraType],
    ) -> None:
        self.plan = plan
        self.extra_types = extra_types
        self.warnings = warnings
        self.alliance = alliance
        self.estimates = estimates
        self.paths = paths
        self.leaves = leaves
        self.nodes = {node.path: node for node in nodes}
        self.root = nodes[0]
        self.leaf_count = sum(node.is_leaf for node in nodes)
        self.drives = any(node.drives for node in nodes)
        self.requires = _distinct(need for node in nodes for need in node.requires)
        self.prepared: dict[str, object] = {}

    def _preparable(self) -> list[BoundNode]:
        if self.leaves is None:
            return []
        return [node for node in self.nodes.values() if isinstance(node.node, (PathNode, PoseNode, RouteNode))]

    def prepare(self, start: Pose2 | None) -> None:
        """Do the slow work of every driving step, expected to start where the one before ends."""
        for bound in self._preparable():
            if self.leaves is not None:
                try:
                    self.prepared[bound.path] = self.leaves.prepare(bound.node, start, self.alliance)
                except StepFailed:
                    # From where the robot is now; the step tries again from where it starts.
                    self.prepared[bound.path] = None
                start = self.leaves.end_pose(bound.node, self.alliance)

    def stop(self) -> None:
        """Stop the drive, if there is one."""
        if self.leaves is not None:
            self.leaves.drive.stop()

    def measured(self) -> Pose2 | None:
        """Return the robot's pose, None without a drive."""
        return self.leaves.drive.pose() if self.leaves is not None else None

    def timeout_s(self, bound: BoundNode, expected_s: float | None) -> float | None:
        """Return how long a leaf may run from now, None for any time; `expected_s` comes from its step."""
        if bound.action is not None:
            return bound.action.timeout_s
        if not bound.drives:
            return None
        if expected_s is None:
            try:
                expected_s = drive_estimate(bound.node, self.measured(), self.estimates, self.paths)[0]
            except (OSError, ValueError):  # the path file vanished after binding
                expected_s = None
        if expected_s is None:
            return PATH_TIMEOUT_S
        return expected_s * TIMEOUT_FACTOR + TIMEOUT_EXTRA_S

    def timeline(self, start: Pose2 | None) -> tuple[TimelineEntry, ...]:
        """Return the estimates of this robot, with its action names."""
        actions = {node.action.action_id: node.action for node in self.nodes.values() if node.action is not None}
        flip = self.leaves.field if self.leaves is not None and self.alliance == "red" else None
        return build_timeline(self.plan, self.estimates, start, self.paths, actions, flip)


def bind(
    plan: Plan,
    actions: Actions | Mapping[int, Action],
    drive: Drive | None = None,
    leaves: Leaves | None = None,
    paths: PathSource | str | Path | None = None,
    alliance: str | None = None,
    estimates: Estimates | None = None,
    *,
    field: Field = FIELD_2026,
    extra_types: Mapping[str, ExtraType] | None = None,
) -> BoundPlan:
    """Return the plan bound to a robot; PlanError with a code of BIND_CODES if it does not fit.

    `leaves` makes the driving steps; without it `drive` is driven straight from pose to pose.
    `alliance` is red, blue or None; poses of a plan with the alliance frame are turned on red.
    """
    source = PathFolder(paths) if isinstance(paths, (str, Path)) else paths
    if leaves is None and drive is not None:
        leaves = DriveLeaves(drive, paths=source, field=field)
    if plan.meta.by_alliance and alliance == "red":
        plan = replace(plan, root=_turned(plan.root, field))
    binder = _Binder(actions, leaves, source, alliance, extra_types or {})
    nodes = binder.run(plan.root)
    warnings = [*binder.warnings]
    if not any(node.is_leaf for node in nodes):
        warnings.append(PlanWarning("nothing-to-do", "$", "The plan has no step that does something."))
    bound = BoundPlan(
        plan, nodes, leaves, tuple(warnings), alliance, estimates or Estimates(), source, extra_types or {}
    )
    binder.bound = bound
    return bound


def _turned(node: Node, field: Field) -> Node:
    if isinstance(node, PoseNode):
        return replace(node, pose=node.pose.flipped(field))
    if isinstance(node, RouteNode):
        return replace(node, poses=tuple(pose.flipped(field) for pose in node.poses))
    if not node.steps:
        return node
    # Every group is a frozen dataclass with `children`; a team's group type has to be one too.
    return cast(Node, replace(cast(SequenceNode, node), children=tuple(_turned(child, field) for child in node.steps)))


def _distinct(found: object) -> tuple[object, ...]:
    kept: list[object] = []
    for need in cast(Sequence[object], found):
        if not any(need is other for other in kept):
            kept.append(need)
    return tuple(kept)


class _Binder:
    """One pre-order pass over a plan."""

    def __init__(
        self,
        actions: Mapping[int, Action],
        leaves: Leaves | None,
        paths: PathSource | None,
        alliance: str | None,
        extra_types: Mapping[str, ExtraType],
    ) -> None:
        self._actions = actions
        self._leaves = leaves
        self._paths = paths
        self._alliance = alliance
        self._extra_types = extra_types
        self._number = 0
        self._path_end: Pose2 | None = None
        self._grid = paths.navgrid() if paths is not None else None
        self.warnings: list[PlanWarning] = []
        self.bound: BoundPlan | None = None

    def run(self, root: Node) -> list[BoundNode]:
        nodes: list[BoundNode] = []
        self._node(root, nodes)
        return nodes

    def _node(self, node: Node, into: list[BoundNode]) -> None:
        if node.is_group:
            into.append(BoundNode(node, label_of(node), 0, self._group_maker(node)))
            starts: list[int] = []
            for child in node.steps:
                starts.append(len(into))
                self._node(child, into)
            if not isinstance(node, SequenceNode):
                self._exclusive([into[a:b] for a, b in itertools.pairwise([*starts, len(into)])])
            return
        self._number += 1
        label = label_of(node, self._actions)
        if isinstance(node, ActionNode):
            action = self._action(node)
            into.append(
                BoundNode(node, label, self._number, lambda _m, _s: as_step(action.factory()), action.requires, action)
            )
        elif isinstance(node, (PathNode, PoseNode, RouteNode)):
            leaves = self._drive_leaf(node)
            into.append(BoundNode(node, label, self._number, self._drive_maker(node), leaves.requires, drives=True))
        else:
            extra = self._extra(node)
            drives = node.drives or extra.drives
            needs = self._leaves.requires if drives and self._leaves is not None else ()
            into.append(BoundNode(node, label, self._number, lambda m, _s: extra.build(node, m), needs, drives=drives))

    def _extra(self, node: Node) -> ExtraType:
        extra = self._extra_types.get(node.type)
        if extra is None:
            raise PlanError("unknown-type", f"{node.path}.type", f"This robot cannot run {clean(node.type)} steps.")
        return extra

    def _group_maker(self, node: Node) -> Maker:
        if isinstance(node, SequenceNode):
            return lambda maker, _: SequenceStep([maker.step(child) for child in node.steps])
        if isinstance(node, ParallelNode):
            return lambda maker, _: ParallelStep([maker.step(child) for child in node.steps])
        extra = self._extra(node)
        return lambda maker, _: extra.build(node, maker)

    def _drive_maker(self, node: PathNode | PoseNode | RouteNode) -> Maker:
        def make(_maker: StepMaker, skip: int) -> Step:
            assert self._leaves is not None and self.bound is not None
            prepared = self.bound.prepared.get(node.path)
            if skip and isinstance(node, RouteNode):
                return self._leaves.make(replace(node, poses=node.poses[skip:]), None, self._alliance)
            return self._leaves.make(node, prepared, self._alliance)

        return make

    def _action(self, node: ActionNode) -> Action:
        action = self._actions.get(node.action_id)
        if action is not None:
            return action
        known = ", ".join(f"{key} {clean(self._actions[key].name, 16)}" for key in sorted(self._actions)[:5])
        where = f"{node.path}.actionId"
        message = f"No action {node.action_id} on this robot. Known: {known or 'none'}."
        raise PlanError("unknown-action", where, sentence(message))

    def _drive_leaf(self, node: PathNode | PoseNode | RouteNode) -> Leaves:
        if self._leaves is None:
            raise PlanError("no-drive", node.path, f"This robot has no way to drive a {node.type} step.")
        self.warnings += self._leaves.check(node, self._alliance)
        if isinstance(node, PathNode):
            end = self._leaves.end_pose(node, self._alliance)
            self._path_end = end if self._alliance == "red" else None
            return self._leaves
        if self._path_end is not None and self._path_end.distance(node.targets[0]) > FRAME_JUMP_M:
            message = "The path before is flipped for red, this pose is not; they are far apart."
            self.warnings.append(PlanWarning("frame-jump", node.path, message))
        self._path_end = None
        if self._grid is not None:
            for index, pose in enumerate(node.targets):
                if self._grid.blocked(pose):
                    where = ".pose" if isinstance(node, PoseNode) else f".routePoses[{index}]"
                    raise PlanError("goal-in-obstacle", node.path + where, "The pose is inside a field obstacle.")
        return self._leaves

    def _exclusive(self, children: list[list[BoundNode]]) -> None:
        holders: list[tuple[object, str]] = []
        for child in children:
            mine = [(need, bound.label) for bound in child for need in bound.requires]
            for need, label in mine:
                for held, holder in holders:
                    if held is need:
                        what = clean(_name_of(need), 20)
                        message = f"{clean(holder, 30)} and {clean(label, 30)} both need the {what}."
                        raise PlanError("requirement-conflict", child[0].path, sentence(message))
            holders += mine


def _name_of(need: object) -> str:
    named = getattr(need, "getName", None)
    name = named() if callable(named) else need if isinstance(need, str) else getattr(need, "name", None)
    return name if isinstance(name, str) and name else type(need).__name__
