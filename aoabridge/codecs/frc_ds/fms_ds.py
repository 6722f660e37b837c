"""FMS and driver station: UDP 1120, 1121 and 1160, TCP 1750.

Sources: the teams' FMS document, FRCture, Cheesy Arena 2026; FMS-side additions for the driver station of 2027.
"""

from typing import Annotated, ClassVar

from aoabridge.codecs.frc_ds.datagrams import TaggedPacket, UdpProtocol
from aoabridge.codecs.frc_ds.date import Date
from aoabridge.codecs.frc_ds.enums import (
    DsHelloFlags,
    DsStatusByte,
    FmsControlByte,
    FmsRequestByte,
    LogStatusByte,
    Station,
    StationFlags2027,
    StationStatus,
    TournamentLevel,
)
from aoabridge.codecs.frc_ds.frames import TcpProtocol
from aoabridge.codecs.frc_ds.parts import Codec, Counted, Rest, Text
from aoabridge.codecs.frc_ds.tags import Fault, Tag, TagTable
from aoabridge.codecs.frc_ds.values import TextValue
from aoabridge.codecs.frc_ds.versions import VERSION_TAGS, VersionCodec
from aoabridge.codecs.packets import Packet
from aoabridge.codecs.wire import I64, RAW_AND_NAME, U8, U16, U64, Wire

__all__ = [
    "DS2FMS_TCP",
    "DS2FMS_UDP",
    "FMS2DS_TCP",
    "FMS2DS_UDP",
    "LABVIEW_EPOCH_S",
    "ChallengeQuestion",
    "ChallengeResponse",
    "CommsMetrics",
    "DsHello2027",
    "DsStatus",
    "ErrorAndEvent",
    "EventCode",
    "EventMessage",
    "FieldRadioMetrics",
    "FmsControl",
    "FmsGameData",
    "GameData2027",
    "LaptopMetrics",
    "LogData",
    "PdInfo",
    "Ping",
    "Ping1c",
    "RadioMetrics",
    "RobotRadioMetrics",
    "StationInfo",
    "StationInfo2027",
    "TeamNumber",
    "UsageReport",
]

VOLTS = Wire("H", scale=1 / 256, unit="V")
LABVIEW_EPOCH_S = 2_082_844_800  # seconds from 1904-01-01, where LabVIEW counts from, to 1970-01-01


class FmsControl(TaggedPacket, frozen=True):
    """FMS to DS, UDP 1121 or 1120, 22 bytes, then tags; every 500 ms and at once on a change of period.

    ``remaining_time_s`` is of the current period, not of the match.
    """

    sequence: Annotated[int, U16]
    comm_version: Annotated[int, U8]
    control: Annotated[FmsControlByte, U8]
    request: Annotated[FmsRequestByte, U8]
    station: Annotated[Station, U8]
    tournament_level: Annotated[TournamentLevel | int, Wire("B", form=RAW_AND_NAME)]
    match_number: Annotated[int, U16]
    play_number: Annotated[int, U8]
    date: Date
    remaining_time_s: Annotated[int, U16]
    tags: tuple[Tag, ...] = ()
    faults: tuple[Fault, ...] = ()


class GameData2027(Tag, frozen=True):
    """Game data in the datagram, 1..8 bytes; left out when empty."""

    ID, NAME = 0x20, "game_data_2027"
    game_data: Annotated[TextValue, Text()]


class DsStatus(TaggedPacket, frozen=True):
    """DS to FMS, UDP 1160, 8 bytes, then tags; ``battery_volts`` means something only with ``robot_comms``."""

    sequence: Annotated[int, U16]
    comm_version: Annotated[int, U8]
    status: Annotated[DsStatusByte, U8]
    team: Annotated[int, U16]
    battery_volts: Annotated[float, VOLTS]
    tags: tuple[Tag, ...] = ()
    faults: tuple[Fault, ...] = ()


class RadioMetrics(Tag, frozen=True):
    """Radio figures; their units were never published."""

    signal_strength: Annotated[int, U8]
    bandwidth_utilization: Annotated[int, U16]


class FieldRadioMetrics(RadioMetrics, frozen=True):
    """The field's radio."""

    ID, NAME = 0x00, "field_radio_metrics"


class CommsMetrics(Tag, frozen=True):
    """Packets between DS and robot."""

    ID, NAME = 0x01, "comms_metrics"
    lost_packets: Annotated[int, U16]
    sent_packets: Annotated[int, U16]
    average_trip_time_ms: Annotated[int, U8]


class LaptopMetrics(Tag, frozen=True):
    """The driver station's computer; not limited to 100."""

    ID, NAME = 0x02, "laptop_metrics"
    battery_percent: Annotated[int, U8]
    cpu_percent: Annotated[int, U8]


class RobotRadioMetrics(RadioMetrics, frozen=True):
    """The robot's radio; never seen used."""

    ID, NAME = 0x03, "robot_radio_metrics"


class PdInfo(Tag, frozen=True):
    """Power distribution; normally empty."""

    ID, NAME = 0x04, "pd_info"
    data: Annotated[bytes, Rest()]


class EventCode(Tag, frozen=True):
    """Code of the event."""

    ID, NAME = 0x14, "event_code"
    event_code: Annotated[TextValue, Text("B")]


