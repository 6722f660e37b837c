"""The accessory cases as data: load, expand variants, judge expectations."""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

__all__ = ["Run", "failures", "load_runs"]

VECTORS = Path(__file__).resolve().parent.parent / "vectors" / "aoa_cases.json"
OVERRIDE = "AOABRIDGE_AOA_CASES"  # another case file of the same form
WITHIN_S, WITHIN_SHARE = 2.0, 0.05


@dataclass(frozen=True)
class Run:
    """One case, or one variant of it, ready to be played."""

    ident: str
    case: str
    rigs: tuple
    phones: tuple
    host: dict
    inject: tuple
    script: tuple
    expect: tuple

    @property
    def wants_config_error(self):
        return any(metric == "config_error" for metric, *_ in self.expect)

    def short(self, seconds):
        """The same run with a script that ends after `seconds`, for long runs in their short form."""
        kept = tuple(item for item in self.script if item.get("at", 0) <= seconds or item["do"] == "end")
        ends = tuple({**item, "at": min(item["at"], seconds)} if "at" in item else item for item in kept)
        return replace(self, script=ends)


def load_runs(rig, path=None):
    """Every run of the case file that names this rig."""
    cases = json.loads(Path(path or os.environ.get(OVERRIDE) or VECTORS).read_text(encoding="utf-8"))
    return [run for case in cases for run in expand(case) if rig in run.rigs]


def expand(case):
    """The runs of one case: one per variant, or the case itself."""
    variants = case.get("variants") or [{}]
    for index, variant in enumerate(variants):
        suffix = f".{index + 1}" if len(variants) > 1 else ""
        yield Run(
            ident=f"{case['id']}{suffix}-{case['name']}",
            case=case["id"],
            rigs=tuple(case["rigs"]),
            phones=merged(case.get("phones", []), variant.get("phones", [])),
            host={**case.get("host", {}), **variant.get("host", {})},
            inject=tuple(variant.get("inject", case.get("inject", []))),
            script=tuple(variant.get("script", case.get("script", [])) + variant.get("script_extra", [])),
            expect=tuple(
                tuple(entry) for entry in variant.get("expect", case["expect"]) + variant.get("expect_extra", [])
            ),
        )


def merged(phones, overrides):
    """phones[i] of a variant overrides single switches; further entries are further phones."""
    count = max(len(phones), len(overrides))
    return tuple(
        {**(phones[i] if i < len(phones) else {}), **(overrides[i] if i < len(overrides) else {})} for i in range(count)
    )


def failures(expect, metrics, *, skip=()):
    """Texts of the expectations that do not hold. `metrics(name, phone)` raises KeyError for one the rig lacks;
    `metrics.relaxation(name)` is the measured noise of the rig for an upper limit."""
    texts = list(metrics.problems)
    if all(entry[0] in skip for entry in expect):
        texts.append("nothing to judge on this rig")
    for name, op, wanted, *phone in expect:
        if name in skip:
            continue
        try:
            value = metrics(name, phone[0] if phone else None)
        except KeyError:
            texts.append(f"{name}: this rig does not supply it")
            continue
        limit = wanted + metrics.relaxation(name) if op == "<=" else wanted
        if not holds(op, value, limit):
            texts.append(f"{name} = {value!r}, expected {op} {wanted!r}" + (f" of {phone[0]}" if phone else ""))
    return texts


OPERATORS = {
    "<=": lambda value, wanted: value <= wanted,
    ">=": lambda value, wanted: value >= wanted,
    "in": lambda value, wanted: value in wanted,
    "contains": lambda value, wanted: wanted in value,
    "~=": lambda value, wanted: len(value) == len(wanted) and all(map(near, value, wanted)),
}


def holds(op, value, wanted):
    """Whether one expectation is met; a value that is not known meets only `== null`."""
    if op == "==":
        return value == wanted
    return value is not None and OPERATORS[op](value, wanted)


def near(value, wanted):
    return abs(value - wanted) <= max(WITHIN_S, WITHIN_SHARE * abs(wanted))
