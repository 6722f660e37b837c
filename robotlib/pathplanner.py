"""Driving steps by PathPlanner: paths, routes, pathfinding. The only module that knows pathplannerlib.

Everything slow (path building, trajectories, pathfinding) happens in the worker; the loop only follows.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The library ships no type information, hence the marks below.
from pathplannerlib.auto import AutoBuilder, NamedCommands  # type: ignore[import-untyped]
from pathplannerlib.path import (  # type: ignore[import-untyped]
    ConstraintsZone,
    EventMarker,
    GoalEndState,
    IdealStartingState,
    PathConstraints,
    PathPlannerPath,
    PointTowardsZone,
    RotationTarget,
    Waypoint,
)
from pathplannerlib.pathfinders import LocalADStar  # type: ignore[import-untyped]
from pathplannerlib.pathfinding import Pathfinding  # type: ignore[import-untyped]
from wpimath.geometry import Pose2d, Rotation2d, Translation2d

from .drive import Drive, DriveRoute, DriveSettings
from .errors import PlanError, StepFailed, clean, sentence
from .leaves import PATH_START_M, path_not_found
from .model import FIELD_2026, Field, Node, PathNode, PlanWarning, Pose2, PoseNode
from .pathfile import PathFile, PathFolder
from .pathplanner_step import Followable, FollowStep, Prepared
from .steps import Step
from .worker import InlineWorker, Worker
from .wpi import WpilibHost

__all__ = ["PathPlannerLeaves", "synchronous_pathfinder"]

MAX_POINTS = 350  # beyond, the follow command's own start takes longer than a loop may
NEAREST_M = 0.10  # poses nearer than this are one place
PATHFIND_FROM_M = 0.5  # nearer goals are only aligned to
PATHFIND_WAIT_S = 1.0
MAX_FILE_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class TrajectoryTools:
    """The team's path controller and robot config, to follow routes that are too long for the follow command."""

    controller: Any
    config: Any


