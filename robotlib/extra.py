"""Step types beside the built-in ones, and what their parsers may use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .checks import missing, number
from .errors import PlanError, sentence
from .model import Field, Limits, Node, Pose2

if TYPE_CHECKING:
    from .reader import Reader
    from .steps import Step, StepMaker

__all__ = ["ExtraType", "ParseContext"]


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


class ParseContext:
    """What the parser of a step type may use: its JSON path, the bounds, and the rules for common fields."""

    __slots__ = ("_depth", "_reader", "path")

    def __init__(self, reader: Reader, path: str, depth: int) -> None:
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
            raise missing(self.path, key)
        value = number(obj[key], key, f"{self.path}.{key}")
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
