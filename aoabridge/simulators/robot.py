"""A robot that drives laps and goes where a phone sends it, for the demo, for tests and for ``simulate robot``.

Pure: values in, values out, time as an argument (monotonic seconds), the same seed gives the same run.
"""

import math
import random
import struct
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from aoabridge.simulators.robot_topics import many_topics
from aoabridge.values import SCHEMA_ROOT, SCHEMA_TYPE, NtValue, Publication, Update

__all__ = ["PHONE_CLOCK_PREFIX", "ROBOT_CLOCK", "SCHEMAS", "Pose", "RobotSettings", "SimulatedRobot"]

ROBOT_CLOCK: Final = "/demo/robotClock"  # our monotonic seconds, for latencies on one machine
PHONE_CLOCK_PREFIX: Final = "/demo/phoneClock"  # a phone's monotonic seconds come back on these
POSE_TOPIC: Final = "/robot/pose"
TRAJECTORY_TOPIC: Final = "/robot/trajectory"
STATUS: Final = "/RoboRoute/Status/"

SCHEMAS: Final = {  # WPILib's own declarations, innermost first
    "Translation2d": "double x;double y",
    "Rotation2d": "double value",
    "Pose2d": "Translation2d translation;Rotation2d rotation",
}
SPEED_MPS: Final = 3.0
TURN_RADPS: Final = 4.0
ARRIVED_M: Final = 0.02
TRAJECTORY_POINTS: Final = 10
HEARTBEAT_LOST_S: Final = 1.5  # without a changed heartbeat a phone may not move us
PLAN_S: Final = 3.0
LONGEST_STEP_S: Final = 0.2  # a late caller must not make the robot jump
MAX_SAMPLES: Final = 20_000

_POSE = struct.Struct("<3d")


class Pose(NamedTuple):
    """A position on the field, blue origin."""

    x_m: float
    y_m: float
    heading_rad: float

    def pack(self) -> bytes:
        """Return the 24 bytes of a Pose2d."""
        return _POSE.pack(*self)

    @classmethod
    def unpack_all(cls, raw: bytes) -> "list[Pose]":
        """Return every Pose2d of a value; nothing if its length does not fit."""
        if len(raw) % _POSE.size:
            return []
        return [cls(*fields) for fields in _POSE.iter_unpack(raw)]


class RobotSettings(msgspec.Struct, frozen=True):
    """``topics`` besides the robot's own, each set ``rate_hz`` times a second."""

    topics: int = 300
    rate_hz: float = 50.0
    red_alliance: bool = True
    enabled: bool = True
    seed: int = 1


