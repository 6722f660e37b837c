"""Struct codec against hand-written code: ratios within one process, minimum of several repeats of both sides.

``python -m benchmarks.structs`` prints the table and exits 1 if a figure is above its limit.
"""

import struct
import sys
import timeit
from collections.abc import Callable
from typing import Any

from wpimath.geometry import Pose2d as WpiPose2d
from wpimath.geometry import Rotation2d as WpiRotation2d
from wpiutil import wpistruct

from aoabridge.codecs.wpistruct import SchemaRegistry, StructCodec

Row = tuple[str, float, float | None, str]

REPEATS = 15
LOOPS = 4_000
ARRAY = 100
SCHEMAS = {
    "Translation2d": "double x;double y",
    "Rotation2d": "double value",
    "Pose2d": "Translation2d translation;Rotation2d rotation",
    "Translation3d": "double x;double y;double z",
    "Quaternion": "double w;double x;double y;double z",
    "Rotation3d": "Quaternion q",
    "Pose3d": "Translation3d translation;Rotation3d rotation",
}
POSE3D_TYPES = ("Pose3d", "Rotation3d", "Quaternion", "Translation3d")
POSE2D_VALUE = {"translation": {"x": 1.25, "y": -2.5}, "rotation": {"value": 0.75}}

_POSE2D = struct.Struct("<ddd")
_POSE3D = struct.Struct("<ddddddd")


def _pose2d_by_hand(data: bytes) -> dict[str, Any]:
    x, y, value = _POSE2D.unpack(data)
    return {"translation": {"x": x, "y": y}, "rotation": {"value": value}}


def _pose3d_by_hand(data: bytes) -> dict[str, Any]:
    x, y, z, qw, qx, qy, qz = _POSE3D.unpack(data)
    return {
        "translation": {"x": x, "y": y, "z": z},
        "rotation": {"q": {"w": qw, "x": qx, "y": qy, "z": qz}},
    }


def _pose2d_array_by_hand(data: bytes) -> list[dict[str, Any]]:
    return [
        {"translation": {"x": x, "y": y}, "rotation": {"value": value}} for x, y, value in _POSE2D.iter_unpack(data)
    ]


def _pack_by_hand(value: dict[str, Any]) -> bytes:
    translation = value["translation"]
    return _POSE2D.pack(translation["x"], translation["y"], value["rotation"]["value"])


def _seconds(*sides: tuple[Callable[..., object], object], loops: int = LOOPS) -> list[float]:
    """Return the best time of one call of each (function, argument); the sides alternate: a busy machine slows all."""
    timers = [timeit.Timer("call(argument)", globals={"call": call, "argument": argument}) for call, argument in sides]
    best = [float("inf")] * len(sides)
    for _ in range(REPEATS):
        for index, timer in enumerate(timers):
            best[index] = min(best[index], timer.timeit(loops) / loops)
    return best


def _registry() -> SchemaRegistry:
    registry = SchemaRegistry()
    for name, schema in SCHEMAS.items():
        registry.add(name, schema)
    return registry


def _add_and_compile(names: tuple[str, ...]) -> StructCodec:
    registry = SchemaRegistry()
    for name in names:
        registry.add(name, SCHEMAS[name])
    return registry.codec(names[0])


def _worst_schema() -> str:
    return ";".join([f"int64 f{index}:{1 + index % 63}" for index in range(900)])


def _add_worst(text: str) -> SchemaRegistry:
    registry = SchemaRegistry()
    registry.add("Worst", text)
    return registry


def _unpack_by_wpiutil(data: bytes) -> object:
    return wpistruct.unpack(WpiPose2d, data)


def rows() -> list[Row]:
    """Measure everything; (name, measured, limit or None, unit)."""
    registry = _registry()
    pose2d, pose3d = registry.codec("Pose2d"), registry.codec("Pose3d")
    flat2d, flat3d = _POSE2D.pack(1.25, -2.5, 0.75), _POSE3D.pack(1.0, 2.0, 3.0, 1.0, 0.0, 0.0, 0.0)
    many = flat2d * ARRAY
    assert wpistruct.pack(WpiPose2d(1.25, -2.5, WpiRotation2d(0.75))) == flat2d
    worst = _worst_schema()

    hand2d, ours2d, wpi = _seconds((_pose2d_by_hand, flat2d), (pose2d.decode, flat2d), (_unpack_by_wpiutil, flat2d))
    hand3d, ours3d = _seconds((_pose3d_by_hand, flat3d), (pose3d.decode, flat3d))
    hand_array, ours_array = _seconds((_pose2d_array_by_hand, many), (pose2d.decode_array, many), loops=LOOPS // ARRAY)
    hand_pack, ours_pack = _seconds((_pack_by_hand, POSE2D_VALUE), (pose2d.encode, POSE2D_VALUE))
    (both,) = _seconds((_add_and_compile, POSE3D_TYPES), loops=20)
    worst_add, worst_both = _seconds(
        (_add_worst, worst), (lambda text: _add_worst(text).codec("Worst"), worst), loops=1
    )
    return [
        ("decode Pose2d / by hand", ours2d / hand2d, 1.6, "x"),
        ("decode Pose2d", ours2d * 1e6, None, "us"),
        ("decode Pose2d / wpiutil.wpistruct", ours2d / wpi, 1.0, "x"),
        ("decode Pose3d / by hand", ours3d / hand3d, 1.6, "x"),
        ("decode Pose3d", ours3d * 1e6, None, "us"),
        ("decode Pose2d[100] / by hand", ours_array / hand_array, 1.6, "x"),
        ("decode Pose2d[100] per element", ours_array / ARRAY * 1e6, None, "us"),
        ("encode Pose2d / by hand", ours_pack / hand_pack, 4.5, "x"),
        ("encode Pose2d", ours_pack * 1e6, None, "us"),
        ("add and compile Pose3d", both * 1e6, 1_000.0, "us"),
        ("add 900 bit-fields", worst_add * 1e3, 20.0, "ms"),
        ("compile 900 bit-fields", (worst_both - worst_add) * 1e3, 20.0, "ms"),
    ]


def main() -> int:
    """Print the table; 1 if a figure is above its limit."""
    table = rows()
    for name, measured, limit, unit in table:
        bound = "" if limit is None else f"  limit {limit:g} {unit}"
        print(f"{name:36} {measured:9.2f} {unit:2}{bound}")
    return int(any(limit is not None and measured > limit for _, measured, limit, _ in table))


if __name__ == "__main__":
    sys.exit(main())
