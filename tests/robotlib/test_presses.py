"""Rows of the event table about what starts a run."""

import json

import pytest
from world import AWAY, GO, World, running_world

from robotlib import Pose2, Settings, plan_id


def test_start_by_press_or_by_code():
    assert running_world().status.run_source == "phone"
    assert running_world(source="auto").status.run_source == "auto"


def test_start_on_plan_passes_the_same_gate():
    settings = Settings(start_on="plan")
    world = World(settings=settings)
    world.put_plan(GO)
    world.loop()
    assert world.status.state == "RUNNING"
    for spoil in (lambda w: w.host.update(enabled=False), lambda w: w.host.update(fms=True)):
        world = World(settings=settings)
        spoil(world)
        world.put_plan(GO)
        world.loop()
        spoil_reason = world.refused
        assert spoil_reason in ("disabled", "fms-locked")
        world.host.update(enabled=True, fms=False)
        assert not world.moved()
    world = World(settings=settings)
    world.put_plan(GO, age_us=800_000)
    world.loop()
    assert world.refused == "too-old"
    assert not world.moved()


def test_start_on_plan_waits_for_the_worker_but_not_longer_than_a_press():
    world = World(settings=Settings(start_on="plan", inline_parse_bytes=1))
    take, world.worker.take_done = world.worker.take_done, list
    world.put_plan(GO)
    world.loop(10)
    world.worker.take_done = take
    world.loop(2)
    assert world.status.state == "RUNNING"
    world = World(settings=Settings(start_on="plan", inline_parse_bytes=1))
    take, world.worker.take_done = world.worker.take_done, list
    world.put_plan(GO)
    world.loop(50)
    world.worker.take_done = take
    world.loop(2)
    assert world.refused == "too-old"
    assert not world.moved()


def test_press_sent_again_after_a_quick_replug_is_used():
    world = running_world()
    world.until("DONE")
    stamp = world.now_us
    world.press(age_us=0)
    world.loop()
    world.control.cancel("code")
    world.loop(30)
    world.press(age_us=world.now_us - stamp - 61)
    world.loop()
    assert world.refused == "already-used"
    assert not world.moved()


def test_first_press_ever_needs_no_false_before():
    assert running_world().status.run_id == 1


def test_pulse_length_does_not_matter():
    world = World(plan=GO)
    world.press()
    world.press(value=0, age_us=-10_000)
    world.loop()
    assert world.status.state == "RUNNING"
    world.until("DONE")
    world.press()  # no fall in between
    world.loop()
    assert world.status.run_id == 2


def test_run_pose_waits_one_poll_and_takes_the_newest_pose():
    world = World(plan=AWAY)
    staged = world.status.plan_id
    world.put_pose(9.0, 9.0)  # off the field, replaced before the second poll
    world.press("run_pose")
    world.loop()
    assert world.status.state == "READY"
    world.put_pose(3.0, 3.0, 1.0)
    world.loop()
    assert world.status.state == "RUNNING"
    assert world.status.plan_id == staged
    assert world.status.running_id == plan_id('{"type":"POSE","pose":{"x":3.0,"y":3.0,"rotation":1.0}}')
    world.until("DONE")
    assert world.drive.at.distance(Pose2(3.0, 3.0, 1.0)) < 0.05
    assert world.status.plan_id == staged


def test_run_route():
    world = World()
    world.put_route((3.0, 2.0, 0.0), (3.0, 4.0, 0.5))
    world.press("run_route")
    world.loop(3)
    assert world.status.running_text == ("2 poses",)
    world.until("DONE")
    assert world.drive.at.distance(Pose2(3.0, 4.0, 0.5)) < 0.05


@pytest.mark.parametrize("age_us, ok", [(2_000_000, True), (2_000_001, False)])
def test_run_pose_with_a_stale_pose(age_us, ok):
    world = World()
    world.put_pose(3.0, 3.0, age_us=age_us)
    world.press("run_pose")
    world.loop(8)
    assert (world.status.run_id == 1) is ok
    if not ok:
        assert world.refused == "stale-pose"
        assert not world.moved()


