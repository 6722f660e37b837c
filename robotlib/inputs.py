"""All that one loop sees, as flat values: record them and a replay takes the same decisions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

__all__ = ["FALSE", "TRUE", "WRONG_TYPE", "Inputs"]

FALSE, TRUE, WRONG_TYPE = 0, 1, -1  # what a boolean topic's value was


@dataclass(slots=True)
class Inputs:
    """One loop. Stamps and `now_us` are of the NT clock; lists hold what arrived since the last loop, in order.

    `alliance` is red, blue or ""; `mode` auto, teleop, test or "". A pose that cannot be read is not a number.
    `plan_kinds` says text, bad-encoding or wrong-type for each of `plan_texts`. `pose_values` is the newest Pose
    (x, y, rotation; empty if it was no Pose2d), `route_values` the newest Route, flattened. `heartbeat_topics`
    tells the two spellings of the topic apart. `calls` are robot code's calls since the last loop.
    """

    now_us: int = 0
    enabled: bool = False
    mode: str = ""
    estop: bool = False
    brownout: bool = False
    fms: bool = False
    alliance: str = ""
    stick: float = 0.0
    pose_x: float = math.nan
    pose_y: float = math.nan
    pose_rotation: float = math.nan
    plan_exists: bool = False
    plan_texts: list[str] = field(default_factory=list)
    plan_kinds: list[str] = field(default_factory=list)
    plan_stamps_us: list[int] = field(default_factory=list)
    pose_values: list[float] = field(default_factory=list)
    pose_stamp_us: int = 0
    pose_seen: bool = False
    route_values: list[float] = field(default_factory=list)
    route_stamp_us: int = 0
    route_seen: bool = False
    run_plan_values: list[int] = field(default_factory=list)
    run_plan_stamps_us: list[int] = field(default_factory=list)
    run_pose_values: list[int] = field(default_factory=list)
    run_pose_stamps_us: list[int] = field(default_factory=list)
    run_route_values: list[int] = field(default_factory=list)
    run_route_stamps_us: list[int] = field(default_factory=list)
    cancel_values: list[int] = field(default_factory=list)
    cancel_stamps_us: list[int] = field(default_factory=list)
    heartbeat_exists: list[bool] = field(default_factory=lambda: [False, False])
    heartbeat_topics: list[int] = field(default_factory=list)
    heartbeat_values: list[float] = field(default_factory=list)
    heartbeat_stamps_us: list[int] = field(default_factory=list)
    jobs_done: list[int] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dict; numbers that are not finite become null."""
        out: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, float) and not math.isfinite(value):
                value = None
            elif isinstance(value, list):
                value = [None if isinstance(x, float) and not math.isfinite(x) else x for x in value]
            out[item.name] = value
        return out

    @classmethod
    def from_dict(cls, obj: Mapping[str, Any]) -> Inputs:
        """Return the inputs of `to_dict`; null becomes not-a-number."""
        values: dict[str, Any] = {}
        for key, value in obj.items():
            if isinstance(value, list):
                values[key] = [math.nan if x is None else x for x in value]
            else:
                values[key] = math.nan if value is None else value
        return cls(**values)
