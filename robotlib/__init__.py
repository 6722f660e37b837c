"""RoboRoute plans in robot code: parse, stage and execute, only on a fresh and allowed start.

`import robotlib` loads the parser alone; every other name below is loaded when it is first used, and no edge
(ntcore, commands2, pathplannerlib, wpilib) is ever loaded unasked.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ._version import __version__
from .errors import PlanError, RegistryError, StepFailed
from .extra import ExtraType
from .model import (
    FIELD_2025,
    FIELD_2026,
    ActionNode,
    DeadlineNode,
    Field,
    Limits,
    Node,
    ParallelNode,
    PathNode,
    Plan,
    PlanMeta,
    PlanWarning,
    Pose2,
    PoseNode,
    RaceNode,
    RouteNode,
    SequenceNode,
    WaitNode,
)
from .parse import from_dict, parse, plan_id

if TYPE_CHECKING:
    from .actions import Action, Actions
    from .binding import BoundPlan, bind
    from .commands import CommandRoboRoute, PlanCommand
    from .control import PlanControl
    from .drive import Drive, DriveRoute, DriveSettings, DriveToPose, HolonomicDrive
    from .dryrun import DryRun, Recording
    from .execute import Event, Executor, Failure, State
    from .extensions import EXTENSIONS
    from .inputs import Inputs
    from .leaves import DriveLeaves
    from .pathfile import PathFolder
    from .pathplanner import PathPlannerLeaves
    from .receiver import RoboRoute
    from .settings import Settings
    from .status import StartResult
    from .steps import Step
    from .timeline import Estimates, TimelineEntry
    from .wpi import WpilibHost

__all__ = [
    "EXTENSIONS",
    "FIELD_2025",
    "FIELD_2026",
    "Action",
    "ActionNode",
    "Actions",
    "BoundPlan",
    "CommandRoboRoute",
    "DeadlineNode",
    "Drive",
    "DriveLeaves",
    "DriveRoute",
    "DriveSettings",
    "DriveToPose",
    "DryRun",
    "Estimates",
    "Event",
    "Executor",
    "ExtraType",
    "Failure",
    "Field",
    "HolonomicDrive",
    "Inputs",
    "Limits",
    "Node",
    "ParallelNode",
    "PathFolder",
    "PathNode",
    "PathPlannerLeaves",
    "Plan",
    "PlanCommand",
    "PlanControl",
    "PlanError",
    "PlanMeta",
    "PlanWarning",
    "Pose2",
    "PoseNode",
    "RaceNode",
    "Recording",
    "RegistryError",
    "RoboRoute",
    "RouteNode",
    "SequenceNode",
    "Settings",
    "StartResult",
    "State",
    "Step",
    "StepFailed",
    "TimelineEntry",
    "WaitNode",
    "WpilibHost",
    "__version__",
    "bind",
    "from_dict",
    "parse",
    "plan_id",
]

_LAZY = {
    "actions": ("Action", "Actions"),
    "binding": ("BoundPlan", "bind"),
    "commands": ("CommandRoboRoute", "PlanCommand"),
    "control": ("PlanControl",),
    "drive": ("Drive", "DriveRoute", "DriveSettings", "DriveToPose", "HolonomicDrive"),
    "dryrun": ("DryRun", "Recording"),
    "execute": ("Event", "Executor", "Failure", "State"),
    "extensions": ("EXTENSIONS",),
    "inputs": ("Inputs",),
    "leaves": ("DriveLeaves",),
    "pathfile": ("PathFolder",),
    "pathplanner": ("PathPlannerLeaves",),
    "receiver": ("RoboRoute",),
    "settings": ("Settings",),
    "status": ("StartResult",),
    "steps": ("Step",),
    "timeline": ("Estimates", "TimelineEntry"),
    "wpi": ("WpilibHost",),
}
_HOME = {name: module for module, names in _LAZY.items() for name in names}
# What an edge needs, and what to install for it.
_EDGES = {
    "receiver": ("pyntcore", "robotlib[nt]", ("ntcore",)),
    "commands": ("commands2", "robotlib[nt,commands]", ("commands2", "ntcore", "wpilib", "wpimath")),
    "pathplanner": ("pathplannerlib", "robotlib[pathplanner]", ("pathplannerlib", "wpimath", "commands2", "wpilib")),
    "wpi": ("wpilib", "robotpy", ("wpilib", "wpimath", "hal")),
}


def __getattr__(name: str) -> object:
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module 'robotlib' has no attribute {name!r}")
    try:
        value: object = getattr(import_module(f".{module}", __name__), name)
    except ModuleNotFoundError as error:
        needs, install, roots = _EDGES.get(module, ("", "", ()))
        if (error.name or "").partition(".")[0] not in roots:
            raise
        raise ImportError(f"{name} needs {needs}: install {install}") from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
