"""Whether a process grows: samples of a long run, a line through each figure, and limits. Pure."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

__all__ = ["Growth", "Sample", "growth", "slope_per_h", "steady"]

WARM_UP_S = 300.0
WARM_UP_SHARE = 0.1  # of a run that is shorter than ten warm-ups
MAX_MIB_PER_H = 1.0
# A line through a few minutes has any slope: pages that an allocator took once are no leak until they are so many.
SHORT_H = 0.25
MAX_MIB_SHORT = 6.0
MAX_LOG_LINES_PER_H = 60.0
MIN_LOG_LINES = 5


class Sample(NamedTuple):
    """What the process was at ``at_s`` seconds of the run; ``cpu_s``, ``log_lines``, ``heard`` count from its start."""

    at_s: float
    rss_mib: float
    descriptors: int
    threads: int
    cpu_s: float
    log_lines: int
    heard: int
    page_messages: int


class Growth(NamedTuple):
    """``faults`` says what is over its limit; rates are those after the warm-up."""

    faults: list[str]
    figures: dict[str, Any]


def steady(samples: Sequence[Sample]) -> list[Sample]:
    """The samples after the warm-up."""
    end_s = samples[-1].at_s
    return [sample for sample in samples if sample.at_s >= min(WARM_UP_S, WARM_UP_SHARE * end_s)]


def slope_per_h(samples: Sequence[Sample], figure: Callable[[Sample], float]) -> float:
    """Slope of the least-squares line, per hour."""
    count = len(samples)
    mean_s = sum(sample.at_s for sample in samples) / count
    mean = sum(figure(sample) for sample in samples) / count
    spread = sum((sample.at_s - mean_s) ** 2 for sample in samples)
    return 3600 * sum((sample.at_s - mean_s) * (figure(sample) - mean) for sample in samples) / spread


def growth(samples: Sequence[Sample]) -> Growth:
    """Judge a run of at least eight steady samples."""
    kept = steady(samples)
    hours = (kept[-1].at_s - kept[0].at_s) / 3600
    rss_slope = slope_per_h(kept, lambda sample: sample.rss_mib)
    log_lines = kept[-1].log_lines - kept[0].log_lines
    faults = []
    if hours >= SHORT_H and rss_slope >= MAX_MIB_PER_H:
        faults.append(f"memory grows by {rss_slope:.2f} MiB/h, the limit is {MAX_MIB_PER_H:g}")
    elif hours < SHORT_H and rss_slope * hours >= MAX_MIB_SHORT:
        faults.append(f"memory grew by {rss_slope * hours:.1f} MiB, the limit of a short run is {MAX_MIB_SHORT:g}")
    ends = {name: _ends(kept, name) for name in ("descriptors", "threads")}
    faults += [f"{name} grew from {first} to {last}" for name, (first, last) in ends.items() if last > first]
    if log_lines >= max(MIN_LOG_LINES, MAX_LOG_LINES_PER_H * hours):
        faults.append(f"{log_lines} log lines in {hours:.2f} h")
    silent = [now.at_s for before, now in itertools.pairwise(samples) if now.heard == before.heard]
    if silent:
        faults.append(f"no value reached the phone in the time before {silent[0]:.0f} s")
    span_s = kept[-1].at_s - kept[0].at_s
    figures = {
        "hours": samples[-1].at_s / 3600,
        "steady_hours": hours,
        "samples": len(samples),
        "rss_mib": [kept[0].rss_mib, kept[-1].rss_mib, max(sample.rss_mib for sample in kept)],
        "rss_mib_per_h": rss_slope,
        "descriptors": list(ends["descriptors"]),
        "descriptors_per_h": slope_per_h(kept, lambda sample: sample.descriptors),
        "threads": list(ends["threads"]),
        "threads_per_h": slope_per_h(kept, lambda sample: sample.threads),
        "cpu_percent": 100 * (kept[-1].cpu_s - kept[0].cpu_s) / span_s,
        "log_lines": log_lines,
        "values_per_s": (kept[-1].heard - kept[0].heard) / span_s,
        "page_messages_per_s": (kept[-1].page_messages - kept[0].page_messages) / span_s,
    }
    return Growth(faults, figures)


def _ends(samples: Sequence[Sample], name: str) -> tuple[int, int]:
    """Medians of the first and the last quarter: a descriptor that is open just while we look is no growth."""
    quarter = max(1, len(samples) // 4)
    first, last = (
        sorted(getattr(sample, name) for sample in part)[quarter // 2]
        for part in (samples[:quarter], samples[-quarter:])
    )
    return first, last
