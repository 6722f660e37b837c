"""The event table: one test for every row, named after it. Rows about replays run with real NT in test_replays."""

import json
import tracemalloc

import pytest
from plan_rig import FakeDrive, Probe, act, par, pose, route, seq, write_path
from world import World

from robotlib import FIELD_2026, Actions, DriveLeaves, Inputs, PathFolder, PlanControl, Pose2, Settings, plan_id
from robotlib.fitting import Robot
from robotlib.worker import ThreadWorker

GO = pose(5.0, 2.0)
AWAY = pose(8.0, 2.0)


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


def test_topic_gone_leaves_code_starts_only():
    world = World(plan=GO)
    world.plan_exists = False
    world.loop()
    assert world.status.state == "STAGED"
    assert "plan topic gone" in world.status.waiting
    world.press()
    world.loop()
    assert world.refused == "not-ready"
    assert not world.moved()
    assert world.control.start("auto")
    world.until("DONE")
    world.put_plan(AWAY)
    world.loop()
    world.press()
    world.loop()
    assert world.status.state == "RUNNING"


def test_topic_gone_without_keeping():
    world = World(plan=GO, settings=Settings(keep_when_gone=False))
    world.plan_exists = False
    assert world.loop().state == "NO_PLAN"
    assert not world.control.start("auto")


def test_topic_gone_is_not_a_stop():
    world = running_world()
    world.plan_exists = False
    world.loop()
    assert world.status.state == "RUNNING"


def test_cancel_stops_in_the_same_loop():
    world = running_world()
    assert not world.drive.still
    world.cancel()
    world.loop()
    assert world.drive.still
    assert world.status.state == "CANCELLED"
    assert world.control.run.executor.reason == "phone"
    assert not world.moved()


def test_cancel_needs_neither_heartbeat_nor_freshness():
    world = running_world(source="auto")
    world.beating = False
    world.loop(50)
    world.cancel(age_us=world.now_us - world.control.run.started_us + 900_000)
    world.loop()
    assert world.status.state == "CANCELLED"


def test_old_cancel_sent_again_does_not_end_a_later_run():
    world = running_world(source="auto")
    world.cancel(age_us=world.now_us - world.control.run.started_us + 1_000_001)
    world.loop()
    assert world.status.state == "RUNNING"


def test_cancel_from_before_a_reboot_that_was_seen_does_not_end_a_later_run():
    world = World(plan=GO)
    ahead = world.now_us + 60_000_000
    world.cancel(age_us=world.now_us - ahead)
    world.loop(100)
    assert world.control.start("auto")
    world.loop(5)
    world.cancel(age_us=world.now_us - ahead - 40)
    world.loop()
    assert world.status.state == "RUNNING"
    world.cancel(age_us=world.now_us - ahead - 5_000_000)  # ahead, but new: in doubt it counts
    world.loop()
    assert world.status.state == "CANCELLED"


def test_cancel_of_a_wrong_type_cancels_and_is_shown():
    world = running_world()
    world.cancel(value=-1)
    world.loop()
    assert world.status.state == "CANCELLED"
    assert world.refused == "wrong-value-type"


def test_press_and_cancel_in_the_same_poll_do_not_move():
    world = World(plan=GO)
    world.press()
    world.cancel(age_us=100)
    assert not world.moved()


def test_driver_stick():
    world = running_world()
    world.host["stick"] = 0.1
    world.loop()
    assert world.status.state == "RUNNING"
    world.host["stick"] = -0.2
    world.loop()
    assert world.control.run.executor.reason == "stick"
    assert world.drive.still
    world = World(plan=GO)
    world.host.update(mode="auto", stick=1.0)
    world.loop()
    assert world.control.start("auto")
    world.loop(5)
    assert world.status.state == "RUNNING"


def test_heartbeat_lost_while_running():
    world = running_world(plan=pose(14.0, 2.0))
    world.beating = False
    world.loop(74)
    assert world.status.state == "RUNNING"
    world.loop(3)
    assert world.control.run.executor.reason == "link-lost"
    assert world.drive.still
    world.beating = True
    assert not world.moved()
    world = running_world(plan=pose(14.0, 2.0), source="auto")
    world.beating = False
    world.loop(100)
    assert world.status.state == "RUNNING"
    assert world.status.link == "lost"
    world = running_world(plan=pose(14.0, 2.0), source="auto", settings=Settings(link_lost_cancels_code=True))
    world.beating = False
    world.loop(80)
    assert world.status.state == "CANCELLED"


def test_heartbeat_lost_while_idle():
    world = World(plan=GO)
    world.beating = False
    world.loop(80)
    assert world.status.state == "STAGED"
    assert world.status.waiting == ("no heartbeat",)
    world.press()
    world.loop()
    assert world.refused == "no-heartbeat"
    world.beating = True
    assert not world.moved()
    assert world.status.state == "READY"
    assert world.control.start("auto")


@pytest.mark.parametrize(
    "host, reason",
    [
        ({"enabled": False}, "disabled"),
        ({"enabled": False, "estop": True}, "estop"),
        ({"brownout": True}, "brownout"),
        ({"mode": "auto"}, "mode-change"),
    ],
)
def test_disable_estop_brownout_mode_change(host, reason):
    world = running_world()
    before = dict(world.host)
    world.host.update(host)
    world.loop()
    assert world.drive.still
    assert world.control.run.executor.reason == reason
    world.loop(25)
    world.host.update(before)
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


def test_step_that_fails_or_times_out():
    world = World()
    world.actions.register(2, "Bad", lambda: Probe([], "bad", fail_at="execute"))
    world.actions.register(3, "Slow", lambda: Probe([], "slow", loops=10**6), timeout_s=0.1)
    for number, code in ((2, "exception"), (3, "timeout")):
        world.put_plan(par(GO, act(number)))
        world.loop()
        world.press()
        world.loop(2)
        world.until("FAILED")
        assert world.status.error_code == code
        assert world.status.error_path == "$.children[1]"
        assert world.status.error.startswith("Step 2")
        assert world.drive.still
        assert not world.moved()


def test_pause_and_resume():
    world = running_world()
    world.control.pause()
    world.loop()
    assert world.status.state == "PAUSED"
    assert world.drive.still
    assert world.control.start("auto").code == "running"
    world.control.resume()
    world.until("DONE")


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


def test_registering_later_binds_again():
    world = World(plan=act(5))
    assert world.status.state == "REJECTED"
    assert world.status.error_code == "unknown-action"
    world.actions.register(5, "Late", lambda: None)
    world.loop()
    assert world.status.state == "READY"
    assert json.loads(world.status.actions) == {"1": "Intake", "5": "Late"}


def test_drive_busy():
    world = World(plan=GO, launch=lambda run: "held by teleop drive")
    world.press()
    world.loop()
    assert world.status.refused == "drive-busy: held by teleop drive"
    assert world.status.run_id == 0
    assert not world.moved()


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


def test_drive_that_cannot_be_stopped_is_stopped_before_anything_starts():
    world = running_world()
    world.drive.fail_stop = 6
    world.cancel()
    world.loop()
    assert world.status.state == "FAILED"
    assert world.status.error_code == "stop-failed"
    world.press()
    world.loop()
    assert world.refused == "not-ready"
    world.loop(8)
    assert world.drive.still
    assert not world.moved()
    world.press()
    world.loop()
    assert world.status.state == "RUNNING"


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
