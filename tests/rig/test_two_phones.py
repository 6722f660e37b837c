"""Two phones at once, one of them found in accessory mode: one is killed, the other notices nothing."""

import itertools
import json

import pytest

from contract.realtime import Noise
from rig.main_job import MainJob

pytestmark = pytest.mark.usbfs
PAUSE_S = 0.1  # longest silence of the other phone that a killed one may cause
QUIET_PUTS = 50  # more than are said until a dead phone has gone in every part of the daemon
STRIDE = 1_000_000


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
    noise = Noise()
    since = job.phones.count(other)
    job.phones.do("cut", victim, step="write", byte=137, gap_s=600)
    gone = job.daemon.until(lambda: job.phones.last_event("unplug", victim))
    job.robot.wait_topic(f"/phone/{victim}", gone=True)
    so_far = len(puts(job, other))
    job.robot.wait(lambda: len(puts(job, other)) > so_far + QUIET_PUTS)
    job.until_flowing(gone + 1.0, other)
    heard = job.phones.heard(other, since)
    noise.stop()
    pauses = [b - a for (a, *_), (b, *_) in itertools.pairwise(heard)]
    print(f"\n{victim} killed: {len(heard)} lines of {other}, longest pause {max(pauses) * 1000:.0f} ms")
    assert max(pauses) < PAUSE_S + noise.relaxation("pause_s", 1.0)
    assert every_value_came(heard)
    numbers = puts(job, other)
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert job.state(other) == "live"
    seen = job.phones.stats()["phones"][other]
    assert (seen["claims"], seen["lines_corrupt"], seen["app_reopen_s"] is None) == (1, 0, other == "p1")


def every_value_came(heard):
    """The robot counts up once per round; what is coalesced is replaced by the next, so steps of two are not lost."""
    last = {}
    for _, _, text in heard:
        line = json.loads(text)
        if "key" in line:
            if not line["value"] - last.get(line["key"], line["value"]) <= 5:
                return False
            last[line["key"]] = line["value"]
    return len(last) == 20
