"""Plan text to Plan: the first broken rule is raised as PlanError."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from .errors import PlanError, RegistryError
from .extra import ExtraType
from .jsontext import decode_text, load_json
from .model import Field, Limits, Plan
from .reader import BUILT_IN, Reader

__all__ = ["from_dict", "parse", "plan_id"]

ID_DIGITS = 12


def plan_id(text: str | bytes | bytearray) -> str:
    """Return the first 12 hex digits of the SHA-256 of the text as received."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
    return hashlib.sha256(data).hexdigest()[:ID_DIGITS]


def parse(
    text: str | bytes | bytearray,
    limits: Limits = Limits(),  # noqa: B008  (frozen)
    field: Field = Field(),  # noqa: B008
    *,
    extra_types: Mapping[str, ExtraType] | None = None,
) -> Plan:
    """Return the plan that a text describes; PlanError if it is not acceptable."""
    source = decode_text(text, limits)
    plan = _build(load_json(source, limits), limits, field, extra_types)
    return replace(plan, plan_id=plan_id(text), source=source)


def from_dict(
    obj: object,
    limits: Limits = Limits(),  # noqa: B008
    field: Field = Field(),  # noqa: B008
    *,
    extra_types: Mapping[str, ExtraType] | None = None,
) -> Plan:
    """Return the plan of decoded JSON, by the same checks; its id and source are those of its dump."""
    plan = _build(obj, limits, field, extra_types)
    source = plan.dump()
    return replace(plan, plan_id=plan_id(source), source=source)


def _build(obj: object, limits: Limits, field: Field, extra_types: Mapping[str, ExtraType] | None) -> Plan:
    extras = dict(extra_types or {})
    taken = sorted(extras.keys() & BUILT_IN.keys())
    if taken:
        raise RegistryError(f"{taken[0]} is a built-in step type")
    reader = Reader(limits, field, extras)
    try:
        root = reader.node(obj, "$", 1)
    except RecursionError:
        raise PlanError("too-deep", "$", "Steps are nested too deep for this computer.") from None
    return Plan(root, reader.meta, reader.all_warnings(), reader.count)
