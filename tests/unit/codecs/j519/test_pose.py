"""Angles: the table of the protocol page, the poles, and the way back."""

import math

import pytest

from aoabridge.codecs.j519.pose import quaternion_to_wpr, rmi_to_stream, stream_to_rmi, wpr_to_quaternion

TABLE = [
    ((0, 0, 0), (1, 0, 0, 0)),
    ((90, 0, 0), (0.707106781, 0.707106781, 0, 0)),
    ((0, 90, 0), (0.707106781, 0, 0.707106781, 0)),
    ((0, 0, 90), (0.707106781, 0, 0, 0.707106781)),
    ((180, 0, 0), (0, 1, 0, 0)),
    ((10, 20, 30), (0.951548525, 0.038134576, 0.189307857, 0.239298338)),
    ((-175.5, 33.25, 90), (-0.175551449, -0.684968385, -0.669083249, 0.228752282)),
    ((45, 90, -30), (0.560985527, 0.430459335, 0.560985527, -0.430459335)),
]


def same_turn(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return abs(abs(sum(a * b for a, b in zip(one, other, strict=True))) - 1) < 1e-9


@pytest.mark.parametrize(("wpr", "quaternion"), TABLE)
def test_table(wpr: tuple[float, float, float], quaternion: tuple[float, ...]) -> None:
    result = wpr_to_quaternion(*wpr)
    sign = 1 if sum(a * b for a, b in zip(result, quaternion, strict=True)) > 0 else -1
    assert result == pytest.approx([sign * value for value in quaternion], abs=1e-6)
    assert same_turn(wpr_to_quaternion(*quaternion_to_wpr(*result)), result)


def test_the_pole_puts_the_rest_into_r() -> None:
    for p, w, r in ((90.0, 45.0, -30.0), (-90.0, 45.0, -30.0), (90.0, 170.0, -170.0), (-90.0, 170.0, 170.0)):
        w_back, p_back, r_back = quaternion_to_wpr(*wpr_to_quaternion(w, p, r))
        assert (w_back, p_back) == (0.0, p)
        expected = math.remainder(r - w if p > 0 else r + w, 360.0)
        assert math.remainder(r_back - expected, 360.0) == pytest.approx(0, abs=1e-6)


def test_angles_come_back() -> None:
    for wpr in ((10.0, 20.0, 30.0), (-175.5, 33.25, 90.0), (179.0, -89.0, -179.0)):
        assert quaternion_to_wpr(*(2.5 * q for q in wpr_to_quaternion(*wpr))) == pytest.approx(wpr, abs=1e-9)


@pytest.mark.parametrize("bad", [(math.nan, 0, 0, 0), (0, 0, 0, 0), (math.inf, 0, 0, 0)])
def test_no_rotation(bad: tuple[float, float, float, float]) -> None:
    with pytest.raises(ValueError):
        quaternion_to_wpr(*bad)


def test_joint_three_of_rmi() -> None:
    stream = (1.0, 20.0, 50.0, 4.0, 5.0, 6.0)
    assert stream_to_rmi(stream) == (1.0, 20.0, 30.0, 4.0, 5.0, 6.0)
    assert rmi_to_stream(stream_to_rmi(stream)) == stream
