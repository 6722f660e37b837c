"""Two phones at once, one of them found in accessory mode: one is killed, the other notices nothing."""

import itertools
import json

import pytest

from rig.main_job import MainJob

pytestmark = pytest.mark.usbfs
PAUSE_S = 0.1  # longest silence of the other phone that a killed one may cause
QUIET_PUTS = 50  # more than are said until a dead phone has gone in every part of the daemon
STRIDE = 1_000_000
ATTEMPTS = 4


@pytest.fixture
def job():
    phones = ({}, {"name": "p2", "at": "1-2", "start_as": "accessory"})
    with MainJob(*phones, keys=["/load/"]) as job:
        job.robot.stream("/load/", 20, 50)
        job.phones.do("plug", "p2")  # in accessory mode before there is a daemon
        job.phones.do("plug", "p1")
        job.start_daemon()
        job.until_live("p1", "p2")
        for name in ("p1", "p2"):
            job.until_flowing(phone=name)
        yield job


def puts(job, name):
    return [value % STRIDE for value in job.robot.values(f"/phone/{name}")]


def chatter(job, name):
    job.phones.do("chatter", name, key=f"/phone/{name}", hz=100)
    job.robot.wait(lambda: len(puts(job, name)) > 10)


def test_adopted_without_a_request(job):
    seen = job.phones.stats()["phones"]
    assert (seen["p1"]["start"], seen["p1"]["disconnect_lines"]) == (1, 0)
    assert (seen["p2"]["vendor_requests"], seen["p2"]["disconnect_lines"], seen["p2"]["claims"]) == (0, 1, 1)


@pytest.mark.parametrize(("victim", "other"), [("p1", "p2"), ("p2", "p1")])
def test_one_is_killed_in_a_transfer(job, victim, other):
    for name in (victim, other):
        chatter(job, name)
    pauses = []
    while not pauses or (min(pauses) > PAUSE_S and len(pauses) < ATTEMPTS):
        if pauses:  # the machine itself may have paused: the bridge's own pauses come every time
            job.phones.do("plug", victim)
            job.until_live(victim)
            job.robot.wait_topic(f"/phone/{victim}")
        pauses.append(longest_pause_s(job, victim, other))
    print(f"\n{victim} killed: longest pauses of {other} {[round(pause * 1000) for pause in pauses]} ms")
    assert min(pauses) < PAUSE_S
    numbers = puts(job, other)
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert job.state(other) == "live"
    seen = job.phones.stats()["phones"][other]
    assert (seen["claims"], seen["lines_corrupt"], seen["app_reopen_s"] is None) == (1, 0, other == "p1")


def longest_pause_s(job, victim, other):
    """Kills one in a transfer; the longest silence of the other from before until it is gone everywhere."""
    since, before = job.phones.count(other), job.phones.last_event("unplug", victim) or 0.0
    job.phones.do("cut", victim, step="write", byte=137, gap_s=600)
    gone = job.daemon.until(lambda: (at := job.phones.last_event("unplug", victim) or 0.0) > before and at)
    job.robot.wait_topic(f"/phone/{victim}", gone=True)
    so_far = len(puts(job, other))
    job.robot.wait(lambda: len(puts(job, other)) > so_far + QUIET_PUTS)
    job.until_flowing(gone + 1.0, other)
    heard = job.phones.heard(other, since)
    assert every_value_came(heard)
    return max(b - a for (a, *_), (b, *_) in itertools.pairwise(heard))


def every_value_came(heard):
    """Of every topic, each newer than the one before: what was replaced by a newer value is not lost."""
    last = {}
    for _, _, text in heard:
        line = json.loads(text)
        if "key" in line:
            if line["value"] <= last.get(line["key"], -1):
                return False
            last[line["key"]] = line["value"]
    return len(last) == 20
