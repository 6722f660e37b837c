"""Driver station and roboRIO: UDP 1110, 1115 and 1150, TCP 1740.

Sources: captures of 2021 and 2024 between NI driver stations and roboRIOs, FRCture, WPILib 2026.
"""

from typing import Annotated, Any, ClassVar

from aoabridge.codecs.frc_ds.datagrams import TaggedPacket, UdpProtocol
from aoabridge.codecs.frc_ds.date import Date
from aoabridge.codecs.frc_ds.enums import (
    DeviceType,
    DsControlByte,
    DsRequestByte,
    ErrorFlags,
    MatchType,
    RioStatusByte,
    RioTraceByte,
    Station,
)
from aoabridge.codecs.frc_ds.frames import TcpProtocol
from aoabridge.codecs.frc_ds.joystick import Joystick, JoystickCodec, JoystickOutput, JoystickOutputCodec
from aoabridge.codecs.frc_ds.parts import Counted, Rest, Text
from aoabridge.codecs.frc_ds.payload import PayloadCodec
from aoabridge.codecs.frc_ds.tags import Fault, Tag, TagTable
from aoabridge.codecs.frc_ds.values import SINGLE, Single, TextValue
from aoabridge.codecs.packets import Packet
from aoabridge.codecs.wire import I8, I32, RAW_AND_NAME, U8, U16, U32, Wire
from aoabridge.errors import DecodeError, EncodeError

__all__ = [
    "DS2RIO_TCP",
    "DS2RIO_UDP",
    "RIO2DS_TCP",
    "RIO2DS_UDP",
    "STARTUP_VOLTS",
    "CanMetrics",
    "Countdown",
    "CpuInfo",
    "CpuLoad",
    "DateTag",
    "DisableFaults",
    "DiskInfo",
    "DsControl",
    "ErrorMessage",
    "GameData",
    "JoystickDescriptor",
    "MatchInfo",
    "Message",
    "PdpLog",
    "RailFaults",
    "RamInfo",
    "RioStatus",
    "RobotUsageReport",
    "StandardOutput",
    "Timezone",
    "Unknown0d",
    "Unknown09",
    "VersionInfo",
]

STARTUP_VOLTS = 37.375  # 0x2560: what a roboRIO reports before it has measured
PDP_LOG_SIZE = 25
PDP_AMPS_PER_COUNT = 1 / 8
PDP_GROUPS = ((1, 9, 6), (9, 17, 6), (17, 22, 4))  # begin, end, currents of 10 bits each, most significant first


class DsControl(TaggedPacket, frozen=True):
    """DS to roboRIO, UDP 1110 (1115 while FMS-connected), 6 bytes, then tags; every 20 ms."""

    sequence: Annotated[int, U16]
    comm_version: Annotated[int, U8]
    control: Annotated[DsControlByte, U8]
    request: Annotated[DsRequestByte, U8]
    station: Annotated[Station, U8]
    tags: tuple[Tag, ...] = ()
    faults: tuple[Fault, ...] = ()


class Countdown(Tag, frozen=True):
    """Time left: integers with an FMS, fractions without, -1 = none."""

    ID, NAME = 0x07, "countdown"
    remaining_time_s: Annotated[Single, SINGLE]


class DateTag(Tag, frozen=True):
    """The driver station's clock, UTC, January = 0; sent when the robot asks."""

    ID, NAME = 0x0F, "date"
    date: Date


class Timezone(Tag, frozen=True):
    """The driver station's time zone, as ``PST8PDT``."""

    ID, NAME = 0x10, "timezone"
    timezone: Annotated[TextValue, Text()]


class RioStatus(TaggedPacket, frozen=True):
    """RoboRIO to DS, UDP 1150, 8 bytes, then tags; one reply per datagram, with its sequence number.

    ``battery_volts`` STARTUP_VOLTS is no voltage; ``request_date`` 1 asks for date and time zone.
    """

    sequence: Annotated[int, U16]
    comm_version: Annotated[int, U8]
    status: Annotated[RioStatusByte, U8]
    trace: Annotated[RioTraceByte, U8]
    battery_volts: Annotated[float, Wire("H", scale=1 / 256, unit="V")]
    request_date: Annotated[int, U8]
    tags: tuple[Tag, ...] = ()
    faults: tuple[Fault, ...] = ()


