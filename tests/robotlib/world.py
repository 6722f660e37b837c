"""A robot and a phone without NetworkTables: drives PlanControl by its Inputs, in virtual time."""

import json

from plan_rig import FakeDrive, pose

from robotlib import Actions, DriveLeaves, Inputs, PlanControl, Pose2, Settings, plan_id
from robotlib.fitting import Robot
from robotlib.inputs import FALSE, TRUE
from robotlib.worker import InlineWorker

PERIOD_US = 20_000
TOPICS = ("run_plan", "run_pose", "run_route")


GO = pose(5.0, 2.0)
AWAY = pose(8.0, 2.0)


class World:
    """`loop` runs one robot loop; the phone's puts are collected until then."""

    def __init__(self, *, plan=None, boot_us=1_000_000, settings=None, worker=None, launch=None, paths=None, **robot):
        self.drive = robot.pop("drive", None) or FakeDrive(Pose2(2.0, 2.0, 0.0))
        self.actions = Actions()
        self.calls = []
        self.actions.register(1, "Intake", lambda: self.calls.append(self.now_us))
        self.now_us = boot_us
        self.worker = worker or InlineWorker()
        leaves = robot.pop("leaves", None) or DriveLeaves(self.drive, paths=paths)
        self.robot = Robot(self.actions, leaves, paths, **robot)
        self.control = PlanControl(self.robot, settings or Settings(), self.worker, boot_us, launch)
        self.host = {
            "enabled": True,
            "mode": "teleop",
            "estop": False,
            "brownout": False,
            "fms": False,
            "alliance": "blue",
            "stick": 0.0,
        }
        self.beat_number = 0.0
        self.beating = True
        self.plan_exists = False
        self.pending = Inputs()
        self.pose = self.route = None
        self.recorded = []
        self.loop(100)
        if plan is not None:
            self.put_plan(plan)
            self.loop()

    # The phone

    def put_plan(self, plan, age_us=0, kind="text"):
        text = plan if isinstance(plan, str) else json.dumps(plan)
        self.plan_exists = True
        self.pending.plan_texts.append(text)
        self.pending.plan_kinds.append(kind)
        self.pending.plan_stamps_us.append(self.now_us - age_us)
        return plan_id(text)

    def press(self, topic="run_plan", age_us=0, value=TRUE):
        getattr(self.pending, f"{topic}_values").append(value)
        getattr(self.pending, f"{topic}_stamps_us").append(self.now_us - age_us)

    def cancel(self, age_us=0, value=TRUE):
        self.press("cancel", age_us, value)

    def put_pose(self, x, y, rotation=0.0, age_us=0):
        self.pose = ([x, y, rotation], self.now_us - age_us)

    def put_route(self, *poses, age_us=0):
        self.route = ([number for pose in poses for number in pose], self.now_us - age_us)

    # The robot

    def loop(self, count=1, dt_us=PERIOD_US):
        for _ in range(count):
            inputs, self.pending = self.pending, Inputs()
            self.now_us += dt_us
            inputs.now_us = self.now_us
            for name, value in self.host.items():
                setattr(inputs, name, value)
            inputs.plan_exists = self.plan_exists
            if self.pose is not None:
                inputs.pose_seen, (inputs.pose_values, inputs.pose_stamp_us) = True, self.pose
            if self.route is not None:
                inputs.route_seen, (inputs.route_values, inputs.route_stamp_us) = True, self.route
            if self.beating:
                self.beat_number += 0.02
                inputs.heartbeat_exists[0] = True
                inputs.heartbeat_topics.append(0)
                inputs.heartbeat_values.append(self.beat_number)
                inputs.heartbeat_stamps_us.append(self.now_us)
            inputs.pose_x, inputs.pose_y, inputs.pose_rotation = (
                self.drive.at.x,
                self.drive.at.y,
                self.drive.at.rotation,
            )
            inputs.jobs_done = self.worker.take_done()
            self.recorded.append(inputs.to_dict())
            self.control.update(inputs)
            self.drive.move(dt_us / 1e6)
        return self.status

    def until(self, *states, limit=3000):
        for _ in range(limit):
            if self.status.state in states:
                return self.status
            self.loop()
        raise AssertionError(f"still {self.status.state}: {self.status.waiting} {self.status.error}")

    @property
    def status(self):
        return self.control.status

    @property
    def refused(self):
        return self.status.refused.partition(":")[0]

    def moved(self, loops=100):
        """Whether the robot moves or would move within some loops."""
        begin = self.drive.at
        self.loop(loops)
        return self.drive.at != begin or not self.drive.still


__all__ = ["FALSE", "PERIOD_US", "TOPICS", "TRUE", "World"]


def running_world(plan=GO, source="phone", **options):
    world = World(plan=plan, **options)
    if source == "phone":
        world.press()
        world.loop()
    else:
        assert world.control.start(source)
    world.loop(20)
    assert world.status.state == "RUNNING"
    return world
