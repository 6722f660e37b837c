"""Argument types: numbers within bounds; argparse turns the ValueError into a usage error."""

from collections.abc import Callable

__all__ = ["number", "whole"]


def whole(low: int, high: int) -> Callable[[str], int]:
    """An integer from low to high."""

    def parse(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise ValueError(text)
        return value

    parse.__name__ = f"number from {low} to {high}"  # what argparse shows
    return parse


def number(low: float, high: float) -> Callable[[str], float]:
    """A finite number from low to high."""

    def parse(text: str) -> float:
        value = float(text)
        if not low <= value <= high:
            raise ValueError(text)
        return value

    parse.__name__ = f"number from {low:g} to {high:g}"
    return parse
