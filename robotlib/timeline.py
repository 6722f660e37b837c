"""Time estimates of a plan, one entry per node."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .model import (
    ActionNode,
    DeadlineNode,
    Field,
    Node,
    PathNode,
    Plan,
    Pose2,
    PoseNode,
    RaceNode,
    RouteNode,
    SequenceNode,
    WaitNode,
)

if TYPE_CHECKING:
    from .pathfile import PathSource

__all__ = ["Estimates", "TimelineEntry", "build_timeline", "drive_estimate", "label_of"]


@dataclass(frozen=True, slots=True)
class Estimates:
    """The speeds and default times that estimates use."""

    max_speed_mps: float = 3.0
    max_accel_mps2: float = 3.0
    max_omega_radps: float = 6.0
    max_alpha_radps2: float = 12.0
    default_drive_s: float = 3.0
    default_action_s: float = 1.0

    def drive_s(self, distance_m: float, turn_rad: float) -> float:
        """Return the time of a way that starts and ends at standstill."""
        straight = travel_s(distance_m, self.max_speed_mps, self.max_accel_mps2)
        return max(straight, travel_s(abs(turn_rad), self.max_omega_radps, self.max_alpha_radps2))


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """When one node is expected to run; basis is computed, declared or default."""

    path: str
    type: str
    label: str
    start_s: float
    end_s: float
    basis: str

    def to_dict(self) -> dict[str, object]:
        """Return the entry as a new dict."""
        return {
            "path": self.path,
            "type": self.type,
            "label": self.label,
            "start_s": self.start_s,
            "end_s": self.end_s,
            "basis": self.basis,
        }


def travel_s(distance: float, speed: float, accel: float) -> float:
    """Return the time of a distance from standstill to standstill."""
    if distance >= speed * speed / accel:
        return distance / speed + speed / accel
    return 2 * math.sqrt(distance / accel)


def way(start: Pose2, poses: Iterable[Pose2]) -> tuple[float, float]:
    """Return length and summed rotation of a polyline."""
    length = turn = 0.0
    for pose in poses:
        length += start.distance(pose)
        turn += abs(math.remainder(pose.rotation - start.rotation, 2 * math.pi))
        start = pose
    return length, turn


def drive_estimate(
    node: Node, start: Pose2 | None, estimates: Estimates, paths: PathSource | None
) -> tuple[float | None, Pose2 | None]:
    """Return the seconds (None if they cannot be told) and the pose after a driving step."""
    if isinstance(node, PathNode):
        file = paths.load(node.name) if paths is not None else None
        if file is None:
            return None, None
        return travel_s(file.length_m, file.max_speed_mps, file.max_accel_mps2), file.end
    if isinstance(node, (PoseNode, RouteNode)):
        seconds = None if start is None else estimates.drive_s(*way(start, node.targets))
        return seconds, node.targets[-1]
    return None, None


def label_of(node: Node, actions: Mapping[int, object] | None = None) -> str:
    """Return what a person reads for this step."""
    if isinstance(node, PathNode):
        return node.name
    if isinstance(node, PoseNode):
        pose = node.pose
        return f"{pose.x + 0.0:.2f}, {pose.y + 0.0:.2f}, {round(math.degrees(pose.rotation))} deg"
    if isinstance(node, RouteNode):
        return _count(len(node.poses), "pose")
    if isinstance(node, ActionNode):
        action = actions.get(node.action_id) if actions is not None else None
        return str(getattr(action, "name", "")) or f"action {node.action_id}"
    if isinstance(node, WaitNode):
        return f"{node.seconds:g} s"
    return _count(len(node.steps), "step") if node.is_group else node.type


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def build_timeline(
    plan: Plan,
    estimates: Estimates,
    start: Pose2 | None,
    paths: PathSource | None,
    actions: Mapping[int, object] | None = None,
    flip_paths: Field | None = None,
) -> tuple[TimelineEntry, ...]:
    """Return one entry per node, a parent before its children; `flip_paths` is the field if PATH ends are flipped."""
    return tuple(_Walk(estimates, paths, actions, flip_paths).run(plan.root, start))


class _Walk:
    def __init__(
        self,
        estimates: Estimates,
        paths: PathSource | None,
        actions: Mapping[int, object] | None,
        flip_paths: Field | None,
    ) -> None:
        self._estimates = estimates
        self._paths = paths
        self._actions = actions
        self._flip_paths = flip_paths

    def run(self, root: Node, start: Pose2 | None) -> list[TimelineEntry]:
        self._pose = start
        return self._node(root, 0.0)[0]

    def _node(self, node: Node, begin: float) -> tuple[list[TimelineEntry], float]:
        """Return the entries of the node and its subtree, and its unrounded end."""
        if node.is_group:
            return self._group(node, begin)
        seconds, basis = self._leaf(node)
        return [self._entry(node, begin, begin + seconds, basis)], begin + seconds

    def _group(self, node: Node, begin: float) -> tuple[list[TimelineEntry], float]:
        inside: list[TimelineEntry] = []
        ends: list[float] = []
        at = begin
        for child in node.steps:
            entries, end = self._node(child, at)
            inside += entries
            ends.append(end)
            if isinstance(node, SequenceNode):
                at = end
        if isinstance(node, RaceNode):
            end = min(ends, default=begin)
        elif isinstance(node, DeadlineNode):
            end = ends[0] if ends else begin
        else:
            end = max(ends, default=begin)
        basis = "default" if any(entry.basis == "default" for entry in inside) else "computed"
        return [self._entry(node, begin, end, basis), *inside], end

    def _leaf(self, node: Node) -> tuple[float, str]:
        if isinstance(node, WaitNode):
            return node.seconds, "declared"
        if not node.drives:
            action = self._actions.get(node.action_id) if self._actions and isinstance(node, ActionNode) else None
            declared = getattr(action, "estimate_s", None)
            if declared is not None:
                return float(declared), "declared"
            return self._estimates.default_action_s, "default"
        try:
            seconds, self._pose = drive_estimate(node, self._pose, self._estimates, self._paths)
        except (OSError, ValueError):  # a missing or broken path file is the binder's finding
            seconds, self._pose = None, None
        if self._flip_paths and self._pose is not None and isinstance(node, PathNode):
            self._pose = self._pose.flipped(self._flip_paths)
        return (self._estimates.default_drive_s, "default") if seconds is None else (seconds, "computed")

    def _entry(self, node: Node, begin: float, end: float, basis: str) -> TimelineEntry:
        label = label_of(node, self._actions)
        return TimelineEntry(node.path, node.type, label, round(begin, 3), round(end, 3), basis)
