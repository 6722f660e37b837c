"""The plan as values: poses, nodes, limits, field, warnings and the plan itself. Frozen, compared by content."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .pathfile import PathSource
    from .timeline import Estimates, TimelineEntry

__all__ = [
    "FIELD_2025",
    "FIELD_2026",
    "ActionNode",
    "DeadlineNode",
    "Field",
    "Limits",
    "Node",
    "ParallelNode",
    "PathNode",
    "Plan",
    "PlanMeta",
    "PlanWarning",
    "Pose2",
    "PoseNode",
    "RaceNode",
    "RouteNode",
    "SequenceNode",
    "WaitNode",
]


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a plan text. `max_depth` counts steps, the root is level 1."""

    max_bytes: int = 65536
    max_depth: int = 32
    max_nodes: int = 256
    max_route_poses: int = 64
    max_string: int = 128
    max_digits: int = 32
    max_wait_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Field:
    """Size of the field in metres, blue origin; poses may lie `margin_m` outside of it."""

    length_m: float = 16.54
    width_m: float = 8.07
    margin_m: float = 0.0
    robot_half_size_m: float = 0.0


FIELD_2026 = Field()
FIELD_2025 = Field(17.548, 8.052)


@dataclass(frozen=True, slots=True)
class Pose2:
    """A place on the field: x, y in metres, rotation in radians, blue origin."""

    x: float
    y: float
    rotation: float

    def to_dict(self) -> dict[str, object]:
        """Return the plan's spelling of this pose."""
        return {"x": self.x, "y": self.y, "rotation": self.rotation}

    def distance(self, other: Pose2) -> float:
        """Return the distance in metres."""
        return math.hypot(self.x - other.x, self.y - other.y)

    def flipped(self, on: Field) -> Pose2:
        """Return the pose as the other alliance sees it: the field turned by half a turn."""
        turned = math.remainder(self.rotation + math.pi, 2 * math.pi)
        return Pose2(on.length_m - self.x, on.width_m - self.y, turned)


class Node:
    """One step of a plan. Team types derive from it; `path` is its JSON path, never compared."""

    __slots__ = ()
    type: ClassVar[str] = ""
    drives: ClassVar[bool] = False
    path: str

    @property
    def steps(self) -> tuple[Node, ...]:
        """The child steps, empty for a leaf."""
        return ()

    @property
    def targets(self) -> tuple[Pose2, ...]:
        """The poses that this step itself names."""
        return ()

    @property
    def is_group(self) -> bool:
        """True for a step that only arranges other steps."""
        return False

    def to_dict(self) -> dict[str, object]:
        """Return the canonical JSON object as a new dict."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class _Group(Node):
    children: tuple[Node, ...]
    path: str = field(default="$", compare=False)

    @property
    def steps(self) -> tuple[Node, ...]:
        return self.children

    @property
    def is_group(self) -> bool:
        return True

    def to_dict(self) -> dict[str, object]:
        """As in Node."""
        return {"type": self.type, "children": [child.to_dict() for child in self.children]}


@dataclass(frozen=True, slots=True)
class SequenceNode(_Group):
    """Children one after the other."""

    type: ClassVar[str] = "SEQUENCE"


@dataclass(frozen=True, slots=True)
class ParallelNode(_Group):
    """Children together, until all have ended."""

    type: ClassVar[str] = "PARALLEL"


@dataclass(frozen=True, slots=True)
class RaceNode(_Group):
    """Children together, until the first has ended."""

    type: ClassVar[str] = "RACE"


@dataclass(frozen=True, slots=True)
class DeadlineNode(_Group):
    """Children together, until the first child of the list has ended."""

    type: ClassVar[str] = "DEADLINE"


@dataclass(frozen=True, slots=True)
class PathNode(Node):
    """Follow a path file of the robot."""

    name: str
    path: str = field(default="$", compare=False)
    type: ClassVar[str] = "PATH"
    drives: ClassVar[bool] = True

    def to_dict(self) -> dict[str, object]:
        """As in Node."""
        return {"type": self.type, "pathName": self.name}


@dataclass(frozen=True, slots=True)
class PoseNode(Node):
    """Drive to one pose."""

    pose: Pose2
    path: str = field(default="$", compare=False)
    type: ClassVar[str] = "POSE"
    drives: ClassVar[bool] = True

    @property
    def targets(self) -> tuple[Pose2, ...]:
        """As in Node."""
        return (self.pose,)

    def to_dict(self) -> dict[str, object]:
        """As in Node."""
        return {"type": self.type, "pose": self.pose.to_dict()}


@dataclass(frozen=True, slots=True)
class RouteNode(Node):
    """Drive through poses without stopping."""

    poses: tuple[Pose2, ...]
    path: str = field(default="$", compare=False)
    type: ClassVar[str] = "ROUTE"
    drives: ClassVar[bool] = True

    @property
    def targets(self) -> tuple[Pose2, ...]:
        """As in Node."""
        return self.poses

    def to_dict(self) -> dict[str, object]:
        """As in Node."""
        return {"type": self.type, "routePoses": [pose.to_dict() for pose in self.poses]}


@dataclass(frozen=True, slots=True)
class ActionNode(Node):
    """Run an action that robot code registered."""

    action_id: int
    path: str = field(default="$", compare=False)
    type: ClassVar[str] = "ACTION"

    def to_dict(self) -> dict[str, object]:
        """As in Node."""
        return {"type": self.type, "actionId": self.action_id}


@dataclass(frozen=True, slots=True)
class WaitNode(Node):
    """Wait; an extension type."""

    seconds: float
    path: str = field(default="$", compare=False)
    type: ClassVar[str] = "WAIT"

    def to_dict(self) -> dict[str, object]:
        """As in Node."""
        return {"type": self.type, "seconds": self.seconds}


@dataclass(frozen=True, slots=True)
class PlanWarning:
    """Something odd in a plan that is accepted nevertheless."""

    code: str
    path: str
    message: str

    def to_dict(self) -> dict[str, str]:
        """Return code, path and message as a new dict."""
        return {"code": self.code, "path": self.path, "message": self.message}


@dataclass(frozen=True, slots=True)
class PlanMeta:
    """The optional fields of the top level; None where the text gave none."""

    version: int | None = None
    id: str | None = None
    name: str | None = None
    frame: str | None = None

    @property
    def by_alliance(self) -> bool:
        """True if poses are meant from the own alliance's side."""
        return self.frame == "alliance"

    def to_dict(self) -> dict[str, object]:
        """Return the given fields only."""
        given = (("version", self.version), ("id", self.id), ("name", self.name), ("frame", self.frame))
        return {key: value for key, value in given if value is not None}