class PathPlannerLeaves:
    """Makes PATH, POSE and ROUTE steps of PathPlanner's AutoBuilder, which the team has configured.

    `pathfinding` is "auto" (if there is a navgrid) or "never"; `deploy_dir` wins over the framework's folder.
    """

    slow = True

    def __init__(
        self,
        constraints: PathConstraints,
        drive: Drive,
        *,
        trajectory: TrajectoryTools | None = None,
        align: DriveSettings = DriveSettings(),  # noqa: B008  (frozen)
        pathfinding: str = "auto",
        field: Field = FIELD_2026,
        requires: Sequence[object] = (),
        deploy_dir: str | Path | None = None,
    ) -> None:
        self.drive = drive
        self.field = field
        self.requires: tuple[object, ...] = tuple(requires) or (drive,)
        self.align = align
        self.worker: Worker = InlineWorker()
        folder = WpilibHost(deploy_dir).deploy_dir()
        self.paths = PathFolder(folder)
        self._folder = folder
        self._constraints = constraints
        self._trajectory = trajectory
        self._finds_paths = pathfinding == "auto" and self.paths.navgrid() is not None

    def use_worker(self, worker: Worker) -> None:
        """Take the worker of the receiver; the pathfinder starts there, its first run is slow."""
        self.worker = worker
        if self._finds_paths:
            worker.submit(Pathfinding.ensureInitialized)

    def check(self, node: Node, alliance: str | None) -> list[PlanWarning]:
        """Raise path-not-found for a path without a file; warn of event markers without a command."""
        if not isinstance(node, PathNode):
            return []
        try:
            self.paths.load(node.name)
            markers = self._read(node.name).get("eventMarkers") or ()
        except OSError:
            raise path_not_found(node, self.paths.names()) from None
        except ValueError as error:
            text = sentence(f"Path '{clean(node.name)}' cannot be read: {error}")
            raise PlanError("path-not-found", f"{node.path}.pathName", text) from None
        return [
            PlanWarning("event-markers-ignored", node.path, sentence(f"No command '{clean(name)}' for an event marker"))
            for name in _named_commands(markers)
            if not NamedCommands.hasCommand(name)
        ]

    def end_pose(self, node: Node, alliance: str | None) -> Pose2 | None:
        """Return the last pose or the path's end."""
        if not isinstance(node, PathNode):
            return node.targets[-1] if node.targets else None
        end = self._file(node).end
        return end.flipped(self.field) if alliance == "red" else end

    def prepare(self, node: Node, start: Pose2 | None, alliance: str | None) -> Prepared | None:
        """Build the trajectory; None if it needs a start pose that is not known yet. Slow: for the worker."""
        if isinstance(node, PathNode):
            return self._prepare_path(node, start, alliance)
        if start is None:
            return None
        return self._prepare_poses(node, start)

    def make(self, node: Node, prepared: object, alliance: str | None) -> Step:
        """Return a new step; what is not prepared is prepared at its start, standing still."""
        ready = prepared if isinstance(prepared, Prepared) else None
        return FollowStep(self, node, ready, alliance)

    def check_start(self, node: Node, pose: Pose2, alliance: str | None) -> None:
        """Raise too-far-from-path-start rather than cross the field."""
        if isinstance(node, PathNode):
            begin = self._file(node).start
            begin = begin.flipped(self.field) if alliance == "red" else begin
            gap = pose.distance(begin)
            if gap > PATH_START_M:
                text = f"The robot is {gap:.2f} m away from the path's start."
                raise StepFailed("too-far-from-path-start", text)

    def _file(self, node: PathNode) -> PathFile:
        return self.paths.load(node.name)

    def _read(self, name: str) -> dict[str, Any]:
        for place in (self._folder, self._folder / "paths", self._folder / "pathplanner" / "paths"):
            file = place / f"{name}.path"
            if file.is_file():
                found: dict[str, Any] = json.loads(file.read_bytes()[:MAX_FILE_BYTES])
                return found
        raise FileNotFoundError(name)

    def _prepare_path(self, node: PathNode, start: Pose2 | None, alliance: str | None) -> Prepared:
        file = self._file(node)
        red = alliance == "red"
        begin = file.flipped(self.field)[0] if red else file.start
        heading = (start or begin).rotation
        ideal = Pose2(0.0, 0.0, heading).flipped(self.field).rotation if red else heading
        path = _rebuilt(self._read(node.name), ideal)
        path.name = node.name
        if red:
            path = path.flipPath()  # last: it leaves the path without waypoints
        path.preventFlipping = True
        goal = file.end.flipped(self.field) if red else file.end
        return self._followed(path, Pose2(begin.x, begin.y, heading), goal, file.end_speed_mps)

    def _prepare_poses(self, node: Node, start: Pose2) -> Prepared:
        targets = node.targets
        goal = targets[-1]
        find = isinstance(node, PoseNode) and self._finds_paths and start.distance(goal) > PATHFIND_FROM_M
        path = self._found_path(start, goal) if find else self._straight_path(start, targets)
        if path is None:
            return Prepared(start, goal)
        if path.numPoints() > MAX_POINTS and self._trajectory is None:
            return Prepared(start, goal, fallback=True)
        return self._followed(path, start, goal, 0.0)

    def _straight_path(self, start: Pose2, targets: Sequence[Pose2]) -> PathPlannerPath | None:
        kept = [start]
        for pose in targets:
            if pose.distance(kept[-1]) >= NEAREST_M:
                kept.append(pose)
        if len(kept) < 2:
            return None
        turns = [RotationTarget(float(i), Rotation2d(pose.rotation)) for i, pose in enumerate(kept)][1:-1]
        waypoints = PathPlannerPath.waypointsFromPoses(_travelling(kept))
        return self._ideal(waypoints, start, targets[-1], turns)

    def _found_path(self, start: Pose2, goal: Pose2) -> PathPlannerPath:
        Pathfinding.ensureInitialized()
        Pathfinding.setStartPosition(Translation2d(start.x, start.y))
        Pathfinding.setGoalPosition(Translation2d(goal.x, goal.y))
        end = GoalEndState(0.0, Rotation2d(goal.rotation))
        path = None
        give_up = time.monotonic() + PATHFIND_WAIT_S
        while path is None and time.monotonic() < give_up:
            if Pathfinding.isNewPathAvailable():
                path = Pathfinding.getCurrentPath(self._constraints, end)
            if path is None:
                time.sleep(0.005)
        # An unreachable goal would keep the planner's thread busy for ever.
        Pathfinding.setGoalPosition(Translation2d(start.x, start.y))
        if path is None:
            raise StepFailed("no-route", "No way to that pose was found.")
        return self._ideal(path.getWaypoints(), start, goal, [])

    def _ideal(
        self, waypoints: list[Waypoint], start: Pose2, goal: Pose2, turns: list[RotationTarget]
    ) -> PathPlannerPath:
        ideal = IdealStartingState(0.0, Rotation2d(start.rotation))
        end = GoalEndState(0.0, Rotation2d(goal.rotation))
        path = PathPlannerPath(waypoints, self._constraints, ideal, end, holonomic_rotations=turns)
        path.preventFlipping = True
        return path

    def _followed(self, path: PathPlannerPath, start: Pose2, goal: Pose2, end_speed_mps: float) -> Prepared:
        if path.numPoints() > MAX_POINTS and self._trajectory is not None:
            trajectory: Any = path.getIdealTrajectory(self._trajectory.config)
            total = float(trajectory.getTotalTimeSeconds())
            follow: Followable = _Sampled(self, trajectory)
        else:
            command = AutoBuilder.followPath(path)  # makes the ideal trajectory
            trajectory = getattr(command, "_trajectory", None)  # a custom builder's command has none
            total = float(trajectory.getTotalTimeSeconds()) if trajectory is not None else math.nan
            follow = command
        return Prepared(start, goal, follow, total if math.isfinite(total) else None, end_speed_mps)

    def sample(self, trajectory: Any, seconds: float) -> None:
        """Drive one loop along a trajectory with the team's controller."""
        if self._trajectory is not None:
            at = self.drive.pose()
            pose = Pose2d(at.x, at.y, at.rotation)
            target = trajectory.sample(seconds)
            speeds = self._trajectory.controller.calculateRobotRelativeSpeeds(pose, target)
            turned = Translation2d(speeds.vx, speeds.vy).rotateBy(pose.rotation())
            self.drive.drive(turned.x, turned.y, speeds.omega)

    def route_step(self, node: Node) -> DriveRoute:
        """Return the plain drive along a route that is too long to follow."""
        return DriveRoute(self.drive, node.targets, self.align)


