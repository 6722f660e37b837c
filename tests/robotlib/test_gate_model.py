"""Every order of a phone's and a field's events up to a depth, against six sentences about when a robot may move.

1. A run begins only in the loop of a press that was never seen before, is fresh, and no older than a cancel.
2. It begins only if the robot is enabled, not stopped, the heartbeat lives, and the plan is valid, staged and there.
3. If all of that holds, it does begin: the gate is never stuck shut.
4. The drive stands still in every loop after which no run is running.
5. A cancel, a disable, an emergency stop and a lost heartbeat end the run in the loop that sees them.
6. Nothing but a press begins a run: not an enable, a plan, a heartbeat that returns, or time.
"""

import itertools
from dataclasses import dataclass

import pytest
from plan_rig import pose
from world import World

DEPTH = 3
GO = pose(9.0, 2.0)
BEAT_LOST_US = 1_500_000
SLACK_US = 50_000


@dataclass
class Shadow:
    """What a reader of the six sentences knows."""

    enabled: bool = True
    estop: bool = False
    beat_us: int = 0
    valid: bool = True
    there: bool = True
    used_us: int = 0
    cancelled_us: int = 0
    runs: int = 0
    running: bool = False


def press(world, shadow, age_us=0):
    world.press(age_us=age_us)
    return world.now_us - age_us


def again(world, shadow):
    """A client that reconnects sends its last press again, some microseconds off."""
    if shadow.used_us:
        return press(world, shadow, world.now_us - shadow.used_us - 30)
    return None


def cancel(world, shadow):
    world.cancel()
    shadow.cancelled_us = world.now_us


def host(**values):
    def apply(world, shadow):
        world.host.update(values)
        for name, value in values.items():
            setattr(shadow, name, value)

    return apply


def plan(text, valid):
    def apply(world, shadow):
        world.put_plan(text)
        shadow.valid, shadow.there = valid, True

    return apply


def plan_gone(world, shadow):
    world.plan_exists = shadow.there = False


def beats(alive):
    def apply(world, shadow):
        world.beating = alive

    return apply


def wait(world, shadow):
    """As long as a heartbeat may be missing."""
    world.loop(8, dt_us=BEAT_LOST_US // 7)
    shadow.running = world.status.state == "RUNNING"
    if world.beating:
        shadow.beat_us = world.now_us


EVENTS = {
    "press": press,
    "old press": lambda world, shadow: press(world, shadow, 760_000),
    "press again": again,
    "cancel": cancel,
    "disable": host(enabled=False),
    "enable": host(enabled=True),
    "estop": host(estop=True),
    "plan": plan(GO, valid=True),
    "bad plan": plan("{", valid=False),
    "plan gone": plan_gone,
    "silence": beats(alive=False),
    "heartbeat": beats(alive=True),
    "wait": wait,
}


def step(world, shadow, name):
    """One event and the loop that sees it, judged by the six sentences."""
    before = world.status.run_id
    was_running = shadow.running
    stamp_us = EVENTS[name](world, shadow)
    if world.status.run_id != before:
        raise AssertionError("a run began while nothing was said")
    was_running &= world.status.state == "RUNNING"
    world.loop()
    if world.beating:
        shadow.beat_us = world.now_us
    now = world.now_us
    alive = now - shadow.beat_us <= BEAT_LOST_US
    may_move = shadow.enabled and not shadow.estop and alive
    fresh = (
        stamp_us is not None
        and now - stamp_us <= 750_000
        and stamp_us > shadow.used_us + SLACK_US
        and stamp_us >= shadow.cancelled_us
    )
    begins = fresh and may_move and shadow.valid and shadow.there and not was_running
    if stamp_us is not None:
        shadow.used_us = max(shadow.used_us, stamp_us)
    shadow.runs += begins
    shadow.running = world.status.state == "RUNNING"
    assert world.status.run_id == shadow.runs, f"begins: {begins}"
    if name == "cancel" or not may_move:
        assert not shadow.running
    elif was_running or begins:
        assert shadow.running or world.status.state == "DONE"
    if not shadow.running:
        assert world.drive.still


def lived(names):
    """One order of events from the start: a robot that is ready."""
    world = World(plan=GO)
    shadow = Shadow(beat_us=world.now_us)
    for name in names:
        step(world, shadow, name)


@pytest.mark.parametrize("first", EVENTS)
@pytest.mark.parametrize("running", [False, True], ids=["ready", "running"])
def test_every_order_of_events_keeps_the_six_sentences(first, running):
    for order in itertools.product(EVENTS, repeat=DEPTH - 1):
        names = (*(["press"] if running else []), first, *order)
        try:
            lived(names)
        except AssertionError as error:
            raise AssertionError(f"{' -> '.join(names)}: {error}") from None
