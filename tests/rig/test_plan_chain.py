"""From phone to motion: an emulated phone on real libusb, the daemon, NetworkTables, and a robot with robotlib."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "robotlib"))

from nt_phone import Robot

from rig.main_job import MainJob

PLAN = json.dumps(
    {
        "type": "SEQUENCE",
        "children": [
            {"type": "ACTION", "actionId": 1},
            {"type": "POSE", "pose": {"x": 12.0, "y": 6.0, "rotation": 0.0}},
        ],
    }
)
STATUS = "/RoboRoute/Status/"

pytestmark = pytest.mark.usbfs


def put(key, value, **more):
    return {"action": "put", "key": f"/RoboRoute/{key}", "value": value, **more}


@pytest.fixture
def chain():
    """The bench with a robot that runs robotlib in place of the plain server."""
    with MainJob({}, robot=False) as job:
        robot = Robot(job.robot.port)
        try:
            job.start_daemon()
            job.phones.do("plug")
            job.until_live()
            job.until_heard(lambda line: line.get("status", {}).get("server") == "connected")
            job.phones.say({"action": "subscribe", "keys": [STATUS]})
            yield job, robot
        finally:
            robot.kill()


def test_a_plan_is_staged_echoed_run_shown_and_cancelled(chain):
    job, robot = chain

    def ask(condition):
        return job.daemon.until(lambda: (answer := robot.ask()) and condition(answer) and answer)

    job.phones.say(put("Plan", PLAN, id=1))
    staged = ask(lambda answer: answer["state"] == "READY")
    assert staged["still"]
    assert staged["plan_id"]
    heard = job.until_heard(lambda line: line.get("key") == f"{STATUS}PlanId" and line["value"] == staged["plan_id"])
    assert heard

    ask(lambda answer: not answer["waiting"])
    job.phones.say(put("RunPlan", True, id=2))
    ask(lambda answer: answer["state"] == "RUNNING" and not answer["still"])
    job.until_heard(lambda line: line.get("key") == f"{STATUS}State" and line["value"] == "RUNNING")
    job.phones.say(put("RunPlan", False, id=3))

    job.phones.say(put("CancelPlan", True, id=4))
    cancelled = ask(lambda answer: answer["state"] == "CANCELLED")
    assert cancelled["still"]
    job.until_heard(lambda line: line.get("key") == f"{STATUS}State" and line["value"] == "CANCELLED")


def test_a_phone_that_is_unplugged_stops_the_robot(chain):
    job, robot = chain

    def ask(condition):
        return job.daemon.until(lambda: (answer := robot.ask()) and condition(answer) and answer)

    job.phones.say(put("Plan", PLAN))
    ask(lambda answer: answer["state"] == "READY" and not answer["waiting"])
    job.phones.say(put("RunPlan", True))
    ask(lambda answer: answer["state"] == "RUNNING" and not answer["still"])
    job.phones.do("unplug")
    ended = ask(lambda answer: answer["state"] != "RUNNING")
    assert ended["still"]
    assert ended["reason"] == "link-lost"
