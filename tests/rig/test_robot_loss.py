"""Robots that restart and robots that are not there yet, seen from a phone whose app does nothing about it."""

import itertools
import random
import time

import pytest

from rig.main_job import MainJob, spread

pytestmark = pytest.mark.usbfs
FLOW_WITHIN_S = 2.0
CHATTER = "/phone/chatter"
LIST_PERIOD_S = 10.0


def restart(job, rng):
    """Kills the robot, starts it again; seconds from its readiness to the first value on the phone."""
    job.robot.kill()
    since = max(0, job.phones.count() - 50)
    job.until_heard(lambda line: line.get("status", {}).get("server") == "disconnected", since=since)
    away_s = rng.uniform(0.2, 2.0)
    began = time.monotonic()
    job.daemon.until(lambda: time.monotonic() > began + away_s)
    said = job.phones.do("chatter", key=CHATTER, hz=50)
    first = len(job.robot.samples)
    job.robot.start()
    ready = time.monotonic()
    job.robot.stream("/load/", 20, 50)
    flowed = job.until_flowing(ready)

    def puts():
        job.robot.take()
        return [sample["value"] for sample in job.robot.samples[first:] if sample["topic"] == CHATTER]

    job.robot.wait(puts)
    assert min(puts()) > said, "a put of the time without a robot reached the next one"
    return flowed - ready, time.monotonic() - ready


@pytest.mark.parametrize("times", [4, pytest.param(20, marks=[pytest.mark.soak, pytest.mark.timeout(600)])])
def test_robot_restarts(times):
    rng = random.Random(times)
    with MainJob({}, keys=["/load/"]) as job:
        job.robot.stream("/load/", 20, 50)
        job.start_daemon()
        job.phones.do("plug")
        job.until_live()
        job.phones.do("chatter", key=CHATTER, hz=50)
        job.robot.wait_topic(CHATTER)
        job.until_flowing()
        before = job.figures()
        took = [restart(job, rng) for _ in range(times)]
        # ntcore itself keeps the descriptor of a connection that is reset in a write: at most one per robot.
        job.until_no_more_than((before[0], before[1] + times))
        after = job.figures()
        values, puts = zip(*took, strict=True)
        print(f"\nrobot back: values {spread(values)}; puts {spread(puts)}")
        print(f"threads, descriptors, MiB: {before} -> {after}")
        assert max(values) < FLOW_WITHIN_S
        seen = job.phones.stats()["phones"]["p1"]
        assert (seen["claims"], seen["start"], seen["app_reopen_s"], seen["lines_corrupt"]) == (1, 1, None, 0)
        assert after[2] - before[2] < 8


@pytest.mark.parametrize("seconds", [12, pytest.param(60, marks=[pytest.mark.soak, pytest.mark.timeout(180)])])
def test_robot_absent_at_start(seconds):
    with MainJob({}, robot=False, keys=["/load/"]) as job:
        job.start_daemon()
        job.phones.do("plug")
        job.daemon.until(lambda: job.state() == "live")
        live = time.monotonic()
        job.daemon.until(lambda: time.monotonic() > live + seconds, seconds + 5)
        heard = job.phones.heard()
        lists = [at for at, _, text in heard if text.startswith('{"topics":')]
        pauses = [b - a for a, b in itertools.pairwise(lists)]
        print(f"\nno robot for {seconds} s: {len(lists)} topic lists, longest pause {max(pauses):.2f} s")
        assert len(lists) >= seconds // LIST_PERIOD_S
        assert max(*pauses, time.monotonic() - lists[-1]) < LIST_PERIOD_S + 0.5
        told = [line["status"]["server"] for line in job.phones.messages() if "status" in line]
        assert told == ["disconnected"]
        assert job.phones.stats()["phones"]["p1"]["idle_gap_s"] < 1.5  # the keep-alive of a quiet link
        job.robot.start()
        ready = time.monotonic()
        job.robot.stream("/load/", 20, 50)
        took = job.until_flowing(ready) - ready
        print(f"then a robot: values after {took:.2f} s")
        assert took < FLOW_WITHIN_S
        assert job.phones.stats()["phones"]["p1"]["app_reopen_s"] is None
