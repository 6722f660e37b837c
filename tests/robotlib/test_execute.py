import itertools
import json
import math
import random

import pytest
from plan_rig import EXAMPLE, PERIOD_S, Bench, FakeDrive, Probe, act, par, pose, route, seq, write_path

from robotlib import FIELD_2026, Actions, DriveSettings, Pose2, RegistryError, State, StepFailed


def bench(plan, steps=(), drive=None, **options):
    """A bench whose action n returns what steps[n - 1]() returns."""
    actions = Actions()
    for number, make in enumerate(steps, 1):
        actions.register(number, f"Act{number}", make)
    return Bench(json.dumps(plan), drive=drive, actions=actions, **options)


def probes(log, *names, **options):
    return [lambda name=name: Probe(log, name, **options) for name in names]


def calls(log, name):
    return [what for who, what in log if who == name]


def test_finished_children_pass_through_in_one_loop():
    log = []
    run = bench(seq(*[act(1)] * 50), probes(log, "a"))
    run.ex.start()
    assert run.loop() is State.DONE
    assert calls(log, "a") == ["start", "execute", "finished", "end(False)"] * 50


def test_parallel_in_order_every_loop():
    log = []
    run = bench(par(act(1), act(2)), [*probes(log, "a", loops=3), *probes(log, "b", loops=1)])
    run.ex.start()
    run.loop()
    assert run.ex.running == ("$.children[0]",)
    assert run.ex.progress == 0.5
    run.loop(2)
    assert run.ex.state is State.DONE
    assert run.ex.progress == 1.0
    assert [entry for entry in log if entry[1] == "execute"] == [
        ("a", "execute"),
        ("b", "execute"),
        ("a", "execute"),
        ("a", "execute"),
    ]


def test_race_and_deadline():
    for name, loops, ended in (("RACE", (3, 2, 9), {"b"}), ("DEADLINE", (3, 2, 9), {"a", "b"})):
        log = []
        steps = [lambda n=n, k=k, log=log: Probe(log, n, loops=k) for n, k in zip("abc", loops, strict=True)]
        run = bench({"type": name, "children": [act(1), act(2), act(3)]}, steps)
        assert run.run() is State.DONE
        for who in "abc":
            assert calls(log, who)[-1] == f"end({who not in ended})"
            assert sum(what.startswith("end") for what in calls(log, who)) == 1


def test_wait():
    run = Bench(json.dumps({"type": "WAIT", "seconds": 0.1}))
    run.run()
    assert 0.1 <= run.clock.now - 100.0 <= 0.15


@pytest.mark.parametrize("where", ["factory", "start", "execute", "finished", "end"])
def test_exception_anywhere(where):
    log = []

    def failing():
        if where == "factory":
            raise ZeroDivisionError("division by zero")
        return Probe(log, "bad", fail_at=where)

    run = bench(
        seq(act(1), par(pose(5, 5), act(2), act(3))), [*probes(log, "ok"), failing, *probes(log, "late", loops=9)]
    )
    run.ex.start()
    assert run.loop() is State.FAILED
    assert run.ex.error.code == "exception"
    assert run.ex.error.path == "$.children[1].children[1]"
    assert run.ex.error.text == "Step 3 (Act2): ZeroDivisionError: division by zero"
    assert run.drive.still
    assert not run.ex.running
    assert sum(what.startswith("end") for what in calls(log, "bad")) == (where != "factory")
    before = list(log)
    run.loop(5)
    assert log == before
    assert run.drive.still


def test_own_failure_text():
    def failing():
        raise StepFailed("no-piece", "No piece\nin the intake")

    run = bench(act(1), [failing])
    assert run.run() is State.FAILED
    assert (run.ex.error.code, run.ex.error.text) == ("no-piece", "No piece in the intake.")


def test_base_exception_leaves_after_the_stop():
    log = []
    run = bench(par(pose(5, 5), act(1)), [lambda: Probe(log, "a", fail_at="execute", error=KeyboardInterrupt())])
    run.ex.start()
    with pytest.raises(KeyboardInterrupt):
        run.ex.execute()
    assert run.drive.still
    assert run.drive.stops
    assert run.ex.state is State.FAILED
    assert calls(log, "a")[-1] == "end(True)"


