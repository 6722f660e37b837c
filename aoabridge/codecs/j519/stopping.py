"""How an arm comes to rest from any moment of a motion, within acceleration and jerk limits."""

import math
from collections.abc import Callable, Iterator

from aoabridge.codecs.j519.enums import ThresholdType
from aoabridge.codecs.j519.guard import History

__all__ = ["interpolate", "plan_stop"]

Bound = Callable[[int, ThresholdType], float | None]
"""Limit of a place (from 0), None where there is none."""

FREE_STOP_S = 0.5  # without tables: as long as a controller's own quick stop
LONGEST_STOP_S = 10.0  # a plan that needs more is not found; the last try stands
GROWTH = 1.1  # of the duration from one try to the next


def plan_stop(history: History, period_s: float, axes: int, bound: Bound) -> list[tuple[float, ...]]:
    """The commands from the last admitted one to rest, none if it is at rest.

    Velocity follows the cubic that ends with velocity and acceleration 0; the shortest duration that keeps the limits.
    """
    moving = [place for place in range(axes) if history.velocity[place] or history.acceleration[place]]
    if not moving:
        return []
    duration_s = max(_estimate(history, place, bound) for place in moving)
    cycles = max(2, math.ceil(duration_s / period_s))
    while cycles * period_s < LONGEST_STOP_S and not all(
        _within(history, place, cycles, period_s, bound) for place in moving
    ):
        cycles = max(cycles + 1, int(cycles * GROWTH))
    places = [list(_positions(history, place, cycles, period_s)) for place in range(len(history.axes))]
    return list(zip(*places, strict=True))


def _estimate(history: History, place: int, bound: Bound) -> float:
    """Duration that the peaks of the continuous curve ask for: 1.5 v/D, 6 v/D2, 4 a/D."""
    speed, acceleration = abs(history.velocity[place]), abs(history.acceleration[place])
    top_acceleration = bound(place, ThresholdType.ACCELERATION)
    top_jerk = bound(place, ThresholdType.JERK)
    if not top_acceleration or not top_jerk:
        return FREE_STOP_S
    return max(1.5 * speed / top_acceleration, math.sqrt(6 * speed / top_jerk), 4 * acceleration / top_jerk)


def _velocities(history: History, place: int, cycles: int, period_s: float) -> Iterator[float]:
    speed, acceleration = history.velocity[place], history.acceleration[place]
    for cycle in range(1, cycles + 1):
        s = cycle / cycles
        yield speed * (1 - s * s * (3 - 2 * s)) + acceleration * cycles * period_s * s * (1 - s) ** 2


def _positions(history: History, place: int, cycles: int, period_s: float) -> Iterator[float]:
    position = history.axes[place]
    for velocity in _velocities(history, place, cycles, period_s):
        position += velocity * period_s
        yield position


def _within(history: History, place: int, cycles: int, period_s: float, bound: Bound) -> bool:
    """Whether the stop and the first command at rest after it keep acceleration and jerk."""
    top_acceleration = bound(place, ThresholdType.ACCELERATION) or math.inf
    top_jerk = bound(place, ThresholdType.JERK) or math.inf
    last_velocity, last_acceleration = history.velocity[place], history.acceleration[place]
    for velocity in (*_velocities(history, place, cycles, period_s), 0.0):
        acceleration = (velocity - last_velocity) / period_s
        jerk = (acceleration - last_acceleration) / period_s
        if abs(acceleration) > top_acceleration or abs(jerk) > top_jerk:
            return False
        last_velocity, last_acceleration = velocity, acceleration
    return True


def interpolate(history: History, target: tuple[float, ...], cycles: int, period_s: float) -> list[tuple[float, ...]]:
    """``cycles`` commands that reach ``target`` from the last admitted one with one constant jerk per axis."""
    commands = [_ramp(history, place, target[place], cycles, period_s) for place in range(len(target))]
    return [*zip(*(positions[:-1] for positions in commands), strict=True), target]


def _ramp(history: History, place: int, target: float, cycles: int, period_s: float) -> list[float]:
    position, velocity, acceleration = (h[place] for h in (history.axes, history.velocity, history.acceleration))
    n = cycles
    ahead = position + n * velocity * period_s + n * (n + 1) / 2 * acceleration * period_s**2
    jerk = (target - ahead) / (n * (n + 1) * (n + 2) / 6 * period_s**3)
    positions = []
    for _ in range(n):
        acceleration += jerk * period_s
        velocity += acceleration * period_s
        position += velocity * period_s
        positions.append(position)
    return positions