class _FreeSpace(Tag, frozen=True):
    block: Annotated[int, U32]
    free_bytes: Annotated[int, U32]


class DiskInfo(_FreeSpace, frozen=True):
    """Free bytes of the robot's disk; ``block`` was always 0."""

    ID, NAME = 0x04, "disk_info"


class RamInfo(_FreeSpace, frozen=True):
    """Free bytes of the robot's memory; ``block`` was always 0."""

    ID, NAME = 0x06, "ram_info"


class CpuLoad(Packet, frozen=True):
    """Percent of one CPU's time, by priority."""

    time_critical: Annotated[Single, SINGLE]
    above_normal: Annotated[Single, SINGLE]
    normal: Annotated[Single, SINGLE]
    low: Annotated[Single, SINGLE]


class CpuInfo(Tag, frozen=True):
    """Load of every CPU."""

    ID, NAME = 0x05, "cpu_info"
    cpus: Annotated[tuple[CpuLoad, ...], Counted("B")]


class PdpLog(Tag, frozen=True):
    """Currents of the power distribution panel, as logged; 25 bytes."""

    ID, NAME = 0x08, "pdp_log"
    data: Annotated[bytes, Rest()]

    @property
    def currents_amps(self) -> tuple[float, ...]:
        """Sixteen currents."""
        amps: list[float] = []
        for begin, end, count in PDP_GROUPS:
            bits, width = int.from_bytes(self.data[begin:end]), (end - begin) * 8
            amps += [(bits >> width - 10 * (place + 1) & 0x3FF) * PDP_AMPS_PER_COUNT for place in range(count)]
        return tuple(amps)

    @property
    def raw_hex(self) -> str:
        """The payload."""
        return self.data.hex()


class _PdpLogCodec(PayloadCodec[PdpLog]):
    """Octets as they are; the currents are derived."""

    def decode(self, data: bytes) -> PdpLog:
        if len(data) != PDP_LOG_SIZE:
            raise DecodeError(f"{len(data)} bytes instead of {PDP_LOG_SIZE}", min(len(data), PDP_LOG_SIZE))
        return super().decode(data)

    def write(self, packet: PdpLog, path: str = "") -> bytes:
        if len(packet.data) != PDP_LOG_SIZE:
            name = f"{path}raw_hex"
            raise EncodeError(f"{name}: {len(packet.data)} bytes instead of {PDP_LOG_SIZE}", name)
        return super().write(packet, path)

    def to_fields(self, packet: PdpLog) -> dict[str, Any]:
        return {"currents_amps": list(packet.currents_amps), "raw_hex": packet.raw_hex}

    def from_fields(self, fields: Any, path: str = "") -> PdpLog:
        return super().from_fields({key: value for key, value in fields.items() if key != "currents_amps"}, path)


class Unknown09(Tag, frozen=True):
    """Seen in captures, never explained."""

    ID, NAME = 0x09, "unknown_09"
    data: Annotated[bytes, Rest()]


class CanMetrics(Tag, frozen=True):
    """The robot's CAN bus; whether ``utilization`` is 0..1 or percent is undecided."""

    ID, NAME = 0x0E, "can_metrics"
    utilization: Annotated[Single, SINGLE]
    bus_off: Annotated[int, U32]
    tx_full: Annotated[int, U32]
    rx_errors: Annotated[int, U8]
    tx_errors: Annotated[int, U8]


class JoystickDescriptor(Tag, frozen=True):
    """What is plugged into one slot.

    ``joystick_type``: -1 unknown, 0..8, 11, 19 XInput, 20..24 HID. Axis types: 0 X, 1 Y, 2 Z, 3 twist, 4 throttle.
    """

    ID, NAME = 0x02, "joystick_descriptor"
    index: Annotated[int, U8]
    is_xbox: Annotated[int, U8]
    joystick_type: Annotated[int, I8]
    device_name: Annotated[TextValue, Text("B")]
    axis_types: Annotated[tuple[int, ...], Counted("B", "B")]
    button_count: Annotated[int, U8]
    pov_count: Annotated[int, U8]


