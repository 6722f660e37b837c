"""The medians of several runs as the tables of docs/performance.md; each suite runs in a process of its own."""

import json
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.limits import limited_by

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
    "sources": "Sources",
    "startup": "Start and memory",
    "idling": "Idling",
}


def write_report(suites: Sequence[str], runs: int, machine: str) -> int:
    """Run the suites, put their medians into the document; 1 if any limit was missed."""
    tables: dict[str, str] = {}
    misses = 0
    for suite in suites:
        results = [run(suite) for _ in range(runs)]
        tables[suite], missed = rendered(suite, results)
        misses += missed
        print(f"{suite}: {missed} missed", file=sys.stderr)
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    head = f"Medians of {runs} runs on {machine}; {date}.\n\n"
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    figures, _, after = rest.partition(END)
    DOCUMENT.write_text(before + BEGIN + "\n" + head + with_tables(figures, tables) + END + after)
    return 1 if misses else 0


def with_tables(figures: str, tables: Mapping[str, str]) -> str:
    """The document's tables with some of them anew; the others stay as they are."""
    kept = {part.partition("\n")[0]: f"### {part.rstrip()}\n" for part in figures.split("### ")[1:]}
    found = [tables.get(suite) or kept.get(title, "") for suite, title in TITLES.items()]
    return "\n".join(table for table in found if table)


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
