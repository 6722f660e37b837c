"""Angles of a controller as other programs write them; nothing here is ever applied without being called by name."""

import math
from collections.abc import Sequence

__all__ = ["quaternion_to_wpr", "rmi_to_stream", "stream_to_rmi", "wpr_to_quaternion"]

_GIMBAL_COSINE = 1e-9  # below it W and R turn about the same axis and only their combination is known


def wpr_to_quaternion(w_deg: float, p_deg: float, r_deg: float) -> tuple[float, float, float, float]:
    """(qw, qx, qy, qz) of fixed-axis XYZ angles, R = Rz(R) * Ry(P) * Rx(W)."""
    half_w, half_p, half_r = (math.radians(angle) / 2 for angle in (w_deg, p_deg, r_deg))
    cw, sw = math.cos(half_w), math.sin(half_w)
    cp, sp = math.cos(half_p), math.sin(half_p)
    cr, sr = math.cos(half_r), math.sin(half_r)
    return (
        cr * cp * cw + sr * sp * sw,
        cr * cp * sw - sr * sp * cw,
        cr * sp * cw + sr * cp * sw,
        sr * cp * cw - cr * sp * sw,
    )


def quaternion_to_wpr(qw: float, qx: float, qy: float, qz: float) -> tuple[float, float, float]:
    """(W, P, R) in degrees, P in [-90, 90]; at |P| = 90 W is 0 and R carries the rest.

    Any length but 0 is taken; ValueError for a quaternion that is 0 or not finite.
    """
    length = math.sqrt(qw * qw + qx * qx + qy * qy + qz * qz)
    if not math.isfinite(length) or length == 0:
        raise ValueError(f"no rotation: ({qw}, {qx}, {qy}, {qz})")
    qw, qx, qy, qz = qw / length, qx / length, qy / length, qz / length
    sine = 2 * (qw * qy - qz * qx)
    r_y, r_x = 2 * (qw * qz + qx * qy), 1 - 2 * (qy * qy + qz * qz)
    cosine = math.hypot(r_x, r_y)
    if cosine < _GIMBAL_COSINE:
        turn = math.degrees(2 * math.atan2(qz, qw))
        return 0.0, math.copysign(90.0, sine), math.remainder(turn, 360.0)
    w = math.atan2(2 * (qw * qx + qy * qz), 1 - 2 * (qx * qx + qy * qy))
    return math.degrees(w), math.degrees(math.atan2(sine, cosine)), math.degrees(math.atan2(r_y, r_x))


def stream_to_rmi(joint_deg: Sequence[float]) -> tuple[float, ...]:
    """Joints as RMI counts them: its J3 is Stream Motion's J3 - J2 (the two interact on FANUC arms)."""
    j1, j2, j3, *rest = joint_deg
    return (j1, j2, j3 - j2, *rest)


def rmi_to_stream(joint_deg: Sequence[float]) -> tuple[float, ...]:
    """Inverse of ``stream_to_rmi``."""
    j1, j2, j3, *rest = joint_deg
    return (j1, j2, j3 + j2, *rest)