class _Sampled:
    """Follows a prepared trajectory by its time; shaped like a command."""

    def __init__(self, leaves: PathPlannerLeaves, trajectory: Any) -> None:
        self._leaves = leaves
        self._trajectory = trajectory
        self._total_s = float(trajectory.getTotalTimeSeconds())
        self.elapsed_s = 0.0  # set by the step that follows

    def initialize(self) -> None:
        """Begin at the start of the trajectory."""
        self.elapsed_s = 0.0

    def execute(self) -> None:
        """Drive one loop."""
        self._leaves.sample(self._trajectory, self.elapsed_s)

    def isFinished(self) -> bool:  # noqa: N802  (the name in WPILib)
        """Return True after the trajectory's time."""
        return self.elapsed_s >= self._total_s

    def end(self, interrupted: bool) -> None:
        """Stand still."""
        self._leaves.drive.stop()


def _travelling(poses: Sequence[Pose2]) -> list[Pose2d]:
    """Return the places with the direction of travel as heading; robot rotations would bulge the curve."""
    places: list[Pose2d] = []
    for index, pose in enumerate(poses):
        before, after = poses[max(index - 1, 0)], poses[min(index + 1, len(poses) - 1)]
        heading = math.atan2(after.y - before.y, after.x - before.x)
        places.append(Pose2d(pose.x, pose.y, heading))
    return places


def _rebuilt(obj: dict[str, Any], heading: float) -> PathPlannerPath:
    """Return the path of a file with an ideal start at standstill: without one the follow command regenerates."""
    return PathPlannerPath(
        [Waypoint.fromJson(point) for point in obj["waypoints"]],
        PathConstraints.fromJson(obj["globalConstraints"]),
        IdealStartingState(0.0, Rotation2d(heading)),
        GoalEndState.fromJson(obj["goalEndState"]),
        [RotationTarget.fromJson(target) for target in obj.get("rotationTargets") or ()],
        [PointTowardsZone.fromJson(zone) for zone in obj.get("pointTowardsZones") or ()],
        [ConstraintsZone.fromJson(zone) for zone in obj.get("constraintZones") or ()],
        [EventMarker.fromJson(marker) for marker in obj.get("eventMarkers") or ()],
        bool(obj.get("reversed", False)),
    )


def _named_commands(markers: object) -> list[str]:
    """Return the names of all named commands in event markers, however deep in groups."""
    found: list[str] = []
    pending: list[Any] = [markers]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            name = (item.get("data") or {}).get("name") if item.get("type") == "named" else None
            if isinstance(name, str):
                found.append(name)
            pending.extend(item.values())
        elif isinstance(item, (list, tuple)):
            pending.extend(item)
    return sorted(set(found))


def synchronous_pathfinder() -> LocalADStar:
    """Return a pathfinder that plans inside `isNewPathAvailable`, the same in every run. For tests.

    The library's own plans in a thread on wall time, while a simulated clock jumps. Set it before the leaves are
    made: all pathfinders share their maps, and two of them spoil each other.
    """

    class Synchronous(LocalADStar):  # type: ignore[misc]  # the library is not typed
        def _runThread(self) -> None:  # noqa: N802
            """No thread."""

        _requestMinor: bool  # noqa: N815  (the library's names, here and below)
        _requestReset: bool  # noqa: N815

        def isNewPathAvailable(self) -> bool:  # noqa: N802
            if self._requestMinor or self._requestReset:
                where = (self._requestStart, self._requestGoal)
                real = (self._requestRealStartPos, self._requestRealGoalPos)
                obstacles = set(self._requestObstacles)
                self._doWork(True, True, False, *where, *real, obstacles)
                while self._eps > 1.0:
                    self._doWork(False, False, True, *where, *real, obstacles)
                self._requestMinor = self._requestMajor = self._requestReset = False
                self._newPathAvailable = True
            return bool(self._newPathAvailable)

    return Synchronous()
