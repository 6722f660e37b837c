"""A program to compare with, in a process of its own whose CPU time can be asked for."""

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, Final

__all__ = ["END", "child"]

END: Final = "end"


@contextmanager
def child(run: Callable[..., None], *arguments: Any) -> Iterator[Callable[[], float]]:
    """Yields what tells the CPU seconds of ``run(*arguments, parent)``.

    ``run`` sends a word once it is ready, answers every message with its CPU seconds, and returns at ``END``.
    """
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=run, args=(*arguments, theirs))
    process.start()
    theirs.close()  # so that a child that dies is an end of file
    try:
        ours.recv()
        yield lambda: _asked(ours)
    finally:
        ours.send(END)
        process.join()


def _asked(end: "Connection[Any, Any]") -> float:
    end.send("cpu")
    return float(end.recv())
