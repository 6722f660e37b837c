import itertools
import math
import struct
from collections import Counter

import pytest

from aoabridge.simulators.robot import (
    PHONE_CLOCK_PREFIX,
    POSE_TOPIC,
    ROBOT_CLOCK,
    SPEED_MPS,
    Pose,
    RobotSettings,
    SimulatedRobot,
)
from aoabridge.values import NtValue, Publication, Update

POSE = struct.Struct("<3d")


def robot(**settings: object) -> SimulatedRobot:
    built = SimulatedRobot(RobotSettings(topics=12, **settings))  # type: ignore[arg-type]
    built.start(100.0)
    return built


def put(target: SimulatedRobot, name: str, value: NtValue, now: float) -> list[Publication]:
    return target.on_updates([Update(f"/RoboRoute/{name}", value, int(now * 1e6))], now)


def run_until(target: SimulatedRobot, end: float, *, alive: bool = True) -> list[Publication]:
    """Tick as its host does, with a phone's heartbeat every half second."""
    out: list[Publication] = []
    while target.next_time() <= end:
        now = target.next_time()
        if alive:
            put(target, "Heartbeat", now, now)
        out += target.on_tick(now)
    return out


def test_start_publishes_every_topic_and_schemas_last() -> None:
    first = SimulatedRobot(RobotSettings(topics=12, red_alliance=False)).start(5.0)
    names = [publication.topic for publication in first]
    assert len(set(names)) == len(names)
    assert names[-3:] == [f"/.schema/struct:{name}" for name in ("Translation2d", "Rotation2d", "Pose2d")]
    values = {publication.topic: publication for publication in first}
    assert values["/FMSInfo/IsRedAlliance"].value is False
    assert values[POSE_TOPIC].type == "struct:Pose2d"
    assert len(values[POSE_TOPIC].value) == 24  # type: ignore[arg-type]
    assert values["/robot/trajectory"].type == "struct:Pose2d[]"
    assert len(values["/robot/trajectory"].value) == 240  # type: ignore[arg-type]
    assert values[ROBOT_CLOCK].value == 5.0


def test_many_topics_have_all_types_and_a_quarter_poses() -> None:
    first = SimulatedRobot(RobotSettings(topics=240)).start(0.0)
    types = Counter(p.type for p in first if p.topic.startswith("/demo/many/"))
    assert sum(types.values()) == 240
    assert types["struct:Pose2d"] == 60
    assert set(types) == {"struct:Pose2d", "double", "int", "boolean", "float", "string", "double[]"}


