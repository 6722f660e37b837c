"""The event table: one test for every row, named after it. Rows about replays run with real NT in test_replays."""

import json
import tracemalloc

import pytest
from plan_rig import FakeDrive, act, par, pose, route, seq, write_path
from world import AWAY, GO, World, running_world

from robotlib import FIELD_2026, Actions, DriveLeaves, Inputs, PathFolder, PlanControl, Pose2, Settings, plan_id
from robotlib.fitting import Robot
from robotlib.worker import ThreadWorker


def test_valid_plan_text_is_staged_without_motion():
    world = World()
    assert world.status.state == "NO_PLAN"
    identity = world.put_plan(GO)
    world.loop()
    assert world.status.state == "READY"
    assert world.status.plan_id == identity == plan_id(json.dumps(GO))
    assert world.status.plan_poses == (Pose2(5.0, 2.0, 0.0),)
    assert json.loads(world.status.timeline)[0]["type"] == "POSE"
    assert not world.status.retained
    assert not world.moved()


@pytest.mark.parametrize("how", ["before boot", "old"])
def test_old_plan_text_is_retained_and_needs_a_fresh_run(how):
    world = World()
    world.put_plan(GO, age_us=world.now_us - 999_999 if how == "before boot" else 800_000)
    world.press(age_us=2_200_000)
    world.loop()
    assert world.status.retained
    assert world.status.state == "READY"
    assert not world.moved()
    world.press()
    world.loop()
    assert world.status.state == "RUNNING"


def test_new_plan_while_running_is_staged_only():
    world = running_world()
    first = world.status.plan_id
    world.put_plan(AWAY)
    world.loop()
    assert world.status.state == "RUNNING"
    assert world.status.plan_id != first == world.status.running_id
    world.until("DONE")
    assert world.drive.at.distance(Pose2(5.0, 2.0, 0.0)) < 0.05
    assert not world.moved()


def test_new_plan_while_running_with_preempt():
    world = running_world(settings=Settings(preempt=True))
    world.put_plan("{")
    world.loop()
    assert world.status.state == "RUNNING"
    world.put_plan(AWAY)
    world.loop()
    assert world.control.run.executor.reason == "preempted"
    assert not world.moved()


def test_a_plan_that_is_bound_again_does_not_preempt_itself():
    world = running_world(settings=Settings(preempt=True))
    world.actions.register(77, "Late", lambda: None)
    world.loop(2)
    assert world.status.state == "RUNNING"


def test_same_plan_text_again_runs_again():
    world = running_world()
    identity = world.status.plan_id
    for ending in ("DONE", "CANCELLED", "FAILED"):
        if ending == "CANCELLED":
            world.cancel()
        elif ending == "FAILED":
            world.drive.at = Pose2(float("nan"), 0.0, 0.0)
        world.until(ending)
        assert world.status.plan_id == identity
        world.drive.at = Pose2(2.0, 2.0, 0.0)
        world.loop()
        assert world.status.ready
        world.press()
        world.loop()
        assert world.status.state == "RUNNING"


def test_malformed_plan_clears_the_staged_one_and_lets_the_run_go_on():
    world = running_world()
    world.put_plan('{"type":"POSE","pose":{"x":50,"y":1,"rotation":0}}')
    world.loop()
    assert world.status.state == "RUNNING"
    assert world.status.error_code == "off-field"
    assert world.status.error_path == "$.pose.x"
    assert world.status.plan_id == ""
    world.until("DONE")
    world.press()
    world.loop()
    assert world.refused == "not-ready"
    assert not world.control.start()
    idle = World(plan=GO)
    idle.put_plan("{")
    idle.loop()
    assert idle.status.state == "REJECTED"
    assert not idle.status.ready
    idle.put_plan(GO)
    idle.loop()
    assert idle.status.state == "READY"
    assert idle.status.error == ""


@pytest.mark.parametrize("kind, code", [("bad-encoding", "bad-encoding"), ("wrong-type", "wrong-type")])
def test_plan_value_that_is_no_text(kind, code):
    world = World(plan=GO)
    world.put_plan("", kind=kind)
    world.loop()
    assert (world.status.state, world.status.error_code) == ("REJECTED", code)


def test_empty_text_withdraws_the_plan():
    world = running_world()
    world.put_plan("  ")
    world.loop()
    assert world.status.state == "RUNNING"
    world.until("DONE")
    assert world.status.plan_id == ""
    assert world.status.error == ""
    world.press()
    world.loop()
    assert world.refused == "not-ready"
    idle = World(plan=GO)
    idle.put_plan("")
    assert idle.loop().state == "NO_PLAN"


def test_alliance_unknown(tmp_path):
    path = {"type": "PATH", "pathName": "LeaveStart"}
    for plan in (path, {**GO, "frame": "alliance"}):
        world = World(paths=PathFolder(write_path(tmp_path)))
        world.host["alliance"] = ""
        world.put_plan(plan)
        world.loop(2)
        assert world.status.state == "STAGED"
        assert world.status.waiting == ("The alliance is not known yet.",)
        assert world.control.start("auto").code == "not-ready"
        world.host["alliance"] = "red"
        world.loop(2)
        assert world.status.state == "READY"
        assert world.control.staging.bound.alliance == "red"
        world.host["alliance"] = "blue"
        world.loop(2)
        assert world.control.staging.bound.alliance == "blue"
    world = World()
    world.host["alliance"] = ""
    world.put_plan(GO)
    world.loop()
    assert world.status.state == "READY"


