"""The Stream Motion document row by row: where each field stands, in both byte orders, and every number with a name.

Six classic packets, types 4 and 6 and the driver generation; the one row not taken over is the byte order.
"""

import struct
from typing import Any

import pytest

from aoabridge.codecs.j519 import dispatch
from aoabridge.codecs.j519.enums import (
    ContactStop,
    DataStyle,
    FsType,
    GpioCommand,
    GpioType,
    IoClass,
    ThresholdType,
)
from aoabridge.codecs.j519.json_form import to_fields

TO, FROM = "j519-to-robot", "j519-from-robot"
# packet -> (protocol, type, octets, {field: (offset, struct code)}); repeated codes are arrays.
PACKETS: dict[str, tuple[str, int, int, dict[str, tuple[int, str]]]] = {
    "start": (TO, 0, 8, {}),
    "stop": (TO, 2, 8, {}),
    "request": (TO, 3, 16, {"axis_no": (8, "I"), "threshold_type": (12, "I")}),
    "motion": (
        TO, 1, 64,
        {
            "sequence_no": (8, "I"), "last_data": (12, "B"), "read_io_type": (13, "B"), "read_io_index": (14, "H"),
            "read_io_mask": (16, "H"), "data_style": (18, "B"), "write_io_type": (19, "B"), "write_io_index": (20, "H"),
            "write_io_mask": (22, "H"), "write_io_value": (24, "H"), "unused": (26, "H"), "axes": (28, "9f"),
        },
    ),
    "status": (
        FROM, 0, 132,
        {
            "sequence_no": (8, "I"), "status": (12, "B"), "read_io_type": (13, "B"), "read_io_index": (14, "H"),
            "read_io_mask": (16, "H"), "read_io_value": (18, "H"), "time_stamp": (20, "I"),
            "cartesian_pose": (24, "9f"), "joint_pose": (60, "9f"), "motor_current": (96, "9f"),
        },
    ),
    "ack": (
        FROM, 3, 184,
        {
            "axis_no": (8, "I"), "threshold_type": (12, "I"), "max_cart_speed": (16, "I"), "interval": (20, "I"),
            "threshold_no_load": (24, "20f"), "threshold_max_load": (104, "20f"),
        },
    ),
    "cmd_pos_request": (TO, 4, 8, {}),
    "cmd_pos_response": (FROM, 4, 84, {"time_stamp": (8, "I"), "cartesian_pose": (12, "9f"), "joint_pose": (48, "9f")}),
    "version_request": (TO, 6, 8, {}),
    "capability": (
        TO, 7, 28,
        {
            "id": (8, "I"), "sampling_rate": (12, "I"), "start_move": (16, "I"), "available_version": (20, "I"),
            "rob_status_use_tcp": (24, "I"),
        },
    ),
    "ext_start": (TO, 200, 8, {}),
    "ext_command": (
        TO, 201, 344,
        {
            "sequence_no": (8, "I"), "is_last_command": (12, "B"), "do_motn_ctrl": (13, "B"), "data_style": (14, "H"),
            "axes": (16, "9d"),
        },
    ),
    "ext_status_v3": (
        FROM, 202, 388,
        {
            "sequence_no": (8, "I"), "status": (12, "B"), "robot_status": (13, "B"), "contact_stop_status": (14, "B"),
            "unused": (15, "B"), "time_stamp": (16, "I"), "cartesian_pose": (20, "9f"), "joint_pose": (56, "9f"),
            "motor_current": (92, "9f"), "safety_scale": (128, "f"),
        },
    ),
    "ext_status_v4": (
        FROM, 204, 416,
        {
            "joint_pose": (56, "9f"), "safety_scale": (128, "f"), "force_x": (132, "f"), "force_y": (136, "f"),
            "force_z": (140, "f"), "moment_x": (144, "f"), "moment_y": (148, "f"), "moment_z": (152, "f"),
            "fs_type": (156, "I"),
        },
    ),
    "gpio_result": (FROM, 203, 12, {"result": (4, "I"), "ptf": (8, "I")}),
    "force_config": (TO, 205, 16, {"do_reset": (8, "I"), "fs_type": (12, "I")}),
}  # fmt: skip
CLASSIC = ("start", "stop", "request", "motion", "status", "ack")
ROWS = [(name, field) for name, (_, _, _, fields) in PACKETS.items() for field in fields]