class SimulatedRobot:
    """``start`` once, then ``on_tick`` at ``next_time`` and ``on_updates`` for what clients set."""

    def __init__(self, settings: RobotSettings | None = None) -> None:
        self._settings = settings or RobotSettings()
        chance = random.Random(self._settings.seed)
        self._phase_rad = chance.uniform(0.0, math.tau)
        self._many = many_topics(self._settings.topics, chance)
        self._pose = self._lap(0.0)
        self._started_at = 0.0
        self._stepped_at = 0.0
        self._due_at = 0.0
        self._period_s = 1.0 / self._settings.rate_hz
        self._staged: dict[str, list[Pose]] = {"RunPose": [], "RunRoute": []}
        self._plan_staged = False
        self._goals: deque[Pose] = deque()
        self._plan_until: float | None = None
        self._run = ""
        self._runs = 0
        self._heartbeat: NtValue | None = None
        self._heartbeat_at = float("-inf")
        self._state = "NO_PLAN"
        self._refused = ""
        self.counters: Counter[str] = Counter()
        self.latency_s: deque[float] = deque(maxlen=MAX_SAMPLES)

    @property
    def pose(self) -> Pose:
        """Where the robot is."""
        return self._pose

    @property
    def state(self) -> str:
        """What the plan receiver does: NO_PLAN REJECTED STAGED RUNNING DONE CANCELLED."""
        return self._state

    def start(self, now: float) -> list[Publication]:
        """Return the first value of every topic; schemas come last, as they do from robot code."""
        self._started_at = self._stepped_at = now
        settings = self._settings
        info: list[tuple[str, str, NtValue]] = [
            ("/FMSInfo/.type", "string", "FMSInfo"),
            ("/FMSInfo/IsRedAlliance", "boolean", settings.red_alliance),
            ("/FMSInfo/StationNumber", "int", 1),
            ("/FMSInfo/FMSControlData", "int", 0b10_0001 if settings.enabled else 0b10_0000),  # DS attached, enabled
            ("/FMSInfo/EventName", "string", "DEMO"),
            ("/FMSInfo/MatchType", "int", 0),
            ("/FMSInfo/MatchNumber", "int", 0),
        ]
        schemas = [Publication(SCHEMA_ROOT + name, SCHEMA_TYPE, text) for name, text in SCHEMAS.items()]
        return [*(Publication(*topic) for topic in info), *self.on_tick(now), *self._status(), *schemas]

    def next_time(self) -> float:
        """When ``on_tick`` has values again."""
        return self._due_at

    def on_tick(self, now: float) -> list[Publication]:
        """Drive on and return this period's values; nothing before ``next_time``."""
        if now < self._due_at:
            return []
        late = now >= self._due_at + self._period_s
        self._due_at = (now if late else self._due_at) + self._period_s
        before = self._state
        self._drive(now)
        elapsed_s = now - self._started_at
        points = b"".join(self._lap(elapsed_s + step * 0.2).pack() for step in range(TRAJECTORY_POINTS))
        values = [
            Publication(ROBOT_CLOCK, "double", now),
            Publication(POSE_TOPIC, "struct:Pose2d", self._pose.pack()),
            Publication(TRAJECTORY_TOPIC, "struct:Pose2d[]", points),
            *(Publication(name, type_string, value(elapsed_s)) for name, type_string, value in self._many),
        ]
        return values if before == self._state else [*values, *self._status()]

    def on_updates(self, updates: Sequence[Update], now: float) -> list[Publication]:
        """React to what clients set; returns what the plan receiver says to it."""
        before = (self._state, self._refused, self._runs)
        for update in updates:
            self.counters["values"] += 1
            if update.topic.startswith(PHONE_CLOCK_PREFIX):
                if isinstance(update.value, float):
                    self.latency_s.append(now - update.value)
                continue
            react = self._RECEIVER.get(update.topic.removeprefix("/RoboRoute/"))
            if react is not None and update.topic.startswith("/RoboRoute/"):
                self.counters["receiver"] += 1
                react(self, update.value, now)
        return self._status() if before != (self._state, self._refused, self._runs) else []

    def _drive(self, now: float) -> None:
        step_s = min(now - self._stepped_at, LONGEST_STEP_S)
        self._stepped_at = now
        if self._state == "RUNNING" and now > self._heartbeat_at + HEARTBEAT_LOST_S:
            self._finish("CANCELLED")
        if self._plan_until is not None and now >= self._plan_until:
            self._finish("DONE")
        goal = self._goals[0] if self._goals else self._lap(now - self._started_at)
        self._pose = _towards(self._pose, goal, step_s)
        if self._goals and math.dist(self._pose[:2], goal[:2]) < ARRIVED_M:
            self._goals.popleft()
            if not self._goals:
                self._finish("DONE")

    def _lap(self, elapsed_s: float) -> Pose:
        """A figure of eight around the middle of the field, 12 s a lap."""
        angle = self._phase_rad + elapsed_s * math.tau / 12.0
        x_m, y_m = 8.27 + 3.0 * math.cos(angle), 4.1 + 1.5 * math.sin(2 * angle)
        return Pose(x_m, y_m, math.atan2(3.0 * math.cos(2 * angle), -3.0 * math.sin(angle)))

    def _on_heartbeat(self, value: NtValue, now: float) -> None:
        if value != self._heartbeat:
            self._heartbeat, self._heartbeat_at = value, now

    def _stage(self, run: str, value: NtValue) -> None:
        self._staged[run] = Pose.unpack_all(value) if isinstance(value, bytes) else []

    def _on_pose(self, value: NtValue, now: float) -> None:
        del now
        self._stage("RunPose", value)

    def _on_route(self, value: NtValue, now: float) -> None:
        del now
        self._stage("RunRoute", value)

    def _on_plan(self, value: NtValue, now: float) -> None:
        del now
        try:
            plan = msgspec.json.decode(value) if isinstance(value, str) else None
        except msgspec.DecodeError:
            plan = None
        self._plan_staged = isinstance(plan, dict | list)
        if self._state != "RUNNING":
            self._state = "STAGED" if self._plan_staged else "REJECTED"

    def _on_cancel(self, value: NtValue, now: float) -> None:
        del now
        if value is True and self._state == "RUNNING":
            self._finish("CANCELLED")

    def _press(self, run: str, value: NtValue, now: float) -> None:
        """A true starts what is staged; the fall back to false means nothing."""
        if value is not True:
            return
        staged = self._staged.get(run, [])
        if now > self._heartbeat_at + HEARTBEAT_LOST_S:
            self._refused = "no-heartbeat: no living phone"
        elif self._state == "RUNNING":
            self._refused = "running: already on the way"
        elif not (self._plan_staged if run == "RunPlan" else staged):
            self._refused = "not-ready: nothing staged"
        else:
            self._goals = deque(staged)
            self._plan_until = now + PLAN_S if run == "RunPlan" else None
            self._state, self._refused, self._run = "RUNNING", "", run
            self._runs += 1

    def _finish(self, state: str) -> None:
        self._state, self._plan_until = state, None
        self._goals.clear()

    def _status(self) -> list[Publication]:
        return [
            Publication(f"{STATUS}State", "string", self._state),
            Publication(f"{STATUS}Refused", "string", self._refused),
            Publication(f"{STATUS}RunId", "int", self._runs),
            Publication(f"{STATUS}Running", "string[]", [self._run] if self._state == "RUNNING" else []),
        ]

    def _on_run_pose(self, value: NtValue, now: float) -> None:
        self._press("RunPose", value, now)

    def _on_run_route(self, value: NtValue, now: float) -> None:
        self._press("RunRoute", value, now)

    def _on_run_plan(self, value: NtValue, now: float) -> None:
        self._press("RunPlan", value, now)

    _RECEIVER: Final[dict[str, Callable[["SimulatedRobot", NtValue, float], None]]] = {
        "Heartbeat": _on_heartbeat,
        "Pose": _on_pose,
        "Route": _on_route,
        "Plan": _on_plan,
        "RunPose": _on_run_pose,
        "RunRoute": _on_run_route,
        "RunPlan": _on_run_plan,
        "CancelPlan": _on_cancel,
    }


def _towards(pose: Pose, goal: Pose, step_s: float) -> Pose:
    distance_m = math.dist(pose[:2], goal[:2])
    share = 1.0 if distance_m <= SPEED_MPS * step_s else SPEED_MPS * step_s / distance_m
    turn_rad = math.remainder(goal.heading_rad - pose.heading_rad, math.tau)
    most_rad = TURN_RADPS * step_s
    return Pose(
        pose.x_m + (goal.x_m - pose.x_m) * share,
        pose.y_m + (goal.y_m - pose.y_m) * share,
        math.remainder(pose.heading_rad + max(-most_rad, min(most_rad, turn_rad)), math.tau),
    )
