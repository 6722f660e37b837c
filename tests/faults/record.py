"""What a judge was told, as lines of a file, and a judge that is told it again."""

import json
from collections.abc import Iterable
from typing import TextIO

from faults.oracles import Judge

__all__ = ["INPUTS", "keep", "replay"]

INPUTS = [name for name in vars(Judge) if name.startswith("on_") or name == "judge_end"]


def keep(judge: Judge, file: TextIO) -> None:
    """Write down from now on whatever this judge is told: [input, arguments, named arguments]."""

    def kept(name: str) -> None:
        told = getattr(judge, name)

        def tell(*arguments: object, **named: object) -> None:
            file.write(json.dumps([name, arguments, named], separators=(",", ":")) + "\n")
            told(*arguments, **named)

        setattr(judge, name, tell)

    for name in INPUTS:
        kept(name)


def replay(records: Iterable[list]) -> Judge:
    """A judge that has been told these records."""
    judge = Judge()
    for name, arguments, named in records:
        getattr(judge, name)(*arguments, **named)
    return judge
