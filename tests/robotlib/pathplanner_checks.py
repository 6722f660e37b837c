"""The PathPlanner edge in simulation; run as a process of its own by test_pathplanner.py.

Usage: pathplanner_checks.py NAME FOLDER, with FOLDER for path files and grids.
"""

import json
import math
import sys
import threading
import time
from pathlib import Path

import hal
import pathplannerlib.pathfinders as library
import wpilib.simulation
from pathplannerlib.auto import AutoBuilder
from pathplannerlib.config import ModuleConfig, PIDConstants, RobotConfig
from pathplannerlib.controller import PPHolonomicDriveController
from pathplannerlib.path import PathConstraints
from pathplannerlib.pathfinding import Pathfinding
from wpilib.simulation import DriverStationSim
from wpimath.geometry import Pose2d, Translation2d
from wpimath.kinematics import ChassisSpeeds
from wpimath.system.plant import DCMotor

sys.path.insert(0, str(Path(__file__).parent))
from commands2 import Subsystem
from plan_rig import EXAMPLE, Clock, FakeDrive, act, pose, route, seq, write_path

from robotlib import FIELD_2026, Actions, Executor, PathPlannerLeaves, PlanError, Pose2, bind, parse
from robotlib.pathplanner import synchronous_pathfinder
from robotlib.worker import InlineWorker, ThreadWorker

FOLDER = Path(sys.argv[2])
CONSTRAINTS = PathConstraints(3.0, 3.0, 6.0, 12.0)


class Swerve(FakeDrive, Subsystem):
    def __init__(self, at):
        Subsystem.__init__(self)
        FakeDrive.__init__(self, at)

    def pose2d(self):
        return Pose2d(self.at.x, self.at.y, self.at.rotation)

    def speeds(self):
        vx, vy, omega = self.output
        turned = Translation2d(vx, vy).rotateBy(-self.pose2d().rotation())
        return ChassisSpeeds(turned.x, turned.y, omega)

    def robot_relative(self, speeds, _feedforwards=None):
        turned = Translation2d(speeds.vx, speeds.vy).rotateBy(self.pose2d().rotation())
        self.drive(turned.x, turned.y, speeds.omega)


class Robot:
    def __init__(self, start, alliance="blue", worker=None):
        hal.initialize(500, 0)
        wpilib.simulation.pauseTiming()
        wpilib.simulation.restartTiming()
        DriverStationSim.setDsAttached(True)
        DriverStationSim.setEnabled(True)
        DriverStationSim.notifyNewData()
        self.drive = Swerve(start)
        module = ModuleConfig(0.05, 5.0, 1.2, DCMotor.krakenX60(1).withReduction(6.0), 60.0, 1)
        offsets = [Translation2d(x, y) for x, y in ((0.3, 0.3), (0.3, -0.3), (-0.3, 0.3), (-0.3, -0.3))]
        config = RobotConfig(60.0, 6.0, module, offsets)
        controller = PPHolonomicDriveController(PIDConstants(5.0), PIDConstants(5.0))
        AutoBuilder.configure(
            self.drive.pose2d,
            lambda at: None,
            self.drive.speeds,
            self.drive.robot_relative,
            controller,
            config,
            lambda: alliance == "red",
            self.drive,
        )
        self.alliance = alliance
        self.worker = worker or InlineWorker()
        self.leaves = PathPlannerLeaves(CONSTRAINTS, self.drive, deploy_dir=FOLDER)
        self.leaves.use_worker(self.worker)
        self.actions = Actions()
        self.actions.register(1, "Intake", lambda: None)
        self.clock = Clock()
        self.longest_s = 0.0

    def begin(self, plan, prepare=True):
        text = plan if isinstance(plan, str) else json.dumps(plan)
        self.bound = bind(
            parse(text), self.actions, leaves=self.leaves, paths=self.leaves.paths, alliance=self.alliance
        )
        if prepare:
            self.bound.prepare(self.drive.at)
        self.ex = Executor(self.bound, clock=self.clock)
        self.ex.start()
        return self

    def loop(self, count=1, **options):
        for _ in range(count):
            begin = time.thread_time()  # of this thread alone: the machine's other work must not count
            self.ex.execute(**options)
            self.longest_s = max(self.longest_s, time.thread_time() - begin)
            self.drive.move()
            self.clock.now += 0.02
            wpilib.simulation.stepTiming(0.02)

    def run(self, limit=2000):
        for _ in range(limit):
            self.loop()
            if self.ex.finished:
                return self.ex
        raise SystemExit(f"still {self.ex.state} {self.ex.running} {self.drive.at}")

    def near(self, goal, metres=0.05):
        turn = abs(math.remainder(goal.rotation - self.drive.at.rotation, 2 * math.pi))
        assert self.drive.at.distance(goal) < metres, (self.drive.at, goal)
        assert turn < math.radians(3), (self.drive.at, goal)


