"""The table of the results of campaigns."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["table"]

SEVERAL = "several at once"


def table(results: Sequence[Mapping[str, Any]]) -> str:
    """Faults with their numbers and recovery times, then what flowed meanwhile, all runs added up."""
    injected, missed, counts = Counter[str](), Counter[str](), Counter[str]()
    healed: dict[str, list[float]] = defaultdict(list)
    for result in results:
        injected.update(result["injected"])
        for kind, number in result["without_effect"].items():
            missed[kind.partition(":")[0]] += number
        counts.update(result["counts"])
        counts["daemons"] += result["daemons"]
        for kind, times in result["healed"].items():
            healed[kind] += times
    runs = ", ".join(f"seed {result['seed']}: {result['minutes']:.1f} min" for result in results)
    wrong = sum(len(result["faults"]) for result in results)
    rows = [
        f"{sum(injected.values())} faults ({runs}), {wrong} violations.",
        "",
        "| fault | injected | without effect | healed alone | live again p50 | max |",
        "|---|---|---|---|---|---|",
    ]
    for kind in [*sorted(set(injected) | set(missed)), SEVERAL]:
        times = sorted(healed.get(kind, ()))
        shown = f"{times[len(times) // 2]:.2f} s | {times[-1]:.2f} s" if times else "- | -"
        numbers = ("-", "-") if kind == SEVERAL else (injected[kind], missed[kind])
        rows.append(f"| {kind} | {numbers[0]} | {numbers[1]} | {len(times)} | {shown} |")
    flow = [
        "",
        "| what | number |",
        "|---|---|",
        *(f"| {name} | {number} |" for name, number in sorted(counts.items())),
    ]
    return "\n".join([*rows, *flow]) + "\n"
