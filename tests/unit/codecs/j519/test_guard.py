"""One test per rule of the motion guard, and that a refusal changes nothing."""

import math
from typing import Any

import msgspec
import pytest

from aoabridge.codecs.j519.guard import CartesianCaps, MotionGuard, Violation
from aoabridge.codecs.j519.limits import LimitTables, table_keys
from aoabridge.codecs.j519.packets import ExtCommand, Motion, Status
from aoabridge.codecs.j519.robot_model import ArmLimits
from aoabridge.errors import EncodeError

HOME = (10.0, 20.0, 30.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
POSE = (500.0, 0.0, 300.0, 179.0, 0.0, -90.0, 0.0, 0.0, 0.0)
SOFT = ArmLimits(acceleration=(1e9,), jerk=(1e12,))  # velocity alone decides
CAPS = CartesianCaps(linear=(1000.0, 1e9, 1e12), angular=(90.0, 1e9, 1e12))


def tables(arm: ArmLimits = ArmLimits(), axes: int = 6) -> LimitTables:  # noqa: B008 — frozen
    result = LimitTables()
    for axis, kind in table_keys(axes):
        result.add(arm.ack(1, axis, kind))
    return result


def status(number: int = 100, joints: tuple[float, ...] = HOME, **values: Any) -> Status:
    return msgspec.structs.replace(Status(1, number, 5, 0, 0, 0, 0, 0, POSE, joints, (0.0,) * 9), **values)


def motion(number: int = 100, axes: tuple[float, ...] = HOME, **values: Any) -> Motion:
    return msgspec.structs.replace(Motion(1, number, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, axes), **values)


def moved(place: int, by: float, base: tuple[float, ...] = HOME) -> tuple[float, ...]:
    return tuple(value + by if i == place else value for i, value in enumerate(base))


def guard(arm: ArmLimits = ArmLimits(), **settings: Any) -> MotionGuard:  # noqa: B008 — frozen
    result = MotionGuard(8000, 6, tables(arm), **settings)
    assert result.arm(status())
    return result


def codes(violations: list[Violation]) -> list[tuple[str, int | None]]:
    return [(violation.code, violation.axis) for violation in violations]


def test_a_good_beginning() -> None:
    g = guard()
    assert g.check(motion()) == []
    g.admit(motion())
    g.admit(motion(101))
    assert g.next_sequence_no == 102


def test_not_armed() -> None:
    g = MotionGuard(8000, 6, tables())
    assert codes(g.check(motion())) == [("not-armed", None)]
    g.arm(status())
    g.admit(motion())
    g.disarm()
    assert codes(g.check(motion(101))) == [("not-armed", None)]


@pytest.mark.parametrize(
    "make",
    [
        lambda: MotionGuard(8000, 6),
        lambda: MotionGuard(8000, 6, LimitTables(), max_step=1.0),
        lambda: MotionGuard(8000, 7, tables()),
        lambda: MotionGuard(8000, 6, tables(ArmLimits(max_cart_speed_mm_s=0))),
        lambda: MotionGuard(8000, 6, tables(ArmLimits(jerk=(math.nan,)))),
    ],
)
def test_refuses_to_arm_without_usable_limits(make: Any) -> None:
    g = make()
    assert not g.arm(status()) and g.refusal
    assert codes(g.check(motion())) == [("not-armed", None)]


def test_refuses_to_arm_on_a_bad_status() -> None:
    g = guard()
    assert not g.arm(status(joints=moved(0, math.nan)))
    assert not g.armed
    assert not g.arm(status(version_no=0x01000000))


def test_max_step_alone_is_enough() -> None:
    g = MotionGuard(8000, 6, max_step=0.5)
    assert g.arm(status())
    g.admit(motion())
    assert codes(g.check(motion(101, moved(0, 0.6)))) == [("step", 1)]
    assert g.check(motion(101, moved(0, 0.5))) == []


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nonfinite(value: float) -> None:
    assert codes(guard().check(motion(axes=(*HOME[:2], value, *HOME[3:])))) == [("nonfinite", 3)]


def test_wrong_number_of_axes() -> None:
    assert codes(guard().check(motion(axes=(0.0,) * 8))) == [("nonfinite", None)]


def test_abnormal_position() -> None:
    found = guard().check(motion(axes=(100_000.1, *HOME[1:])))
    assert ("abnormal-position", 1) in codes(found)
    assert ("abnormal-position", 1) not in codes(guard().check(motion(axes=(100_000.0, *HOME[1:]))))


def test_sequence() -> None:
    g = guard()
    assert codes(g.check(motion(101))) == [("sequence", None)]
    g.arm(status(0xFFFFFFFF))
    g.admit(motion(0xFFFFFFFF))
    assert codes(g.check(motion(0xFFFFFFFF))) == [("sequence", None)]
    g.admit(motion(0))
    g.arm(status(7))
    assert codes(g.check(motion(1))) == [("sequence", None)] and g.check(motion(7)) == []


def test_style() -> None:
    assert codes(guard().check(motion(data_style=2))) == [("style", None)]
    g = guard(cartesian=CAPS)
    g.admit(motion())
    assert ("style", None) in codes(g.check(motion(101, POSE, data_style=0)))


def test_start() -> None:
    assert codes(guard().check(motion(axes=moved(1, 0.11)))) == [("start", 2)]
    assert guard().check(motion(axes=moved(1, 0.09))) == []
    g = guard(cartesian=CAPS)
    assert g.check(motion(axes=moved(0, 0.49, POSE), data_style=0)) == []
    assert codes(g.check(motion(axes=moved(0, 0.51, POSE), data_style=0))) == [("start", 1)]
    assert codes(g.check(motion(axes=moved(3, 0.11, POSE), data_style=0))) == [("start", 4)]


def test_step() -> None:
    g = guard(SOFT, max_step=0.2)
    g.admit(motion())
    assert codes(g.check(motion(101, moved(5, -0.21)))) == [("step", 6)]


@pytest.mark.parametrize(("step", "expected"), [(0.911, []), (0.913, [("velocity", 1)])])
def test_velocity_with_margin(step: float, expected: list[tuple[str, int]]) -> None:
    g = guard(SOFT)
    g.admit(motion())
    assert codes(g.check(motion(101, moved(0, step)))) == expected


def test_velocity_depends_on_speed_when_it_is_known() -> None:
    falling = LimitTables()
    for axis, kind in table_keys(6):
        ack = SOFT.ack(1, axis, kind)
        entries = tuple(120.0 - 4 * i for i in range(20)) if kind == 0 else ack.threshold_no_load
        falling.add(msgspec.structs.replace(ack, threshold_no_load=entries, threshold_max_load=entries))
    g = MotionGuard(8000, 6, falling)
    g.arm(status())
    g.admit(motion())
    command = motion(101, moved(0, 0.9))
    assert g.check(command, tcp_speed_mm_s=100.0) == []
    for speed in (None, 2000.0, math.nan):
        assert codes(g.check(command, speed)) == [("velocity", 1)]


def test_acceleration_and_jerk() -> None:
    g = guard(ArmLimits(jerk=(1e12,)))
    g.admit(motion())
    limit_step = 0.95 * 265.0 * 0.008**2
    assert g.check(motion(101, moved(0, 0.99 * limit_step))) == []
    assert codes(g.check(motion(101, moved(0, 1.01 * limit_step)))) == [("acceleration", 1)]
    g = guard(ArmLimits(acceleration=(1e9,)))
    g.admit(motion())
    limit_step = 0.95 * 1860.0 * 0.008**3
    assert g.check(motion(101, moved(2, 0.99 * limit_step))) == []
    assert codes(g.check(motion(101, moved(2, 1.01 * limit_step)))) == [("jerk", 3)]


def test_cartesian_needs_caps() -> None:
    assert codes(guard().check(motion(axes=POSE, data_style=0))) == [("cartesian-unchecked", None)]
    g = guard(cartesian=CAPS)
    g.admit(motion(axes=POSE, data_style=0))
    assert g.check(motion(101, moved(3, 0.5, POSE), data_style=0)) == []
    turned = (*POSE[:3], -180.5, *POSE[4:])  # 179 -> -180.5 is half a degree the short way round
    assert g.check(motion(101, turned, data_style=0)) == []
    assert codes(g.check(motion(101, moved(0, 7.7, POSE), data_style=0))) == [("velocity", 1)]
    assert codes(g.check(motion(101, moved(4, 0.7, POSE), data_style=0))) == [("velocity", 5)]


def test_joints_do_not_wrap() -> None:
    g = guard()
    g.arm(status(joints=moved(5, 179.9)))
    assert ("start", 6) in codes(g.check(motion(axes=moved(5, -180.1))))


def test_unused_axis() -> None:
    assert codes(guard().check(motion(axes=moved(6, 0.001)))) == [("unused-axis", 7)]
    assert guard().check(motion(axes=moved(6, -0.0))) == []


def test_io_write() -> None:
    assert codes(guard().check(motion(write_io_type=2))) == [("io-write", None)]
    assert guard(allow_io_write=True).check(motion(write_io_type=2)) == []


def test_after_last() -> None:
    g = guard()
    g.admit(motion(last_data=7))
    assert codes(g.check(motion(101))) == [("after-last", None)]


def test_refusal_changes_nothing() -> None:
    g = guard()
    g.admit(motion())
    before = g.history
    with pytest.raises(EncodeError) as caught:
        g.admit(motion(105, moved(0, 50.0)))
    assert caught.value.codes == ("sequence", "velocity", "acceleration", "jerk")
    assert caught.value.field == "sequence_no"
    assert g.history is before
    g.admit(motion(101))


def test_the_callers_doubles_are_judged_not_binary32() -> None:
    """A step that binary32 near 90 deg cannot show at all is still followed exactly."""
    g = MotionGuard(2000, 6, tables())
    g.arm(status(joints=(90.0,) * 6 + (0.0,) * 3))
    position = 90.0
    for number in range(100, 400):
        g.admit(motion(number, (position,) * 6 + (0.0,) * 3))
        position += 1e-9


def test_driver_generation() -> None:
    def command(number: int = 100, **values: Any) -> ExtCommand:
        return msgspec.structs.replace(ExtCommand(3, number, 0, 1, 0xFFFF, HOME, bytes(256)), **values)

    g = guard()
    assert g.check(command()) == []
    assert codes(g.check(command(data_style=0))) == [("style", None)]
    assert codes(g.check(command(io_command=b"\x01" + bytes(255)))) == [("io-write", None)]
    g.admit(command(is_last_command=1))
    assert codes(g.check(command(101))) == [("after-last", None)]


@pytest.mark.parametrize(("cycle_us", "axes"), [(0, 6), (8000, 0), (8000, 10)])
def test_nonsense_settings(cycle_us: int, axes: int) -> None:
    with pytest.raises(ValueError):
        MotionGuard(cycle_us, axes)
