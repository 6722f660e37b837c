"""Every end of the daemon and every beginning after it: SIGTERM under traffic, SIGKILL in a read, no permission."""

import json
import random
import signal
import time

import pytest

from rig.main_job import MainJob, spread

pytestmark = pytest.mark.usbfs
STOP_WITHIN_S = 2.0
PULSES = ("RunPose", "RunRoute", "RunPlan")
# As root nothing is forbidden; without these two capabilities the mode of a node counts for root as for anybody.
ORDINARY = ("--bounding-set", "-dac_override,-dac_read_search")
NOBODY, EVERYBODY = 0o000, 0o666


def put(key, value, **more):
    return {"action": "put", "key": key, "value": value, **more}


def stop_under_traffic(job, rng):
    """One life of the daemon with a running app; seconds that its stop took."""
    job.start_daemon()
    job.until_live()
    since, first = job.phones.count(), len(job.robot.samples)
    job.phones.do("chatter", key="/phone/chatter", hz=100)
    job.robot.wait_topic("/phone/chatter")  # puts pass: the robot is settled, the backlog is over
    job.phones.say(*(put(f"/RoboRoute/{pulse}", True) for pulse in PULSES))
    for pulse in PULSES:
        job.robot.wait_value(f"/RoboRoute/{pulse}", True)
    at = job.until_flowing(time.monotonic()) + rng.uniform(0, 0.3)
    job.daemon.until(lambda: time.monotonic() > at)
    status, seconds = job.stop_daemon()
    assert (status, seconds < STOP_WITHIN_S) == (0, True), "\n".join(job.daemon.log[-20:])
    heard = job.phones.messages(since=since)
    assert heard[-1] == {"disconnect": True}, heard[-5:]
    assert heard.count({"disconnect": True}) == 1
    for pulse in PULSES:
        job.robot.wait_topic(f"/RoboRoute/{pulse}", gone=True)
        job.robot.take()
        values = [s["value"] for s in job.robot.samples[first:] if s["topic"] == f"/RoboRoute/{pulse}"]
        assert values == [True, False]
    return seconds


@pytest.mark.parametrize("times", [3, pytest.param(50, marks=[pytest.mark.soak, pytest.mark.timeout(900)])])
def test_sigterm_under_traffic(times):
    rng = random.Random(times)
    with MainJob({}, keys=["/load/"]) as job:
        job.robot.stream("/load/", 100, 50)
        job.phones.do("plug")
        took = [stop_under_traffic(job, rng) for _ in range(times)]
        print(f"\nstopped under traffic: {spread(took)}")
        assert job.phones.stats()["phones"]["p1"]["start"] == 1  # all later lives adopted the phone


@pytest.mark.parametrize("app", ["known", "silent"])
def test_killed_in_a_read(app):
    """What the phone said while nobody listened reaches the next daemon whole: a subscribe counts, a put is refused."""
    with MainJob({"app": app}, keys=["/load/"]) as job:
        job.robot.publish("/robot/x", "int", 7)
        job.start_daemon()
        job.phones.do("plug")
        if app == "known":
            job.until_live()
        else:
            job.daemon.until(lambda: job.state() == "linked" and job.phones.count())
        job.stop_daemon(signal.SIGKILL)
        since = job.phones.count()
        job.phones.say("\n", put("/RoboRoute/RunPose", True, id=1), {"action": "subscribe", "keys": ["/robot/x"]})
        job.phones.say(put("/RoboRoute/RunPose", True, id=2))
        job.start_daemon()
        ready = time.monotonic()
        job.until_heard(lambda line: line.get("key") == "/robot/x" and line["value"] == 7, since=since)
        job.until_live()
        job.until_heard(lambda line: line.get("error", {}).get("id") == 2, since=since)
        print(f"\nkilled in a read ({app}): live again {time.monotonic() - ready:.2f} s after it was ready")
        refused = [line["error"] for line in job.phones.messages(since=since) if "error" in line]
        assert [(error["code"], error.get("id")) for error in refused] == [("not-connected", 1), ("not-connected", 2)]
        assert "/RoboRoute/RunPose" not in job.robot.types()
        assert job.phones.stats()["phones"]["p1"]["claims"] == 2


def test_what_waited_on_the_phone_is_not_pressed_late():
    """The robot has been there for long: only the age of a put speaks against it."""
    old = [json.dumps(message) for message in (put("/RoboRoute/RunPose", True, id=1), put("/old", 1, id=2))]
    with MainJob({"start_as": "accessory", "stale_in": ["{}", *old, ""]}, keys=["/load/"]) as job:
        job.start_daemon()
        job.daemon.until(lambda: job.daemon.status()["robot"]["state"] == "connected")
        settled = time.monotonic() + 1.5
        job.daemon.until(lambda: time.monotonic() > settled)
        job.phones.do("plug")
        job.until_live()
        for ident in (1, 2):
            _, _, line = job.until_heard(lambda line, ident=ident: line.get("error", {}).get("id") == ident)
            assert line["error"]["code"] == "not-connected"
        job.phones.do("chatter", key="/phone/chatter", hz=100)
        job.robot.wait_topic("/phone/chatter")
        assert {"/RoboRoute/RunPose", "/old"}.isdisjoint(job.robot.types())


def permission_issues(job):
    return [issue["code"] for issue in job.daemon.status()["issues"] if issue["code"] == "usb-permission"]


def test_a_node_that_may_not_be_opened():
    with MainJob({}, node_mode=NOBODY) as job:
        job.start_daemon(*ORDINARY)
        job.phones.do("plug")
        plugged = time.monotonic()
        job.daemon.until(lambda: permission_issues(job), 5)
        told_s = time.monotonic() - plugged
        assert job.state() == "blocked"
        assert job.phones.stats()["phones"]["p1"]["vendor_requests"] == 0
        job.phones.do("node_mode", mode=EVERYBODY)
        allowed = time.monotonic()
        job.until_live()
        print(f"\nno permission: told after {told_s:.2f} s; live {time.monotonic() - allowed:.2f} s after it was given")
        job.daemon.until(lambda: not permission_issues(job))
        assert told_s < 3.0
        assert time.monotonic() - allowed < 8.0  # the quiet retry comes every 5 s
