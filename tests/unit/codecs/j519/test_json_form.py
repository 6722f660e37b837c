"""Floats with their bits, and what is refused on the way back."""

from typing import Any

import pytest

from aoabridge.codecs.j519 import FROM_ROBOT, TO_ROBOT, encode, from_fields, to_fields
from aoabridge.codecs.j519.packets import ExtCommand, Motion, Start
from aoabridge.errors import EncodeError

AXES = (1.5, -0.0, *(0.0,) * 7)
MOTION = Motion(1, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0xFFFF, AXES)
FIELDS = to_fields(MOTION)


def test_twins_of_a_built_packet() -> None:
    assert FIELDS["axes"] == [1.5, 0.0, *[0.0] * 7] and FIELDS["axes_bits"][:2] == ["3fc00000", "80000000"]
    assert FIELDS["unused"] == 0xFFFF and FIELDS["packet_type"] == 1
    assert from_fields(TO_ROBOT, "motion", FIELDS) == MOTION
    ext = to_fields(ExtCommand(3, 1, 0, 1, 0xFFFF, AXES, bytes(256)))
    assert ext["axes_bits"][0] == "3ff8000000000000" and ext["io_command_hex"] == "00" * 256


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"axes": None, "axes_bits": None}, "axes"),
        ({"axes": [0.0] * 8}, "axes"),
        ({"axes": 5}, "axes"),
        ({"axes_bits": ["00000000"] * 8}, "axes_bits"),
        ({"axes": [None] * 9, "axes_bits": None}, "axes[0]"),
        ({"axes": [1.5, 0.0, *[0.0] * 7]}, "axes[1]"),  # 0.0 against the bits of -0.0
        ({"axes": ["nan", -0.0, *[0.0] * 7]}, "axes[0]"),
        ({"axes": ["NaN"] * 9, "axes_bits": None}, "axes[0]"),
        ({"axes": [True] * 9, "axes_bits": None}, "axes[0]"),
        ({"axes": [10**400] * 9, "axes_bits": None}, "axes[0]"),
        ({"axes_bits": ["3fc0000"] * 9}, "axes[0]"),
        ({"axes_bits": ["3fc0000g"] * 9}, "axes[0]"),
        ({"axes_bits": [5] * 9}, "axes[0]"),
        ({"axes": [1e39, -0.0, *[0.0] * 7]}, "axes[0]"),
        ({"sequence_no": "2"}, "sequence_no"),
        ({"sequence_no": 2.0}, "sequence_no"),
        ({"sequence_no": None}, "sequence_no"),
        ({"packet_type": 0}, "packet_type"),
        ({"sequnce_no": 2}, "sequnce_no"),
    ],
)
def test_from_fields_refuses(values: dict[str, Any], field: str) -> None:
    fields = {key: value for key, value in {**FIELDS, **values}.items() if value is not None or key == "sequence_no"}
    with pytest.raises(EncodeError) as caught:
        from_fields(TO_ROBOT, "motion", fields)
    assert caught.value.field == field


def test_missing_keys() -> None:
    for key in FIELDS:
        if not key.startswith("axes"):
            with pytest.raises(EncodeError) as caught:
                from_fields(TO_ROBOT, "motion", {k: v for k, v in FIELDS.items() if k != key})
            assert caught.value.field == key


def test_not_even_fields() -> None:
    with pytest.raises(EncodeError) as caught:
        from_fields(FROM_ROBOT, "motion", FIELDS)
    assert caught.value.field == "packet"
    with pytest.raises(EncodeError):
        from_fields(TO_ROBOT, "motion", [1])  # type: ignore[arg-type]
    with pytest.raises(EncodeError) as extra:
        from_fields(FROM_ROBOT, "version_response", {"packet_type": 6, "version_no": 1, "extra_hex": "x"})
    assert extra.value.field == "extra_hex"


def test_range_is_judged_on_encode() -> None:
    packet = from_fields(TO_ROBOT, "start", {"packet_type": 0, "version_no": 1 << 32})
    with pytest.raises(EncodeError) as caught:
        encode(packet)
    assert caught.value.field == "version_no" and isinstance(packet, Start)


def test_nan_agrees_with_any_nan_bits() -> None:
    bits = ["7f800001", "80000000", *["00000000"] * 7]
    fields = {**FIELDS, "axes": ["nan", -0.0, *[0.0] * 7], "axes_bits": bits}
    data = encode(from_fields(TO_ROBOT, "motion", fields), allow_nonfinite=True)
    assert data[28:32].hex() == "7f800001"
    del fields["axes"]
    assert encode(from_fields(TO_ROBOT, "motion", fields), allow_nonfinite=True) == data


def test_bits_may_be_upper_case_and_numbers_may_be_inexact() -> None:
    fields = {**FIELDS, "axes": [0.1, *[0.0] * 8], "axes_bits": ["3DCCCCCD", *["00000000"] * 8]}
    assert encode(from_fields(TO_ROBOT, "motion", fields))[28:32].hex() == "3dcccccd"