def example_on_blue():
    write_path(FOLDER)
    robot = Robot(Pose2(1.0, 2.0, 0.0))
    ended = robot.begin(EXAMPLE).run()
    assert ended.state == "DONE", ended.error
    robot.near(Pose2(4.0, 7.0, 2.68))
    assert robot.drive.still


def example_on_red():
    """PATH is flipped, POSE and ROUTE are not."""
    write_path(FOLDER)
    robot = Robot(Pose2(1.0, 2.0, 0.0).flipped(FIELD_2026), "red")
    robot.begin(EXAMPLE)
    assert any(warning.code == "frame-jump" for warning in robot.bound.warnings)
    end = Pose2(2.4, 2.8, math.radians(45)).flipped(FIELD_2026)
    while robot.ex.running in ((), ("$.children[0]",)):
        robot.loop()
        assert not robot.ex.finished, robot.ex.error
    robot.near(end, 0.15)
    assert robot.run().state == "DONE", robot.ex.error
    robot.near(Pose2(4.0, 7.0, 2.68))


def deterministic():
    traces = []
    write_path(FOLDER)
    robot = Robot(Pose2(1.0, 2.0, 0.0))
    for _ in range(2):
        wpilib.simulation.restartTiming()
        robot.drive.at, robot.drive.path = Pose2(1.0, 2.0, 0.0), []
        robot.clock.now = 100.0
        robot.begin(EXAMPLE).run()
        traces.append(robot.drive.path)
    assert traces[0] == traces[1]


def cancel_stops_at_once():
    """The library leaves the drive at its last speed when a path is cancelled."""
    write_path(FOLDER)
    for kind in ("cancel", "disable", "gap"):
        robot = Robot(Pose2(1.0, 2.0, 0.0)) if kind == "cancel" else robot  # noqa: F821
        robot.drive.at = Pose2(1.0, 2.0, 0.0)
        robot.begin({"type": "PATH", "pathName": "LeaveStart"})
        robot.loop(20)
        assert not robot.drive.still
        if kind == "cancel":
            robot.ex.cancel("phone")
        else:
            robot.clock.now += 10.0 if kind == "gap" else 0.0
            robot.loop(enabled=kind != "disable")
        assert robot.drive.still
        at = robot.drive.at
        robot.loop(25)
        assert robot.drive.at == at


def long_route_within_a_loop():
    """Twenty poses: 185 ms of trajectory building, none of it in the loop."""
    robot = Robot(Pose2(1.0, 1.0, 0.0))
    points = [(1.5 + 0.6 * i, 2.0 + (i % 2), 0.1 * i) for i in range(20)]
    longest = []
    for _ in range(5):
        robot.drive.at = Pose2(1.0, 1.0, 0.0)
        robot.begin(route(*points))
        robot.longest_s = 0.0
        assert robot.run().state == "DONE", robot.ex.error
        robot.near(Pose2(*points[-1]))
        longest.append(robot.longest_s)
    print(f"longest loop {min(longest) * 1e3:.2f} ms", file=sys.stderr)
    assert min(longest) <= 0.002, longest


def prepared_while_standing_still():
    worker = ThreadWorker()
    robot = Robot(Pose2(1.0, 1.0, 0.0), worker=worker)
    robot.begin(route((3.0, 1.0, 0.0), (3.0, 3.0, 1.0)), prepare=False)
    while not robot.drive.output[0]:
        robot.loop()
        threading.Event().wait(0.005)
        assert not robot.ex.finished, robot.ex.error
    assert robot.run().state == "DONE", robot.ex.error
    robot.near(Pose2(3.0, 3.0, 1.0))
    worker.close()


def not_prepared_in_time():
    class Stuck(InlineWorker):
        def take(self, number):
            raise KeyError(number)

    robot = Robot(Pose2(1.0, 1.0, 0.0), worker=Stuck())
    robot.begin(pose(3.0, 1.0), prepare=False)
    assert robot.run().error.code == "not-prepared"
    assert robot.drive.at == Pose2(1.0, 1.0, 0.0)


def moved_since_prepared():
    robot = Robot(Pose2(1.0, 1.0, 0.0))
    robot.begin(pose(5.0, 1.0))
    robot.drive.at = Pose2(1.0, 3.0, 2.0)
    assert robot.run().state == "DONE"
    robot.near(Pose2(5.0, 1.0, 0.0))
    assert max(at.distance(last) for at, last in zip(robot.drive.path[1:], robot.drive.path, strict=False)) < 0.09


def degenerate_targets():
    robot = Robot(Pose2(2.0, 2.0, 0.0))
    for plan, goal in (
        (pose(2.0, 2.0, 1.0), Pose2(2.0, 2.0, 1.0)),
        (pose(2.2, 2.0, 0.0), Pose2(2.2, 2.0, 0.0)),
        (route((2.2, 2.0, 0.0), (2.2, 2.0, 0.5)), Pose2(2.2, 2.0, 0.5)),
        (route((4.0, 2.0, 0.5), (4.01, 2.0, 0.6)), Pose2(4.01, 2.0, 0.6)),
    ):
        assert robot.begin(plan).run().state == "DONE", robot.ex.error
        robot.near(goal)


