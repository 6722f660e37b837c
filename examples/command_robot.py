"""RoboRoute in a command-based robot: `python -m robotpy --main examples/command_robot.py sim --nogui`."""

from pathlib import Path

import commands2
import wpilib
from simple_swerve import SimpleSwerve

from robotlib import CommandRoboRoute
from robotlib.wpi import WpilibHost

DEPLOY = Path(__file__).parent / "deploy"


class Drive(commands2.Subsystem):
    def __init__(self) -> None:
        super().__init__()
        self.swerve = SimpleSwerve()

    def simulationPeriodic(self) -> None:
        self.swerve.advance(0.02)


class Intake(commands2.Subsystem):
    def __init__(self) -> None:
        super().__init__()
        self.pieces = 0

    def grab(self) -> commands2.Command:
        return commands2.cmd.waitSeconds(0.5).andThen(commands2.cmd.runOnce(self.count, self))

    def count(self) -> None:
        self.pieces += 1


class MyRobot(commands2.TimedCommandRobot):
    def robotInit(self) -> None:
        self.drive = Drive()
        self.intake = Intake()
        self.rr = CommandRoboRoute(
            drive_subsystem=self.drive, drive=self.drive.swerve.plan_drive, host=WpilibHost(DEPLOY)
        )
        self.rr.action(1, "Intake", self.intake.grab, timeout_s=3.0, requires=[self.intake])  # a new command each time
        self.autonomous_command = self.rr.command(source="auto")
        self.drive.setDefaultCommand(commands2.cmd.run(self.drive.swerve.stop, self.drive))

    def robotPeriodic(self) -> None:
        self.rr.periodic()  # the scheduler runs after it, so that a cancel acts in the same loop

    def autonomousInit(self) -> None:
        self.autonomous_command.schedule()

    def autonomousExit(self) -> None:
        self.autonomous_command.cancel()


if __name__ == "__main__":
    wpilib.run(MyRobot)  # type: ignore[attr-defined]
