"""What every command prints through: JSON lines, colour only for people, no control character from outside."""

import argparse
import json
import os
import sys
from collections.abc import Mapping
from typing import TextIO

from aoabridge.status.text import printable

__all__ = ["coloured", "human_terminal", "printable", "red", "say", "say_json", "warn"]


def human_terminal(stream: TextIO | None = None) -> bool:
    """True if a person looks at it and the terminal can move its cursor."""
    stream = sys.stdout if stream is None else stream
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


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


def warn(text: str) -> None:
    """One line of diagnostics on stderr."""
    print(f"aoabridge: {text}", file=sys.stderr, flush=True)
