"""Plans in a command-based robot: the whole plan is one command. The only module that knows commands2."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from commands2 import Command, CommandScheduler, Subsystem

from .actions import Actions, Factory
from .errors import StepFailed, sentence
from .model import Plan
from .receiver import RoboRoute
from .runs import Run

__all__ = ["CommandRoboRoute", "PlanCommand"]


class PlanCommand(Command):
    """Runs a plan inline, without WPILib groups: those keep every dynamic plan for ever and cost a loop per child.

    `begin` returns the run to step, or None if there is none; `requirements` is fixed for the life of the command.
    """

    def __init__(
        self,
        begin: Callable[[], Run | None],
        step: Callable[[Run], None],
        requirements: Iterable[Subsystem],
        name: str = "RoboRoute",
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # so in the library
        self._begin = begin
        self._step = step
        self._run: Run | None = None
        self.setName(name)
        self.addRequirements(*requirements)

    def initialize(self) -> None:
        """Start the run."""
        self._run = self._begin()

    def execute(self) -> None:
        """Run one loop of the plan."""
        if self._run is not None:
            self._step(self._run)

    def isFinished(self) -> bool:  # noqa: N802  (the name in WPILib)
        """Return True on any end of the run, and at once if there was none to start."""
        return self._run is None or self._run.executor.finished

    def end(self, interrupted: bool) -> None:
        """Cancel the run if the scheduler ends the command first."""
        run, self._run = self._run, None
        if run is not None and not run.executor.finished:
            run.executor.cancel("interrupted")


class _InlineCommand:
    """A leaf command as a step: claimed like a member of a composition while it runs, free again afterwards."""

    def __init__(self, command: Command, declared: frozenset[Subsystem]) -> None:
        self._command = command
        self._declared = declared

    def start(self, now: float) -> None:
        command = self._command
        CommandScheduler.getInstance().requireNotComposedOrScheduled(command)
        undeclared = sorted(need.getName() for need in set(command.getRequirements()) - self._declared)
        if undeclared:
            text = f"{command.getName()} needs {', '.join(undeclared)}, which the action does not declare."
            raise StepFailed("undeclared-requirement", sentence(text))
        CommandScheduler.getInstance().registerComposedCommands([command])
        command.initialize()  # type: ignore[no-untyped-call]

    def execute(self, now: float) -> None:
        self._command.execute()  # type: ignore[no-untyped-call]

    def finished(self, now: float) -> bool:
        return self._command.isFinished()

    def end(self, interrupted: bool) -> None:
        scheduler = CommandScheduler.getInstance()
        if not scheduler.isComposed(self._command):  # refused in start: it belongs to somebody else
            return
        try:
            self._command.end(interrupted)
        finally:
            scheduler.removeComposedCommand(self._command)


class _CommandActions(Actions):
    """Wraps what factories return, if it is a command."""

    def __init__(self, declared: Callable[[], frozenset[Subsystem]]) -> None:
        super().__init__()
        self._declared = declared

    def register(self, action_id: int, name: str, factory: Factory, **options: Any) -> None:
        """As in Actions."""

        def make() -> object:
            made = factory()
            return _InlineCommand(made, self._declared()) if isinstance(made, Command) else made

        super().register(action_id, name, make if callable(factory) else factory, **options)


class CommandRoboRoute(RoboRoute):
    """RoboRoute for the command scheduler: accepted starts schedule a command that requires the drive.

    Call `periodic` before `CommandScheduler.run`, so that a cancel acts in the same loop.
    """

    def __init__(self, *, drive_subsystem: Subsystem, **options: Any) -> None:
        self._drive_subsystem = drive_subsystem
        self._declared: frozenset[Subsystem] = frozenset()
        super().__init__(**options)
        leaves = self.control.robot.leaves
        if leaves is not None:  # so that an action that needs the drive's subsystem is found to clash with driving
            leaves.requires = (*leaves.requires, drive_subsystem)

    def _make_actions(self) -> Actions:
        return _CommandActions(lambda: self._declared)

    def _launcher(self) -> Callable[[Run], str]:
        return self._launch

    def command(self, source: str = "code") -> Command:
        """Return a command that starts the plan which is staged when it is scheduled."""
        needs = self._requirements(self.actions.requirements())
        return PlanCommand(lambda: self._begin(source, needs), self._step, needs)

    def command_for(self, plan: Plan, source: str = "code") -> Command:
        """Return a command that runs this plan and requires just what it needs; PlanError if it does not fit."""
        bound = self.control.robot.bind(plan, self.control.inputs.alliance or None)
        bound.prepare(None)
        needs = self._requirements(bound.requires)

        def begin() -> Run | None:
            self._io.read_host(self.control.inputs)
            self._declared = frozenset(needs)
            return self.control.run if self.control.start_bound(bound, source) else None

        return PlanCommand(begin, self._step, needs)

    def _requirements(self, needs: Iterable[object]) -> list[Subsystem]:
        found = [self._drive_subsystem]
        found += [need for need in needs if isinstance(need, Subsystem) and need is not self._drive_subsystem]
        return found

    def _begin(self, source: str, needs: Iterable[Subsystem]) -> Run | None:
        self._io.read_host(self.control.inputs)
        self._io.calls.append(f"start:{source}")
        self._declared = frozenset(needs)
        return self.control.run if self.control.start_hosted(source) else None

    def _step(self, run: Run) -> None:
        if run is self.control.run:
            self._io.read_host(self.control.inputs)
            self.control.step(self.control.inputs.enabled)

    def _launch(self, run: Run) -> str:
        """Schedule the run's command; return who is in the way if the scheduler drops it."""
        scheduler = CommandScheduler.getInstance()
        needs = self._requirements(run.executor.bound.requires)
        # Asked from inside the scheduler's own loop, it defers: by then the start was refused and must stay so.
        command = PlanCommand(lambda: run if run is self.control.run else None, self._step, needs)
        self._declared = frozenset(needs)
        scheduler.schedule(command)
        if scheduler.isScheduled(command):
            return ""
        for need in needs:
            holder = scheduler.requiring(need)
            if holder is not None:
                return sentence(f"{holder.getName()} uses {need.getName()}")
        return "The scheduler did not take the plan."
