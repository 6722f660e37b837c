"""What the robot framework knows and plans need: mode, enable, alliance."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

__all__ = ["Host", "HostState", "ManualHost"]


@dataclass(slots=True)
class HostState:
    """`mode` is auto, teleop, test or ""; `alliance` red, blue or "" while unknown."""

    enabled: bool = False
    mode: str = ""
    estop: bool = False
    brownout: bool = False
    fms: bool = False
    alliance: str = ""


class Host(Protocol):
    """Asked once per loop."""

    @abstractmethod
    def read(self) -> HostState:
        """Return the state of this moment."""

    @abstractmethod
    def deploy_dir(self) -> Path | None:
        """Return the deploy folder, None if there is none."""


class ManualHost:
    """A host whose state is set by hand, for tests and other frameworks."""

    def __init__(self, state: HostState | None = None, deploy: Path | None = None) -> None:
        self.state = state or HostState()
        self._deploy = deploy

    def read(self) -> HostState:
        """Return the state as set."""
        return self.state

    def deploy_dir(self) -> Path | None:
        """Return the folder as set."""
        return self._deploy
