"""Who makes the driving steps: the protocol, and the maker that needs no path library."""

from __future__ import annotations

import difflib
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from .drive import Drive, DriveRoute, DriveSettings, DriveToPose
from .errors import PlanError, StepFailed, clean, sentence
from .model import FIELD_2026, Field, Node, PathNode, PlanWarning, Pose2, PoseNode, RouteNode
from .pathfile import PathFile, PathSource
from .steps import Step

__all__ = ["PATH_START_M", "DriveLeaves", "Leaves", "path_not_found"]

PATH_START_M = 0.75  # a path that starts further away commands any speed to catch up


class Leaves(Protocol):
    """Makes the steps of PATH, POSE and ROUTE nodes; `alliance` is red, blue or None."""

    drive: Drive
    field: Field
    requires: tuple[object, ...]

    @abstractmethod
    def check(self, node: Node, alliance: str | None) -> list[PlanWarning]:
        """Raise PlanError if the node cannot be driven here; return warnings."""

    @abstractmethod
    def prepare(self, node: Node, start: Pose2 | None, alliance: str | None) -> object:
        """Do the slow work in advance, in the worker thread; the result goes to `make`."""

    @abstractmethod
    def make(self, node: Node, prepared: object, alliance: str | None) -> Step:
        """Return a new step, within 2 ms."""

    @abstractmethod
    def end_pose(self, node: Node, alliance: str | None) -> Pose2 | None:
        """Return where the node ends, None if that is not known."""


def path_not_found(node: PathNode, known: Sequence[str]) -> PlanError:
    """Return the error for a path name that the robot does not have, with near names."""
    name = node.name
    if name.endswith(".path"):
        hint = " Write the name without .path."
    else:
        near = difflib.get_close_matches(name, known, 3)
        hint = f" Did you mean {' or '.join(clean(other, 24) for other in near)}?" if near else ""
    return PlanError("path-not-found", f"{node.path}.pathName", sentence(f"No path '{clean(name)}'.{hint}"))


class DriveLeaves:
    """Drives straight from pose to pose, and along sampled path files."""

    def __init__(
        self,
        drive: Drive,
        settings: DriveSettings = DriveSettings(),  # noqa: B008  (frozen)
        paths: PathSource | None = None,
        field: Field = FIELD_2026,
    ) -> None:
        self.drive = drive
        self.settings = settings
        self.paths = paths
        self.field = field
        self.requires: tuple[object, ...] = (drive,)

    def check(self, node: Node, alliance: str | None) -> list[PlanWarning]:
        """Raise no-drive for a drive that cannot move sideways, path-not-found for a path without a file."""
        if not self.settings.holonomic:
            raise PlanError("no-drive", node.path, f"This robot has no way to drive a {node.type} step.")
        if not isinstance(node, PathNode):
            return []
        file = self._file(node)
        if not file.has_markers:
            return []
        message = "The path's event markers are not run on this robot."
        return [PlanWarning("event-markers-ignored", node.path, message)]

    def prepare(self, node: Node, start: Pose2 | None, alliance: str | None) -> object:
        """Return the path file of a PATH; the others need nothing."""
        return self._file(node) if isinstance(node, PathNode) else None

    def make(self, node: Node, prepared: object, alliance: str | None) -> Step:
        """Return a new step."""
        if isinstance(node, PoseNode):
            return DriveToPose(self.drive, node.pose, self.settings)
        if isinstance(node, RouteNode):
            return DriveRoute(self.drive, node.poses, self.settings)
        if not isinstance(node, PathNode):
            raise TypeError(f"{node.type} is no driving step")
        file = prepared if isinstance(prepared, PathFile) else self._file(node)
        points = file.flipped(self.field) if alliance == "red" else file.points
        limited = replace(
            self.settings,
            max_speed_mps=min(file.max_speed_mps, self.settings.max_speed_mps),
            max_accel_mps2=min(file.max_accel_mps2, self.settings.max_accel_mps2),
            max_omega_radps=min(file.max_omega_radps, self.settings.max_omega_radps),
            max_alpha_radps2=min(file.max_alpha_radps2, self.settings.max_alpha_radps2),
            drop_nearer_m=0.0,
        )
        return _DrivePath(self.drive, points, limited)

    def end_pose(self, node: Node, alliance: str | None) -> Pose2 | None:
        """Return the last pose or the path's end."""
        if not isinstance(node, PathNode):
            return node.targets[-1] if node.targets else None
        end = self._file(node).end
        return end.flipped(self.field) if alliance == "red" else end

    def _file(self, node: PathNode) -> PathFile:
        if self.paths is None:
            raise path_not_found(node, ())
        try:
            return self.paths.load(node.name)
        except OSError:
            raise path_not_found(node, self.paths.names()) from None
        except ValueError as error:
            message = sentence(f"Path '{clean(node.name)}' cannot be read: {error}")
            raise PlanError("path-not-found", f"{node.path}.pathName", message) from None


class _DrivePath(DriveRoute):
    """Drives sampled points of a path, only from near its start."""

    def __init__(self, drive: Drive, points: Sequence[Pose2], settings: DriveSettings) -> None:
        super().__init__(drive, points, settings)
        self._begin = points[0]

    def start(self, now: float) -> None:
        """Fail `too-far-from-path-start` rather than cross the field."""
        gap = self._measured().distance(self._begin)
        if gap > PATH_START_M:
            raise StepFailed("too-far-from-path-start", f"The robot is {gap:.2f} m away from the path's start.")
        super().start(now)
