"""RoboRoute in a plain TimedRobot: `python -m robotpy --main examples/timed_robot.py sim --nogui`."""

from collections.abc import Iterator
from pathlib import Path

import wpilib
from simple_swerve import SimpleSwerve

from robotlib import FIELD_2026, RoboRoute
from robotlib.wpi import WpilibHost

DEPLOY = Path(__file__).parent / "deploy"


class MyRobot(wpilib.TimedRobot):
    def robotInit(self) -> None:
        self.swerve = SimpleSwerve()
        self.pieces = 0
        self.rr = RoboRoute(drive=self.swerve.plan_drive, host=WpilibHost(DEPLOY), field=FIELD_2026)
        self.rr.action(1, "Intake", self.intake_steps, timeout_s=3.0)

    def intake_steps(self) -> Iterator[None]:
        """One yield per loop; closed early, the `finally` still runs."""
        timer = wpilib.Timer()
        timer.start()
        try:
            while not timer.hasElapsed(0.5):
                yield
            self.pieces += 1
        finally:
            timer.stop()

    def robotPeriodic(self) -> None:
        self.rr.periodic()
        self.swerve.advance(self.getPeriod())

    def autonomousInit(self) -> None:
        if not self.rr.start("auto"):
            self.default_auto()

    def default_auto(self) -> None:
        """What the robot does when no plan is staged."""
        self.swerve.stop()


if __name__ == "__main__":
    wpilib.run(MyRobot)  # type: ignore[attr-defined]
