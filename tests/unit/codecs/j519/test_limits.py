"""Limit tables: interpolation, clamping, and when no limit can be told."""

import json
import math
from pathlib import Path

import msgspec
import pytest

from aoabridge.codecs.j519 import FROM_ROBOT, decode
from aoabridge.codecs.j519.enums import ThresholdType
from aoabridge.codecs.j519.limits import LimitTables, table_keys
from aoabridge.codecs.j519.packets import Ack
from aoabridge.codecs.j519.robot_model import ArmLimits

CASES = json.loads((Path(__file__).parents[3] / "vectors" / "j519_vectors.json").read_text())
OCTETS = bytes.fromhex(next(case["hex"] for case in CASES if case["name"] == "ack_j3_acceleration"))


def ack() -> Ack:
    packet = decode(FROM_ROBOT, OCTETS)
    assert isinstance(packet, Ack)
    return packet


def tables(*acks: Ack) -> LimitTables:
    result = LimitTables()
    for one in acks:
        result.add(one)
    return result


@pytest.mark.parametrize(
    ("speed", "ratio", "limit"),
    [
        (0, 0, 800),
        (100, 0, 800),
        (-1, 0, 800),
        (150, 0, 790),
        (150, 1, 594.9750061),
        (1000, 1.5, 509.5499878),
        (1990, 0, 422),
        (2000, 1, 409.0499878),
        (5000, 1, 409.0499878),
        (math.inf, 1, 409.0499878),
        (1000, 0.5, 564.7749939),
        (1000, -1, 620.0),
    ],
)
def test_table(speed: float, ratio: float, limit: float) -> None:
    result = tables(ack()).limit(3, ThresholdType.ACCELERATION, speed, ratio)
    assert result == pytest.approx(limit, rel=1e-6)


def test_unknown_speed_is_the_smallest_entry() -> None:
    assert tables(ack()).limit(3, 1, None, 1.0) == min(ack().threshold_max_load)


@pytest.mark.parametrize(("speed", "ratio"), [(math.nan, 0.0), (0.0, math.nan)])
def test_nan_arguments(speed: float, ratio: float) -> None:
    with pytest.raises(ValueError):
        tables(ack()).limit(3, 1, speed, ratio)


@pytest.mark.parametrize(
    "broken",
    [
        {"max_cart_speed": 0},
        {"threshold_no_load": (math.nan, *(1.0,) * 19)},
        {"threshold_max_load": (*(1.0,) * 19, math.inf)},
    ],
)
def test_unusable_tables(broken: dict[str, object]) -> None:
    bad = tables(msgspec.structs.replace(ack(), **broken))
    with pytest.raises(ValueError):
        bad.limit(3, 1, 100, 0)
    assert bad.problem(3) and bad.arrived(3, 1) is not None


def test_missing_table() -> None:
    with pytest.raises(ValueError, match="missing"):
        tables(ack()).limit(3, 0, 100, 0)
    assert "missing" in tables(ack()).problem(1)


def test_a_complete_arm() -> None:
    arm = ArmLimits()
    full = tables(*(arm.ack(1, axis, kind) for axis, kind in table_keys(6)))
    assert len(full) == 18 and not full.problem(6) and full.problem(7)
    assert (full.max_cart_speed_mm_s, full.interval) == (2000, 8)
    assert full.limit(3, 0, 500) == 180.0
