"""Rows of the event table about what ends or holds a run."""

import pytest
from plan_rig import Probe, act, par, pose
from world import AWAY, GO, World, running_world

from robotlib import Settings


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


def test_drive_busy():
    world = World(plan=GO, launch=lambda run: "held by teleop drive")
    world.press()
    world.loop()
    assert world.status.refused == "drive-busy: held by teleop drive"
    assert world.status.run_id == 0
    assert not world.moved()


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
