"""Driving without a path library: the drive protocol, its settings, and the steps that drive to poses."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from .errors import StepFailed
from .model import Pose2

__all__ = ["Drive", "DriveRoute", "DriveSettings", "DriveToPose", "HolonomicDrive"]

MAX_DT_S = 0.1  # a late loop must not become a jump in speed


class Drive(Protocol):
    """The robot's drive: blue origin, field-relative, never turned for the red driver's view."""

    @abstractmethod
    def pose(self) -> Pose2:
        """Return the measured pose in metres and radians."""

    def drive(self, vx: float, vy: float, omega: float) -> None:
        """Drive with m/s and rad/s."""

    def stop(self) -> None:
        """Stand still."""


class HolonomicDrive:
    """A drive made of three callables."""

    def __init__(
        self, pose: Callable[[], Pose2], drive: Callable[[float, float, float], None], stop: Callable[[], None]
    ) -> None:
        self._pose = pose
        self._drive = drive
        self._stop = stop

    def pose(self) -> Pose2:
        """Return the measured pose."""
        return self._pose()

    def drive(self, vx: float, vy: float, omega: float) -> None:
        """Drive field-relative."""
        self._drive(vx, vy, omega)

    def stop(self) -> None:
        """Stand still."""
        self._stop()


@dataclass(frozen=True, slots=True)
class DriveSettings:
    """Bounds and gains of drive-to-pose; `stuck_s` None turns the stuck test off."""

    max_speed_mps: float = 3.0
    max_accel_mps2: float = 3.0
    max_omega_radps: float = 6.0
    max_alpha_radps2: float = 12.0
    gain_per_s: float = 4.0
    turn_gain_per_s: float = 5.0
    tolerance_m: float = 0.02
    tolerance_rad: float = math.radians(2.0)
    pass_radius_m: float = 0.20
    drop_nearer_m: float = 0.10
    stuck_s: float | None = 1.5
    stuck_m: float = 0.02
    stuck_rad: float = math.radians(2.0)
    holonomic: bool = True


class DriveRoute:
    """Drives through poses without stopping, the last one to tolerance.

    `reached` counts the poses that are behind. Fails with `bad-pose` and `stuck`.
    """

    def __init__(self, drive: Drive, poses: Sequence[Pose2], settings: DriveSettings) -> None:
        if not poses:
            raise ValueError("a route needs a pose")
        self._drive = drive
        self._settings = settings
        self._poses = _thinned(poses, settings.drop_nearer_m)
        self._index = 0
        self._ahead_m = [0.0] * len(self._poses)  # from each pose to the last one
        for i in range(len(self._poses) - 2, -1, -1):
            self._ahead_m[i] = self._ahead_m[i + 1] + self._poses[i][1].distance(self._poses[i + 1][1])
        self._speed = 0.0
        self._omega = 0.0
        self._last = 0.0
        self._anchor: tuple[float, Pose2] | None = None
        self._here = False

    @property
    def reached(self) -> int:
        """How many of the given poses are behind the robot."""
        return self._poses[self._index][0]

    def start(self, now: float) -> None:
        """Begin at standstill."""
        self._last = now
        self._anchor = (now, self._measured())

    def execute(self, now: float) -> None:
        """Command one loop's speeds."""
        # Rounded to microseconds, the same loops give the same speeds at any time of day.
        dt = round(min(max(now - self._last, 0.0), MAX_DT_S), 6)
        self._last = now
        pose = self._measured()
        target = self._aim(pose)
        last = self._index == len(self._poses) - 1
        gap = pose.distance(target)
        turn = math.remainder(target.rotation - pose.rotation, 2 * math.pi)
        s = self._settings
        self._here = last and gap <= s.tolerance_m and abs(turn) <= s.tolerance_rad
        if not self._here:
            self._check_stuck(now, pose)
        rest = gap + self._ahead_m[self._index]
        self._speed = min(
            s.max_speed_mps,
            s.gain_per_s * rest,
            math.sqrt(2 * s.max_accel_mps2 * rest),
            self._speed + s.max_accel_mps2 * dt,
        )
        side = math.copysign(1.0, turn)
        self._omega = side * min(
            s.max_omega_radps,
            s.turn_gain_per_s * abs(turn),
            math.sqrt(2 * s.max_alpha_radps2 * abs(turn)),
            max(side * self._omega, 0.0) + s.max_alpha_radps2 * dt,
        )
        along = self._speed / gap if gap > 0.0 else 0.0
        self._drive.drive(along * (target.x - pose.x), along * (target.y - pose.y), self._omega)

    def finished(self, now: float) -> bool:
        """Return True when the last loop's pose was within tolerance of the last target."""
        return self._here

    def end(self, interrupted: bool) -> None:
        """Stand still, however it ends."""
        self._drive.stop()

    def _measured(self) -> Pose2:
        pose = self._drive.pose()
        if not (math.isfinite(pose.x) and math.isfinite(pose.y) and math.isfinite(pose.rotation)):
            raise StepFailed("bad-pose", "The robot's measured pose is not a number.")
        return pose

    def _aim(self, pose: Pose2) -> Pose2:
        last = len(self._poses) - 1
        while self._index < last and pose.distance(self._poses[self._index][1]) <= self._settings.pass_radius_m:
            self._index += 1
        return self._poses[self._index][1]

    def _check_stuck(self, now: float, pose: Pose2) -> None:
        s = self._settings
        if s.stuck_s is None:
            return
        moved = True
        if self._anchor is not None:
            turned = abs(math.remainder(pose.rotation - self._anchor[1].rotation, 2 * math.pi))
            moved = pose.distance(self._anchor[1]) >= s.stuck_m or turned >= s.stuck_rad
            if not moved and now - self._anchor[0] > s.stuck_s:
                raise StepFailed("stuck", f"The robot has not moved for {s.stuck_s:g} s.")
        if moved:
            self._anchor = (now, pose)


class DriveToPose(DriveRoute):
    """Drives to one pose."""

    def __init__(self, drive: Drive, pose: Pose2, settings: DriveSettings) -> None:
        super().__init__(drive, (pose,), settings)


def _thinned(poses: Sequence[Pose2], nearer_m: float) -> list[tuple[int, Pose2]]:
    """Return the poses with their index, without those nearer than that to the one before; the last one stays."""
    kept: list[tuple[int, Pose2]] = []
    for i, pose in enumerate(poses):
        if not kept or i == len(poses) - 1 or pose.distance(kept[-1][1]) >= nearer_m:
            kept.append((i, pose))
    return kept
