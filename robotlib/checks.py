"""The rules for single values of a plan, and the errors for values that break them."""

from __future__ import annotations

import math

from .errors import PlanError

__all__ = ["kind", "missing", "number", "wrapped"]

PI_SLACK = 1e-9  # rounding pi to 9 digits gives more than pi; without slack that would wrap to -pi


def missing(path: str, key: str, owner: str = "Step") -> PlanError:
    """Return the error for a field that is not there."""
    return PlanError("missing-field", f"{path}.{key}", f"{owner} needs the field '{key}'.")


def number(value: object, name: str, path: str) -> float:
    """Return the value as float; PlanError if it is no finite number. A bool is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise PlanError("wrong-type", path, f"{name} must be a number, not {kind(value)}.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise PlanError("not-finite", path, f"{name} must be a finite number.")
    return number


def wrapped(angle: float) -> float:
    """Return the angle within half a turn, 9 digits. Twice applied it is stable: rounding can step over the slack."""
    turned = angle if abs(angle) <= math.pi + PI_SLACK else math.remainder(angle, 2 * math.pi)
    return round(turned, 9)


def kind(value: object) -> str:
    """Return what the value is, in words for the phone."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "text"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, (list, tuple)):
        return "a list"
    return "an object" if isinstance(value, dict) else "something else"
