"""Plan text to Plan: every rule of the format, the first broken one is raised as PlanError."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .errors import PlanError, RegistryError, clean, sentence
from .jsontext import decode_text, load_json
from .model import (
    ActionNode,
    Field,
    Limits,
    Node,
    ParallelNode,
    PathNode,
    Plan,
    PlanMeta,
    PlanWarning,
    Pose2,
    PoseNode,
    RouteNode,
    SequenceNode,
)

if TYPE_CHECKING:
    from .steps import Step, StepMaker

__all__ = ["ExtraType", "ParseContext", "from_dict", "parse", "plan_id"]

MAX_WARNINGS = 50  # a text within the size limit can hold ten thousand unknown fields
PI_SLACK = 1e-9  # rounding pi to 9 digits gives more than pi; without slack that would wrap to -pi
ID_DIGITS = 12
INT32 = 2**31
NEWEST_VERSION = 1

_META_FIELDS = frozenset({"version", "id", "name", "frame"})
_POSE_FIELDS = frozenset({"x", "y", "rotation"})


@dataclass(frozen=True, slots=True)
class ExtraType:
    """A step type beside the built-in ones.

    `parse(obj, context)` returns the node or fails through `context`; `build(node, leaves)` returns the step;
    `drives` says that it moves the robot; `fields` are the JSON fields that it reads.
    """

    parse: Callable[[Mapping[str, Any], ParseContext], Node]
    build: Callable[[Any, StepMaker], Step]
    drives: bool = False
    fields: tuple[str, ...] = ()


def plan_id(text: str | bytes | bytearray) -> str:
    """Return the first 12 hex digits of the SHA-256 of the text as received."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
    return hashlib.sha256(data).hexdigest()[:ID_DIGITS]


def parse(
    text: str | bytes | bytearray,
    limits: Limits = Limits(),  # noqa: B008  (frozen)
    field: Field = Field(),  # noqa: B008
    *,
    extra_types: Mapping[str, ExtraType] | None = None,
) -> Plan:
    """Return the plan that a text describes; PlanError if it is not acceptable."""
    source = decode_text(text, limits)
    plan = _build(load_json(source, limits), limits, field, extra_types)
    return replace(plan, plan_id=plan_id(text), source=source)


def from_dict(
    obj: object,
    limits: Limits = Limits(),  # noqa: B008
    field: Field = Field(),  # noqa: B008
    *,
    extra_types: Mapping[str, ExtraType] | None = None,
) -> Plan:
    """Return the plan of decoded JSON, by the same checks; its id and source are those of its dump."""
    plan = _build(obj, limits, field, extra_types)
    source = plan.dump()
    return replace(plan, plan_id=plan_id(source), source=source)


def _build(obj: object, limits: Limits, field: Field, extra_types: Mapping[str, ExtraType] | None) -> Plan:
    extras = dict(extra_types or {})
    taken = sorted(extras.keys() & _BUILT_IN.keys())
    if taken:
        raise RegistryError(f"{taken[0]} is a built-in step type")
    reader = _Reader(limits, field, extras)
    try:
        root = reader.node(obj, "$", 1)
    except RecursionError:
        raise PlanError("too-deep", "$", "Steps are nested too deep for this computer.") from None
    return Plan(root, reader.meta, reader.all_warnings(), reader.count)


class ParseContext:
    """What the parser of a step type may use: its JSON path, the bounds, and the rules for common fields."""

    __slots__ = ("_depth", "_reader", "path")

    def __init__(self, reader: _Reader, path: str, depth: int) -> None:
        self._reader = reader
        self._depth = depth
        self.path = path

    @property
    def limits(self) -> Limits:
        """The limits of this parse."""
        return self._reader.limits

    @property
    def field(self) -> Field:
        """The field of this parse."""
        return self._reader.field

    def fail(self, code: str, message: str, at: str = "") -> PlanError:
        """Return the error to raise for this step, or for its field `at` (like ".seconds")."""
        return PlanError(code, self.path + at, sentence(message))

    def warn(self, code: str, message: str, at: str = "") -> None:
        """Add a warning for this step or its field `at`."""
        self._reader.warn(code, self.path + at, sentence(message))

    def number(self, obj: Mapping[str, Any], key: str, low: float, high: float) -> float:
        """Return the required number `obj[key]` within the bounds; out-of-range otherwise."""
        if key not in obj:
            raise _missing(self.path, key)
        value = _number(obj[key], key, f"{self.path}.{key}")
        if not low <= value <= high:
            raise self.fail("out-of-range", f"{key} must lie between {low:g} and {high:g}.", f".{key}")
        return value

    def children(self, obj: Mapping[str, Any]) -> tuple[Node, ...]:
        """Return the required child steps in `obj["children"]`."""
        return self._reader.children(obj, self.path, self._depth)

    def exclusive_drive(self, children: tuple[Node, ...]) -> None:
        """Raise parallel-drive-conflict if two of the children, which run together, drive."""
        self._reader.exclusive_drive(children, type_name="group")

    def pose(self, value: object, at: str) -> Pose2:
        """Return a pose by the rules of POSE; `at` is its field, like ".pose"."""
        return self._reader.pose(value, self.path + at)


