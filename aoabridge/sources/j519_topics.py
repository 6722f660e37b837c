"""Stream Motion packets as NetworkTables values: struct bytes, labels, velocities, and which topic holds what."""

import math
import struct
from array import array

from aoabridge.codecs.j519.enums import ContactStop, IoClass, ThresholdType
from aoabridge.codecs.j519.limits import LimitTables, table_keys
from aoabridge.codecs.j519.packets import AnyStatus, ExtStatusV4, LittleEndianDatagram, Status
from aoabridge.codecs.j519.pose import wpr_to_quaternion
from aoabridge.sources.board import TopicBoard

__all__ = ["SCHEMAS", "StatusTopics", "contact_label", "io_label", "is_finite", "pose_bytes", "struct_bytes"]

SCHEMAS = {
    "J519Status": (
        "uint32 version_no;uint32 sequence_no;uint32 time_stamp_ms;bool ready:1;bool command_received:1;bool sysrdy:1;"
        "bool in_motion:1;uint8 packet_rate:4;enum {none=0, DI=1, DO=2, RI=8, RO=9, SI=11, SO=12, WI=16, WO=17, UI=20, "
        "UO=21, WSI=26, WSO=27, F=35, M=36} uint8 read_io_type;uint16 read_io_index;uint16 read_io_mask;"
        "uint16 read_io_value;float cartesian[9];float joint_deg[9];float motor_current_a[9]"
    ),
    "J519ExtStatus": (
        "uint32 version_no;uint32 sequence_no;uint32 time_stamp_ms;bool ready:1;bool command_received:1;bool sysrdy:1;"
        "bool in_motion:1;uint8 packet_rate:4;bool in_error:1;bool tp_enabled:1;bool e_stopped:1;"
        "uint8 robot_status_reserved:5;enum {none=0, safe=1, stop=2, dsbl=3, escp=4} uint8 contact_stop;"
        "float cartesian[9];float joint_deg[9];float motor_current_a[9];float safety_scale"
    ),
    "J519Force": (
        "float force_n[3];float moment_nm[3];"
        "enum {unselected=0, embedded=1, external=2, unavailable=4294967295} uint32 fs_type"
    ),
    "Pose3d": "Translation3d translation;Rotation3d rotation",
    "Translation3d": "double x;double y;double z",
    "Rotation3d": "Quaternion q",
    "Quaternion": "double w;double x;double y;double z",
}
POSE_FRAME = "world -> faceplate"  # as measured on a CRX; not the tool centre point

_STATUS_HEAD = struct.Struct("<IIIBBHHH")
_EXT_HEAD = struct.Struct("<IIIBBB")
_POSE = struct.Struct("<7d")
_MM_PER_M = 1000.0
_MS_PER_S = 1000.0
_MAX_STEP_MS = 1000  # poses further apart say nothing about a velocity
_CLOCK_MODULUS = 1 << 32

_KIND_NAMES = {kind: kind.name.capitalize() for kind in ThresholdType}

# Octets of the datagrams whose words go into the structs as they are.
_CLASSIC_WORDS = slice(24, 132)
_EXT_WORDS = slice(20, 132)
_FORCE_WORDS = slice(132, 160)


def _little_words(raw: bytes, part: slice) -> bytes:
    """32-bit words of a datagram, bit for bit, in little-endian order: never through a float, which would lose NaNs."""
    if isinstance(raw, LittleEndianDatagram):
        return bytes(raw[part])
    words = array("I", raw[part])
    words.byteswap()
    return words.tobytes()


def struct_bytes(status: AnyStatus) -> bytes:
    """A decoded Status as ``J519Status`` or ``J519ExtStatus``; octet 12 is the status octet of the wire."""
    if isinstance(status, Status):
        head = _STATUS_HEAD.pack(
            status.version_no,
            status.sequence_no,
            status.time_stamp,
            status.status,
            status.read_io_type,
            status.read_io_index,
            status.read_io_mask,
            status.read_io_value,
        )
        return head + _little_words(status.raw, _CLASSIC_WORDS)
    head = _EXT_HEAD.pack(
        status.version_no,
        status.sequence_no,
        status.time_stamp,
        status.status,
        status.robot_status,
        status.contact_stop_status,
    )
    return head + _little_words(status.raw, _EXT_WORDS)


def io_label(io_class: int) -> str:
    """``none``, ``DI``, … or ``unknown(n)``."""
    if isinstance(io_class, IoClass):
        return "none" if io_class is IoClass.NONE else io_class.name
    return f"unknown({io_class})"


def contact_label(state: int) -> str:
    """``none``, ``safe``, … or ``unknown(n)``."""
    return state.name.lower() if isinstance(state, ContactStop) else f"unknown({state})"


def pose_bytes(cartesian: tuple[float, ...]) -> bytes | None:
    """``Pose3d`` of X Y Z mm, W P R deg; None while one of them is not finite."""
    x, y, z, w, p, r = cartesian[:6]
    if not math.isfinite(x + y + z + w + p + r):
        return None
    return _POSE.pack(x / _MM_PER_M, y / _MM_PER_M, z / _MM_PER_M, *wpr_to_quaternion(w, p, r))


