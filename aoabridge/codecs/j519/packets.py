"""Every datagram of FANUC Stream Motion (option J519), both directions: one class, one table.

Big-endian on the wire (a captured session, the public dissector and FANUC's own driver agree); the classic six also
exist little-endian, for peers that follow an older document. Degrees, mm, mm/s, A, N, Nm and ms as on the wire.
Sources: the J519 document (sizes, types, field order), the public Wireshark dissector, FANUC's open driver (200 to 205,
7, 8); types 4, 5 and 6 from published clients.
"""

from typing import Annotated, ClassVar, TypeAlias

from aoabridge.codecs.j519.enums import ContactStop, DataStyle, FsType, IoClass, ThresholdType
from aoabridge.codecs.packets import Packet
from aoabridge.codecs.wire import F32, U8, U16, U32, Raw, Wire

__all__ = [
    "AXES",
    "EXT_STYLE_JOINT",
    "MAX_PLAUSIBLE_VERSION",
    "TABLE_ENTRIES",
    "Ack",
    "AnyStatus",
    "Capability",
    "CmdPosRequest",
    "CmdPosResponse",
    "CycleStatus",
    "ExtCommand",
    "ExtStart",
    "ExtStatus",
    "ExtStatusV3",
    "ExtStatusV4",
    "ForceConfig",
    "GpioConfig",
    "GpioResult",
    "J519Packet",
    "LittleEndianDatagram",
    "Motion",
    "MotionF64",
    "Request",
    "Start",
    "Status",
    "Stop",
    "VersionRequest",
    "VersionResponse",
    "Versioned",
]

MAX_PLAUSIBLE_VERSION = 0xFFFF  # versions are 1 to 4; a byte-swapped one is at least 0x01000000
EXT_STYLE_JOINT = 0xFFFF  # another style was reported to make a controller read joint angles as a pose and slew
AXES = 9  # every pose has nine places, whatever the robot has
TABLE_ENTRIES = 20  # limit tables go from 5 % to 100 % of the Cartesian speed

Pose9: TypeAlias = Annotated[tuple[float, ...], Wire("f", count=AXES, unit="mm, deg")]
Joint9: TypeAlias = Annotated[tuple[float, ...], Wire("f", count=AXES, unit="deg")]
Ampere9: TypeAlias = Annotated[tuple[float, ...], Wire("f", count=AXES, unit="A")]
Double9: TypeAlias = Annotated[tuple[float, ...], Wire("d", count=AXES, unit="deg; mm, deg")]
Table20: TypeAlias = Annotated[tuple[float, ...], Wire("f", count=TABLE_ENTRIES, unit="deg/s, deg/s2 or deg/s3")]
IoBlock: TypeAlias = Annotated[bytes, Wire("s", count=256)]
TypeWord: TypeAlias = Annotated[int, U32]


class LittleEndianDatagram(bytes):
    """``raw`` of a packet that was decoded little-endian."""

    __slots__ = ()


class J519Packet(Packet, frozen=True, gc=False):
    """Base of all Stream Motion packets; each has ``raw``, the datagram it was decoded from, empty if it was built."""

    @property
    def suspect(self) -> bool:
        """True if the version cannot be one: most likely the peer sends in the other byte order."""
        return False


class Versioned(J519Packet, frozen=True, gc=False):
    """Header of all packets but GpioResult."""

    packet_type: ClassVar[TypeWord]
    version_no: Annotated[int, U32]

    @property
    def suspect(self) -> bool:
        """True if the version cannot be one: most likely the peer sends in the other byte order."""
        return self.version_no > MAX_PLAUSIBLE_VERSION


class Start(Versioned, frozen=True, gc=False):
    """To robot: begin the flow of Status, 8 octets."""

    packet_type: ClassVar[TypeWord] = 0
    raw: Raw = b""


class Stop(Versioned, frozen=True, gc=False):
    """To robot: end the flow of Status, 8 octets."""

    packet_type: ClassVar[TypeWord] = 2
    raw: Raw = b""


