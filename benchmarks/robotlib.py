"""What robotlib costs in the robot loop: `python -m benchmarks.robotlib`."""

from __future__ import annotations

import gc
import importlib.util
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from robotlib import Actions, DriveLeaves, Executor, Inputs, PlanControl, Pose2, bind, parse
from robotlib.dryrun import IdealDrive
from robotlib.fitting import Robot

ROOT = Path(__file__).parents[1]
VECTORS = ROOT / "tests" / "vectors" / "plan_cases.json"
PERIOD_S = 0.02
EXAMPLE = next(
    case["plan_json"] for case in json.loads(VECTORS.read_text(encoding="utf-8")) if case["name"] == "document-example"
)
WITHOUT_PATH = EXAMPLE.replace('"type": "PATH"', '"type": "ACTION", "actionId": 2').replace('"pathName"', '"note"')


def _p99(samples: list[float]) -> float:
    return statistics.quantiles(samples, n=100)[98]


def _best_of(times: int, measure, pick=min):  # the machine's other work must not count
    return pick(measure() for _ in range(times))


def _parse_us() -> float:
    count = 500
    begin = time.perf_counter()
    for _ in range(count):
        parse(EXAMPLE)
    return (time.perf_counter() - begin) / count * 1e6


def _actions() -> Actions:
    actions = Actions()
    for number in (1, 2):
        actions.register(number, f"action {number}", lambda: None)
    return actions


def _loops_us(text: str) -> list[float]:
    """Run a plan with drive-to-pose; return the time of each loop."""
    drive = IdealDrive(Pose2(1.0, 1.0, 0.0))
    now = 0.0
    executor = Executor(bind(parse(text), _actions(), drive=drive), clock=lambda: now)
    executor.start()
    samples: list[float] = []
    while not executor.finished:
        begin = time.perf_counter()
        executor.execute()
        samples.append((time.perf_counter() - begin) * 1e6)
        drive.advance(PERIOD_S)
        now += PERIOD_S
    return samples


def _route_longest_ms() -> float:
    poses = [{"x": 1.5 + 0.6 * i, "y": 2.0 + math.sin(i), "rotation": 0.1 * i} for i in range(20)]
    return max(_loops_us(json.dumps({"type": "ROUTE", "routePoses": poses}))) / 1e3


def _pathplanner_ms() -> float | None:
    """The same with PathPlanner, in a process of its own; None where that is not installed."""
    if importlib.util.find_spec("pathplannerlib") is None:
        return None
    script = ROOT / "tests" / "robotlib" / "pathplanner_checks.py"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, str(script), "long_route_within_a_loop", folder],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
    found = re.search(r"longest loop ([\d.]+) ms", done.stderr)
    return float(found[1]) if found else math.inf


def _idle_us() -> float:
    control = PlanControl(Robot(_actions(), DriveLeaves(IdealDrive(Pose2(0.0, 0.0, 0.0)))), boot_us=1)
    samples: list[float] = []
    for number in range(1000):
        inputs = Inputs(now_us=number * 20_000, enabled=True, mode="teleop")
        begin = time.perf_counter()
        control.update(inputs)
        samples.append((time.perf_counter() - begin) * 1e6)
    return _p99(samples)


def rows() -> list[tuple[str, float, float | None, str]]:
    """Measure; return name, value, limit or None, unit."""
    gc.collect()
    followed = _pathplanner_ms()
    return [
        ("parse the example, mean", _best_of(5, _parse_us), 100.0, "us"),
        ("execute a loop of drive-to-pose, p99", _best_of(5, lambda: _p99(_loops_us(WITHOUT_PATH))), 100.0, "us"),
        ("longest loop of a 20-pose ROUTE", _best_of(5, _route_longest_ms), 2.0, "ms"),
        *([] if followed is None else [("the same with PathPlanner", followed, 2.0, "ms")]),
        ("control loop without messages, p99", _best_of(3, _idle_us), 50.0, "us"),
    ]


def main() -> int:
    """Print the table; 1 if a limit is missed."""
    missed = False
    for name, value, limit, unit in rows():
        late = limit is not None and value > limit
        missed |= late
        bound = "" if limit is None else f"  limit {limit:g} {unit}"
        print(f"{name:40} {value:10.2f} {unit}{bound}{'  MISSED' if late else ''}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