def is_finite(status: AnyStatus) -> bool:
    """False if any float of the Status is NaN or infinite."""
    values = (*status.cartesian_pose, *status.joint_pose, *status.motor_current)
    return math.isfinite(sum(values))


class StatusTopics:
    """Writes one robot's Status, limits and I/O onto a board as ``origin``."""

    def __init__(self, board: TopicBoard, origin: str, *, every: bool) -> None:
        """``every``: the struct of every single Status counts, not just the newest."""
        self._board = board
        self._origin = origin
        self._say_struct = board.say_always if every else board.say
        self._last: AnyStatus | None = None
        self._velocity: list[float] | None = None

    def forget(self) -> None:
        """The arm was silent: a velocity over the pause would be no velocity."""
        self._last = None
        self._velocity = None

    def write_states(self, status: AnyStatus) -> None:
        """What leaves at once when it changes: bits, labels, I/O."""
        say = self._board.say
        say(self._origin, "Ready", "boolean", status.ready)
        say(self._origin, "CommandReceived", "boolean", status.command_received)
        say(self._origin, "SysReady", "boolean", status.sysrdy)
        say(self._origin, "InMotion", "boolean", status.in_motion)
        if isinstance(status, Status):
            say(self._origin, "ReadIO/Class", "string", io_label(status.read_io_type))
            say(self._origin, "ReadIO/Index", "int", status.read_io_index)
            say(self._origin, "ReadIO/Mask", "int", status.read_io_mask)
            say(self._origin, "ReadIO/Value", "int", status.read_io_value)
        else:
            say(self._origin, "InError", "boolean", status.in_error)
            say(self._origin, "TpEnabled", "boolean", status.tp_enabled)
            say(self._origin, "EStopped", "boolean", status.e_stopped)
            say(self._origin, "ContactStop", "string", contact_label(status.contact_stop_status))
            say(self._origin, "IO/Status", "raw", status.io_status)
        self._velocity = self._velocity_since_last(status)
        self._last = status

    def write_values(self, status: AnyStatus) -> None:
        """The numbers, all of this one Status; ``write_states`` has seen it before."""
        say = self._board.say
        self._write_structs(status)
        say(self._origin, "Joint_deg", "float[]", list(status.joint_pose))
        say(self._origin, "MotorCurrent_A", "float[]", list(status.motor_current))
        say(self._origin, "Cartesian", "float[]", list(status.cartesian_pose))
        say(self._origin, "Sequence", "int", status.sequence_no)
        say(self._origin, "Timestamp_ms", "int", status.time_stamp)
        say(self._origin, "PacketRate", "int", status.packet_rate)
        pose = pose_bytes(status.cartesian_pose)
        if pose is not None:
            for name in ("Quaternion", "Rotation3d", "Translation3d", "Pose3d"):  # innermost first
                self._board.schema(name, SCHEMAS[name])
            say(self._origin, "Pose", "struct:Pose3d", pose)
            say(self._origin, "PoseFrame", "string", POSE_FRAME)
        if self._velocity is not None:
            say(self._origin, "JointVelocity_degps", "double[]", self._velocity)

    def _write_structs(self, status: AnyStatus) -> None:
        topic, name = ("Status", "J519Status") if isinstance(status, Status) else ("ExtStatus", "J519ExtStatus")
        self._write_struct(topic, name, struct_bytes(status))
        if isinstance(status, ExtStatusV4):
            self._write_struct("Force", "J519Force", _little_words(status.raw, _FORCE_WORDS))

    def _write_struct(self, topic: str, name: str, data: bytes) -> None:
        self._board.schema(name, SCHEMAS[name])
        self._say_struct(self._origin, topic, f"struct:{name}", data)

    def _velocity_since_last(self, status: AnyStatus) -> list[float] | None:
        before = self._last
        if before is None:
            return None
        step_ms = (status.time_stamp - before.time_stamp) % _CLOCK_MODULUS
        if not 0 < step_ms <= _MAX_STEP_MS:
            return None
        pairs = zip(status.joint_pose, before.joint_pose, strict=True)
        return [(new - old) / (step_ms / _MS_PER_S) for new, old in pairs]

    def write_limits(self, tables: LimitTables, axes: int) -> None:
        """The tables that arrived in one limit phase."""
        if not len(tables):
            return
        say = self._board.say
        say(self._origin, "Limits/MaxCartSpeed_mmps", "int", tables.max_cart_speed_mm_s)
        say(self._origin, "Limits/Interval", "int", tables.interval)
        for axis, kind in table_keys(axes):
            table = tables.arrived(axis, kind)
            if table is not None:
                name = f"Limits/J{axis}/{_KIND_NAMES[kind]}"
                say(self._origin, f"{name}/NoLoad", "float[]", list(table.no_load))
                say(self._origin, f"{name}/FullLoad", "float[]", list(table.full_load))
