"""A phone plugged in before, while or after the daemon starts is found all the same, at its first look or its next."""

import random
import threading
import time

import pytest

from contract.realtime import Noise
from rig.main_job import MainJob, spread

pytestmark = pytest.mark.usbfs
SWITCH_S = 0.1
FOUND_WITHIN_S = 2.0  # well before the periodic scan of 3 s could hide a lost event
EARLIEST_S, LATEST_S = -0.3, 1.2  # around the exec of the daemon, which is ready within a second


def one_start(job, plugged_s):
    """One life of the daemon with a phone plugged in so long after its exec; seconds until it is live."""
    began = time.monotonic()
    plug = threading.Timer(max(0.0, plugged_s), job.phones.do, ("plug",))
    plug.start()
    if plugged_s < 0:
        plug.join()
        job.robot.wait(lambda: time.monotonic() > began - plugged_s)
    job.start_daemon()
    ready = time.monotonic()
    plug.join()
    from_s = max(ready, job.phones.last_event("plug"))
    job.daemon.until(lambda: job.state() == "live")
    took_s = time.monotonic() - from_s
    assert job.stop_daemon()[0] == 0
    job.phones.do("unplug")
    return took_s


@pytest.mark.parametrize("times", [8, pytest.param(200, marks=[pytest.mark.soak, pytest.mark.timeout(1800)])])
def test_started_around_the_plug(times):
    rng = random.Random(times)
    moments = [EARLIEST_S + (LATEST_S - EARLIEST_S) * (number + rng.random()) / times for number in range(times)]
    with MainJob({"switch_s": SWITCH_S}, robot=False) as job:
        noise = Noise()
        took = [one_start(job, moment) for moment in moments]
        noise.stop()
        print(f"\nlive after start and plug: {spread(took)}")
        assert max(took) < FOUND_WITHIN_S + noise.relaxation("live_s", 1.0)
        assert job.phones.stats()["phones"]["p1"]["start"] == times
