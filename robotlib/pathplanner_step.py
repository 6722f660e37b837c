"""The step that follows a prepared trajectory: stand still, check, follow, align. Knows no library."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from .drive import DriveRoute, DriveToPose
from .errors import PlanError, StepFailed
from .model import Node, PathNode, Pose2

if TYPE_CHECKING:
    from .pathplanner import PathPlannerLeaves

__all__ = ["FollowStep", "Followable", "Prepared", "Timed"]

STILL_MPS = 0.25  # the follow command makes a new trajectory, in the loop, if it starts faster
START_M = 0.25
START_RAD = math.radians(15.0)
HOLD_S = 3.0  # how long a step may stand still to be prepared again
PASS_M = 0.3
ALIGN_S = 2.0  # added to the expected time
MISSED_M = 0.25


class Followable(Protocol):
    """What follows the trajectory; shaped like a command."""

    def initialize(self) -> None:
        """Begin."""

    def execute(self) -> None:
        """Drive one loop."""

    @abstractmethod
    def isFinished(self) -> bool:  # noqa: N802  (the name in WPILib)
        """Return True at the end."""

    def end(self, interrupted: bool) -> None:
        """End."""


@runtime_checkable
class Timed(Protocol):
    """A follower without an own clock: the time since its begin is set in every loop."""

    elapsed_s: float


@dataclass(slots=True)
class Prepared:
    """A trajectory from `start` to `goal`; without `follow` there is nothing but to align, or to drive plainly."""

    start: Pose2
    goal: Pose2
    follow: Followable | None = None
    total_s: float | None = None
    end_speed_mps: float = 0.0
    fallback: bool = False
    used: bool = False


class FollowStep:
    """Follows one PATH, POSE or ROUTE. `note` takes one text for the log, None if there is none."""

    def __init__(self, leaves: PathPlannerLeaves, node: Node, prepared: Prepared | None, alliance: str | None) -> None:
        self._leaves = leaves
        self._node = node
        self._prepared = prepared
        self._alliance = alliance
        self._drive = leaves.drive
        self._job = 0
        self._began = self._follow_began = 0.0
        self._last: tuple[float, Pose2] | None = None
        self._follow: Followable | None = None
        self._plain: DriveRoute | None = None
        self._done = False
        self.reached = 0
        self.note = ""
        self.expected_s: float | None = None

    def start(self, now: float) -> None:
        """Stand still; a path must begin near the robot."""
        self._drive.stop()
        pose = self._measured()
        self._leaves.check_start(self._node, pose, self._alliance)
        self._began = now
        self._last = None

    def execute(self, now: float) -> None:
        """Do one loop of whatever comes next."""
        pose = self._measured()
        if self._plain is not None:
            self._plain.execute(now)
            self._done = self._plain.finished(now)
        elif self._follow is not None:
            self._run(now, pose)
        else:
            self._get_ready(now, pose)

    def finished(self, now: float) -> bool:
        """Return True at the end of the path, or when aligned."""
        return self._done

    def end(self, interrupted: bool) -> None:
        """Stand still, however it ends."""
        if self._job:
            self._leaves.worker.drop(self._job)
            self._job = 0
        try:
            if self._follow is not None:
                follow, self._follow = self._follow, None
                follow.end(True)
        finally:
            self._drive.stop()

    def _measured(self) -> Pose2:
        pose = self._drive.pose()
        if not (math.isfinite(pose.x) and math.isfinite(pose.y) and math.isfinite(pose.rotation)):
            raise StepFailed("bad-pose", "The robot's measured pose is not a number.")
        return pose

    def _get_ready(self, now: float, pose: Pose2) -> None:
        if now - self._began > HOLD_S:
            raise StepFailed("not-prepared", f"The trajectory was not ready after {HOLD_S:g} s.")
        last, self._last = self._last, (now, pose)
        if last is None or now <= last[0]:
            return
        if pose.distance(last[1]) / (now - last[0]) > STILL_MPS:
            return
        if self._job:
            self._take_job()
        prepared = self._prepared
        if prepared is None or prepared.used or not self._fits(prepared, pose):
            self._prepared = None
            if not self._job:
                node, alliance = self._node, self._alliance
                self._job = self._leaves.worker.submit(lambda: self._leaves.prepare(node, pose, alliance))
            return
        prepared.used = True
        self._begin(now, prepared)

    def _take_job(self) -> None:
        try:
            result = self._leaves.worker.take(self._job)
        except KeyError:  # still at it
            return
        self._job = 0
        if isinstance(result.error, PlanError):
            raise StepFailed(result.error.code, result.error.message)
        if result.error is not None:
            raise result.error
        self._prepared = result.value

    def _fits(self, prepared: Prepared, pose: Pose2) -> bool:
        turn = abs(math.remainder(pose.rotation - prepared.start.rotation, 2 * math.pi))
        # A path begins where its file says; how far away the robot may be was tested at the start.
        near = isinstance(self._node, PathNode) or pose.distance(prepared.start) <= START_M
        return near and turn <= START_RAD

    def _begin(self, now: float, prepared: Prepared) -> None:
        waited = now - self._began
        if prepared.follow is None:
            self._align(now, self._leaves.route_step(self._node) if prepared.fallback else None)
            if prepared.fallback:
                self.note = "long route: driven from pose to pose"
            return
        if prepared.total_s is not None:
            self.expected_s = waited + prepared.total_s + ALIGN_S
        self._follow = prepared.follow
        self._follow_began = now
        self._follow.initialize()  # takes up to a millisecond: the first output comes in the next loop

    def _run(self, now: float, pose: Pose2) -> None:
        follow = self._follow
        if follow is None:
            return
        if isinstance(follow, Timed):
            follow.elapsed_s = now - self._follow_began
        follow.execute()
        targets = self._node.targets
        while self.reached < len(targets) - 1 and pose.distance(targets[self.reached]) < PASS_M:
            self.reached += 1
        if not follow.isFinished():
            return
        self._follow = None
        follow.end(False)
        self._drive.stop()
        if isinstance(self._node, PathNode):
            self._done = True
            self._note_miss(pose)
        else:
            self.reached = max(len(targets) - 1, 0)
            self._align(now, None)

    def _align(self, now: float, plain: DriveRoute | None) -> None:
        """Drive to the last pose itself: trajectories end by time, not by place."""
        self._plain = plain or DriveToPose(self._drive, self._node.targets[-1], self._leaves.align)
        self._plain.start(now)
        self._plain.execute(now)
        self._done = self._plain.finished(now)

    def _note_miss(self, pose: Pose2) -> None:
        prepared = self._prepared
        if prepared is not None and prepared.end_speed_mps == 0.0 and pose.distance(prepared.goal) > MISSED_M:
            self.note = f"missed by {pose.distance(prepared.goal):.2f} m"
