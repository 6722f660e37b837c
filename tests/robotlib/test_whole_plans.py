"""Whole plans: the document's example, and random trees against a second interpreter."""

import itertools
import json
import math
import random

import pytest
from plan_rig import (
    EXAMPLE,
    Bench,
    FakeDrive,
    Probe,
    act,
    bench,
    calls,
    par,
    probes,
    seq,
    write_path,
)

from robotlib import Actions, Pose2, State


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
