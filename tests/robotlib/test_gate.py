"""The start gate: every reason, in the order of its tests."""

import pytest
from plan_rig import act, pose, seq
from world import World

from robotlib import Settings
from robotlib.inputs import FALSE, WRONG_TYPE

GO = pose(5.0, 2.0)


def started(world):
    return world.status.run_id > 0


def test_fresh_press_starts():
    world = World(plan=GO)
    assert world.status.state == "READY"
    assert world.status.ready
    assert world.status.waiting == ()
    world.press()
    world.loop()
    assert world.status.state == "RUNNING"
    assert world.status.run_source == "phone"
    assert world.status.running_id == world.status.plan_id
    assert world.until("DONE").progress == 1.0


# Each row breaks the world so that exactly this test and some later ones fail.
BREAKS = [
    ("wrong-value-type", lambda w: w.press(value=WRONG_TYPE)),
    ("before-boot", lambda w: w.press(age_us=w.now_us - 999_999)),
    ("too-old", lambda w: w.press(age_us=740_000)),  # one loop older when it is read
    ("bad-clock", lambda w: w.press(age_us=-280_001)),
    ("already-used", lambda w: (w.press(), w.press())),
    ("no-heartbeat", lambda w: w.press()),
    ("fms-locked", lambda w: w.press()),
    ("mode", lambda w: w.press()),
    ("estop", lambda w: w.press()),
    ("disabled", lambda w: w.press()),
    ("running", lambda w: w.press()),
    ("not-ready", lambda w: w.press()),
    ("nothing-to-do", lambda w: w.press()),
]
CODES = [code for code, _ in BREAKS]


def broken_world(codes):
    """A world in which all these conditions fail."""
    settings = Settings(phone_modes=("auto",) if "mode" in codes else ("teleop",))
    plan = seq() if "nothing-to-do" in codes else GO
    world = World(plan=plan, settings=settings)
    if "already-used" in codes:
        world.host["enabled"] = False
        world.press()
        world.loop()
        world.host["enabled"] = True
    if "running" in codes:
        world.put_plan(GO)
        world.loop()
        world.control.start("code")
        world.loop()
    if "not-ready" in codes:
        world.put_plan("{")
    if "no-heartbeat" in codes:
        world.beating = False
        world.loop(100)
    world.host.update(
        fms="fms-locked" in codes, estop="estop" in codes, enabled="disabled" not in codes and "estop" not in codes
    )
    return world


@pytest.mark.parametrize("code", CODES)
def test_reason_alone(code):
    if code in ("disabled", "estop", "no-heartbeat") or code not in ("already-used",):
        world = broken_world({code})
    else:
        world = World(plan=GO)
        world.press()
        world.loop()
        world.control.cancel("code")
        world.loop()
    runs = world.status.run_id
    if code == "already-used":
        world.press(age_us=20_000)  # the first press again, a few microseconds off
        world.pending.run_plan_stamps_us[-1] += 61
    else:
        dict(BREAKS)[code](world)
    world.loop()
    assert world.refused == code, world.status.refused
    assert world.status.run_id == runs
    if code != "running":
        assert not world.moved()


@pytest.mark.parametrize("first", range(len(CODES)))
def test_first_failing_reason_is_reported(first):
    """With this reason and all later ones failing, this one is named."""
    later = {code for code in CODES[first:] if code not in ("running", "nothing-to-do")} | {CODES[first]}
    if CODES[first] == "estop":
        later -= {"running"}
    world = broken_world(later - {"wrong-value-type", "before-boot", "too-old", "bad-clock", "already-used"})
    runs = world.status.run_id
    code = CODES[first]
    if code == "already-used":
        world.press()
        world.loop()
        world.press(age_us=20_000)
    elif code == "before-boot":
        world.press(age_us=world.now_us - 999_999)
    elif code == "wrong-value-type":
        world.press(value=WRONG_TYPE, age_us=world.now_us - 999_999)
    else:
        dict(BREAKS)[code](world)
    world.loop()
    assert world.refused == code, world.status.refused
    assert world.status.run_id == runs


def test_edges_of_age():
    for age_us, ok in ((730_000, True), (730_001, False), (-270_000, True), (-270_001, False)):
        world = World(plan=GO)
        world.press(age_us=age_us)  # read 20 ms later
        world.loop()
        assert started(world) is ok, age_us


