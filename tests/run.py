"""Runs the test suite in its parts, side by side where the parts wait and one after the other where they measure.

    python tests/run.py [--soak] [pytest options]

Exits non-zero on any failure, and if a part executed no test. The last line sums up all parts. A few failures of a part
are tried once more, one at a time: what then passes was disturbed by its neighbours, and is named as unsteady.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# name, workers, paths and options. Parts that wait on scripted time get more workers than there are cores.
PARTS: list[tuple[str, int, list[str]]] = [
    ("pure", 2, ["tests/unit", "tests/property", "tests/fuzz", "tests/static"]),
    ("robotlib", 2, ["tests/robotlib"]),
    ("real servers", 4, ["tests/integration"]),
    ("phone contract", 4, ["tests/contract"]),
    ("real libusb", 8, ["tests/rig", "tests/faults"]),
    ("browser", 1, ["tests/browser"]),
    ("package", 2, ["tests/vm"]),
]
COUNTS = re.compile(r"(\d+) (passed|failed|skipped|error|errors)\b")
FAILURE = re.compile(r"^(?:FAILED|ERROR) (tests/\S+?::.+?)(?: - .*)?$")
MAX_UNSTEADY = 3  # more failures than that in one part are no accident


def pytest(arguments: list[str]) -> tuple[int, dict[str, int], list[str]]:
    """Run pytest; returns exit status, counts and the failed tests, and repeats what it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    counts: dict[str, int] = {}
    failed: list[str] = []
    assert process.stdout is not None
    for line in process.stdout:
        print(line, end="", flush=True)
        if " in " in line and COUNTS.search(line):
            counts = {what.removesuffix("s"): int(number) for number, what in COUNTS.findall(line)}
        if match := FAILURE.match(line):
            failed.append(match[1])
    status = process.wait()
    counts["failed"] = counts.get("failed", 0) + counts.pop("error", 0)
    return status, counts, list(dict.fromkeys(failed))


def run_part(name: str, workers: int, arguments: list[str]) -> dict[str, int]:
    """Run one part; returns its counts, with what pytest could not run counted as failed."""
    paths = [path for path in arguments if not path.startswith("tests/") or any((ROOT / path).rglob("test_*.py"))]
    if not any(path.startswith("tests/") for path in paths):
        return {}
    print(f"== {name}", flush=True)
    status, counts, failed = pytest(["-n", str(workers), "--dist", "worksteal", *paths])
    if 0 < len(failed) == counts["failed"] <= MAX_UNSTEADY:
        print(f"== {name}: once more, alone", flush=True)
        status, again, _ = pytest(failed)
        if status == 0:
            print(f"unsteady: {', '.join(failed)}", flush=True)
            counts["passed"] = counts.get("passed", 0) + again.get("passed", 0)
            counts["failed"] = 0
    if status != 0 and not counts["failed"]:
        counts["failed"] = 1
    if not counts.get("passed"):
        print(f"{name}: no test passed", flush=True)
        counts["failed"] += 1
    return counts


def main(arguments: list[str]) -> int:
    """Run all parts, or only what the arguments name."""
    soak = "--soak" in arguments
    further = [argument for argument in arguments if argument != "--soak"]
    marks = [] if soak else ["-m", "not soak and not vm"]
    if any(argument.startswith("tests/") for argument in further):
        return subprocess.call([sys.executable, "-m", "pytest", *marks, *further], cwd=ROOT)
    total: dict[str, int] = {}
    for name, workers, paths in PARTS:
        for what, number in run_part(name, workers, [*paths, *marks, *further]).items():
            total[what] = total.get(what, 0) + number
    print(f"{total.get('passed', 0)} passed, {total.get('failed', 0)} failed, {total.get('skipped', 0)} skipped")
    return 1 if total.get("failed") or not total.get("passed") else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
