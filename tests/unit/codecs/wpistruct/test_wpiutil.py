"""The codec against WPILib's own, for every type of wpimath that packs: sizes, published texts, values both ways."""

import math
import random
import struct
from collections.abc import Iterator
from typing import Any

import pytest
import wpimath.controller
import wpimath.geometry
import wpimath.kinematics
import wpimath.system.plant
from wpiutil import wpistruct

from aoabridge.codecs.wpistruct import SchemaRegistry, StructCodec

GEOMETRY = (
    "Translation2d Translation3d Rotation2d Quaternion Rotation3d Pose2d Pose3d Transform2d Transform3d "
    "Twist2d Twist3d Ellipse2d Rectangle2d"
)
KINEMATICS = (
    "ChassisSpeeds SwerveModuleState SwerveModulePosition DifferentialDriveKinematics DifferentialDriveWheelSpeeds "
    "MecanumDriveKinematics MecanumDriveWheelSpeeds"
)
CONTROLLER = "ArmFeedforward ElevatorFeedforward DifferentialDriveWheelVoltages"
TYPES: dict[str, Any] = {
    name: getattr(module, name)
    for module, listed in (
        (wpimath.geometry, GEOMETRY),
        (wpimath.kinematics, KINEMATICS),
        (wpimath.controller, CONTROLLER),
        (wpimath.system.plant, "DCMotor"),
    )
    for name in listed.split()
}
NORMALISED = {"Quaternion", "Rotation3d", "Pose3d", "Transform3d"}  # unit quaternions: the object is not the bytes
POSITIVE = {"Ellipse2d", "Rectangle2d", "ArmFeedforward", "ElevatorFeedforward"}  # lengths and gains, checked
EDGES = [0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, 0.1, -1e-300, 2.0**53 + 2]


def registry_of(wpi_type: Any) -> SchemaRegistry:
    registry = SchemaRegistry()
    published: list[tuple[str, str]] = []
    wpistruct.forEachNested(wpi_type, lambda name, text: published.append((name, text)))
    for name, text in published:
        registry.add(name, text)
        assert registry.schema(name) == text
    return registry


def codec_of(name: str) -> StructCodec:
    return registry_of(TYPES[name]).codec(name)


def leaves(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    else:
        yield value


def payloads(name: str, size: int) -> Iterator[bytes]:
    choose = random.Random(name)
    for _ in range(50):
        numbers = [choose.choice([*EDGES, choose.uniform(-10, 10)]) for _ in range(size // 8)]
        if name in NORMALISED:
            numbers = [choose.uniform(-10, 10) for _ in numbers]
        if name in POSITIVE:
            numbers = [choose.uniform(0.1, 10) for _ in numbers]
        yield struct.pack(f"<{len(numbers)}d", *numbers)


@pytest.mark.parametrize("name", TYPES)
def test_published_texts_and_sizes(name: str) -> None:
    registry = registry_of(TYPES[name])
    assert registry.codec(name).size == wpistruct.getSize(TYPES[name])
    assert registry.schema(name) == wpistruct.getSchema(TYPES[name])
    assert registry.nested(name)[-1] == wpistruct.getTypeName(TYPES[name])
    inline = SchemaRegistry()
    inline.add_inline(registry.codec(name).inline_schema)
    for nested in registry.nested(name):
        assert inline.schema(nested) == registry.schema(nested)


@pytest.mark.parametrize("name", TYPES)
def test_values_both_ways(name: str) -> None:
    codec, wpi_type = codec_of(name), TYPES[name]
    for raw in payloads(name, codec.size):
        packed = wpistruct.pack(wpistruct.unpack(wpi_type, raw))
        if name not in NORMALISED:
            assert packed == raw
        value = codec.decode(packed)
        assert struct.pack(f"<{codec.size // 8}d", *leaves(value)) == packed
        ours = codec.encode(value)
        assert ours == packed
        if name not in NORMALISED:
            assert wpistruct.pack(wpistruct.unpack(wpi_type, ours)) == packed


@pytest.mark.parametrize("name", TYPES)
def test_arrays_both_ways(name: str) -> None:
    codec, wpi_type = codec_of(name), TYPES[name]
    raw = b"".join(payloads(name, codec.size))
    packed = wpistruct.packArray(wpistruct.unpackArray(wpi_type, raw))
    values = codec.decode_array(packed)
    assert len(values) == 50
    assert codec.encode_array(values) == packed


@pytest.mark.parametrize("number", [*EDGES, math.nan, math.inf, -math.inf])
def test_every_kind_of_double(number: float) -> None:
    codec = codec_of("Translation2d")
    packed = wpistruct.pack(wpimath.geometry.Translation2d(number, -number))
    value = codec.decode(packed)
    assert [repr(value["x"]), repr(value["y"])] == [repr(number), repr(-number)]
    assert codec.encode(value) == packed
    back = wpistruct.unpack(wpimath.geometry.Translation2d, codec.encode({"x": number, "y": -number}))
    assert [repr(back.X()), repr(back.Y())] == [repr(number), repr(-number)]


def test_accessors_agree() -> None:
    pose = wpimath.geometry.Pose2d(1.5, -2.5, wpimath.geometry.Rotation2d(0.75))
    assert codec_of("Pose2d").decode(wpistruct.pack(pose)) == {
        "translation": {"x": pose.X(), "y": pose.Y()},
        "rotation": {"value": pose.rotation().radians()},
    }
