"""The bench robot: its faults are those that were asked for, and it needs no help to be worth watching."""

from itertools import pairwise

import pytest

from aoabridge.codecs.j519 import FROM_ROBOT, decode, encode
from aoabridge.codecs.j519.packets import Start, Status
from aoabridge.codecs.j519.robot_model import RobotConfig
from aoabridge.simulators.j519 import BenchFaults, BenchRobot, BenchSettings, parse_faults

PC = ("127.0.0.1", 5000)
CYCLE_US = 8000


def collect(robot: BenchRobot, seconds: float, step_us: int = 1000) -> list[tuple[int, Status]]:
    robot.on_datagram(encode(Start(1)), PC, 0)
    found = []
    for now_us in range(0, round(seconds * 1_000_000), step_us):
        robot.on_tick(now_us)
        for data, peer in robot.take_datagrams():
            packet = decode(FROM_ROBOT, data)
            assert peer == PC and isinstance(packet, Status)
            found.append((now_us, packet))
    return found


def test_all_faults_by_name() -> None:
    faults = parse_faults("drop=0.01,dup=0.02, reorder=0.03,jitter=2ms,estop@5,restart@8.5")
    assert faults == BenchFaults(0.01, 0.02, 0.03, 2.0, 5.0, 8.5)
    assert parse_faults("") == BenchFaults()


@pytest.mark.parametrize(
    "text", ["drop", "drop=2", "drop=x", "jitter=2", "estop=5", "estop@1.2.3", "fire@3", "drop=0.1;dup=0"]
)
def test_unknown_faults(text: str) -> None:
    with pytest.raises(ValueError, match="fault"):
        parse_faults(text)


def test_quiet_and_exact_without_faults() -> None:
    robot = BenchRobot(BenchSettings(), 0)
    found = collect(robot, 2.0)
    assert [status.sequence_no for _, status in found] == list(range(1, 250))
    assert [now for now, _ in found] == [CYCLE_US * number for number in range(1, 250)]
    assert all(status.ready for _, status in found[1:]) and robot.sent == 249


def test_ready_after() -> None:
    found = collect(BenchRobot(BenchSettings(ready_after_s=1.0), 0), 2.0)
    assert next(now for now, status in found if status.ready) == pytest.approx(1_000_000, abs=CYCLE_US)
    assert not [one for _, one in collect(BenchRobot(BenchSettings(ready_after_s=-1.0), 0), 2.0) if one.ready]


def test_losses_are_counted() -> None:
    robot = BenchRobot(BenchSettings(faults=BenchFaults(drop=0.1, dup=0.1, reorder=0.05, jitter_ms=2.0)), 0)
    found = collect(robot, 20.0)
    numbers = [status.sequence_no for _, status in found]
    assert all(robot.injected[name] > 50 for name in robot.injected)
    assert len(set(numbers)) == pytest.approx(2499 - robot.injected["drop"], abs=3)
    assert len(numbers) - len(set(numbers)) == pytest.approx(robot.injected["dup"], abs=2)
    assert numbers != sorted(numbers)
    assert collect(BenchRobot(BenchSettings(faults=BenchFaults(drop=0.1), seed=5), 0), 2.0) == collect(
        BenchRobot(BenchSettings(faults=BenchFaults(drop=0.1), seed=5), 0), 2.0
    )


def test_jitter_delays_within_its_bound() -> None:
    found = collect(BenchRobot(BenchSettings(faults=BenchFaults(jitter_ms=3.0)), 0), 5.0, 100)
    delays = [now - CYCLE_US * status.sequence_no for now, status in found]
    assert min(delays) >= 0 and 2000 < max(delays) <= 3100


def test_estop_and_restart_at_their_moment() -> None:
    found = collect(BenchRobot(BenchSettings(faults=BenchFaults(estop_at_s=1.0)), 0), 2.0)
    assert next(now for now, status in found if not status.sysrdy) == pytest.approx(1_000_000, abs=CYCLE_US)
    found = collect(BenchRobot(BenchSettings(faults=BenchFaults(restart_at_s=1.0)), 0), 2.0)
    assert [status.sequence_no for _, status in found].count(1) == 2


def test_sine_moves_all_axes_within_their_limits() -> None:
    settings = BenchSettings(robot=RobotConfig(axes=6, feedback_delay_us=60_000), sine=True)
    found = collect(BenchRobot(settings, 0), 9.0)
    for place in range(6):
        angles = [status.joint_pose[place] for _, status in found]
        assert max(angles) == pytest.approx(20.0, abs=0.1) and min(angles) == pytest.approx(-20.0, abs=0.1)
        assert max(abs(b - a) for a, b in pairwise(angles[20:])) < 120 * 0.008
    assert all(status.joint_pose[6:] == (0.0, 0.0, 0.0) for _, status in found)
    assert found[100][1].in_motion


def test_deadlines_are_enough() -> None:
    robot = BenchRobot(BenchSettings(faults=BenchFaults(jitter_ms=2.0)), 0)
    assert robot.next_deadline_us is None
    robot.on_datagram(encode(Start(1)), PC, 0)
    count = 0
    while count < 100:
        assert robot.next_deadline_us is not None
        now_us = robot.next_deadline_us
        robot.on_tick(now_us)
        count += len(robot.take_datagrams())
    assert now_us < 110 * CYCLE_US
