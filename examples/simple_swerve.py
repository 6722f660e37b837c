"""A drive that moves exactly as commanded, so that the examples run without a robot."""

import math

from robotlib import HolonomicDrive, Pose2

START = Pose2(1.0, 2.0, 0.0)


class SimpleSwerve:
    """Replace it by your swerve; robotlib needs its pose, field-relative driving and stopping."""

    def __init__(self) -> None:
        self.at = START
        self.speeds = (0.0, 0.0, 0.0)
        self.plan_drive = HolonomicDrive(self.pose, self.drive_field, self.stop)

    def pose(self) -> Pose2:
        return self.at

    def drive_field(self, vx: float, vy: float, omega: float) -> None:
        self.speeds = (vx, vy, omega)

    def stop(self) -> None:
        self.speeds = (0.0, 0.0, 0.0)

    def advance(self, dt_s: float) -> None:
        """Move for one loop; a real robot does that by itself."""
        vx, vy, omega = self.speeds
        rotation = math.remainder(self.at.rotation + omega * dt_s, 2 * math.pi)
        self.at = Pose2(self.at.x + vx * dt_s, self.at.y + vy * dt_s, rotation)