class _Reader:
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
        if len(self.warnings) < MAX_WARNINGS:
            self.warnings.append(PlanWarning(code, path, message))
        else:
            self.dropped += 1

    def all_warnings(self) -> tuple[PlanWarning, ...]:
        if not self.dropped:
            return tuple(self.warnings)
        return (*self.warnings, PlanWarning("more", "$", f"{self.dropped} more warnings are not shown."))

    def node(self, obj: object, path: str, depth: int) -> Node:
        if not isinstance(obj, dict):
            raise PlanError("wrong-type", path, f"A step must be an object, not {_kind(obj)}.")
        self.count += 1
        if self.count > self.limits.max_nodes:
            raise PlanError("too-many-nodes", path, f"Plan has more than {self.limits.max_nodes} steps.")
        if depth > self.limits.max_depth:
            raise PlanError("too-deep", path, f"Steps are nested deeper than {self.limits.max_depth} levels.")
        name = self._type_name(obj, path)
        if depth == 1:
            self.meta = self._meta(obj)
        read = _BUILT_IN.get(name)
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
            raise _missing(path, "type")
        name = obj["type"]
        if not isinstance(name, str):
            raise PlanError("wrong-type", f"{path}.type", f"type must be text, not {_kind(name)}.")
        if name in _BUILT_IN or name in self.extras:
            return name
        meant = name.strip().upper()
        hint = f" Did you mean {meant}?" if meant in _BUILT_IN or meant in self.extras else ""
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
                raise PlanError("wrong-type", "$.version", f"version must be a whole number, not {_kind(version)}.")
            if version != NEWEST_VERSION:
                raise PlanError("out-of-range", "$.version", f"version must be {NEWEST_VERSION} for this robot code.")
        texts: dict[str, str | None] = {}
        for key in ("id", "name", "frame"):
            text = texts[key] = obj.get(key)
            if key not in obj:
                continue
            if not isinstance(text, str):
                raise PlanError("wrong-type", f"$.{key}", f"{key} must be text, not {_kind(text)}.")
            if key == "frame" and text not in ("blue", "alliance"):
                raise PlanError("out-of-range", "$.frame", "frame must be blue or alliance.")
            if len(text) > self.limits.max_string:
                raise PlanError(
                    "out-of-range", f"$.{key}", f"{key} is longer than {self.limits.max_string} characters."
                )
        return PlanMeta(version, **texts)

    def children(self, obj: Mapping[str, Any], path: str, depth: int) -> tuple[Node, ...]:
        if "children" not in obj:
            raise _missing(path, "children")
        listed = obj["children"]
        if not isinstance(listed, list):
            raise PlanError("wrong-type", f"{path}.children", f"children must be a list, not {_kind(listed)}.")
        if not listed:
            self.warn("empty-group", path, "This step has no children and does nothing.")
        return tuple([self.node(child, f"{path}.children[{i}]", depth + 1) for i, child in enumerate(listed)])

    def exclusive_drive(self, children: tuple[Node, ...], type_name: str) -> None:
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
        if not isinstance(value, dict):
            raise PlanError("wrong-type", path, f"A pose must be an object, not {_kind(value)}.")
        for key in ("x", "y", "rotation"):
            if key not in value:
                raise _missing(path, key, "Pose")
        x = _number(value["x"], "x", f"{path}.x")
        y = _number(value["y"], "y", f"{path}.y")
        raw = _number(value["rotation"], "rotation", f"{path}.rotation")
        self._on_field(x, self.field.length_m, "x", path)
        self._on_field(y, self.field.width_m, "y", path)
        if len(value) > len(_POSE_FIELDS):
            self._unknown_fields(value, path, _POSE_FIELDS, top=False)
        if abs(raw) > 2 * math.pi:
            self.warn("rotation-range", f"{path}.rotation", "rotation is more than a turn; it looks like degrees.")
        half = self.field.robot_half_size_m
        if half > 0 and not (half <= x <= self.field.length_m - half and half <= y <= self.field.width_m - half):
            self.warn("near-edge", path, "The pose is nearer to a wall than half a robot.")
        return Pose2(x, y, _wrapped(_wrapped(raw)))

    def _on_field(self, value: float, size: float, axis: str, path: str) -> None:
        margin = self.field.margin_m
        if not -margin <= value <= size + margin:
            span = f"{-margin if margin else 0:g} to {size + margin:g} m"
            raise PlanError("off-field", f"{path}.{axis}", f"{axis} = {value:g} m is off the field ({span}).")