class StationInfo(Tag, frozen=True):
    """The station that the field has assigned to the team."""

    ID, NAME = 0x19, "station_info"
    station: Annotated[Station, U8]
    status: Annotated[StationStatus | int, Wire("B", form=RAW_AND_NAME)]


class ChallengeQuestion(Tag, frozen=True):
    """Question of 2018 and before; ``random_value`` is normally 1000..2000."""

    ID, NAME = 0x1A, "challenge_question"
    question: Annotated[TextValue, Text("B")]
    random_value: Annotated[int, U16]


class FmsGameData(Tag, frozen=True):
    """Game data; sent on change only, empty clears it."""

    ID, NAME = 0x1C, "game_data"
    game_data: Annotated[TextValue, Text("B")]


class StationInfo2027(Tag, frozen=True):
    """Station info for a driver station of 2027."""

    ID, NAME = 0x1F, "station_info_2027"
    station: Annotated[Station, U8]
    status: Annotated[StationStatus | int, Wire("B", form=RAW_AND_NAME)]
    flags: Annotated[StationFlags2027, U8]
    team: Annotated[int, U16]


class UsageReport(Tag, frozen=True):
    """What the robot's program uses; begins ``V1``."""

    ID, NAME = 0x15, "usage_report"
    team: Annotated[int, U16]
    unknown: Annotated[int, U8]
    entries: Annotated[TextValue, Text()]


class LogData(Tag, frozen=True):
    """What the driver station logs each second; the lost counter wraps at 256."""

    ID, NAME = 0x16, "log_data"
    trip_time_raw: Annotated[int, U8]
    lost_packets: Annotated[int, U8]
    battery_volts: Annotated[float, VOLTS]
    status: Annotated[LogStatusByte, U8]
    can_raw: Annotated[int, U8]
    signal_db_raw: Annotated[int, U8]
    bandwidth_mbps: Annotated[float, Wire("H", scale=1 / 256)]
    derived: ClassVar[tuple[str, ...]] = ("trip_time_ms",)

    @property
    def trip_time_ms(self) -> float:
        """A hint only: sources disagree whether the raw number counts half milliseconds."""
        return self.trip_time_raw / 2


class EventMessage(Packet, frozen=True):
    """One line of the driver station's event list; seconds since 1904-01-01 UTC and their fraction in 2**-64."""

    labview_s: Annotated[int, I64]
    labview_fraction: Annotated[int, U64]
    text: Annotated[TextValue, Text("I")]
    derived: ClassVar[tuple[str, ...]] = ("unix_s",)

    @property
    def unix_s(self) -> float:
        """Unix seconds, to the precision of a double."""
        return self.labview_s - LABVIEW_EPOCH_S + self.labview_fraction / 2**64

    @property
    def unix_us(self) -> int:
        """Unix microseconds, rounded down."""
        return (self.labview_s - LABVIEW_EPOCH_S) * 1_000_000 + (self.labview_fraction * 1_000_000 >> 64)


class ErrorAndEvent(Tag, frozen=True):
    """Errors and events of the driver station."""

    ID, NAME = 0x17, "error_and_event"
    messages: Annotated[tuple[EventMessage, ...], Counted("I")]


class TeamNumber(Tag, frozen=True):
    """First frame of an NI driver station."""

    ID, NAME = 0x18, "team_number"
    team: Annotated[int, U16]


class ChallengeResponse(Tag, frozen=True):
    """Answer to a ChallengeQuestion."""

    ID, NAME = 0x1B, "challenge_response"
    response: Annotated[TextValue, Text()]


class Ping1c(Tag, frozen=True):
    """Ping as one description has it; accepted only."""

    ID, NAME = 0x1C, "ping_1c"


class Ping(Tag, frozen=True):
    """Ping as real driver stations send it."""

    ID, NAME = 0x1D, "ping"


class DsHello2027(Tag, frozen=True):
    """First frame of a driver station of 2027: where the FMS must answer, and the team in ASCII digits."""

    ID, NAME = 0x1E, "ds_hello_2027"
    udp_port: Annotated[int, U16]
    flags: Annotated[DsHelloFlags, U8]
    team_text: Annotated[TextValue, Text("B")]


_VERSION_CODECS: dict[type[Tag], Codec] = {version: VersionCodec(version) for version in VERSION_TAGS}

FMS2DS_UDP = UdpProtocol("fms2ds-udp", "fms_control", FmsControl, TagTable(GameData2027))
DS2FMS_UDP = UdpProtocol(
    "ds2fms-udp",
    "ds_status",
    DsStatus,
    TagTable(FieldRadioMetrics, CommsMetrics, LaptopMetrics, RobotRadioMetrics, PdInfo),
)
FMS2DS_TCP = TcpProtocol(
    "fms2ds-tcp",
    TagTable(
        *VERSION_TAGS,
        EventCode,
        StationInfo,
        ChallengeQuestion,
        FmsGameData,
        StationInfo2027,
        codecs=_VERSION_CODECS,
        stream=True,
    ),
)
DS2FMS_TCP = TcpProtocol(
    "ds2fms-tcp",
    TagTable(
        *VERSION_TAGS,
        UsageReport,
        LogData,
        ErrorAndEvent,
        TeamNumber,
        ChallengeResponse,
        Ping1c,
        Ping,
        DsHello2027,
        codecs=_VERSION_CODECS,
        stream=True,
    ),
)
