"""An app is asked to open again only if what it said on opening may be lost, and once."""

import pytest

from aoabridge.bridge.link import LinkInfo
from fakes.core_rig import CoreRig

ALLIANCE = {"subscribe": ["/FMSInfo/IsRedAlliance"]}
POSE = {"subscribe": ["/robot/pose"]}
OURS = {"action": "subscribe", "keys": ["/robot/pose"]}
LOSS = object()


def near(at):
    return [pytest.approx(at, abs=0.15)]  # steps of 0.1 s add up inexactly


def asked_at(*script, adopted):
    """Plays (seconds since the claim, message | LOSS); when the app was asked, in seconds since the claim."""
    rig = CoreRig(link=False)
    rig.link_up(adopted=adopted)
    asked, claimed = [], rig.now
    for tenth in range(1, 101):
        rig.wait(0.1)
        if tenth == 1:
            rig.core.on_link_idle(1, rig.now)
        for at, what in script:
            if round(at * 10) == tenth:
                rig.core.on_link_resync(1, rig.now) if what is LOSS else rig.say(what)
        asked += [round(rig.now - claimed, 1)] * rig.lines().count({"disconnect": True})
    return asked


def test_the_second_subscribe_of_an_app_whose_first_went_to_a_dead_daemon():
    assert asked_at((0.5, POSE), adopted=True) == near(2.0)


@pytest.mark.parametrize(
    "script",
    [
        [(0.5, ALLIANCE), (1.5, POSE)],
        [(0.5, OURS)],
        [(0.5, {"action": "hello"}), (0.6, OURS)],
    ],
    ids=["both", "not the known app", "hello"],
)
def test_an_app_that_was_heard_on_opening_is_left_alone(script):
    assert asked_at(*script, adopted=True) == []


def test_what_was_written_before_the_link_counts():
    rig = CoreRig(link=False)
    rig.link_up(adopted=True)
    rig.say(POSE)
    lines = []
    for _ in range(60):
        rig.wait(0.1)
        lines += rig.lines()
    assert {"disconnect": True} not in lines


def test_what_was_written_before_the_link_does_not_count_if_a_part_of_it_is_lost():
    rig = CoreRig(link=False)
    rig.link_up(adopted=True)
    rig.core.on_link_resync(1, rig.now)
    rig.say("rest of a line", POSE)
    lines = []
    for _ in range(60):
        rig.wait(0.1)
        lines += rig.lines()
    assert lines.count({"disconnect": True}) == 1


@pytest.mark.parametrize("adopted", [True, False])
@pytest.mark.parametrize(
    ("script", "at"),
    [
        ([(0.5, LOSS), (1.4, "the rest of a line"), (1.4, POSE)], {True: 1.0, False: 2.9}),
        ([(0.5, ALLIANCE), (1.5, LOSS)], {True: 2.0, False: 2.0}),
        ([(0.5, LOSS)], {True: 1.0, False: 1.5}),
    ],
    ids=["first lost", "second lost", "both lost"],
)
def test_a_read_that_failed_while_the_app_opened(script, at, adopted):
    assert asked_at(*script, adopted=adopted) == near(at[adopted])


def test_a_read_that_fails_long_after_the_app_has_opened():
    assert asked_at((0.5, ALLIANCE), (1.5, POSE), (5.0, LOSS), adopted=False) == []
    assert asked_at((0.5, POSE), (5.0, LOSS), adopted=False) == []


def test_a_phone_that_does_not_read_is_asked_when_it_reads():
    rig = CoreRig(link=False)
    rig.core.on_link_up(1, LinkInfo("p", 512, adopted=True), rig.now)
    assert rig.core.take_bytes(1, rig.now)
    rig.core.on_bytes_accepted(1, 0, rig.now)
    for _ in range(30):
        rig.wait(0.1)
        if rig.core.take_bytes(1, rig.now):
            rig.core.on_bytes_accepted(1, 0, rig.now)
    rig.wait(0.5)
    asked = []
    for _ in range(10):
        rig.wait(0.1)
        asked += rig.lines()
    assert asked.count({"disconnect": True}) == 1
