"""What the robot tells the phone, as plain values; the receiver puts each on its topic when it changes."""

from __future__ import annotations

from dataclasses import dataclass, field

from .model import Pose2

__all__ = ["PROTOCOL", "StartResult", "Status"]

PROTOCOL = 1


@dataclass(frozen=True, slots=True)
class StartResult:
    """Whether a start was accepted; falsy with code and text if not."""

    ok: bool
    code: str = ""
    text: str = ""

    def __bool__(self) -> bool:
        return self.ok


@dataclass(slots=True)
class Status:
    """One field per status topic."""

    state: str = "NO_PLAN"
    ready: bool = False
    waiting: tuple[str, ...] = ()
    refused: str = ""
    plan_id: str = ""
    running_id: str = ""
    plan_name: str = ""
    run_id: int = 0
    retained: bool = False
    run_source: str = ""
    running: tuple[str, ...] = ()
    running_text: tuple[str, ...] = ()
    progress: float = 0.0
    step_elapsed_s: float = 0.0
    error: str = ""
    error_code: str = ""
    error_path: str = ""
    warnings: tuple[str, ...] = ()
    link: str = "none"
    alliance: str = ""
    actions: str = "{}"
    paths: tuple[str, ...] = ()
    plan_poses: tuple[Pose2, ...] = field(default=())
    active_pose: Pose2 | None = None
    timeline: str = "[]"
