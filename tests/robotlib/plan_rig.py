"""Shared by the tests of robotlib: the document's example, an ideal drive, a clock that is moved by hand."""

import json
import math
from pathlib import Path

from robotlib import Actions, Executor, Pose2, bind, parse
from robotlib.extensions import EXTENSIONS

VECTORS = Path(__file__).parents[1] / "vectors"
CASES = json.loads((VECTORS / "plan_cases.json").read_text(encoding="utf-8"))
EXAMPLE = next(case["plan_json"] for case in CASES if case["name"] == "document-example")
PERIOD_S = 0.02


class FakeDrive:
    """Moves as commanded; `output` is the last command."""

    def __init__(self, pose=None):
        self.at = pose or Pose2(0.0, 0.0, 0.0)
        self.output = (0.0, 0.0, 0.0)
        self.stops = 0
        self.fail_stop = 0
        self.stuck = False
        self.path = []

    def pose(self):
        return self.at

    def drive(self, vx, vy, omega):
        self.output = (vx, vy, omega)

    def stop(self):
        self.stops += 1
        if self.fail_stop:
            self.fail_stop -= 1
            raise OSError("bus off")
        self.output = (0.0, 0.0, 0.0)

    def move(self, dt=PERIOD_S):
        if self.stuck:
            return
        vx, vy, omega = self.output
        turned = math.remainder(self.at.rotation + omega * dt, 2 * math.pi)
        self.at = Pose2(self.at.x + vx * dt, self.at.y + vy * dt, turned)
        self.path.append(self.at)

    @property
    def still(self):
        return self.output == (0.0, 0.0, 0.0)


class Clock:
    def __init__(self, now=100.0):
        self.now = now

    def __call__(self):
        return self.now


class Probe:
    """A step that logs its calls and can fail in any of them."""

    def __init__(self, log, name, loops=1, fail_at="", *, error=None, hook=None):
        self.log, self.name, self.loops, self.fail_at, self.hook = log, name, loops, fail_at, hook
        self.error = error or ZeroDivisionError("division by zero")

    def _note(self, what):
        self.log.append((self.name, what))
        if self.hook:
            self.hook(what)
        if self.fail_at == what:
            raise self.error

    def start(self, now):
        self._note("start")

    def execute(self, now):
        self.loops -= 1
        self._note("execute")

    def finished(self, now):
        self._note("finished")
        return self.loops <= 0

    def end(self, interrupted):
        self._note("end")
        self.log[-1] = (self.name, f"end({interrupted})")


class Bench:
    """An executor with its drive, clock and action log."""

    def __init__(self, plan, *, drive=None, actions=None, paths=None, alliance=None, start=None, **options):
        self.drive = drive or FakeDrive(start or Pose2(0.0, 0.0, 0.0))
        self.clock = Clock()
        self.actions = actions if actions is not None else Actions()
        if isinstance(plan, str):
            plan = parse(plan, extra_types=EXTENSIONS)
        self.bound = bind(plan, self.actions, drive=self.drive, paths=paths, alliance=alliance, extra_types=EXTENSIONS)
        self.bound.prepare(None)
        self.ex = Executor(self.bound, clock=self.clock, **options)

    def loop(self, count=1, enabled=True, dt=PERIOD_S):
        for _ in range(count):
            self.ex.execute(enabled)
            self.drive.move(dt)
            self.clock.now += dt
        return self.ex.state

    def run(self, limit=10_000):
        if self.ex.state == "READY":
            self.ex.start()
        for _ in range(limit):
            if self.ex.finished:
                return self.ex.state
            self.loop()
        raise AssertionError(f"still {self.ex.state} after {limit} loops")


def bench(plan, steps=(), drive=None, **options):
    """A bench whose action n returns what steps[n - 1]() returns."""
    actions = Actions()
    for number, make in enumerate(steps, 1):
        actions.register(number, f"Act{number}", make)
    return Bench(json.dumps(plan), drive=drive, actions=actions, **options)


def probes(log, *names, **options):
    return [lambda name=name: Probe(log, name, **options) for name in names]


def calls(log, name):
    return [what for who, what in log if who == name]


def seq(*children):
    return {"type": "SEQUENCE", "children": list(children)}


def par(*children):
    return {"type": "PARALLEL", "children": list(children)}


def act(number):
    return {"type": "ACTION", "actionId": number}


def pose(x, y, rotation=0.0):
    return {"type": "POSE", "pose": {"x": x, "y": y, "rotation": rotation}}


def route(*points):
    return {"type": "ROUTE", "routePoses": [{"x": x, "y": y, "rotation": r} for x, y, r in points]}


PATH_FILE = {
    "version": "2025.0",
    "waypoints": [
        {"anchor": {"x": 1.0, "y": 2.0}, "prevControl": None, "nextControl": {"x": 1.4, "y": 2.2}, "isLocked": False},
        {"anchor": {"x": 2.4, "y": 2.8}, "prevControl": {"x": 2.0, "y": 2.6}, "nextControl": None, "isLocked": False},
    ],
    "rotationTargets": [],
    "constraintZones": [],
    "pointTowardsZones": [],
    "eventMarkers": [],
    "globalConstraints": {
        "maxVelocity": 2.0,
        "maxAcceleration": 2.0,
        "maxAngularVelocity": 360.0,
        "maxAngularAcceleration": 540.0,
        "nominalVoltage": 12.0,
        "unlimited": False,
    },
    "goalEndState": {"velocity": 0.0, "rotation": 45.0},
    "reversed": False,
    "folder": None,
    "idealStartingState": {"velocity": 0.0, "rotation": 0.0},
    "useDefaultConstraints": False,
}


def write_path(folder, name="LeaveStart", **changes):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.path").write_text(json.dumps({**PATH_FILE, **changes}), encoding="utf-8")
    return folder
