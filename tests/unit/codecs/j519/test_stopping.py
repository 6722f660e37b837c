"""Stops keep the limits and end at rest; interpolation meets its target."""

import pytest

from aoabridge.codecs.j519.guard import History
from aoabridge.codecs.j519.stopping import interpolate, plan_stop

PERIOD_S = 0.008
LIMITS = (120.0, 265.0, 1240.0)


def history(velocity: float, acceleration: float) -> History:
    rest = (0.0,) * 8
    return History((45.0, *rest), (velocity, *rest), (acceleration, *rest), 7, 1, False)


@pytest.mark.parametrize("velocity", [0.01, 1.0, -30.0, 110.0])
@pytest.mark.parametrize("acceleration", [0.0, 100.0, -200.0])
@pytest.mark.parametrize("period_s", [0.008, 0.004, 0.002])
def test_a_stop_keeps_acceleration_and_jerk(velocity: float, acceleration: float, period_s: float) -> None:
    plan = plan_stop(history(velocity, acceleration), period_s, 6, lambda place, kind: LIMITS[kind])
    position, v, a = 45.0, velocity, acceleration
    for command in (*plan, plan[-1], plan[-1]):
        new_v = (command[0] - position) / period_s
        new_a = (new_v - v) / period_s
        assert abs(new_a) <= LIMITS[1] * 1.001 and abs((new_a - a) / period_s) <= LIMITS[2] * 1.001
        position, v, a = command[0], new_v, new_a
        assert command[1:] == (0.0,) * 8
    assert v == 0
    assert len(plan) * period_s < 3.0


def test_at_rest_there_is_nothing_to_do() -> None:
    assert plan_stop(history(0.0, 0.0), PERIOD_S, 6, lambda place, kind: LIMITS[kind]) == []


def test_without_tables_the_stop_takes_half_a_second() -> None:
    plan = plan_stop(history(30.0, 0.0), PERIOD_S, 6, lambda place, kind: None)
    assert len(plan) == pytest.approx(0.5 / PERIOD_S, abs=1)


def test_interpolation_continues_the_motion_and_meets_the_target() -> None:
    before = history(10.0, 20.0)
    for cycles in range(1, 11):
        jerk, v, p, expected = 100.0, 10.0, 45.0, []
        a = 20.0
        for _ in range(cycles):
            a += jerk * PERIOD_S
            v += a * PERIOD_S
            p += v * PERIOD_S
            expected.append(p)
        target = (p, *(0.0,) * 8)
        result = interpolate(before, target, cycles, PERIOD_S)
        assert [command[0] for command in result] == pytest.approx(expected, abs=1e-9)
        assert result[-1] == target
