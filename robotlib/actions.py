"""The actions that robot code offers to plans: id, name, and a factory that is called for every run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from .errors import RegistryError

__all__ = ["Action", "Actions", "Factory"]

DEFAULT_TIMEOUT_S = 10.0
_INT32 = 2**31

Factory = Callable[[], Any]
_F = TypeVar("_F", bound=Factory)


@dataclass(frozen=True, slots=True)
class Action:
    """One registered action. `timeout_s` None lifts the step timeout, never the plan timeout."""

    action_id: int
    name: str
    factory: Factory
    timeout_s: float | None = DEFAULT_TIMEOUT_S
    requires: tuple[object, ...] = ()
    resumable: bool = False
    estimate_s: float | None = None


class Actions(Mapping[int, Action]):
    """The registry, a mapping from id to action. `revision` counts registrations."""

    def __init__(self) -> None:
        self._actions: dict[int, Action] = {}
        self.revision = 0

    def __getitem__(self, action_id: int) -> Action:
        return self._actions[action_id]

    def __iter__(self) -> Iterator[int]:
        return iter(self._actions)

    def __len__(self) -> int:
        return len(self._actions)

    def register(
        self,
        action_id: int,
        name: str,
        factory: Factory,
        *,
        timeout_s: float | None = DEFAULT_TIMEOUT_S,
        requires: Iterable[object] = (),
        resumable: bool = False,
        estimate_s: float | None = None,
    ) -> None:
        """Add an action; RegistryError if the id is taken, no 32-bit integer, or the factory cannot be called."""
        if isinstance(action_id, bool) or not isinstance(action_id, int):
            raise RegistryError(f"action id {action_id!r} is not an integer")
        if not -_INT32 <= action_id < _INT32:
            raise RegistryError(f"action id {action_id} does not fit 32 bits")
        if action_id in self._actions:
            raise RegistryError(f"action id {action_id} is already {self._actions[action_id].name}")
        if not callable(factory):
            raise RegistryError(f"action {action_id} ({name}) needs a function that makes its steps")
        self._actions[action_id] = Action(action_id, name, factory, timeout_s, tuple(requires), resumable, estimate_s)
        self.revision += 1

    def on(self, action_id: int, name: str, **options: Any) -> Callable[[_F], _F]:
        """Return a decorator that registers the decorated factory; options as in `register`."""

        def decorate(factory: _F) -> _F:
            self.register(action_id, name, factory, **options)
            return factory

        return decorate

    def requirements(self) -> tuple[object, ...]:
        """Return everything that any action requires, each once."""
        found: list[object] = []
        for action in self._actions.values():
            found.extend(need for need in action.requires if not any(need is other for other in found))
        return tuple(found)