def test_false_does_nothing():
    world = World(plan=GO)
    world.press(value=FALSE)
    world.loop()
    assert world.status.refused == ""
    assert not started(world)


def test_press_refused_while_disabled_is_used_up():
    world = World(plan=GO)
    world.host["enabled"] = False
    world.loop()
    world.press()
    world.loop()
    assert world.refused == "disabled"
    stamp = world.now_us - 20_000
    world.host["enabled"] = True
    world.press(age_us=world.now_us - stamp - 40)
    world.loop()
    assert world.refused == "already-used"
    assert not world.moved()


def test_stale_press_from_before_a_reboot_never_counts_and_locks_nothing():
    """Its stamp lies ahead of the new clock: refused now, refused when the clock gets there, others still work."""
    world = World(plan=GO)
    ahead = world.now_us + 60_000_000
    world.press(age_us=world.now_us - ahead)
    world.loop()
    assert world.refused == "bad-clock"
    while world.now_us < ahead - 100_000:
        world.loop(dt_us=90_000)
    world.press(age_us=world.now_us - ahead - 50)
    world.loop()
    assert world.refused == "already-used"
    assert not world.moved(20)
    world.press()
    world.loop()
    assert world.status.state == "RUNNING"


def test_heartbeat():
    world = World(plan=GO)
    world.beating = False
    world.loop(1500 // 20 - 2)
    assert world.status.ready
    world.loop(4)
    assert not world.status.ready
    assert world.status.waiting == ("no heartbeat",)
    assert world.status.link == "lost"
    assert world.status.state == "STAGED"


@pytest.mark.parametrize("age_us, alive", [(0, True), (1_500_000, True), (1_500_001, False), (-300_000, False)])
def test_first_heartbeat_counts_by_its_age(age_us, alive):
    world = World(plan=GO)
    world.beating = False
    world.loop(200)
    world.pending.heartbeat_exists[0] = True
    world.pending.heartbeat_topics.append(0)
    world.pending.heartbeat_values.append(77.0)
    world.pending.heartbeat_stamps_us.append(world.now_us + 20_000 - age_us)
    world.loop()
    assert (world.status.link == "ok") is alive


def test_heartbeat_must_change():
    world = World(plan=GO)
    world.beating = False
    for value in (5.0, 5.0, float("nan"), float("nan")) * 40:
        world.pending.heartbeat_exists[0] = True
        world.pending.heartbeat_topics.append(0)
        world.pending.heartbeat_values.append(value)
        world.pending.heartbeat_stamps_us.append(world.now_us)
        world.loop()
    assert world.status.link == "lost"


def test_two_constant_heartbeats_are_no_change():
    """Both spellings of the topic hold old values; alternating between them is no sign of life."""
    world = World(plan=GO)
    world.beating = False
    for _ in range(150):
        world.pending.heartbeat_exists = [True, True]
        world.pending.heartbeat_topics += [0, 1]
        world.pending.heartbeat_values += [5.0, 6.0]
        world.pending.heartbeat_stamps_us += [world.now_us, world.now_us]
        world.loop()
    assert world.status.link == "lost"


def test_no_heartbeat_needed_when_told_so():
    world = World(plan=GO, settings=Settings(require_heartbeat=False))
    world.beating = False
    world.loop(200)
    world.press()
    world.loop()
    assert world.status.state == "RUNNING"
    assert world.until("DONE")


def test_code_start_needs_only_7_to_9():
    world = World(plan=GO, settings=Settings(phone_modes=()))
    world.beating = False
    world.host["fms"] = True
    world.loop(100)
    assert world.control.start("auto")
    world.loop()
    assert world.status.run_source == "auto"
    again = world.control.start("auto")
    assert not again
    assert again.code == "running"
    for host, code in (({"enabled": False}, "disabled"), ({"estop": True}, "estop")):
        world = World(plan=GO)
        world.host.update(host)
        world.loop()
        assert world.control.start("auto").code == code
    assert World().control.start().code == "not-ready"
    assert World(plan=seq()).control.start().code == "nothing-to-do"
    assert World(plan=act(9)).control.start().code == "not-ready"
