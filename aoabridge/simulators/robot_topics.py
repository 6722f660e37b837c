"""The many topics of the simulated robot: every scalar and array type, a quarter of them poses."""

import math
import random
import struct
from collections.abc import Callable
from typing import Final, TypeAlias

from aoabridge.values import NtValue

__all__ = ["Signal", "many_topics"]

Signal: TypeAlias = tuple[str, str, Callable[[float], NtValue]]  # name, type string, elapsed seconds -> value

ROOT: Final = "/demo/many"


def many_topics(count: int, chance: random.Random) -> list[Signal]:
    """Return ``count`` topics of values that come back after one to ten seconds."""
    return [_MAKERS[number % len(_MAKERS)](number, chance.uniform(1.0, 10.0)) for number in range(count)]


def _pose(number: int, period_s: float) -> Signal:
    pack = struct.Struct("<3d").pack
    return f"{ROOT}/pose{number}", "struct:Pose2d", lambda t: pack(8.0 + _wave(t, period_s), 4.0, t)


def _double(number: int, period_s: float) -> Signal:
    return f"{ROOT}/volts{number}", "double", lambda t: 12.0 + _wave(t, period_s)


def _int(number: int, period_s: float) -> Signal:
    return f"{ROOT}/ticks{number}", "int", lambda t: int(t * 1e6 / period_s)


def _boolean(number: int, period_s: float) -> Signal:
    return f"{ROOT}/on{number}", "boolean", lambda t: _wave(t, period_s) > 0.0


def _float(number: int, period_s: float) -> Signal:
    return f"{ROOT}/amps{number}", "float", lambda t: 10.0 * _wave(t, period_s)


def _string(number: int, period_s: float) -> Signal:
    return f"{ROOT}/text{number}", "string", lambda t: f"step {int(t / period_s)}"


def _doubles(number: int, period_s: float) -> Signal:
    return f"{ROOT}/wheels{number}", "double[]", lambda t: [_wave(t + wheel, period_s) for wheel in range(4)]


def _wave(elapsed_s: float, period_s: float) -> float:
    return math.sin(elapsed_s * math.tau / period_s)


_MAKERS: Final = (_pose, _double, _int, _double, _pose, _boolean, _float, _string, _doubles, _pose, _double, _int)
