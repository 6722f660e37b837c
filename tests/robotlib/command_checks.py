"""The command-based edge against the real scheduler; run as a process of its own by test_commands.py.

Usage: command_checks.py NAME
"""

import json
import sys
import tracemalloc
from pathlib import Path

import commands2
import hal
import hal.simulation
import ntcore
import wpilib.simulation
from commands2 import CommandScheduler
from wpilib.simulation import DriverStationSim

sys.path.insert(0, str(Path(__file__).parent))
from plan_rig import FakeDrive, act, par, pose, seq

from robotlib import CommandRoboRoute, Pose2, parse
from robotlib.worker import InlineWorker
from robotlib.wpi import WpilibHost


class Part(commands2.Subsystem):
    pass


class Robot:
    def __init__(self):
        hal.initialize(500, 0)
        wpilib.simulation.pauseTiming()
        wpilib.simulation.restartTiming()
        DriverStationSim.setDsAttached(True)
        DriverStationSim.setAllianceStationId(hal.AllianceStationID.kBlue1)
        self.enable(True)
        self.scheduler = CommandScheduler.getInstance()
        self.drive = FakeDrive(Pose2(2.0, 2.0, 0.0))
        self.base, self.arm = Part(), Part()
        self.base.setName("Base")
        self.table = ntcore.NetworkTableInstance.create()
        self.rr = CommandRoboRoute(
            drive_subsystem=self.base,
            drive=self.drive,
            host=WpilibHost(Path(__file__).parent),
            instance=self.table,
            worker=InlineWorker(),
        )
        self.ended = []
        self.rr.action(1, "Arm", self.arm_command, requires=[self.arm])
        options = ntcore.PubSubOptions(keepDuplicates=True)
        self.plan = self.table.getStringTopic("/RoboRoute/Plan").publish()
        self.press = self.table.getBooleanTopic("/RoboRoute/RunPlan").publish(options)
        self.cancel = self.table.getBooleanTopic("/RoboRoute/CancelPlan").publish(options)
        self.beat = self.table.getDoubleTopic("/RoboRoute/Heartbeat").publish()
        self.loops = 0
        self.loop(60)

    def arm_command(self):
        return (
            commands2.cmd.runOnce(lambda: None, self.arm)
            .andThen(commands2.cmd.waitSeconds(0.2))
            .finallyDo(self.ended.append)
        )

    def enable(self, on):
        DriverStationSim.setEnabled(on)
        DriverStationSim.notifyNewData()

    def loop(self, count=1):
        for _ in range(count):
            self.loops += 1
            self.beat.set(self.loops)
            DriverStationSim.notifyNewData()
            wpilib.simulation.stepTiming(0.02)
            self.rr.periodic()
            self.scheduler.run()
            self.drive.move()

    def stage(self, plan):
        self.plan.set(json.dumps(plan))
        self.loop(2)
        assert self.rr.status.ready, self.rr.status

    def until_over(self):
        while self.rr.running:
            self.loop()
        self.loop()


def press_runs_one_command(robot):
    robot.stage(par(pose(4, 2), act(1)))
    robot.press.set(True)
    robot.loop(2)
    assert robot.scheduler.requiring(robot.base) is robot.scheduler.requiring(robot.arm) is not None
    robot.until_over()
    assert robot.rr.status.state == "DONE"
    assert robot.ended == [False]
    assert robot.scheduler.requiring(robot.base) is None
    assert robot.drive.at.distance(Pose2(4, 2, 0)) < 0.05


def cancel_acts_in_the_same_loop(robot):
    robot.stage(par(pose(9, 2), act(1)))
    robot.base.setDefaultCommand(commands2.cmd.run(lambda: robot.drive.drive(0.88, 0, 0), robot.base))
    robot.press.set(True)
    robot.loop(5)
    robot.cancel.set(True)
    robot.drive.output = (9.0, 9.0, 9.0)
    robot.rr.periodic()
    assert robot.drive.still
    assert robot.ended == [True]
    robot.scheduler.run()
    assert robot.drive.still or robot.drive.output == (0.88, 0, 0)
    assert robot.rr.control.run.executor.reason == "phone"


def disable_ends_and_nothing_resumes(robot):
    robot.stage(pose(9, 2))
    robot.press.set(True)
    robot.loop(5)
    robot.enable(False)
    robot.loop()
    assert robot.drive.still
    assert robot.rr.status.state == "CANCELLED"
    robot.loop(25)
    robot.enable(True)
    at = robot.drive.at
    robot.loop(50)
    assert robot.drive.at == at
    assert robot.scheduler.requiring(robot.base) is None


