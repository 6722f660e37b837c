"""A phone that is pulled out at any byte of a transfer and comes back, over and over, under one daemon."""

import random
import time

import pytest

from contract.realtime import Noise
from rig.main_job import MainJob, spread

pytestmark = pytest.mark.usbfs
GAP_S = 3.0
LIVE_WITHIN_S = 1.0
PLUG_TO_LIVE_S = 2.0  # handshake, 0.3 s of switching, and no ladder in between
CHATTER = "/phone/chatter"
STRIDE = 1_000_000  # values of the chatter: attachment of the phone times this, plus a running number
LOAD_TOPICS, LOAD_HZ = 20, 50
SETTLED_S = 1.5  # after an unplug: the daemon, the network and the robot have done all they will do


def traffic_job():
    """A live phone that hears values and puts others, both without a pause."""
    job = MainJob({"switch_s": 0.3}, keys=["/load/"])
    job.robot.stream("/load/", LOAD_TOPICS, LOAD_HZ)
    job.start_daemon()
    job.phones.do("plug")
    job.until_live()
    job.phones.do("chatter", key=CHATTER, hz=100)
    flowing(job, 0.0)
    return job


def flowing(job, after):
    """Values of both directions that are younger than a moment (monotonic)."""
    job.until_flowing(after)
    count = len(job.robot.values(CHATTER))
    job.robot.wait(lambda: len(job.robot.values(CHATTER)) > count)


def random_cut(job, rng):
    """Pulls the plug within a transfer; returns the time."""
    before = job.phones.last_event("unplug") or 0.0
    step = rng.choice(("read", "write"))
    # A chatter line has about 60 bytes, a transfer of values some hundreds.
    job.phones.do("cut", step=step, byte=rng.randrange(1, 58 if step == "read" else 600), gap_s=GAP_S)
    return job.daemon.until(lambda: (at := job.phones.last_event("unplug") or 0.0) > before and at)


def live_again_after_s(job, unplugged):
    """Seconds until the daemon calls the phone live: since the accessory appeared on the bus, since it was plugged."""
    job.daemon.until(lambda: job.state() != "live")
    job.daemon.until(lambda: (job.phones.last_event("attach", mode="accessory") or 0.0) > unplugged)
    job.daemon.until(lambda: job.state() == "live")
    now = time.monotonic()
    return now - job.phones.last_event("attach", mode="accessory"), now - job.phones.last_event("plug")


def assert_nothing_stale(job, samples, first, link):
    """Values that the robot got since sample number `first` belong to link `link` alone, each once and in order."""
    values = [sample["value"] for sample in samples[first:] if sample["topic"] == CHATTER]
    assert {value // STRIDE for value in values} <= {link}
    assert values == sorted(set(values))


@pytest.mark.parametrize(
    "times",
    [5, pytest.param(100, marks=[pytest.mark.soak, pytest.mark.timeout(1200)])],
)
def test_unplugged_at_a_random_byte(times):
    rng = random.Random(times)
    took = []
    with traffic_job() as job:
        before = job.figures()
        noise = Noise()
        for _ in range(times):
            unplugged = random_cut(job, rng)
            link = len([event for event in job.phones.do("events") if event["event"] == "attach"])
            job.robot.wait(lambda at=unplugged: time.monotonic() > at + SETTLED_S)
            job.robot.wait_topic(CHATTER, gone=True)
            job.robot.take()
            first = len(job.robot.samples)
            heard = job.phones.count()
            replugged_us = job.robot.now_us()
            took.append(live_again_after_s(job, unplugged))
            if took[-1] == max(took, key=lambda pair: pair[1]):
                slowest = [(event["event"], round(event["t"] - unplugged, 2)) for event in job.phones.do("events")[-9:]]
            flowing(job, unplugged + GAP_S)
            assert_nothing_stale(job, job.robot.samples, first, link + 2)  # native, then accessory
            lines = [line for line in job.phones.messages(since=heard) if "key" in line]
            assert all(line["time"] * 1e6 > replugged_us for line in lines), "an old value"
        noise.stop()
        job.until_no_more_than(before)
        after = job.figures()
        seen = job.phones.stats()["phones"]["p1"]
        since_accessory, since_plug = zip(*took, strict=True)
        print(f"\nlive after the accessory appeared: {spread(since_accessory)}; after the plug: {spread(since_plug)}")
        print(f"slowest: {slowest}")
        print(f"threads, descriptors, MiB: {before} -> {after}")
        relaxed_s = noise.relaxation("live_s", 1.0)
        assert max(since_accessory) < LIVE_WITHIN_S + relaxed_s
        assert max(since_plug) < PLUG_TO_LIVE_S + relaxed_s
        assert seen["start"] == seen["claims"] == times + 1
        assert seen["lines_corrupt"] == 0
        assert after[2] - before[2] < 8