class MatchInfo(Tag, frozen=True):
    """The match, as the driver station knows it."""

    ID, NAME = 0x07, "match_info"
    event_name: Annotated[TextValue, Text("B")]
    match_type: Annotated[MatchType | int, Wire("B", form=RAW_AND_NAME)]
    match_number: Annotated[int, U16]
    replay_number: Annotated[int, U8]


class GameData(Tag, frozen=True):
    """Game data, without a length."""

    ID, NAME = 0x0E, "game_data"
    game_data: Annotated[TextValue, Text()]


class Message(Tag, frozen=True):
    """A line for the console."""

    ID, NAME = 0x00, "message"
    text: Annotated[TextValue, Text()]


class RobotUsageReport(Tag, frozen=True):
    """As the driver station's usage report; two documents disagree about it."""

    ID, NAME = 0x01, "usage_report"
    team: Annotated[int, U16]
    unknown: Annotated[int, U8]
    entries: Annotated[TextValue, Text()]


class DisableFaults(Tag, frozen=True):
    """Counters of what disabled the robot."""

    ID, NAME = 0x04, "disable_faults"
    comms_faults: Annotated[int, U16]
    faults_12v: Annotated[int, U16]


class RailFaults(Tag, frozen=True):
    """Counters of faults of the supply rails."""

    ID, NAME = 0x05, "rail_faults"
    faults_6v: Annotated[int, U16]
    faults_5v: Annotated[int, U16]
    faults_3v3: Annotated[int, U16]


class VersionInfo(Tag, frozen=True):
    """Version of one device; six zero bytes end the list."""

    ID, NAME = 0x0A, "version_info"
    device_type: Annotated[DeviceType | int, Wire("B", form=RAW_AND_NAME)]
    unknown: Annotated[int, U16]
    can_id: Annotated[int, U8]
    device_name: Annotated[TextValue, Text("B")]
    version: Annotated[TextValue, Text("B")]
    derived: ClassVar[tuple[str, ...]] = ("end_of_list",)

    @property
    def end_of_list(self) -> bool:
        """True if nothing is set."""
        return not (self.device_type or self.unknown or self.can_id or self.device_name or self.version)


class ErrorMessage(Tag, frozen=True):
    """An error or warning of the robot's program; its time may be negative."""

    ID, NAME = 0x0B, "error_message"
    timestamp_s: Annotated[Single, SINGLE]
    sequence: Annotated[int, U16]
    occurrences: Annotated[int, U16]
    code: Annotated[int, I32]
    flags: Annotated[ErrorFlags, U8]
    details: Annotated[TextValue, Text("H")]
    location: Annotated[TextValue, Text("H")]
    call_stack: Annotated[TextValue, Text("H")]


class StandardOutput(Tag, frozen=True):
    """Output of the robot's program; counts with ErrorMessage."""

    ID, NAME = 0x0C, "standard_output"
    timestamp_s: Annotated[Single, SINGLE]
    sequence: Annotated[int, U16]
    text: Annotated[TextValue, Text()]


class Unknown0d(Tag, frozen=True):
    """Seen in captures as ``00 00 04 04 04``, never explained."""

    ID, NAME = 0x0D, "unknown_0d"
    data: Annotated[bytes, Rest()]


DS2RIO_UDP = UdpProtocol(
    "ds2rio-udp",
    "ds_control",
    DsControl,
    TagTable(Countdown, Joystick, DateTag, Timezone, codecs={Joystick: JoystickCodec()}),
)
RIO2DS_UDP = UdpProtocol(
    "rio2ds-udp",
    "rio_status",
    RioStatus,
    TagTable(
        JoystickOutput,
        DiskInfo,
        CpuInfo,
        RamInfo,
        PdpLog,
        Unknown09,
        CanMetrics,
        codecs={JoystickOutput: JoystickOutputCodec(), PdpLog: _PdpLogCodec(PdpLog)},
    ),
)
DS2RIO_TCP = TcpProtocol("ds2rio-tcp", TagTable(JoystickDescriptor, MatchInfo, GameData, stream=True))
RIO2DS_TCP = TcpProtocol(
    "rio2ds-tcp",
    TagTable(
        Message,
        RobotUsageReport,
        DisableFaults,
        RailFaults,
        VersionInfo,
        ErrorMessage,
        StandardOutput,
        Unknown0d,
        stream=True,
    ),
)
