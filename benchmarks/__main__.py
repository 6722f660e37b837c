"""Run benchmark suites and compare them with their targets and with an earlier run.

    python -m benchmarks [--json] [--save FILE] [--compare FILE] [--long] [--realtime] [SUITE ...]
    python -m benchmarks --report [--runs N] [--realtime] [SUITE ...]

Each suite is a module of this package with ``rows()``: (name, measured, limit or None, unit). A measured value above
its limit is a miss; the exit status says whether there was one.
"""

import argparse
import importlib
import json
import os
import platform
import sys
from pathlib import Path

from benchmarks import LONG_VARIABLE
from benchmarks.report import write_report

SUITES = (
    "structs",
    "j519",
    "robotlib",
    "nt",
    "stages",
    "endtoend",
    "libusb",
    "load",
    "overload",
    "sources",
    "startup",
    "idling",
)
Row = tuple[str, float, float | None, str]


def main() -> int:
    """Run the chosen suites; 1 if any limit was missed."""
    parser = argparse.ArgumentParser(prog="./dev bench", description="Benchmarks as ratios within one run.")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of: {', '.join(SUITES)}")
    parser.add_argument("--json", action="store_true", help="one object on stdout instead of tables")
    parser.add_argument("--save", type=Path, metavar="FILE", help="store this run")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="show the change against a stored run")
    parser.add_argument("--long", action="store_true", help="overload runs of a minute each")
    parser.add_argument("--realtime", action="store_true", help="go before other work on the machine (needs root)")
    parser.add_argument(
        "--report",
        action="store_true",
        help="medians of several runs into docs/performance.md; of the SUITEs named, or all",
    )
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="for --report")
    arguments = parser.parse_args()
    if arguments.realtime:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    if arguments.long:
        os.environ[LONG_VARIABLE] = "1"
    if arguments.report:
        return write_report(arguments.suites or SUITES, arguments.runs, machine())
    unknown = set(arguments.suites) - set(SUITES)
    if unknown:
        parser.error(f"unknown suite {', '.join(sorted(unknown))}")
    before = json.loads(arguments.compare.read_text()) if arguments.compare else {"suites": {}}
    found: dict[str, list[Row]] = {}
    for name in arguments.suites or SUITES:
        found[name] = importlib.import_module(f"benchmarks.{name}").rows()
        if not arguments.json:
            show(name, found[name], {row[0]: row[1] for row in before["suites"].get(name, [])})
    result = {"machine": machine(), "suites": found}
    if arguments.json:
        print(json.dumps(result))
    if arguments.save:
        arguments.save.write_text(json.dumps(result, indent=1) + "\n")
    return 1 if any(missed(row) for rows in found.values() for row in rows) else 0


def missed(row: Row) -> bool:
    """True if a limit is exceeded."""
    return row[2] is not None and row[1] > row[2]


def machine() -> str:
    """What the figures were measured on."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.machine(),
    )
    first = ", real-time priority" if os.sched_getscheduler(0) == os.SCHED_RR else ""
    return f"{model}, {len(os.sched_getaffinity(0))} CPUs, Python {platform.python_version()}{first}"


def show(name: str, rows: list[Row], before: dict[str, float]) -> None:
    """One table."""
    print(f"\n{name}")
    for label, measured, limit, unit in rows:
        target = "" if limit is None else f"<= {limit:g}"
        mark = "MISS" if missed((label, measured, limit, unit)) else ""
        change = f"{measured / before[label] - 1:+.0%}" if before.get(label) else ""
        print(f"  {label:<58} {measured:12.3f} {unit:<4} {target:<12} {change:<7} {mark}")


if __name__ == "__main__":
    sys.exit(main())