def test_flip_is_frozen_at_the_start():
    world = World()
    world.host["alliance"] = "red"
    world.put_plan({**pose(13.0, 6.0), "frame": "alliance"})
    world.loop()
    goal = Pose2(13.0, 6.0, 0.0).flipped(FIELD_2026)
    assert world.status.plan_poses == (goal,)
    world.press()
    world.loop(5)
    world.host["alliance"] = "blue"
    world.loop(5)
    assert world.status.plan_poses == (Pose2(13.0, 6.0, 0.0),)
    world.until("DONE")
    assert world.drive.at.distance(goal) < 0.05


def test_pose_and_route_are_never_flipped_without_the_frame():
    world = World()
    world.host["alliance"] = "red"
    world.put_plan(seq(pose(3.0, 3.0), route((4.0, 3.0, 0.0))))
    world.loop()
    assert world.control.start("auto")
    world.until("DONE")
    assert world.drive.at.distance(Pose2(4.0, 3.0, 0.0)) < 0.05


def test_frame_jump_warning(tmp_path):
    plan = seq({"type": "PATH", "pathName": "LeaveStart"}, GO)
    world = World(paths=PathFolder(write_path(tmp_path)))
    world.host["alliance"] = "red"
    world.put_plan(plan)
    world.loop(2)
    assert any("flipped for red" in text for text in world.status.warnings)
    world.host["alliance"] = "blue"
    world.loop(2)
    assert not world.status.warnings


def test_empty_group_is_done_with_a_warning():
    world = World(plan=seq(par(), act(1)))
    assert len(world.status.warnings) == 1
    world.press()
    world.loop()
    assert world.status.state == "DONE"
    assert len(world.calls) == 1


def test_registering_later_binds_again():
    world = World(plan=act(5))
    assert world.status.state == "REJECTED"
    assert world.status.error_code == "unknown-action"
    world.actions.register(5, "Late", lambda: None)
    world.loop()
    assert world.status.state == "READY"
    assert json.loads(world.status.actions) == {"1": "Intake", "5": "Late"}


def test_large_plans_go_to_the_worker_and_old_results_are_dropped():
    large = seq(*[act(1)] * 200)
    world = World(worker=ThreadWorker())
    try:
        world.put_plan(large)
        world.loop()
        assert world.status.plan_id in ("", plan_id(json.dumps(large)))
        world.put_plan(GO)
        world.loop(3)
        assert world.status.plan_id == plan_id(json.dumps(GO))
        world.put_plan(large)
        world.loop()
        world.until("READY", limit=200_000)
        assert world.status.plan_id == plan_id(json.dumps(large))
    finally:
        world.worker.close()


def test_replay_of_recorded_inputs():

    world = World()
    states, events = [], []
    world.recorded.clear()

    def note():
        states.append((world.status.state, world.status.refused, world.status.running))
        events.extend(world.control.take_events())

    for step in range(260):
        if step == 3:
            world.put_plan(GO)
        if step in (5, 8, 150):
            world.press()
        if step == 60:
            world.cancel()
        if step == 200:
            world.host["enabled"] = False
        world.loop()
        note()
    assert {"RUNNING", "CANCELLED", "READY"} <= {state for state, _, _ in states}

    class Seen(FakeDrive):
        def pose(self):
            return replayed.pose()

    actions = Actions()
    actions.register(1, "Intake", lambda: None)
    replayed = PlanControl(Robot(actions, DriveLeaves(Seen())), boot_us=1_000_000)
    warm = World()
    for recorded in warm.recorded:
        replayed.update(Inputs.from_dict(recorded), replay=True)
    replayed.take_events()
    again, again_events = [], []
    for recorded in world.recorded:
        replayed.update(Inputs.from_dict(json.loads(json.dumps(recorded))), replay=True)
        again.append((replayed.status.state, replayed.status.refused, replayed.status.running))
        again_events.extend(replayed.take_events())
    assert again == states
    assert again_events == [event for event in events if event in again_events]
    assert len(again_events) > 8


def test_two_hundred_plans_leave_nothing_behind():
    world = World()

    def plan(number):
        world.put_plan(seq(act(1), pose(2.0 + number % 3 / 10, 2.0)))
        world.loop(5)
        world.press()
        world.loop()
        world.until("DONE")
        world.control.take_events()
        world.recorded.clear()
        world.drive.path.clear()
        world.calls.clear()

    for number in range(60):
        plan(number)
    tracemalloc.start()
    try:
        begin = tracemalloc.get_traced_memory()[0]
        for number in range(200):
            plan(number)
        assert tracemalloc.get_traced_memory()[0] - begin < 300_000
    finally:
        tracemalloc.stop()