def no_bulge():
    """The way follows the line between the poses, not the robot's rotations."""
    robot = Robot(Pose2(2.0, 4.0, 0.0))
    robot.begin(route((5.0, 4.0, 1.57), (8.0, 4.0, -1.57))).run()
    assert max(abs(at.y - 4.0) for at in robot.drive.path) < 0.06


def too_far_from_path_start():
    write_path(FOLDER)
    robot = Robot(Pose2(7.0, 2.0, 0.0))
    assert robot.begin({"type": "PATH", "pathName": "LeaveStart"}).run().error.code == "too-far-from-path-start"
    assert robot.drive.at == Pose2(7.0, 2.0, 0.0)


def path_not_found():
    write_path(FOLDER)
    robot = Robot(Pose2(1.0, 2.0, 0.0))
    for name, hint in (
        ("LeaveStrat", "Did you mean LeaveStart?"),
        ("LeaveStart.path", "without .path"),
        ("x" * 128, ""),
    ):
        try:
            robot.begin({"type": "PATH", "pathName": name})
        except PlanError as error:
            assert error.code == "path-not-found"
            assert hint in error.message
        else:
            raise AssertionError(name)


def grid(blocked):
    rows = [[blocked(0.3 * (column + 0.5), 0.3 * (row + 0.5)) for column in range(56)] for row in range(27)]
    (FOLDER / "pathplanner").mkdir(exist_ok=True)
    content = {"field_size": {"x": 16.54, "y": 8.07}, "nodeSizeMeters": 0.3, "grid": rows}
    (FOLDER / "pathplanner" / "navgrid.json").write_text(json.dumps(content))


def finds_a_way_around():
    grid(lambda x, y: 4.0 < x < 6.0 and y < 6.0)
    library.getDeployDirectory = lambda: str(FOLDER)  # it follows the main module, wrong here
    # Before the leaves make the library's own: all pathfinders share their maps, and that one has a thread.
    Pathfinding.setPathfinder(synchronous_pathfinder())
    robot = Robot(Pose2(2.0, 2.0, 0.0))
    traces = []
    for _ in range(2):
        wpilib.simulation.restartTiming()
        robot.drive.at, robot.drive.path, robot.clock.now = Pose2(2.0, 2.0, 0.0), [], 100.0
        assert robot.begin(pose(9.0, 2.0, 1.0)).run().state == "DONE", robot.ex.error
        robot.near(Pose2(9.0, 2.0, 1.0))
        assert all(not (4.3 < at.x < 5.7 and at.y < 5.5) for at in robot.drive.path)
        traces.append(robot.drive.path)
    assert traces[0] == traces[1]


def goal_in_obstacle():
    grid(lambda x, y: 4.0 < x < 6.0 and y < 6.0)
    robot = Robot(Pose2(2.0, 2.0, 0.0))
    for plan, path in ((pose(5.0, 2.0), "$.pose"), (route((3, 3, 0), (5, 5, 0)), "$.routePoses[1]")):
        try:
            robot.begin(plan)
        except PlanError as error:
            assert (error.code, error.path) == ("goal-in-obstacle", path)
        else:
            raise AssertionError(plan)


def pressed_pose_is_prepared_in_the_shared_worker():
    """The receiver and the step use the same worker; neither takes the other's results."""
    from world import World

    robot = Robot(Pose2(2.0, 2.0, 0.0), worker=ThreadWorker())
    world = World(leaves=robot.leaves, worker=robot.worker, drive=robot.drive)
    for x, y in ((4.0, 2.0), (4.0, 4.0)):
        world.put_pose(x, y, 1.0)
        world.press("run_pose")
        while world.status.state != "RUNNING":
            world.loop()
        while world.status.state == "RUNNING":
            world.loop()
            wpilib.simulation.stepTiming(0.02)
            threading.Event().wait(0.002)
        assert world.status.state == "DONE", world.status.error
        robot.near(Pose2(x, y, 1.0))
        world.loop(60)
    robot.worker.close()


def pause_and_resume():
    robot = Robot(Pose2(1.0, 1.0, 0.0))
    robot.begin(seq(route((4.0, 1.0, 0.0), (4.0, 4.0, 0.0), (1.0, 4.0, 0.0)), act(1)))
    while robot.drive.at.y < 2.5:
        robot.loop()
    robot.ex.pause()
    assert robot.drive.still
    robot.loop(50)
    robot.ex.resume()
    mark = len(robot.drive.path)
    assert robot.run().state == "DONE", robot.ex.error
    assert min(at.y for at in robot.drive.path[mark:]) > 2.3
    robot.near(Pose2(1.0, 4.0, 0.0))


globals()[sys.argv[1]]()
print("done", flush=True)
