"""Every number and option of staging, starting and cancelling, in one place."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Defaults are the safe ones; times in seconds."""

    # A press counts if it is this fresh. Clients send old presses again after a reconnect.
    press_max_age_s: float = 0.75
    press_max_future_s: float = 0.25
    replay_slack_s: float = 0.05  # a press sent again differs by some microseconds
    pose_max_age_s: float | None = 2.0  # between press and pose; None takes any pose
    pose_hold_s: float = 0.10  # how long a press waits for its pose
    cancel_slack_s: float = 1.0  # a cancel may be this much older than the start it ends

    require_heartbeat: bool = True
    heartbeat_timeout_s: float = 1.5
    link_lost_cancels_phone: bool = True
    link_lost_cancels_code: bool = False

    start_on: str = "run"  # "plan": a fresh plan text is a press, too
    allow_phone_start_fms: bool = False
    phone_modes: tuple[str, ...] = ("auto", "teleop", "test")
    preempt: bool = False  # a new valid plan ends a running one
    restart: bool = False  # a press while running ends the run and starts again
    keep_when_gone: bool = True  # a plan whose topic is gone stays for code starts

    stick_modes: tuple[str, ...] = ("teleop",)
    stick_deadband: float = 0.15

    inline_parse_bytes: int = 4096  # longer texts are parsed in the worker
    plan_timeout_s: float = 120.0
    max_gap_s: float = 0.5
    status_period_s: float = 0.1  # of progress, step time and active pose
