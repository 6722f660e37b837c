"""The robot framework: mode, alliance, deploy folder, Field2d, logs. The only module that knows wpilib."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import wpilib
from wpimath.geometry import Pose2d
from wpimath.kinematics import ChassisSpeeds

from .drive import HolonomicDrive
from .eventlog import Event
from .host import HostState
from .model import Plan, Pose2

__all__ = ["DataLogSink", "WpilibHost", "holonomic", "show"]

FIELD_OBJECT = "RoboRoute"
_ALLIANCES = {
    wpilib.DriverStation.Alliance.kRed: "red",
    wpilib.DriverStation.Alliance.kBlue: "blue",
}


class WpilibHost:
    """Mode, enable and alliance of the Driver Station; `deploy_dir` replaces the deploy folder."""

    def __init__(self, deploy_dir: str | Path | None = None) -> None:
        self._deploy_dir = Path(deploy_dir) if deploy_dir is not None else None

    def read(self) -> HostState:
        """Return the state of this moment."""
        station = wpilib.DriverStation
        alliance = station.getAlliance()
        mode = ""
        if station.isAutonomous():
            mode = "auto"
        elif station.isTest():
            mode = "test"
        elif station.isTeleop():
            mode = "teleop"
        return HostState(
            enabled=station.isEnabled(),
            mode=mode,
            estop=station.isEStopped(),
            brownout=wpilib.RobotController.isBrownedOut(),
            fms=station.isFMSAttached(),
            alliance="" if alliance is None else _ALLIANCES.get(alliance, ""),
        )

    def deploy_dir(self) -> Path:
        """Return the deploy folder; the framework's own follows the main module, wrong under a test runner."""
        return self._deploy_dir or Path(wpilib.getDeployDirectory())


def holonomic(
    pose: Callable[[], Pose2d], drive: Callable[[ChassisSpeeds], None], stop: Callable[[], None]
) -> HolonomicDrive:
    """Return a drive made of callables that use wpimath types; the speeds are field-relative, blue origin."""

    def measured() -> Pose2:
        at = pose()
        return Pose2(at.X(), at.Y(), at.rotation().radians())

    return HolonomicDrive(measured, lambda vx, vy, omega: drive(ChassisSpeeds(vx, vy, omega)), stop)


def show(field2d: wpilib.Field2d, plan: Plan | None) -> None:
    """Draw the plan's poses on the team's Field2d; None clears them."""
    poses = [] if plan is None else [Pose2d(pose.x, pose.y, pose.rotation) for pose in plan.poses()]
    field2d.getObject(FIELD_OBJECT).setPoses(poses)


class DataLogSink:
    """Writes events as JSON strings to a `wpiutil.log.DataLog`."""

    def __init__(self, log: Any, name: str = "RoboRoute/Events") -> None:
        self._log = log
        self._entry = log.start(name, "json")

    def write(self, events: Iterable[Event]) -> None:
        """Append the events."""
        for event in events:
            row = {
                "t": event.t,
                "run": event.run,
                "plan": event.plan_id,
                "path": event.path,
                "kind": event.kind,
                "text": event.text,
            }
            self._log.appendString(self._entry, json.dumps(row), 0)
