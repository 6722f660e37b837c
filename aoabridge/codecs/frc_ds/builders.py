"""Packets from what a sender means: versions, clock and empty tags chosen as the links want them.

Used by simulators and tests; the bridge itself sends none of these.
"""

from datetime import datetime

from aoabridge.codecs.frc_ds.date import Date
from aoabridge.codecs.frc_ds.ds_rio import DsControl, RioStatus
from aoabridge.codecs.frc_ds.enums import (
    MODES,
    DsControlByte,
    DsRequestByte,
    DsStatusByte,
    FmsControlByte,
    FmsRequestByte,
    RioStatusByte,
    RioTraceByte,
    Station,
    TournamentLevel,
)
from aoabridge.codecs.frc_ds.fms_ds import DsStatus, FmsControl, GameData2027
from aoabridge.codecs.frc_ds.tags import Tag
from aoabridge.errors import EncodeError

__all__ = [
    "FMS_LINK_VERSION",
    "MAX_GAME_DATA_BYTES",
    "ROBOT_LINK_VERSION",
    "build_ds_control",
    "build_ds_status",
    "build_fms_control",
    "build_rio_status",
]

FMS_LINK_VERSION, ROBOT_LINK_VERSION = 0, 1
MAX_GAME_DATA_BYTES = 8  # of tag 0x20; more is not cut, it is an error
MAX_SEQUENCE = 0xFFFF


def build_fms_control(
    sequence: int,
    *,
    mode: str,
    enabled: bool,
    station: int,
    moment: datetime,
    remaining_time_s: int,
    estop: bool = False,
    astop: bool = False,
    level: int = TournamentLevel.MATCH_TEST,
    match_number: int = 0,
    play_number: int = 1,
    game_data: str = "",
    month_base: int = 0,
) -> FmsControl:
    """FMS to DS. ``moment`` as its own clock reads, UTC for what the robot link proves; no tag for empty game data.

    EncodeError: game data of more than 8 bytes.
    """
    if len(game_data.encode()) > MAX_GAME_DATA_BYTES:
        raise EncodeError(f"game_data: more than {MAX_GAME_DATA_BYTES} bytes", "tags[0].game_data")
    control = {"mode": mode, "enabled": enabled, "estop": estop, "astop": astop}
    return FmsControl(
        sequence & MAX_SEQUENCE,
        FMS_LINK_VERSION,
        FmsControlByte.from_fields(control, "control"),
        FmsRequestByte(0),
        Station(station),
        level,
        match_number,
        play_number,
        Date.from_datetime(moment, month_base),
        remaining_time_s,
        (GameData2027(game_data),) if game_data else (),
    )


def build_ds_status(
    sequence: int,
    *,
    team: int,
    mode: str,
    enabled: bool,
    battery_volts: float,
    estop: bool = False,
    robot_comms: bool = True,
    tags: tuple[Tag, ...] = (),
) -> DsStatus:
    """DS to FMS; without robot neither radio nor robot answer."""
    status = {"mode": mode, "enabled": enabled, "estop": estop}
    status |= dict.fromkeys(("rio_ping", "radio_ping", "robot_comms"), robot_comms)
    flags = DsStatusByte.from_fields(status, "status")
    return DsStatus(sequence & MAX_SEQUENCE, FMS_LINK_VERSION, flags, team, battery_volts, tags)


def build_ds_control(
    sequence: int,
    *,
    mode: str,
    enabled: bool,
    station: int,
    estop: bool = False,
    fms_attached: bool = False,
    ds_connected: bool = True,
    tags: tuple[Tag, ...] = (),
) -> DsControl:
    """DS to roboRIO; ``ds_connected`` is false only until the robot has first answered."""
    control = {"mode": mode, "enabled": enabled, "estop": estop, "fms_attached": fms_attached}
    return DsControl(
        sequence & MAX_SEQUENCE,
        ROBOT_LINK_VERSION,
        DsControlByte.from_fields(control, "control"),
        DsRequestByte.from_fields({"ds_connected": ds_connected}, "request"),
        Station(station),
        tags,
    )


def build_rio_status(
    sequence: int,
    *,
    mode: str,
    enabled: bool,
    battery_volts: float,
    estop: bool = False,
    brownout: bool = False,
    request_date: bool = False,
    tags: tuple[Tag, ...] = (),
) -> RioStatus:
    """RoboRIO to DS, with the sequence number of the datagram that it answers; the user's code observes the mode."""
    status = {"mode": mode, "enabled": enabled, "estop": estop, "brownout": brownout}
    observed = mode if enabled and mode in MODES[:3] else "disabled"
    trace = {"robot_code": True, "is_roborio": True, observed: True}
    return RioStatus(
        sequence & MAX_SEQUENCE,
        ROBOT_LINK_VERSION,
        RioStatusByte.from_fields(status, "status"),
        RioTraceByte.from_fields(trace, "trace"),
        battery_volts,
        int(request_date),
        tags,
    )
