"""The medians of several runs as the tables of docs/performance.md; each suite runs in a process of its own."""

import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
DOCUMENT: Final = ROOT / "docs" / "performance.md"
BEGIN: Final = "<!-- figures: ./dev bench --report -->\n"
END: Final = "<!-- end of the figures -->\n"
TITLES: Final = {
    "structs": "Struct codecs",
    "j519": "Stream Motion codecs",
    "robotlib": "robotlib",
    "nt": "The NetworkTables adapter alone",
    "stages": "Stage by stage",
    "endtoend": "Latency over the in-process phone",
    "libusb": "Over real libusb",
    "load": "Load",
    "overload": "Overload",
    "startup": "Start, memory, idling",
}
LIMITS: Final = {  # beginning of a row's name -> what limits it now; the longest that fits counts
    "NT to phone": "two thread changes more than the floor: poller to loop, loop to writer",
    "put to robot": "the way over two sockets; p99 a put within 5 ms of another flush",
    "added latency down": "cold caches: the same steps cost a fifth when they run without a pause",
    "added latency up": "reader to loop, then the flush",
    "puts of one key": "5 ms between two flushes, which is ntcore's",
    "one topic at 100 Hz": "the same as NT to phone",
    "second subscribe": "two thread changes",
    "robot without flush": "ntcore's own period of 100 ms",
    "50 x 100 Hz": "nothing: the writer is idle most of the time",
    "300 x 20 Hz": "two transfers of 16 KiB a round",
    "300 x 50 Hz": "ntcore's event objects, then building lines",
    "CPU per value": "cold caches: a round touches 100 topics instead of 10; the core alone does not grow",
    "CPU per value and phone": "the poller's share is paid once for all phones",
    "100 000/s on": "ntcore's event objects: a third of a core",
    "100 000/s, phone": "a waiting value is a mark on its topic",
    "exec to READY": "importing ntcore, orjson and our own modules",
    "aoabridge ": "starting Python",
    "idle": "half of it the loop's two snapshots a second, the rest ntcore's and the poller's threads",
    "RSS": "ntcore and Python's modules",
    "5 000 topics": "announcements, then one value each",
    "libusb": "the emulation: an ioctl is a message to another process",
    "event to update": "ntcore's bindings: a new wrapper for each access",
}


def write_report(suites: Sequence[str], runs: int, machine: str) -> int:
    """Run the suites, put their medians into the document; 1 if any limit was missed."""
    tables, misses = [], 0
    for suite in suites:
        results = [run(suite) for _ in range(runs)]
        table, missed = rendered(suite, results)
        tables.append(table)
        misses += missed
        print(f"{suite}: {missed} missed", file=sys.stderr)
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    head = f"Medians of {runs} runs on {machine}; {date}.\n\n"
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    DOCUMENT.write_text(before + BEGIN + "\n" + head + "\n".join(tables) + "\n" + END + after)
    return 1 if misses else 0


def run(suite: str) -> list[Any]:
    """The rows of one run."""
    command = [sys.executable, "-m", "benchmarks", "--json", suite]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=False)
    rows: list[Any] = json.loads(done.stdout)["suites"][suite]
    return rows


def rendered(suite: str, results: Sequence[list[Any]]) -> tuple[str, int]:
    """One suite as a table, and how many of its medians miss their limit."""
    head = "| what | median | all runs | limit | what limits it |"
    lines = [f"### {TITLES[suite]}", "", head, "|---|---|---|---|---|"]
    missed = 0
    for index, (name, _, limit, unit) in enumerate(results[0]):
        values = [rows[index][1] for rows in results]
        median = statistics.median(values)
        over = limit is not None and median > limit
        missed += over
        bound = "" if limit is None else f"{'**missed** ' if over else ''}<= {limit:g}"
        span = f"{figure(min(values))} ... {figure(max(values))}"
        lines.append(f"| {name} | {figure(median)} {unit} | {span} | {bound} | {limited_by(name)} |")
    return "\n".join([*lines, ""]), missed


def figure(value: float) -> str:
    """Three digits."""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def limited_by(name: str) -> str:
    """What limits a figure."""
    fitting = [beginning for beginning in LIMITS if name.startswith(beginning)]
    return LIMITS[max(fitting, key=len)] if fitting else ""