def test_reverse_start_order_and_guarded_ends():
    log = []
    steps = [*probes(log, "a", loops=9), lambda: Probe(log, "b", loops=9, fail_at="end"), *probes(log, "c", loops=9)]
    run = bench(par(act(1), seq(act(2)), act(3)), steps)
    run.ex.start()
    run.loop()
    run.ex.cancel("phone")
    assert [who for who, what in log if what in ("end", "end(True)")] == ["c", "b", "a"]
    assert run.ex.state is State.FAILED  # the end of b raised
    assert run.ex.error.path == "$.children[1].children[0]"


def test_reentrant_cancel_takes_effect_after_the_call():
    log = []
    actions = Actions()
    holder = {}
    actions.register(1, "A", lambda: Probe(log, "a", 5, hook=lambda w: w == "execute" and holder["ex"].cancel("code")))
    actions.register(2, "B", lambda: Probe(log, "b"))
    run = Bench(json.dumps(par(act(1), act(2))), actions=actions)
    holder["ex"] = run.ex
    run.ex.start()
    assert run.loop() is State.CANCELLED
    assert run.ex.reason == "code"
    assert calls(log, "a") == ["start", "execute", "end(True)"]
    assert calls(log, "b") == []


def test_stop_that_raises_is_retried():
    drive = FakeDrive()
    run = bench(pose(5, 5), drive=drive)
    run.ex.start()
    run.loop(20)
    assert not drive.still
    drive.fail_stop = 4  # the step's own, the executor's, two retries
    run.ex.cancel("phone")
    assert run.ex.state is State.FAILED
    run.loop(2)
    assert not drive.still
    run.loop()
    assert drive.still
    stops = drive.stops
    run.loop()
    assert drive.stops == stops


def test_step_timeout_is_strictly_greater():
    log = []
    actions = Actions()
    actions.register(1, "Slow", lambda: Probe(log, "a", loops=10**6), timeout_s=0.5)
    run = Bench(json.dumps(act(1)), actions=actions)
    run.ex.start()
    run.loop(2, dt=0.25)
    assert run.loop(1, dt=0.25) is State.RUNNING  # exactly 0.5 s after the start
    assert run.loop() is State.FAILED
    assert (run.ex.error.code, run.ex.error.path) == ("timeout", "$")


def test_drive_timeout_follows_the_estimate():
    run = bench(pose(3, 0), drive=FakeDrive(Pose2(0.0, 0.0, 0.0)))
    run.bound.leaves.settings = DriveSettings(stuck_s=None)
    run.drive.stuck = True
    run.run()
    assert run.ex.error.code == "timeout"
    assert run.clock.now - 100.0 == pytest.approx(2.0 * 1.5 + 2.0, abs=0.05)


def test_plan_timeout():
    actions = Actions()
    actions.register(1, "Ever", lambda: Probe([], "a", loops=10**9), timeout_s=None)
    run = Bench(json.dumps(act(1)), actions=actions)
    run.run()
    assert (run.ex.error.code, run.ex.error.path) == ("plan-timeout", "$")
    assert run.clock.now - 100.0 == pytest.approx(120.0, abs=0.1)


def test_loop_gap_cancels():
    run = bench(pose(5, 5))
    run.ex.start()
    run.loop(10)
    assert run.loop(1, dt=0.5) is State.RUNNING
    assert run.loop(1, dt=10.0) is State.RUNNING
    assert run.loop() is State.CANCELLED
    assert run.ex.reason == "loop-gap"
    assert run.drive.still


def test_gap_between_start_and_first_execute():
    run = bench(pose(5, 5))
    run.ex.start()
    run.clock.now += 10
    assert run.loop() is State.CANCELLED


def test_time_that_goes_backwards_counts_as_standing():
    run = bench(pose(5, 5))
    run.ex.start()
    run.loop(10)
    run.clock.now -= 50
    assert run.loop(10) is State.RUNNING
    assert run.ex.active_s < 0.5


