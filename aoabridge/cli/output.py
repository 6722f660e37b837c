"""What every command prints through: JSON lines, colour only for people, no control character from outside."""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO, TypeVar

from aoabridge.status.text import printable

__all__ = [
    "coloured",
    "drop_output",
    "human_terminal",
    "printable",
    "red",
    "say",
    "say_json",
    "table",
    "until_end",
    "warn",
]

T = TypeVar("T")


def human_terminal(stream: TextIO | None = None) -> bool:
    """True if a person looks at it and the terminal can move its cursor."""
    output = sys.stdout if stream is None else stream
    return output.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def coloured(args: argparse.Namespace, stream: TextIO | None = None) -> bool:
    """True if colour is wanted: ``--color``, then NO_COLOR, then whether it is a terminal."""
    if args.color != "auto":
        return bool(args.color == "always")
    return not os.environ.get("NO_COLOR") and human_terminal(stream)


def red(text: str, wanted: bool) -> str:
    """The text in red if colour is wanted."""
    return f"\x1b[31m{text}\x1b[0m" if wanted else text


def say(text: str) -> None:
    """One line of result on stdout, delivered at once."""
    print(text, flush=True)


def say_json(value: Mapping[str, object]) -> None:
    """One JSON object as one line on stdout, delivered at once."""
    print(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False), flush=True)


def until_end(events: Iterable[T]) -> Iterable[T]:
    """The events of a stream; Ctrl-C is its normal end."""
    try:
        yield from events
    except KeyboardInterrupt:
        return


def drop_output() -> None:
    """Make the interpreter's last flush of stdout succeed after its reader has gone."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of texts as left-aligned columns, two blanks apart; the first row is the head."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))] if rows else []
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def warn(text: str) -> None:
    """One line of diagnostics on stderr."""
    print(f"aoabridge: {text}", file=sys.stderr, flush=True)
