"""Poses, routes and paths as they are driven; pause and resume."""

import json
import math

import pytest
from plan_rig import PERIOD_S, Bench, FakeDrive, Probe, act, bench, calls, par, pose, probes, route, seq, write_path

from robotlib import FIELD_2026, Actions, Pose2, State


def test_pause_stops_a_pose_and_resume_drives_on():
    run = bench(pose(3, 0))
    run.ex.start()
    run.loop(40)
    run.ex.pause()
    assert run.ex.state is State.PAUSED
    assert run.drive.still
    held = run.drive.at
    active = run.ex.active_s
    run.loop(2000)
    assert run.drive.at == held
    assert run.ex.active_s == active
    run.ex.resume()
    assert run.run() is State.DONE
    assert run.drive.at.distance(Pose2(3, 0, 0)) < 0.03


def test_pause_on_a_route_goes_on_from_the_first_unreached_pose():
    run = bench(route((2, 0, 0), (2, 2, 0), (0, 2, 0)))
    run.ex.start()
    while run.drive.at.y < 1.0:
        run.loop()
    run.ex.pause()
    run.loop(10)
    run.ex.resume()
    mark = len(run.drive.path)
    assert run.run() is State.DONE
    assert min(at.y for at in run.drive.path[mark:]) > 0.9  # not back to the first pose


def test_pause_waits_for_a_path(tmp_path):
    run = bench(
        seq({"type": "PATH", "pathName": "LeaveStart"}, act(1)),
        probes([], "a"),
        drive=FakeDrive(Pose2(1, 2, 0)),
        paths=write_path(tmp_path),
    )
    run.ex.start()
    run.loop(5)
    run.ex.pause()
    assert run.ex.state is State.RUNNING
    while run.ex.state is State.RUNNING:
        run.loop()
    assert run.ex.state is State.PAUSED
    assert run.drive.at.distance(Pose2(2.4, 2.8, 0)) < 0.03
    run.loop(100)
    assert run.ex.progress == 0.5
    run.ex.resume()
    assert run.run() is State.DONE


def test_pause_and_actions():
    log = []
    actions = Actions()
    actions.register(1, "Plain", lambda: Probe(log, "plain", 20))
    actions.register(2, "Again", lambda: Probe(log, "again", 20), resumable=True)
    actions.register(3, "Next", lambda: Probe(log, "next"))
    run = Bench(json.dumps(par(seq(act(1), act(3)), act(2), {"type": "WAIT", "seconds": 1.0})), actions=actions)
    run.ex.start()
    run.loop(10)
    run.ex.pause()
    assert calls(log, "again")[-1] == "end(True)"
    run.loop(100)
    assert calls(log, "plain")[-1] == "end(False)"
    assert calls(log, "next") == []
    assert run.ex.state is State.PAUSED
    begin = run.clock.now
    run.ex.resume()
    run.loop()
    assert calls(log, "next")[-1] == "end(False)"
    assert run.run() is State.DONE
    assert calls(log, "again").count("start") == 2
    assert run.clock.now - begin == pytest.approx(0.8, abs=0.06)


def test_cancel_and_disable_while_paused():
    for enabled in (True, False):
        run = bench(pose(3, 0))
        run.ex.start()
        run.loop(10)
        run.ex.pause()
        if enabled:
            run.ex.cancel("phone")
        run.loop(enabled=enabled)
        assert run.ex.state is State.CANCELLED
        assert run.ex.reason == ("phone" if enabled else "disabled")
        run.ex.resume()
        run.loop(100)
        assert run.drive.still


def test_pause_from_inside_a_step():
    actions = Actions()
    holder = {}
    actions.register(1, "A", lambda: Probe([], "a", 1, hook=lambda what: what == "execute" and holder["ex"].pause()))
    run = Bench(json.dumps(seq(act(1), pose(3, 0))), actions=actions)
    holder["ex"] = run.ex
    run.ex.start()
    assert run.loop() is State.PAUSED
    assert run.loop(50) is State.PAUSED
    assert run.drive.at == Pose2(0, 0, 0)


# Drive


def test_pose_ends_within_tolerance():
    run = bench(pose(5, 4, 3.0), drive=FakeDrive(Pose2(1, 1, -3.0)))
    assert run.run() is State.DONE
    assert run.drive.at.distance(Pose2(5, 4, 3.0)) <= 0.03
    assert run.drive.still
    assert run.clock.now - 100 < 4


def test_route_does_not_stop_between():
    run = bench(route((2, 0, 0), (4, 0, 0), (6, 0, 0)))
    run.ex.start()
    speeds = []
    while not run.ex.finished:
        run.loop()
        speeds.append(math.hypot(*run.drive.output[:2]))
    assert max(speeds) <= 3.0 + 1e-9
    assert sum(speed > 2.5 for speed in speeds) * PERIOD_S > 0.8


def test_stuck():
    run = bench(pose(3, 0))
    run.drive.stuck = True
    run.run()
    assert run.ex.error.code == "stuck"
    assert run.clock.now - 100 == pytest.approx(1.54, abs=0.06)
    assert run.drive.still


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_bad_pose(bad):
    for index in range(3):
        run = bench(pose(3, 0))
        run.ex.start()
        run.loop(10)
        values = [1.0, 1.0, 0.0]
        values[index] = bad
        run.drive.at = Pose2(*values)
        run.ex.execute()
        assert run.ex.error.code == "bad-pose"
        assert run.drive.still


def test_path_start_too_far(tmp_path):
    run = bench({"type": "PATH", "pathName": "LeaveStart"}, paths=write_path(tmp_path))
    run.run()
    assert run.ex.error.code == "too-far-from-path-start"
    assert run.drive.at == Pose2(0, 0, 0)


def test_path_on_red(tmp_path):
    start = Pose2(1.0, 2.0, 0.0)
    run = bench(
        {"type": "PATH", "pathName": "LeaveStart"},
        drive=FakeDrive(start.flipped(FIELD_2026)),
        paths=write_path(tmp_path),
        alliance="red",
    )
    assert run.run() is State.DONE
    goal = Pose2(2.4, 2.8, math.radians(45)).flipped(FIELD_2026)
    assert run.drive.at.distance(goal) < 0.03
    assert abs(math.remainder(run.drive.at.rotation - goal.rotation, 2 * math.pi)) < math.radians(2.1)
