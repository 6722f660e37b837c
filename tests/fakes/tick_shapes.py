"""What the commands that go on print each second with --json, and as their summary."""

from typing import Literal

import msgspec

__all__ = ["SUMMARIES", "TICKS"]


class Tick(msgspec.Struct):
    """What every simulator says once per second; the summary adds ``ok``."""

    type: Literal["tick", "summary"]
    seconds: float


class PhoneTick(Tick):
    rx_lines: int
    tx_lines: int
    values: int
    structs: int
    puts: int
    errors: int
    topics: int
    last_in: str | None
    last_out: str | None
    last_error: str | None


class RobotTick(Tick):
    address: str
    published: int
    received: int
    plan: str
    counters: dict[str, int]


class FieldTick(Tick):
    period: str
    match_s: float
    datagrams_out: int
    datagrams_in: int
    frames_out: int
    frames_in: int
    lost: list[int]
    faults: dict[str, int]
    last: str | None


class StationRobot(msgspec.Struct):
    status: int
    robot: int
    robot_with_fms: int
    console: int
    commands: int
    answers: int


class StationTick(Tick):
    field: Literal["connected", "-"]
    mode: str
    enabled: bool
    estop: bool
    datagrams_out: int
    datagrams_in: int
    frames_out: int
    frames_in: int
    robot: StationRobot | None
    faults: dict[str, int]
    last: str | None


class ArmTick(Tick):
    state: str
    received: int
    sent: int
    peer: str | None
    joint_deg: list[float]
    ignored: dict[str, int]
    faults: dict[str, int]
    alarm: str | None


class TeleopTick(Tick):
    uplinks: int
    commands: int
    reports: int
    ctrl: int
    trigger: int
    downlink: int
    speed_kmh: dict[str, float]
    faults: dict[str, int]


class ReplayTick(msgspec.Struct):
    type: Literal["tick", "summary"]
    file: str
    address: str
    position_s: float
    published: int
    topics: int


TICKS: dict[str, type[msgspec.Struct]] = {
    "simulate-phone": PhoneTick,
    "simulate-robot": RobotTick,
    "simulate-fms": FieldTick,
    "simulate-ds": StationTick,
    "simulate-j519": ArmTick,
    "simulate-teleop": TeleopTick,
    "replay": ReplayTick,
}


def _summary(tick: type[msgspec.Struct]) -> type[msgspec.Struct]:
    return msgspec.defstruct(f"{tick.__name__}Summary", [("ok", bool)], bases=(tick,))


SUMMARIES = {name: _summary(tick) for name, tick in TICKS.items()}