class MotionHead(Versioned, frozen=True, gc=False):
    """What Motion and MotionF64 share. ``last_data`` not 0 ends the session; read I/O is shown in the next Status."""

    sequence_no: Annotated[int, U32]
    last_data: Annotated[int, U8]
    read_io_type: Annotated[IoClass | int, U8]
    read_io_index: Annotated[int, U16]
    read_io_mask: Annotated[int, U16]
    data_style: Annotated[DataStyle | int, U8]
    write_io_type: Annotated[IoClass | int, U8]
    write_io_index: Annotated[int, U16]
    write_io_mask: Annotated[int, U16]
    write_io_value: Annotated[int, U16]


class Motion(MotionHead, frozen=True, gc=False):
    """To robot: one command, 64 octets. Unused axes are 0; ``unused`` is written 0 and never judged."""

    packet_type: ClassVar[TypeWord] = 1
    unused: Annotated[int, U16]
    axes: Pose9
    raw: Raw = b""


class MotionF64(MotionHead, frozen=True, gc=False):
    """To robot: one command in binary64, 104 octets. Experimental, one source: decoded, never encoded."""

    packet_type: ClassVar[TypeWord] = 5
    unused: Annotated[tuple[int, ...], Wire("H", count=3)]
    axes: Double9
    raw: Raw = b""


class Request(Versioned, frozen=True, gc=False):
    """To robot: ask for one limit table, 16 octets. Axes count from 1."""

    packet_type: ClassVar[TypeWord] = 3
    axis_no: Annotated[int, U32]
    threshold_type: Annotated[ThresholdType | int, U32]
    raw: Raw = b""


class CmdPosRequest(Versioned, frozen=True, gc=False):
    """To robot: ask for the commanded position, 8 octets; at most every 100 ms while Status flows."""

    packet_type: ClassVar[TypeWord] = 4
    raw: Raw = b""


class VersionRequest(Versioned, frozen=True, gc=False):
    """To robot: ask for the version, 8 octets."""

    packet_type: ClassVar[TypeWord] = 6
    raw: Raw = b""


class Capability(J519Packet, frozen=True, gc=False):
    """Both directions: get (``packet_type`` 7) or set (8) what the controller can do, 28 octets."""

    packet_type: TypeWord
    version_no: Annotated[int, U32]
    id: Annotated[int, U32]
    sampling_rate: Annotated[int, Wire("I", unit="ms")]
    start_move: Annotated[int, U32]
    available_version: Annotated[int, U32]
    rob_status_use_tcp: Annotated[int, U32]
    raw: Raw = b""

    @property
    def suspect(self) -> bool:
        """True if the version cannot be one."""
        return self.version_no > MAX_PLAUSIBLE_VERSION


class ExtStart(Versioned, frozen=True, gc=False):
    """To robot: begin the flow of ExtStatus, 8 octets. Version 3 or 4."""

    packet_type: ClassVar[TypeWord] = 200
    raw: Raw = b""


class ExtCommand(Versioned, frozen=True, gc=False):
    """To robot: one command of the driver generation, 344 octets. ``data_style`` is EXT_STYLE_JOINT."""

    packet_type: ClassVar[TypeWord] = 201
    sequence_no: Annotated[int, U32]
    is_last_command: Annotated[int, U8]
    do_motn_ctrl: Annotated[int, U8]
    data_style: Annotated[int, U16]
    axes: Double9
    io_command: IoBlock
    raw: Raw = b""


class GpioConfig(Versioned, frozen=True, gc=False):
    """To robot: what the I/O blocks hold, 520 octets: 32 rows of GpioCommand, GpioType, start, length."""

    packet_type: ClassVar[TypeWord] = 203
    entries: Annotated[tuple[tuple[int, ...], ...], Wire("I", count=(32, 4))]
    raw: Raw = b""


class ForceConfig(Versioned, frozen=True, gc=False):
    """To robot: choose or reset the force sensor, 16 octets. Only from version 4."""

    packet_type: ClassVar[TypeWord] = 205
    do_reset: Annotated[int, U32]
    fs_type: Annotated[FsType | int, U32]
    raw: Raw = b""


class CycleStatus(Versioned, frozen=True, gc=False):
    """What every report of a controller cycle begins with. ``sequence_no`` is the controller's own cycle counter."""

    sequence_no: Annotated[int, U32]
    status: Annotated[int, U8]

    @property
    def ready(self) -> bool:
        """The controller waits for commands."""
        return self.status & 0x01 != 0

    @property
    def command_received(self) -> bool:
        """A command arrived."""
        return self.status & 0x02 != 0

    @property
    def sysrdy(self) -> bool:
        """The servo system is ready."""
        return self.status & 0x04 != 0

    @property
    def in_motion(self) -> bool:
        """The robot moves."""
        return self.status & 0x08 != 0

    @property
    def packet_rate(self) -> int:
        """Upper four bits: packet rate in version 3 (one source), otherwise reserved."""
        return self.status >> 4


