"""The table of a campaign, and docs/reliability.md made of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["table", "write"]

DOCUMENT = Path(__file__).parents[2] / "docs" / "reliability.md"
HEAD = """# Reliability

Written by `./dev faults --minutes {minutes:g} --seed {seed} --write`. The real daemon runs on real libusb with two
emulated phones, a NetworkTables server and a robot with robotlib, each in a process of its own, while everything
around the bridge is broken at random. "Live again" is the time from the end of the cause (plugged in, resumed,
restarted) until *every* phone has heard a value and got a put acknowledged that are younger than that; the limit
is 3 s.

Held during the whole run: every value line was true at its time on the server; no topic went back in time, also not
across restarts of the robot with other types and another struct layout; every put was acknowledged or refused; no put
was invented, doubled or late; every acknowledged put is on the server, save those of the last 1.5 s before it was
lost; no run pulse and no motion that no phone had just asked for; threads, descriptors, memory and log stayed flat.

Not injected: a daemon that dies, or an endpoint that stalls, in the second between the two subscribes of the known app.
The bridge then hears only the second one; the app repeats both within a minute.

"""


def table(injected: Mapping[str, int], healed: Mapping[str, Sequence[float]], counts: Mapping[str, int]) -> str:
    """Faults with their numbers and recovery times, then what flowed meanwhile."""
    rows = ["| fault | injected | healed alone | live again p50 | max |", "|---|---|---|---|---|"]
    for kind in [*sorted(injected), "several at once"]:
        times = sorted(healed.get(kind, ()))
        shown = f"{times[len(times) // 2]:.2f} s | {times[-1]:.2f} s" if times else "- | -"
        rows.append(f"| {kind} | {injected.get(kind, '-')} | {len(times)} | {shown} |")
    flow = [
        "",
        "| what | number |",
        "|---|---|",
        *(f"| {name} | {number} |" for name, number in sorted(counts.items())),
    ]
    return "\n".join([*rows, *flow]) + "\n"


def write(text: str, minutes: float, seed: int) -> None:
    """Replace the document."""
    DOCUMENT.write_text(HEAD.format(minutes=minutes, seed=seed) + text)