def _read_sequence(reader: _Reader, obj: dict[str, Any], path: str, depth: int) -> Node:
    return SequenceNode(reader.children(obj, path, depth), path)


def _read_parallel(reader: _Reader, obj: dict[str, Any], path: str, depth: int) -> Node:
    children = reader.children(obj, path, depth)
    reader.exclusive_drive(children, "PARALLEL")
    return ParallelNode(children, path)


def _read_path(reader: _Reader, obj: dict[str, Any], path: str, _depth: int) -> Node:
    given = [key for key in ("pathName", "path") if key in obj]
    if not given:
        raise _missing(path, "pathName")
    for key in given:
        if not isinstance(obj[key], str):
            raise PlanError("wrong-type", f"{path}.{key}", f"{key} must be text, not {_kind(obj[key])}.")
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


def _read_pose(reader: _Reader, obj: dict[str, Any], path: str, _depth: int) -> Node:
    if "pose" not in obj:
        raise _missing(path, "pose")
    return PoseNode(reader.pose(obj["pose"], f"{path}.pose"), path)


def _read_route(reader: _Reader, obj: dict[str, Any], path: str, _depth: int) -> Node:
    if "routePoses" not in obj:
        raise _missing(path, "routePoses")
    listed = obj["routePoses"]
    where = f"{path}.routePoses"
    if not isinstance(listed, list):
        raise PlanError("wrong-type", where, f"routePoses must be a list, not {_kind(listed)}.")
    if not listed:
        raise PlanError("empty-route", where, "Route needs at least one pose.")
    if len(listed) > reader.limits.max_route_poses:
        message = f"Route has {len(listed)} poses; the limit is {reader.limits.max_route_poses}."
        raise PlanError("too-many-poses", where, message)
    return RouteNode(tuple([reader.pose(pose, f"{where}[{i}]") for i, pose in enumerate(listed)]), path)


def _read_action(reader: _Reader, obj: dict[str, Any], path: str, _depth: int) -> Node:
    if "actionId" not in obj:
        raise _missing(path, "actionId")
    value = obj["actionId"]
    where = f"{path}.actionId"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise PlanError("wrong-type", where, f"actionId must be a whole number, not {_kind(value)}.")
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


_BUILT_IN: dict[str, Callable[[_Reader, dict[str, Any], str, int], Node]] = {
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


def _missing(path: str, key: str, owner: str = "Step") -> PlanError:
    return PlanError("missing-field", f"{path}.{key}", f"{owner} needs the field '{key}'.")


def _number(value: object, name: str, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise PlanError("wrong-type", path, f"{name} must be a number, not {_kind(value)}.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise PlanError("not-finite", path, f"{name} must be a finite number.")
    return number


def _wrapped(angle: float) -> float:
    """Return the angle within half a turn, 9 digits. Twice applied it is stable: rounding can step over the slack."""
    turned = angle if abs(angle) <= math.pi + PI_SLACK else math.remainder(angle, 2 * math.pi)
    return round(turned, 9)


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "text"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, (list, tuple)):
        return "a list"
    return "an object" if isinstance(value, dict) else "something else"
