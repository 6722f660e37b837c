"""An app that stops reading while the robot goes on: its puts pass, nothing piles up, and it resumes in the present."""

import json
import time

import pytest

from rig.main_job import MainJob, spread

pytestmark = pytest.mark.usbfs
TOPICS, HZ = 300, 50
OLDEST_S = 0.25  # a value at the moment of resuming may have been on its way; those of the pause are seconds old
ALL_WITHIN_S = 2.0
WORKING_MIB = 12  # a batch of a late turn of the loop
CREEP_MIB = 2


def put_each_half_second(job, seconds):
    """Puts during the pause; returns how long each took to the robot, and the daemon's resident MiB meanwhile."""
    took, memory = [], []
    began = time.monotonic()
    number = 0
    while time.monotonic() < began + seconds:
        number += 1
        said = time.monotonic()
        job.phones.say({"action": "put", "key": "/phone/number", "value": number})
        job.robot.wait_value("/phone/number", number)
        took.append(time.monotonic() - said)
        memory.append(job.daemon.rss_mib())
        job.robot.samples.clear()
        job.daemon.until(lambda due=said + 0.5: time.monotonic() > due)
    return took, memory


def resume(job):
    """Lets the app read again; returns the lines heard until every topic came: (seconds since, read, message)."""
    since, at_us, at = job.phones.count(), job.robot.now_us(), time.monotonic()
    job.phones.do("app_read")

    def lines():
        return [(t - at, read, json.loads(text)) for t, read, text in job.phones.heard(since=since)]

    everything = {f"/load/{number}" for number in range(TOPICS)}
    job.daemon.until(lambda: everything <= {line.get("key") for _, _, line in lines()})
    return at_us / 1e6, lines()


@pytest.mark.parametrize("seconds", [6, pytest.param(30, marks=[pytest.mark.soak, pytest.mark.timeout(180)])])
def test_the_app_stops_reading(seconds):
    with MainJob({}, keys=["/load/"]) as job:
        job.robot.stream("/load/", TOPICS, HZ)
        job.start_daemon()
        job.phones.do("plug")
        job.until_live()
        job.robot.wait_topic("/RoboRoute/Heartbeat")
        began = job.phones.count()
        job.daemon.until(lambda: job.phones.count() > began + 5 * TOPICS)
        job.phones.do("app_stop_reading")
        job.robot.wait_topic("/RoboRoute/Heartbeat", gone=True, seconds=3)  # the dead-man
        before = job.figures()
        took, memory = put_each_half_second(job, seconds)
        assert job.state() == "live"
        resumed_s, lines = resume(job)
        values = [(at, read, line) for at, read, line in lines if "key" in line]
        first_read = values[0][1]
        first = [line["time"] for _, read, line in values if read == first_read]
        last_new = max(
            min(at for at, _, line in values if line["key"] == key) for key in {line["key"] for *_, line in values}
        )
        oldest_s = resumed_s - min(first)
        half = len(memory) // 2
        print(
            f"\nnot reading for {seconds} s: puts {spread(took)}; MiB {before[2]:.1f}, in the halves of the pause ",
            end="",
        )
        print(f"at most {max(memory[:half]):.1f} and {max(memory[half:]):.1f}")
        print(f"resumed: {len(first)} values in the first transfer, first after {values[0][0] * 1000:.0f} ms, ", end="")
        print(f"oldest {oldest_s * 1000:.0f} ms before; all topics after {last_new * 1000:.0f} ms")
        assert max(took) < 2.0
        assert max(memory) - before[2] < WORKING_MIB
        assert max(memory[half:]) - max(memory[:half]) < CREEP_MIB
        assert oldest_s < OLDEST_S
        assert min(line["time"] for _, _, line in values) > resumed_s - OLDEST_S
        assert last_new < ALL_WITHIN_S
        job.robot.wait_topic("/RoboRoute/Heartbeat")
        job.until_no_more_than(before)
