"""Struct topics of the driver station source: schemas, and packets re-packed little-endian.

Control bytes keep their wire value; battery voltages become floats.
"""

from typing import Annotated

from aoabridge.codecs.frc_ds import DsControl, DsStatus, FmsControl, RioStatus
from aoabridge.codecs.frc_ds.joystick import Joystick
from aoabridge.codecs.packets import Packet, PacketCodec
from aoabridge.codecs.wire import F32, U8, U16, U32, Wire

__all__ = ["MAX_JOYSTICKS", "SCHEMAS", "ds_control", "ds_status", "fms_control", "joystick", "rio_status"]

MAX_JOYSTICKS = 6
MAX_AXES = MAX_POVS = 12  # limits of the roboRIO
MAX_BUTTONS = 32

_MODE = "enum {teleop=0, test=1, autonomous=2, invalid=3} uint8 mode:2;bool enabled:1;"
_STATION = "enum {red1=0, red2=1, red3=2, blue1=3, blue2=4, blue3=5} uint8 alliance_station"

SCHEMAS = {
    "FrcFmsControl": "uint16 sequence;uint8 comm_version;"
    + _MODE
    + "uint8 reserved:3;bool astop:1;bool estop:1;uint8 request;"
    + _STATION
    + ";enum {match_test=0, practice=1, qualification=2, playoff=3} uint8 tournament_level;"
    "uint16 match_number;uint8 play_number;uint32 date_us;uint8 second;uint8 minute;uint8 hour;uint8 day;uint8 month;"
    "uint8 year;uint16 remaining_time_s",
    "FrcDsStatus": "uint16 sequence;uint8 comm_version;"
    + _MODE
    + "bool rio_ping:1;bool radio_ping:1;bool robot_comms:1;bool bit6:1;bool estop:1;uint16 team;float battery_volts",
    "FrcDsControl": "uint16 sequence;uint8 comm_version;"
    + _MODE
    + "bool fms_attached:1;uint8 reserved:3;bool estop:1;bool pulse:1;uint8 reserved1:1;bool restart_code:1;"
    "bool reboot_rio:1;bool ds_connected:1;uint8 reserved2:3;" + _STATION,
    "FrcRioStatus": "uint16 sequence;uint8 comm_version;"
    + _MODE
    + "bool code_initializing:1;bool brownout:1;uint8 reserved:2;bool estop:1;bool user_disabled:1;"
    "bool user_teleop:1;bool user_autonomous:1;bool user_test:1;bool is_roborio:1;bool robot_code:1;"
    "uint8 reserved2:2;float battery_volts;uint8 request_date",
    "FrcJoystick": "uint8 slot;bool absent;uint8 axis_count;int8 axes[12];uint8 button_count;uint32 buttons;"
    "uint8 pov_count;int16 povs[12]",
}


class _DsStatus(Packet, frozen=True):
    sequence: Annotated[int, U16]
    comm_version: Annotated[int, U8]
    status: Annotated[int, U8]
    team: Annotated[int, U16]
    battery_volts: Annotated[float, F32]


class _RioStatus(Packet, frozen=True):
    sequence: Annotated[int, U16]
    comm_version: Annotated[int, U8]
    status: Annotated[int, U8]
    trace: Annotated[int, U8]
    battery_volts: Annotated[float, F32]
    request_date: Annotated[int, U8]


class _Joystick(Packet, frozen=True):
    slot: Annotated[int, U8]
    absent: Annotated[int, U8]
    axis_count: Annotated[int, U8]
    axes: Annotated[tuple[int, ...], Wire("b", count=MAX_AXES)]
    button_count: Annotated[int, U8]
    buttons: Annotated[int, U32]
    pov_count: Annotated[int, U8]
    povs: Annotated[tuple[int, ...], Wire("h", count=MAX_POVS)]


fms_control = PacketCodec(FmsControl, "little").encode
ds_control = PacketCodec(DsControl, "little").encode
_DS_STATUS, _RIO_STATUS = PacketCodec(_DsStatus, "little"), PacketCodec(_RioStatus, "little")
_JOYSTICK = PacketCodec(_Joystick, "little")


def ds_status(packet: DsStatus) -> bytes:
    """FrcDsStatus."""
    return _DS_STATUS.encode(
        _DsStatus(packet.sequence, packet.comm_version, packet.status, packet.team, packet.battery_volts)
    )


def rio_status(packet: RioStatus) -> bytes:
    """FrcRioStatus."""
    return _RIO_STATUS.encode(
        _RioStatus(
            packet.sequence,
            packet.comm_version,
            packet.status,
            packet.trace,
            packet.battery_volts,
            packet.request_date,
        )
    )


def joystick(slot: int, joystick: Joystick) -> bytes:
    """FrcJoystick; more axes, buttons or POVs than the roboRIO takes are cut."""
    axes, povs = joystick.axes[:MAX_AXES], joystick.povs[:MAX_POVS]
    count = min(joystick.button_count, MAX_BUTTONS)
    buttons = joystick.button_bits & (1 << count) - 1
    packed = _Joystick(
        slot,
        int(joystick.absent),
        len(axes),
        axes + (0,) * (MAX_AXES - len(axes)),
        count,
        buttons,
        len(povs),
        povs + (0,) * (MAX_POVS - len(povs)),
    )
    return _JOYSTICK.encode(packed)