def test_same_seed_same_run() -> None:
    first, second, other = (robot(seed=seed) for seed in (3, 3, 4))
    runs = [run_until(target, 102.0) for target in (first, second, other)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_ticks_come_at_the_rate_and_never_pile_up() -> None:
    target = robot(rate_hz=50.0)
    clocks = [p.value for p in run_until(target, 101.0) if p.topic == ROBOT_CLOCK]
    assert clocks == pytest.approx([100.0 + 0.02 * tick for tick in range(1, 51)])
    assert target.on_tick(101.0) == []
    assert target.on_tick(500.0) != []
    assert target.on_tick(500.001) == []
    assert target.next_time() == pytest.approx(500.02)


def test_the_robot_moves_and_never_jumps() -> None:
    target = robot()
    poses = [Pose(*POSE.unpack(p.value)) for p in run_until(target, 112.0) if p.topic == POSE_TOPIC]  # type: ignore[arg-type]
    steps = [math.dist(a[:2], b[:2]) for a, b in itertools.pairwise(poses)]
    assert max(steps) <= SPEED_MPS * 0.0201
    assert max(p.x_m for p in poses) - min(p.x_m for p in poses) > 2.0


def test_pressed_pose_is_driven_to() -> None:
    target = robot()
    put(target, "Heartbeat", 1.0, 100.0)
    put(target, "Pose", POSE.pack(2.0, 3.0, 0.5), 100.0)
    status = put(target, "RunPose", True, 100.1)
    assert (status[0].value, status[3].value) == ("RUNNING", ["RunPose"])
    put(target, "RunPose", False, 101.1)
    assert target.state == "RUNNING"
    said = run_until(target, 106.0)
    assert [p.value for p in said if p.topic == "/RoboRoute/Status/State"] == ["DONE"]


def test_route_is_driven_pose_by_pose() -> None:
    target = robot()
    put(target, "Heartbeat", 1.0, 100.0)
    put(target, "Route", POSE.pack(6.0, 3.0, 0.0) + POSE.pack(6.0, 5.0, 0.0), 100.0)
    put(target, "RunRoute", True, 100.0)
    poses = [Pose(*POSE.unpack(p.value)) for p in run_until(target, 106.0) if p.topic == POSE_TOPIC]  # type: ignore[arg-type]
    near = [min(range(len(poses)), key=lambda i: math.dist(poses[i][:2], goal)) for goal in ((6.0, 3.0), (6.0, 5.0))]
    assert near[0] < near[1]
    assert all(math.dist(poses[i][:2], goal) < 0.1 for i, goal in zip(near, ((6.0, 3.0), (6.0, 5.0)), strict=True))
    assert target.state == "DONE"


def test_plan_is_staged_run_and_done() -> None:
    target = robot()
    put(target, "Heartbeat", 1.0, 100.0)
    assert put(target, "Plan", '{"steps":[]}', 100.0)[0].value == "STAGED"
    assert put(target, "RunPlan", True, 100.0)[0].value == "RUNNING"
    run_until(target, 104.0)
    assert target.state == "DONE"
    put(target, "Plan", "not a plan", 104.0)
    assert target.state == "REJECTED"
    assert put(target, "RunPlan", True, 104.0)[1].value == "not-ready: nothing staged"


def test_press_without_heartbeat_is_refused() -> None:
    target = robot()
    put(target, "Pose", POSE.pack(2.0, 3.0, 0.5), 100.0)
    assert put(target, "RunPose", True, 100.0)[1].value == "no-heartbeat: no living phone"
    put(target, "Heartbeat", 1.0, 100.0)
    assert put(target, "RunPose", True, 101.6)[1:2] == []
    assert target.state == "NO_PLAN"


@pytest.mark.parametrize("value", [False, 1, "true"])
def test_only_true_is_a_press(value: NtValue) -> None:
    target = robot()
    put(target, "Heartbeat", 1.0, 100.0)
    put(target, "Pose", POSE.pack(2.0, 3.0, 0.5), 100.0)
    assert put(target, "RunPose", value, 100.0) == []


def test_lost_heartbeat_stops_the_run() -> None:
    target = robot()
    put(target, "Heartbeat", 1.0, 100.0)
    put(target, "Pose", POSE.pack(-50.0, 3.0, 0.5), 100.0)
    put(target, "RunPose", True, 100.0)
    run_until(target, 101.4, alive=False)
    assert target.state == "RUNNING"
    run_until(target, 101.6, alive=False)
    assert target.state == "CANCELLED"


def test_second_press_is_refused_and_cancel_ends() -> None:
    target = robot()
    put(target, "Heartbeat", 1.0, 100.0)
    put(target, "Pose", POSE.pack(-50.0, 3.0, 0.5), 100.0)
    put(target, "RunPose", True, 100.0)
    assert put(target, "RunPose", True, 100.1)[1].value == "running: already on the way"
    assert put(target, "CancelPlan", True, 100.2)[0].value == "CANCELLED"


def test_pose_of_a_wrong_length_stages_nothing() -> None:
    target = robot()
    put(target, "Heartbeat", 1.0, 100.0)
    put(target, "Pose", b"123", 100.0)
    assert put(target, "RunPose", True, 100.0)[1].value == "not-ready: nothing staged"


def test_phone_clock_becomes_a_latency() -> None:
    target = robot()
    target.on_updates([Update(f"{PHONE_CLOCK_PREFIX}1", 99.5, 0), Update(f"{PHONE_CLOCK_PREFIX}1", "x", 0)], 100.0)
    assert list(target.latency_s) == [0.5]
