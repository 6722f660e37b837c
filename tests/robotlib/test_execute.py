import json

import pytest
from plan_rig import Bench, FakeDrive, Probe, act, bench, calls, par, pose, probes, seq

from robotlib import Actions, DriveSettings, Pose2, RegistryError, State, StepFailed


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