@dataclass(frozen=True, slots=True)
class Plan:
    """An accepted plan. Equality compares `root` and `meta`; `source` is the text as received."""

    root: Node
    meta: PlanMeta = PlanMeta()
    warnings: tuple[PlanWarning, ...] = field(default=(), compare=False)
    node_count: int = field(default=0, compare=False)
    plan_id: str = field(default="", compare=False)
    source: str = field(default="", compare=False, repr=False)

    def to_dict(self) -> dict[str, object]:
        """Return the canonical tree; new dicts each call."""
        tree = self.root.to_dict()
        return {"type": tree.pop("type"), **self.meta.to_dict(), **tree}

    def dump(self, indent: int | None = None) -> str:
        """Return the canonical text; parsing it gives an equal plan."""
        # Not ASCII-escaped: an escaped name would grow threefold and could pass the size limit.
        separators = (",", ":") if indent is None else (",", ": ")
        text = json.dumps(self.to_dict(), indent=indent, separators=separators, ensure_ascii=False, allow_nan=False)
        if indent is None and len(text) > Limits().max_bytes:  # "1" came in as one byte and must not go out as three
            text = json.dumps(_short(self.to_dict()), separators=separators, ensure_ascii=False, allow_nan=False)
        return text

    def walk(self) -> Iterator[Node]:
        """Yield every node, a parent before its children."""
        pending = [self.root]
        while pending:
            node = pending.pop()
            yield node
            pending.extend(reversed(node.steps))

    def leaves(self) -> tuple[Node, ...]:
        """Return the nodes that do something, in plan order."""
        return tuple(node for node in self.walk() if not node.is_group)

    def poses(self) -> tuple[Pose2, ...]:
        """Return all poses that the plan names, in plan order."""
        return tuple(pose for node in self.walk() for pose in node.targets)

    def find(self, path: str) -> Node:
        """Return the node at a JSON path; KeyError if there is none."""
        for node in self.walk():
            if node.path == path:
                return node
        raise KeyError(path)

    def timeline(
        self,
        estimates: Estimates | None = None,
        start: Pose2 | None = None,
        paths: PathSource | None = None,
        actions: Mapping[int, object] | None = None,
    ) -> tuple[TimelineEntry, ...]:
        """Return one estimate per node, in plan order."""
        from .timeline import Estimates, build_timeline  # noqa: PLC0415  (keeps `import robotlib` short)

        return build_timeline(self, estimates or Estimates(), start, paths, actions)


def _short(value: object) -> object:
    """Return the JSON value with whole numbers as integers; -0.0 keeps its sign."""
    if isinstance(value, dict):
        return {key: _short(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_short(item) for item in value]
    if isinstance(value, float) and value.is_integer() and math.copysign(1.0, value) > 0 and value < 1e9:
        return int(value)
    return value