def octets_of(name: str, sign: str, **values: tuple[int, str, Any]) -> bytes:
    """A packet of zeros with its type, version 3 and these fields."""
    _, kind, size, _ = PACKETS[name]
    data = bytearray(size)
    struct.pack_into(f"{sign}I", data, 0, kind)
    if name != "gpio_result":
        struct.pack_into(f"{sign}I", data, 4, 3)
    for offset, code, value in values.values():
        struct.pack_into(sign + code, data, offset, *(value if isinstance(value, list) else [value]))
    return bytes(data)


def sample(code: str) -> Any:
    count = int(code[:-1] or 1)
    if code[-1] in "fd":
        values = [0.5 * (place + 1) for place in range(count)]
        return values if count > 1 else values[0]
    return {"B": 0xA1, "H": 0xA1B2, "I": 0xA1B2C3D4}[code]


@pytest.mark.parametrize(("name", "field"), ROWS)
def test_each_field_stands_where_the_document_says(name: str, field: str) -> None:
    protocol, _, size, fields = PACKETS[name]
    offset, code = fields[field]
    value = sample(code)
    for order, sign in (("big", ">"), ("little", "<")) if name in CLASSIC else (("big", ">"),):
        data = octets_of(name, sign, only=(offset, code, value))
        assert len(data) == size
        packet = dispatch.decode(protocol, data, byte_order=order)  # type: ignore[arg-type]
        assert dispatch.packet_name(packet) == name
        shown = to_fields(packet)
        assert shown[field] == value
        others = {key: shown[key] for key in fields if key != field}
        zeros = {key: [0.0] * int(fields[key][1][:-1] or 1) for key in others}
        assert all(others[key] in (0, zeros[key]) for key in others), others
        assert dispatch.encode(packet, byte_order=order, allow_data_style=True) == data  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PACKETS)
def test_type_and_length_make_the_packet(name: str) -> None:
    protocol, kind, size, _ = PACKETS[name]
    packet = dispatch.decode(protocol, octets_of(name, ">"))
    assert (dispatch.packet_name(packet), packet.packet_type) == (name, kind)
    assert len(dispatch.encode(packet, allow_data_style=True)) == size


def test_numbers_with_names() -> None:
    io = {
        0: "NONE", 1: "DI", 2: "DO", 8: "RI", 9: "RO", 11: "SI", 12: "SO", 16: "WI", 17: "WO", 20: "UI", 21: "UO",
        26: "WSI", 27: "WSO", 35: "F", 36: "M",
    }  # fmt: skip
    tables: dict[Any, dict[int, str]] = {
        IoClass: io,
        DataStyle: {0: "CARTESIAN", 1: "JOINT"},
        ThresholdType: {0: "VELOCITY", 1: "ACCELERATION", 2: "JERK"},
        ContactStop: {0: "NONE", 1: "SAFE", 2: "STOP", 3: "DSBL", 4: "ESCP"},
        FsType: {0: "UNSELECTED", 1: "EMBEDDED", 2: "EXTERNAL", 0xFFFFFFFF: "UNAVAILABLE"},
        GpioCommand: {0: "NONE", 1: "IO_CMD", 2: "IO_STATE", 3: "NUM_REG_CMD", 4: "NUM_REG_STATE"},
        GpioType: {0: "DO", 1: "DI", 2: "RO", 3: "RI", 4: "AO", 5: "AI", 6: "F", 100: "FLOAT_REGISTER"},
    }
    for table, rows in tables.items():
        assert {int(member): member.name for member in table} == rows


@pytest.mark.parametrize(
    ("bit", "name"), [(0x01, "ready"), (0x02, "command_received"), (0x04, "sysrdy"), (0x08, "in_motion")]
)
def test_status_bits(bit: int, name: str) -> None:
    names = ("ready", "command_received", "sysrdy", "in_motion")
    packet: Any = dispatch.decode(FROM, octets_of("status", ">", status=(12, "B", bit)))
    assert {other: getattr(packet, other) for other in names} == {other: other == name for other in names}