class Status(CycleStatus, frozen=True, gc=False):
    """From robot: one cycle, 132 octets. Servo feedback; the pose is world frame to faceplate."""

    packet_type: ClassVar[TypeWord] = 0
    read_io_type: Annotated[IoClass | int, U8]
    read_io_index: Annotated[int, U16]
    read_io_mask: Annotated[int, U16]
    read_io_value: Annotated[int, U16]
    time_stamp: Annotated[int, Wire("I", unit="ms")]
    cartesian_pose: Pose9
    joint_pose: Joint9
    motor_current: Ampere9
    raw: Raw = b""


class Ack(Versioned, frozen=True, gc=False):
    """From robot: one limit table, 184 octets. Entry i holds at (i + 1) * 5 % of ``max_cart_speed``."""

    packet_type: ClassVar[TypeWord] = 3
    axis_no: Annotated[int, U32]
    threshold_type: Annotated[ThresholdType | int, U32]
    max_cart_speed: Annotated[int, Wire("I", unit="mm/s")]
    interval: Annotated[int, U32]
    threshold_no_load: Table20
    threshold_max_load: Table20
    raw: Raw = b""


class CmdPosResponse(Versioned, frozen=True, gc=False):
    """From robot: the commanded position, 84 octets."""

    packet_type: ClassVar[TypeWord] = 4
    time_stamp: Annotated[int, Wire("I", unit="ms")]
    cartesian_pose: Pose9
    joint_pose: Joint9
    raw: Raw = b""


class VersionResponse(Versioned, frozen=True, gc=False):
    """From robot: its highest version, 8 octets or more; what follows is kept in ``extra``."""

    packet_type: ClassVar[TypeWord] = 6
    extra: bytes = b""
    raw: Raw = b""


class ExtStatus(CycleStatus, frozen=True, gc=False):
    """From robot, driver generation: what both versions of one cycle share."""

    robot_status: Annotated[int, U8]
    contact_stop_status: Annotated[ContactStop | int, U8]
    unused: Annotated[int, U8]
    time_stamp: Annotated[int, Wire("I", unit="ms")]
    cartesian_pose: Pose9
    joint_pose: Joint9
    motor_current: Ampere9
    safety_scale: Annotated[float, F32]

    @property
    def in_error(self) -> bool:
        """An alarm stops the controller."""
        return self.robot_status & 0x01 != 0

    @property
    def tp_enabled(self) -> bool:
        """The teach pendant is enabled."""
        return self.robot_status & 0x02 != 0

    @property
    def e_stopped(self) -> bool:
        """An emergency stop is active."""
        return self.robot_status & 0x04 != 0


class ExtStatusV3(ExtStatus, frozen=True, gc=False):
    """From robot: one cycle, 388 octets."""

    packet_type: ClassVar[TypeWord] = 202
    io_status: IoBlock
    raw: Raw = b""


class ExtStatusV4(ExtStatus, frozen=True, gc=False):
    """From robot: one cycle with a force sensor, 416 octets."""

    packet_type: ClassVar[TypeWord] = 204
    force_x: Annotated[float, Wire("f", unit="N")]
    force_y: Annotated[float, Wire("f", unit="N")]
    force_z: Annotated[float, Wire("f", unit="N")]
    moment_x: Annotated[float, Wire("f", unit="Nm")]
    moment_y: Annotated[float, Wire("f", unit="Nm")]
    moment_z: Annotated[float, Wire("f", unit="Nm")]
    fs_type: Annotated[FsType | int, U32]
    io_status: IoBlock
    raw: Raw = b""


class GpioResult(J519Packet, frozen=True, gc=False):
    """From robot: answer to GpioConfig, 12 octets, the one packet without a version. ``result`` 0 is good."""

    packet_type: ClassVar[TypeWord] = 203
    result: Annotated[int, U32]
    ptf: Annotated[int, U32]
    raw: Raw = b""


AnyStatus: TypeAlias = Status | ExtStatusV3 | ExtStatusV4