def test_one_clock_read_a_loop():
    run = bench(seq(act(1), act(1), pose(5, 5)), probes([], "a"))
    run.ex.start()
    reads = []
    run.ex._clock = lambda: reads.append(1) or run.clock.now
    run.ex.execute()
    assert len(reads) == 1


def test_wrong_state_calls():
    run = bench(act(1), probes([], "a"))
    assert run.ex.execute() is State.READY
    run.run()
    with pytest.raises(RuntimeError, match="Executor is DONE; make a new one"):
        run.ex.start()
    assert run.ex.execute() is State.DONE
    run.ex.cancel("late")
    assert run.ex.state is State.DONE
    run.ex.pause()
    run.ex.resume()
    assert run.ex.state is State.DONE


def test_no_leaf_is_done_in_the_first_loop():
    run = bench(seq(par(), seq()))
    run.ex.start()
    assert run.loop() is State.DONE


def test_generator_is_closed():
    log = []

    def body():
        try:
            while True:
                log.append("loop")
                yield
        finally:
            log.append("closed")

    run = bench(act(1), [body])
    run.ex.start()
    run.loop(3)
    run.ex.cancel()
    assert log == ["loop"] * 3 + ["closed"]


def test_what_a_factory_may_return():
    class Command:
        def __init__(self):
            self.log = []

        def initialize(self):
            self.log.append("initialize")

        def execute(self):
            self.log.append("execute")

        def isFinished(self):  # noqa: N802
            return len(self.log) > 2

        def end(self, interrupted):
            self.log.append(interrupted)

    command = Command()
    assert bench(act(1), [lambda: command]).run() is State.DONE
    assert command.log == ["initialize", "execute", "execute", False]
    assert bench(act(1), [lambda: None]).run() is State.DONE
    for odd in (5, "x", Command, object()):
        run = bench(act(1), [lambda odd=odd: odd])
        run.run()
        assert run.ex.error.code == "bad-action"


def test_registry():
    actions = Actions()
    actions.register(1, "A", lambda: None)
    for wrong in (1, 2**31, -(2**31) - 1, True, "1", 1.0):
        with pytest.raises(RegistryError):
            actions.register(wrong, "B", lambda: None)
    with pytest.raises(RegistryError):
        actions.register(2, "B", None)

    @actions.on(-5, "C", timeout_s=None)
    def c():
        return None

    assert actions[-5].factory is c
    assert actions[-5].timeout_s is None


# Pause


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


# The whole example


def example(tmp_path, log):
    actions = Actions()
    actions.register(1, "Intake", lambda: Probe(log, "intake", 40))
    return Bench(EXAMPLE, drive=FakeDrive(Pose2(1, 2, 0)), actions=actions, paths=write_path(tmp_path))


def test_example_runs(tmp_path):
    runs = []
    for _ in range(2):
        run = example(tmp_path, [])
        assert run.run() is State.DONE
        assert run.drive.at.distance(Pose2(4, 7, 2.68)) < 0.03
        assert abs(run.drive.at.rotation - 2.68) < math.radians(3)
        runs.append(run.drive.path)
    assert runs[0] == runs[1]


def test_abnormal_end_at_every_loop_of_the_example(tmp_path):
    whole = example(tmp_path, [])
    whole.run()
    loops = len(whole.drive.path)
    kinds = itertools.cycle(["disable", "cancel", "gap", "exception"])
    for loop in range(1, loops - 1):
        kind = next(kinds)
        log = []
        run = example(tmp_path, log)
        run.ex.start()
        run.loop(loop)
        if kind == "cancel":
            run.ex.cancel("phone")
        elif kind == "gap":
            run.clock.now += 10
        elif kind == "exception":
            run.drive.pose = lambda: 1 / 0
        run.ex.execute(enabled=kind != "disable")
        assert run.ex.finished, (loop, kind)
        assert run.drive.still
        held = run.drive.at
        run.loop(25)
        assert run.drive.at == held
        assert calls(log, "intake").count("start") == sum(what.startswith("end(") for what in calls(log, "intake"))


