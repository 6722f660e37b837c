"""RoboRoute as a MagicBot component: `python -m robotpy --main examples/magicbot_robot.py sim --nogui`."""

from pathlib import Path

import magicbot
import wpilib
from simple_swerve import SimpleSwerve

from robotlib import RoboRoute
from robotlib.wpi import WpilibHost

DEPLOY = Path(__file__).parent / "deploy"


class Intake:
    def setup(self) -> None:
        self.pieces = 0
        self.loops_left = 0

    def grab(self) -> "Intake":
        self.loops_left = 25
        return self

    # An action may return an object with these four methods.
    def start(self, now: float) -> None:
        self.loops_left = 25

    def finished(self, now: float) -> bool:
        return self.loops_left <= 0

    def end(self, interrupted: bool) -> None:
        self.pieces += not interrupted

    def execute(self, now: float = 0.0) -> None:
        self.loops_left -= 1


class Planner:
    swerve: SimpleSwerve
    intake: Intake

    def setup(self) -> None:
        self.rr = RoboRoute(drive=self.swerve.plan_drive, host=WpilibHost(DEPLOY))
        self.rr.action(1, "Intake", self.intake.grab, timeout_s=3.0)

    def execute(self) -> None:
        """Nothing: plans run in `robotPeriodic`, in every mode."""

    def on_disable(self) -> None:
        self.rr.cancel("disabled")


class MyRobot(magicbot.MagicRobot):
    intake: Intake
    planner: Planner

    def createObjects(self) -> None:
        self.swerve = SimpleSwerve()

    def robotPeriodic(self) -> None:
        super().robotPeriodic()  # MagicRobot updates dashboards there
        self.planner.rr.periodic()
        self.swerve.advance(self.control_loop_wait_time)

    def autonomous(self) -> None:
        self.planner.rr.start("auto")
        super().autonomous()


if __name__ == "__main__":
    wpilib.run(MyRobot)  # type: ignore[attr-defined]