def busy_drive(robot):
    robot.stage(pose(9, 2))
    holder = (
        commands2.cmd.run(lambda: None, robot.base)
        .withName("Aim")
        .withInterruptBehavior(commands2.InterruptionBehavior.kCancelIncoming)
    )
    robot.scheduler.schedule(holder)
    robot.press.set(True)
    robot.loop(3)
    assert robot.rr.status.refused.startswith("drive-busy: "), robot.rr.status.refused
    assert "Base" in robot.rr.status.refused
    assert robot.rr.status.run_id == 0
    assert robot.drive.still
    holder.cancel()
    robot.loop(30)
    assert robot.drive.still


def interrupted_by_another_command(robot):
    robot.stage(pose(9, 2))
    robot.press.set(True)
    robot.loop(10)
    robot.scheduler.schedule(commands2.cmd.run(lambda: None, robot.base))
    assert robot.drive.still
    robot.loop(2)
    assert robot.rr.status.state == "CANCELLED"
    assert robot.rr.control.run.executor.reason == "interrupted"
    robot.scheduler.cancelAll()


def user_command(robot):
    command = robot.rr.command(source="auto")
    assert set(command.getRequirements()) == {robot.base, robot.arm}
    robot.scheduler.schedule(command)
    robot.loop(2)
    assert not command.isScheduled()  # nothing staged
    robot.stage(seq(act(1), pose(3, 2)))
    robot.scheduler.schedule(command)
    robot.until_over()
    assert robot.rr.status.state == "DONE"
    assert robot.rr.status.run_source == "auto"
    robot.scheduler.schedule(command)  # the same command again
    robot.loop(3)
    robot.scheduler.cancel(command)
    assert robot.drive.still
    assert robot.rr.control.run.executor.reason == "interrupted"
    robot.loop()


def command_for_a_plan(robot):
    command = robot.rr.command_for(parse(json.dumps(pose(3, 2))))
    assert set(command.getRequirements()) == {robot.base}
    robot.scheduler.schedule(command)
    robot.loop(2)
    assert robot.rr.status.state == "RUNNING"
    robot.until_over()
    assert robot.drive.at.distance(Pose2(3, 2, 0)) < 0.05


def start_from_inside_the_scheduler_is_refused(robot):
    robot.stage(pose(9, 2))
    results = []
    robot.scheduler.schedule(commands2.cmd.run(lambda: results or results.append(robot.rr.start("code"))))
    robot.loop(30)
    assert [result.code for result in results] == ["drive-busy"]
    assert robot.drive.still
    assert robot.scheduler.requiring(robot.base) is None


def undeclared_requirement(robot):
    other = Part()
    robot.rr.action(2, "Sneaky", lambda: commands2.cmd.run(lambda: None, other))
    robot.stage(par(pose(9, 2), act(2)))
    robot.press.set(True)
    robot.loop(3)
    assert robot.rr.status.state == "FAILED"
    assert robot.rr.status.error_code == "undeclared-requirement"
    assert robot.drive.still
    robot.loop(3)
    assert robot.scheduler.requiring(robot.base) is None


def reused_command(robot):
    command = commands2.cmd.waitSeconds(0.1)
    robot.rr.action(2, "Once", lambda: command)
    robot.stage(par(act(2), act(2)))
    robot.press.set(True)
    robot.loop(3)
    assert robot.rr.status.state == "FAILED"
    assert not robot.scheduler.isComposed(command)


def exceptions_leave_the_scheduler_usable(robot):
    def fail():
        raise ZeroDivisionError("division by zero")

    places = (
        commands2.cmd.startEnd(fail, lambda: None),
        commands2.cmd.run(fail),
        commands2.cmd.run(lambda: None).until(fail),
        commands2.cmd.startEnd(lambda: None, fail).withTimeout(0.05),
    )
    for number, command in enumerate(places, 10):
        robot.rr.action(number, f"Bad{number}", lambda command=command: command)
        robot.stage(par(pose(9, 2), act(number)))
        robot.press.set(True)
        robot.loop(10)
        assert robot.rr.status.state == "FAILED", (number, robot.rr.status)
        assert robot.rr.status.error_code == "exception"
        assert robot.drive.still
        robot.loop(3)
    robot.stage(act(1))
    robot.press.set(True)
    robot.loop(2)
    robot.until_over()
    assert robot.rr.status.state == "DONE"


def two_hundred_plans(robot):
    # A plain command: WPILib itself keeps the members of every group that an action makes.
    robot.rr.action(5, "Arm", lambda: commands2.cmd.runOnce(lambda: None, robot.arm), requires=[robot.arm])

    def plan(number):
        robot.stage(seq(act(5), pose(2 + number % 3, 2)))
        robot.press.set(True)
        robot.loop(3)
        robot.until_over()
        assert robot.rr.status.state == "DONE"
        robot.rr.take_events()
        robot.drive.path.clear()

    for number in range(20):
        plan(number)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(200):
        plan(number)
    grown = tracemalloc.get_traced_memory()[0] - before
    assert not robot.scheduler._composedCommands
    assert grown < 1_000_000, grown


def main():
    robot = Robot()
    globals()[sys.argv[1]](robot)
    robot.rr.close()
    print("done", flush=True)


main()
