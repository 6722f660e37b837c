"""Steps: the protocol, groups, waiting, and adapters for what an action factory may return."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from .errors import StepFailed

if TYPE_CHECKING:
    from .model import Node

__all__ = [
    "CommandStep",
    "GeneratorStep",
    "InstantStep",
    "ParallelStep",
    "Pausable",
    "RaceStep",
    "SequenceStep",
    "Step",
    "StepMaker",
    "WaitStep",
    "as_step",
]


@runtime_checkable
class Step(Protocol):
    """One thing that a plan does. `end` comes exactly once after `start`, nothing after it; times in seconds."""

    def start(self, now: float) -> None:
        """Begin."""

    def execute(self, now: float) -> None:
        """Do one loop's work."""

    @abstractmethod
    def finished(self, now: float) -> bool:
        """Return True when done."""

    def end(self, interrupted: bool) -> None:
        """Stop and clean up."""


@runtime_checkable
class Pausable(Protocol):
    """A step that stands still in a pause and keeps its progress."""

    def pause(self, now: float) -> None:
        """Stand still from now on."""

    def resume(self, now: float) -> None:
        """Go on."""


class StepMaker(Protocol):
    """Given to `ExtraType.build`: makes the steps of child nodes."""

    @abstractmethod
    def step(self, node: Node) -> Step:
        """Return the step of a child node, watched by the executor."""


class SequenceStep:
    """Children one after the other; those that finish at once are passed through in the same loop."""

    def __init__(self, children: Sequence[Step]) -> None:
        self._children = children
        self._index = 0
        self._started = False

    def start(self, now: float) -> None:
        """Nothing to prepare; the first child starts in `execute`, in the same loop."""

    def execute(self, now: float) -> None:
        """Run the current child, and the next ones as long as they finish."""
        while self._index < len(self._children):
            child = self._children[self._index]
            if not self._started:
                self._started = True
                child.start(now)
            child.execute(now)
            if not child.finished(now):
                return
            self._index += 1
            self._started = False
            child.end(False)

    def finished(self, now: float) -> bool:
        """Return True after the last child."""
        return self._index >= len(self._children)

    def end(self, interrupted: bool) -> None:
        """End the current child, if any."""
        if self._started:
            self._started = False
            self._children[self._index].end(True)


class ParallelStep:
    """Children together, until all have ended."""

    def __init__(self, children: Sequence[Step]) -> None:
        self._children = children
        self._next = 0  # the first child that has not started
        self._running: dict[int, Step] = {}  # in start order

    def start(self, now: float) -> None:
        """Nothing to prepare; the children start in `execute`, in the same loop."""

    def execute(self, now: float) -> None:
        """Run every unfinished child once, in order."""
        for index in (*self._running, *range(self._next, len(self._children))):
            child = self._children[index]
            if index >= self._next:
                self._next = index + 1
                self._running[index] = child
                child.start(now)
            child.execute(now)
            if child.finished(now):
                del self._running[index]
                child.end(False)
                if self._decides(index):
                    return

    def _decides(self, index: int) -> bool:
        """Return True if the end of that child is the end of all."""
        return False

    def finished(self, now: float) -> bool:
        """Return True when every child has ended."""
        return not self._running and self._next >= len(self._children)

    def end(self, interrupted: bool) -> None:
        """End the children that still run, the latest first."""
        while self._running:
            self._running.popitem()[1].end(True)


class RaceStep(ParallelStep):
    """Children together, until the first ends; with `deadline` until the first of the list ends."""

    def __init__(self, children: Sequence[Step], deadline: bool = False) -> None:
        super().__init__(children)
        self._deadline = deadline
        self._decided = not children

    def _decides(self, index: int) -> bool:
        self._decided = self._decided or not self._deadline or index == 0
        return self._decided

    def finished(self, now: float) -> bool:
        """Return True when the race is decided."""
        return self._decided


class WaitStep:
    """Does nothing for some seconds."""

    def __init__(self, seconds: float) -> None:
        self._rest_s = seconds
        self._since = 0.0

    def start(self, now: float) -> None:
        """Begin to wait."""
        self._since = now

    def execute(self, now: float) -> None:
        """Nothing to do."""

    def finished(self, now: float) -> bool:
        """Return True after the time."""
        return now - self._since >= self._rest_s

    def end(self, interrupted: bool) -> None:
        """Nothing to clean up."""

    def pause(self, now: float) -> None:
        """Keep what is left."""
        self._rest_s -= now - self._since
        self._since = now

    def resume(self, now: float) -> None:
        """Wait for what is left."""
        self._since = now


class InstantStep:
    """Done at once: the factory has done it all."""

    def start(self, now: float) -> None:
        """Nothing."""

    def execute(self, now: float) -> None:
        """Nothing."""

    def finished(self, now: float) -> bool:
        """Return True."""
        return True

    def end(self, interrupted: bool) -> None:
        """Nothing."""


class GeneratorStep:
    """Runs a generator up to its next `yield` in every loop; closing it runs its `finally` blocks."""

    def __init__(self, generator: Generator[Any, Any, Any]) -> None:
        self._generator = generator
        self._done = False

    def start(self, now: float) -> None:
        """The body begins in the first `execute`."""

    def execute(self, now: float) -> None:
        """Run to the next yield."""
        if self._done:
            return
        try:
            next(self._generator)
        except StopIteration:
            self._done = True

    def finished(self, now: float) -> bool:
        """Return True after the generator has returned."""
        return self._done

    def end(self, interrupted: bool) -> None:
        """Close the generator."""
        self._generator.close()


class _CommandLike(Protocol):
    def initialize(self) -> None: ...
    def execute(self) -> None: ...
    def isFinished(self) -> bool: ...  # noqa: N802  (the name in WPILib)
    def end(self, interrupted: bool) -> None: ...


class CommandStep:
    """Runs an object with initialize, execute, isFinished and end."""

    def __init__(self, command: _CommandLike) -> None:
        self.command = command

    def start(self, now: float) -> None:
        """Initialize the command."""
        self.command.initialize()

    def execute(self, now: float) -> None:
        """Execute the command once."""
        self.command.execute()

    def finished(self, now: float) -> bool:
        """Return what the command says."""
        return bool(self.command.isFinished())

    def end(self, interrupted: bool) -> None:
        """End the command."""
        self.command.end(interrupted)


def as_step(made: object) -> Step:
    """Return the step of what an action factory returned; StepFailed `bad-action` if it is nothing usable."""
    if made is None:
        return InstantStep()
    if isinstance(made, Generator):
        return GeneratorStep(made)
    if _has(made, "start", "execute", "finished", "end"):
        return made  # type: ignore[return-value]  # duck-typed robot code, its four methods were just looked up
    if _has(made, "initialize", "execute", "isFinished", "end"):
        return CommandStep(made)  # type: ignore[arg-type]  # as above
    kind = type(made).__name__
    raise StepFailed("bad-action", f"The action returned {kind}, which is no step, command or generator.")


def _has(made: object, *names: str) -> bool:
    return not isinstance(made, type) and all(callable(getattr(made, name, None)) for name in names)