def test_run_pose_waits_at_most_a_tenth_of_a_second():
    for wait, ok in ((4, True), (8, False)):
        world = World()
        world.press("run_pose")
        world.loop(wait)
        world.put_pose(3.0, 3.0)
        world.loop(2)
        assert (world.status.run_id == 1) is ok
        assert (world.refused == "stale-pose") is not ok


@pytest.mark.parametrize("values", [[], [float("nan"), 1.0, 0.0], [50.0, 1.0, 0.0], [1e300, 1.0, 0.0]])
def test_run_pose_passes_all_checks_of_the_parser(values):
    world = World()
    world.pose = (values, world.now_us)
    world.press("run_pose")
    world.loop(8)
    assert world.refused == ("not-ready" if values else "stale-pose")
    assert not world.moved()


def test_run_pose_is_dropped_by_what_happens_while_it_waits():
    for spoil in (lambda w: w.host.update(enabled=False), lambda w: w.cancel()):
        world = World()
        world.press("run_pose")
        world.loop()
        spoil(world)
        world.loop()
        world.host.update(enabled=True)
        world.put_pose(3.0, 3.0)
        assert not world.moved()


def test_same_pose_again():
    world = World()
    world.put_pose(3.0, 3.0)
    world.press("run_pose")
    world.loop(2)
    world.until("DONE")
    world.loop(150)
    world.press("run_pose")  # a bridge that does not send equal values again
    world.loop(8)
    assert world.refused == "stale-pose"
    world = World(settings=Settings(pose_max_age_s=None))
    world.put_pose(3.0, 3.0)
    world.loop(150)
    world.press("run_pose")
    world.loop(3)
    assert world.status.run_id == 1


def test_press_while_running():
    world = running_world()
    world.press()
    world.loop()
    assert world.refused == "running"
    assert world.status.run_id == 1
    world = running_world(settings=Settings(restart=True))
    world.press()
    world.loop()
    assert world.status.run_id == 2
    assert world.status.state == "RUNNING"
    assert [event.text for event in world.control.take_events() if event.text.startswith("CANCELLED")] == [
        "CANCELLED restarted"
    ]


def test_press_and_cancel_in_the_same_poll_do_not_move():
    world = World(plan=GO)
    world.press()
    world.cancel(age_us=100)
    assert not world.moved()


def test_fms_locks_phone_starts():
    world = World(plan=GO)
    world.host["fms"] = True
    world.loop()
    assert not world.status.ready
    world.press()
    world.loop()
    assert world.refused == "fms-locked"
    assert not world.moved()
    world = World(plan=GO, settings=Settings(allow_phone_start_fms=True))
    world.host["fms"] = True
    world.press()
    world.loop()
    assert world.status.state == "RUNNING"


def test_code_start_that_is_not_ready_is_falsy():
    result = World().control.start("auto")
    assert not result
    assert (result.ok, result.code) == (False, "not-ready")
    assert result.text


def test_press_before_the_new_text_means_the_old_plan():
    world = World(plan=AWAY)
    world.press(age_us=10_000)
    world.put_plan(GO)
    world.loop()
    assert world.status.running_id == plan_id(json.dumps(AWAY))
    world = World(plan=AWAY)
    world.put_plan(GO, age_us=10_000)
    world.press()
    world.loop()
    assert world.status.running_id == plan_id(json.dumps(GO))


def test_press_that_a_later_cancel_has_overtaken():
    world = World(plan=GO)
    world.cancel(age_us=1_000)
    world.loop()
    world.press(age_us=30_000)
    world.loop()
    assert world.refused == "already-used"
    assert not world.moved()
    world.press()
    world.loop()
    assert world.status.state == "RUNNING"