# Random trees against a reference interpreter


class Script:
    """A leaf of the reference: how many loops it takes, and the call in which it fails."""

    def __init__(self, rng):
        self.loops = rng.choice([1, 1, 1, 2, 3])
        self.fail_at = rng.choice([""] * 12 + ["start", "execute", "finished", "end"])


class StepError(Exception):
    pass


class Reference:
    """The same semantics as short as can be: each node is a generator, one `yield` per loop."""

    def __init__(self, tree, scripts):
        self.log = []
        self.open = []
        self.scripts = scripts
        self.tree = self.run(tree)

    def call(self, leaf, what):
        self.log.append((leaf, what))
        if self.scripts[leaf].fail_at == what:
            raise StepError

    def run(self, node):
        kind = node["type"]
        if kind == "ACTION":
            yield from self.leaf(node["actionId"])
        elif kind == "SEQUENCE":
            for child in node["children"]:
                yield from self.run(child)
        else:
            yield from self.together(node)

    def together(self, node):
        live = [self.run(child) for child in node["children"]]
        while live:
            for child in list(live):
                try:
                    next(child)
                except StopIteration:
                    live.remove(child)
            if live:
                yield

    def leaf(self, leaf):
        self.open.append(leaf)
        self.call(leaf, "start")
        for loop in itertools.count(1):
            self.call(leaf, "execute")
            self.call(leaf, "finished")
            if loop >= self.scripts[leaf].loops:
                break
            yield
        self.open.remove(leaf)
        self.call(leaf, "end")

    def loop(self):
        try:
            next(self.tree)
        except StopIteration:
            return State.DONE
        except StepError:
            return State.FAILED
        return State.RUNNING


def random_tree(rng, leaves, depth=0):
    if depth == 4 or rng.random() < 0.4:
        leaves.append(len(leaves) + 1)
        return act(leaves[-1])
    return (seq if rng.random() < 0.5 else par)(*[random_tree(rng, leaves, depth + 1) for _ in range(rng.randrange(4))])


@pytest.mark.parametrize("seed", range(200))
def test_against_reference(seed):
    rng = random.Random(seed)
    leaves = []
    tree = random_tree(rng, leaves)
    scripts = {leaf: Script(rng) for leaf in leaves}
    log = []
    actions = Actions()
    for leaf, script in scripts.items():
        actions.register(leaf, str(leaf), lambda leaf=leaf, s=script: Probe(log, leaf, s.loops, s.fail_at))
    run = Bench(json.dumps(tree), actions=actions)
    reference = Reference(tree, scripts)
    run.ex.start()
    paths = {node.action_id: node.path for node in run.bound.plan.leaves()}
    numbers = {leaf: number for number, leaf in enumerate(leaves)}
    while True:
        want = reference.loop()
        got = run.loop()
        assert got == want
        calls_so_far = [(who, "end" if what.startswith("end(False") else what) for who, what in log]
        assert [entry for entry in calls_so_far if entry[1] != "end(True)"] == reference.log
        if want is not State.RUNNING:
            break
        assert run.ex.running == tuple(paths[leaf] for leaf in sorted(reference.open, key=numbers.get))
        done = sum(what == "end" for _, what in reference.log)
        assert run.ex.progress == pytest.approx(done / len(leaves))
    for leaf in leaves:
        mine = [what for who, what in log if who == leaf]
        assert sum(what.startswith("end") for what in mine) == mine.count("start") <= 1
        assert not mine or mine[-1].startswith("end")
    assert run.drive.still


def test_events_are_bounded():
    run = bench(seq(*[act(1)] * 250), probes([], "a"))
    for _ in range(3):
        run.ex.note("$", "state", "x")
    run.run()
    events = run.ex.take_events()
    assert [event.kind for event in events[:4]] == ["state", "state", "state", "state"]
    for _ in range(2000):
        run.ex.note("$", "state", "x")
    assert run.ex.events_dropped == 2000 - 1024
    assert len(run.ex.take_events()) == 1024
    assert run.ex.take_events() == []
