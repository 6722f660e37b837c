"""One pass over decoded JSON: the nodes, in the order of the checks, with their warnings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from .checks import kind, missing, number, wrapped
from .errors import PlanError, clean, sentence
from .extra import ExtraType, ParseContext
from .model import (
    ActionNode,
    Field,
    Limits,
    Node,
    ParallelNode,
    PathNode,
    PlanMeta,
    PlanWarning,
    Pose2,
    PoseNode,
    RouteNode,
    SequenceNode,
)

__all__ = ["BUILT_IN", "Reader"]

MAX_WARNINGS = 50  # a text within the size limit can hold ten thousand unknown fields
INT32 = 2**31
NEWEST_VERSION = 1

_META_FIELDS = frozenset({"version", "id", "name", "frame"})
_POSE_FIELDS = frozenset({"x", "y", "rotation"})


class Reader:
    """One pass over decoded JSON: counts nodes, collects warnings."""

    __slots__ = ("count", "dropped", "extras", "field", "limits", "meta", "warnings")

    def __init__(self, limits: Limits, field: Field, extras: Mapping[str, ExtraType]) -> None:
        self.limits = limits
        self.field = field
        self.extras = extras
        self.meta = PlanMeta()
        self.count = 0
        self.dropped = 0
        self.warnings: list[PlanWarning] = []

    def warn(self, code: str, path: str, message: str) -> None:
        """Keep a warning, or count it beyond the limit."""
        if len(self.warnings) < MAX_WARNINGS:
            self.warnings.append(PlanWarning(code, path, message))
        else:
            self.dropped += 1

    def all_warnings(self) -> tuple[PlanWarning, ...]:
        """Return the warnings; the last one tells how many are missing."""
        if not self.dropped:
            return tuple(self.warnings)
        return (*self.warnings, PlanWarning("more", "$", f"{self.dropped} more warnings are not shown."))

    def node(self, obj: object, path: str, depth: int) -> Node:
        """Return the step at `path`, the root has depth 1."""
        if not isinstance(obj, dict):
            raise PlanError("wrong-type", path, f"A step must be an object, not {kind(obj)}.")
        self.count += 1
        if self.count > self.limits.max_nodes:
            raise PlanError("too-many-nodes", path, f"Plan has more than {self.limits.max_nodes} steps.")
        if depth > self.limits.max_depth:
            raise PlanError("too-deep", path, f"Steps are nested deeper than {self.limits.max_depth} levels.")
        name = self._type_name(obj, path)
        if depth == 1:
            self.meta = self._meta(obj)
        read = BUILT_IN.get(name)
        if read is not None:
            self._unknown_fields(obj, path, _FIELDS[name], top=depth == 1)
            return read(self, obj, path, depth)
        extra = self.extras[name]
        self._unknown_fields(obj, path, {"type", *extra.fields}, top=depth == 1)
        return self._extra(extra, obj, path, depth)

    def _extra(self, extra: ExtraType, obj: dict[str, Any], path: str, depth: int) -> Node:
        try:
            return extra.parse(obj, ParseContext(self, path, depth))
        except (PlanError, RecursionError):
            raise
        except Exception as error:  # team code: whatever it raises, the text of a phone must not stop the robot
            message = sentence(f"This step cannot be read: {error}")
            raise PlanError("wrong-type", path, message) from error

    def _type_name(self, obj: dict[str, Any], path: str) -> str:
        if "type" not in obj:
            raise missing(path, "type")
        name = obj["type"]
        if not isinstance(name, str):
            raise PlanError("wrong-type", f"{path}.type", f"type must be text, not {kind(name)}.")
        if name in BUILT_IN or name in self.extras:
            return name
        meant = name.strip().upper()
        hint = f" Did you mean {meant}?" if meant in BUILT_IN or meant in self.extras else ""
        raise PlanError("unknown-type", f"{path}.type", f"Unknown step type '{clean(name)}'.{hint}")

    def _unknown_fields(self, obj: dict[str, Any], path: str, known: set[str] | frozenset[str], top: bool) -> None:
        if obj.keys() <= known:
            return
        for key in obj:
            if key not in known and not (top and key in _META_FIELDS):
                shown = clean(str(key))
                self.warn("unknown-field", f"{path}.{shown}", f"Field '{shown}' is not known and ignored.")

    def _meta(self, obj: dict[str, Any]) -> PlanMeta:
        if obj.keys().isdisjoint(_META_FIELDS):
            return PlanMeta()
        version = obj.get("version")
        if "version" in obj:
            if type(version) is not int:
                raise PlanError("wrong-type", "$.version", f"version must be a whole number, not {kind(version)}.")
            if version != NEWEST_VERSION:
                raise PlanError("out-of-range", "$.version", f"version must be {NEWEST_VERSION} for this robot code.")
        texts: dict[str, str | None] = {}
        for key in ("id", "name", "frame"):
            text = texts[key] = obj.get(key)
            if key not in obj:
                continue
            if not isinstance(text, str):
                raise PlanError("wrong-type", f"$.{key}", f"{key} must be text, not {kind(text)}.")
            if key == "frame" and text not in ("blue", "alliance"):
                raise PlanError("out-of-range", "$.frame", "frame must be blue or alliance.")
            if len(text) > self.limits.max_string:
                raise PlanError(
                    "out-of-range", f"$.{key}", f"{key} is longer than {self.limits.max_string} characters."
                )
        return PlanMeta(version, **texts)

    def children(self, obj: Mapping[str, Any], path: str, depth: int) -> tuple[Node, ...]:
        """Return the child steps of a group."""
        if "children" not in obj:
            raise missing(path, "children")
        listed = obj["children"]
        if not isinstance(listed, list):
            raise PlanError("wrong-type", f"{path}.children", f"children must be a list, not {kind(listed)}.")
        if not listed:
            self.warn("empty-group", path, "This step has no children and does nothing.")
        return tuple([self.node(child, f"{path}.children[{i}]", depth + 1) for i, child in enumerate(listed)])

    def exclusive_drive(self, children: tuple[Node, ...], type_name: str) -> None:
        """Raise if two children, which run together, drive."""
        driving = False
        for child in children:
            if not self._drives(child):
                continue
            if driving:
                message = f"Two steps of this {type_name} both drive the robot."
                raise PlanError("parallel-drive-conflict", child.path, message)
            driving = True

    def _drives(self, node: Node) -> bool:
        extra = self.extras.get(node.type)
        return node.drives or (extra is not None and extra.drives) or any(map(self._drives, node.steps))

    def pose(self, value: object, path: str) -> Pose2:
        """Return the pose at `path`."""
        if not isinstance(value, dict):
            raise PlanError("wrong-type", path, f"A pose must be an object, not {kind(value)}.")
        for key in ("x", "y", "rotation"):
            if key not in value:
                raise missing(path, key, "Pose")
        x = number(value["x"], "x", f"{path}.x")
        y = number(value["y"], "y", f"{path}.y")
        raw = number(value["rotation"], "rotation", f"{path}.rotation")
        self._on_field(x, self.field.length_m, "x", path)
        self._on_field(y, self.field.width_m, "y", path)
        if len(value) > len(_POSE_FIELDS):
            self._unknown_fields(value, path, _POSE_FIELDS, top=False)
        if abs(raw) > 2 * math.pi:
            self.warn("rotation-range", f"{path}.rotation", "rotation is more than a turn; it looks like degrees.")
        half = self.field.robot_half_size_m
        if half > 0 and not (half <= x <= self.field.length_m - half and half <= y <= self.field.width_m - half):
            self.warn("near-edge", path, "The pose is nearer to a wall than half a robot.")
        return Pose2(x, y, wrapped(wrapped(raw)))

    def _on_field(self, value: float, size: float, axis: str, path: str) -> None:
        margin = self.field.margin_m
        if not -margin <= value <= size + margin:
            span = f"{-margin if margin else 0:g} to {size + margin:g} m"
            raise PlanError("off-field", f"{path}.{axis}", f"{axis} = {value:g} m is off the field ({span}).")


def _read_sequence(reader: Reader, obj: dict[str, Any], path: str, depth: int) -> Node:
    return SequenceNode(reader.children(obj, path, depth), path)


def _read_parallel(reader: Reader, obj: dict[str, Any], path: str, depth: int) -> Node:
    children = reader.children(obj, path, depth)
    reader.exclusive_drive(children, "PARALLEL")
    return ParallelNode(children, path)


def _read_path(reader: Reader, obj: dict[str, Any], path: str, _depth: int) -> Node:
    given = [key for key in ("pathName", "path") if key in obj]
    if not given:
        raise missing(path, "pathName")
    for key in given:
        if not isinstance(obj[key], str):
            raise PlanError("wrong-type", f"{path}.{key}", f"{key} must be text, not {kind(obj[key])}.")
    if len(given) == 2:
        if obj["path"] != obj["pathName"]:
            raise PlanError("conflicting-fields", f"{path}.path", "'path' and 'pathName' name different paths.")
        reader.warn("redundant-field", f"{path}.path", "'path' repeats 'pathName'; one of them is enough.")
    name: str = obj[given[0]]
    problem = _path_name_problem(name, reader.limits)
    if problem:
        raise PlanError("bad-path-name", f"{path}.{given[0]}", problem)
    return PathNode(name, path)


def _path_name_problem(name: str, limits: Limits) -> str:
    if not name.strip():
        return "Path name may not be blank."
    if len(name) > limits.max_string:
        return f"Path name is longer than {limits.max_string} characters."
    if name in (".", ".."):
        return "Path name may not be a folder."
    if "/" in name or "\\" in name:
        return "Path name may not contain / or \\."
    if any(char <= "\x1f" or "\x7f" <= char <= "\x9f" or "\ud800" <= char <= "\udfff" for char in name):
        return "Path name may not contain control characters."
    return ""


def _read_pose(reader: Reader, obj: dict[str, Any], path: str, _depth: int) -> Node:
    if "pose" not in obj:
        raise missing(path, "pose")
    return PoseNode(reader.pose(obj["pose"], f"{path}.pose"), path)


def _read_route(reader: Reader, obj: dict[str, Any], path: str, _depth: int) -> Node:
    if "routePoses" not in obj:
        raise missing(path, "routePoses")
    listed = obj["routePoses"]
    where = f"{path}.routePoses"
    if not isinstance(listed, list):
        raise PlanError("wrong-type", where, f"routePoses must be a list, not {kind(listed)}.")
    if not listed:
        raise PlanError("empty-route", where, "Route needs at least one pose.")
    if len(listed) > reader.limits.max_route_poses:
        message = f"Route has {len(listed)} poses; the limit is {reader.limits.max_route_poses}."
        raise PlanError("too-many-poses", where, message)
    return RouteNode(tuple([reader.pose(pose, f"{where}[{i}]") for i, pose in enumerate(listed)]), path)


def _read_action(reader: Reader, obj: dict[str, Any], path: str, _depth: int) -> Node:
    if "actionId" not in obj:
        raise missing(path, "actionId")
    value = obj["actionId"]
    where = f"{path}.actionId"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise PlanError("wrong-type", where, f"actionId must be a whole number, not {kind(value)}.")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise PlanError("not-finite", where, "actionId must be a finite number.")
        if not value.is_integer():
            raise PlanError("wrong-type", where, "actionId must be a whole number, not a fraction.")
    if not -INT32 <= value < INT32:
        raise PlanError("out-of-range", where, "actionId does not fit 32 bits.")
    if isinstance(value, float):
        reader.warn("float-action-id", where, "actionId is written with a decimal point.")
    return ActionNode(int(value), path)


BUILT_IN: dict[str, Callable[[Reader, dict[str, Any], str, int], Node]] = {
    "SEQUENCE": _read_sequence,
    "PARALLEL": _read_parallel,
    "PATH": _read_path,
    "POSE": _read_pose,
    "ROUTE": _read_route,
    "ACTION": _read_action,
}
_FIELDS = {
    "SEQUENCE": frozenset({"type", "children"}),
    "PARALLEL": frozenset({"type", "children"}),
    "PATH": frozenset({"type", "path", "pathName"}),
    "POSE": frozenset({"type", "pose"}),
    "ROUTE": frozenset({"type", "routePoses"}),
    "ACTION": frozenset({"type", "actionId"}),
}
