"""Older file formats, brought to the current one in memory; the file itself is never rewritten."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

__all__ = ["MIGRATIONS", "Step", "migrate"]

Step: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]

MIGRATIONS: Mapping[int, Step] = {}
"""Schema number -> pure function to the next one. Schema 1 is the first."""


def migrate(data: dict[str, Any], current: int, steps: Mapping[int, Step] = MIGRATIONS) -> dict[str, Any]:
    """Apply every step from the file's schema to ``current``; a file without ``schema`` counts as current."""
    found = data.get("schema", current)
    while isinstance(found, int) and found < current and found in steps:
        data = {**steps[found](data), "schema": found + 1}
        found += 1
    return data
