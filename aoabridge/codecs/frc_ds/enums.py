"""Numbers, flag bytes and stations of the driver station protocols: every value stays visible, also an unknown one.

Sources: the teams' FMS document, FRCture, Cheesy Arena 2026, WPILib 2026, captures of 2021 and 2024.
"""

from enum import IntEnum
from typing import Self

from aoabridge.codecs.wire import Bit, Bits, Choice, FlagByte, WireInt, expect_int
from aoabridge.errors import EncodeError

__all__ = [
    "MODES",
    "DashboardFlags",
    "DeviceType",
    "DsControlByte",
    "DsHelloFlags",
    "DsRequestByte",
    "DsStatusByte",
    "ErrorFlags",
    "FmsControlByte",
    "FmsRequestByte",
    "LogStatusByte",
    "MatchType",
    "ModeByte",
    "RioStatusByte",
    "RioTraceByte",
    "Station",
    "StationFlags2027",
    "StationStatus",
    "TournamentLevel",
]

MODES = ("teleop", "test", "autonomous", "invalid")


class TournamentLevel(IntEnum):
    """Level in the FMS datagram."""

    MATCH_TEST = 0
    PRACTICE = 1
    QUALIFICATION = 2
    PLAYOFF = 3


class MatchType(IntEnum):
    """Match type in the match info frame; other numbers than those of TournamentLevel."""

    NONE = 0
    PRACTICE = 1
    QUALIFICATION = 2
    ELIMINATION = 3


class StationStatus(IntEnum):
    """The field's answer to a driver station: ``bad`` = wrong station, ``waiting`` = team not in this match."""

    GOOD = 0
    BAD = 1
    WAITING = 2
    INVALID_TEAM = 3


class DeviceType(IntEnum):
    """What a version frame of the robot speaks of."""

    SOFTWARE = 0
    CAN_TALON = 2
    PDP = 8
    PCM = 9
    PIGEON = 21


class Station(WireInt):
    """Alliance station 0..5 (red 1..3, blue 1..3); of any other number alliance and position are None."""

    __slots__ = ()

    @property
    def known(self) -> bool:
        """True for 0..5."""
        return 0 <= self <= 5

    @property
    def alliance(self) -> str | None:
        """Colour ``red`` or ``blue``."""
        return ("red" if self < 3 else "blue") if self.known else None

    @property
    def position(self) -> int | None:
        """Place 1..3 within the alliance."""
        return self % 3 + 1 if self.known else None

    def to_fields(self) -> dict[str, object]:
        """JSON form ``{"raw", "alliance", "position"}``."""
        return {"raw": int(self), "alliance": self.alliance, "position": self.position}

    @classmethod
    def from_fields(cls, value: object, path: str) -> Self:
        """Inverse of ``to_fields``: ``raw`` decides, what stands beside it must agree."""
        if not isinstance(value, dict):
            raise EncodeError(f"{path}: object expected, got {value!r:.40}", path)
        for name in value.keys() - {"raw", "alliance", "position"}:
            raise EncodeError(f"{path}.{name}: unknown name", f"{path}.{name}")
        if "raw" not in value:
            return cls._from_parts(value, path)
        station = cls(expect_int(value["raw"], f"{path}.raw"))
        for name, own in (("alliance", station.alliance), ("position", station.position)):
            if name in value and (value[name] != own or isinstance(value[name], bool)):
                raise EncodeError(f"{path}.{name}: contradicts raw {int(station)}", f"{path}.{name}")
        return station

    @classmethod
    def _from_parts(cls, value: dict[str, object], path: str) -> Self:
        first = {"red": 0, "blue": 3}.get(str(value.get("alliance")))
        if first is None:
            raise EncodeError(f"{path}.alliance: red or blue expected", f"{path}.alliance")
        position = expect_int(value.get("position"), f"{path}.position")
        if not 1 <= position <= 3:
            raise EncodeError(f"{path}.position: {position} is not in 1..3", f"{path}.position")
        return cls(first + position - 1)


class ModeByte(FlagByte):
    """What every control and status byte has in common."""

    __slots__ = ()
    mode = Choice(0x03, *MODES)
    enabled = Bit(0x04)
    estop = Bit(0x80)


class FmsControlByte(ModeByte):
    """FMS to DS, offset 3; 0x40 since 2024."""

    __slots__ = ()
    mode = Choice(0x03, *MODES)
    enabled = Bit(0x04)
    estop = Bit(0x80)
    astop = Bit(0x40)
    reserved = Bits(0x38)


class FmsRequestByte(FlagByte):
    """FMS to DS, offset 4: no bit is defined."""

    __slots__ = ()


class DsStatusByte(ModeByte):
    """DS to FMS, offset 3; bit 6 is an a-stop in one clone."""

    __slots__ = ()
    mode = Choice(0x03, *MODES)
    enabled = Bit(0x04)
    rio_ping = Bit(0x08)
    radio_ping = Bit(0x10)
    robot_comms = Bit(0x20)
    bit6 = Bit(0x40)
    estop = Bit(0x80)


class DsControlByte(ModeByte):
    """DS to roboRIO, offset 3."""

    __slots__ = ()
    mode = Choice(0x03, *MODES)
    enabled = Bit(0x04)
    fms_attached = Bit(0x08)
    estop = Bit(0x80)
    reserved = Bits(0x70)


class DsRequestByte(FlagByte):
    """DS to roboRIO, offset 4; bit 0 pulses for 60..160 ms every 4..5 s, its meaning is unknown."""

    __slots__ = ()
    ds_connected = Bit(0x10)
    reboot_rio = Bit(0x08)
    restart_code = Bit(0x04)
    bit0 = Bit(0x01)
    reserved = Bits(0xE2)


class RioStatusByte(ModeByte):
    """RoboRIO to DS, offset 3."""

    __slots__ = ()
    mode = Choice(0x03, *MODES)
    enabled = Bit(0x04)
    code_initializing = Bit(0x08)
    brownout = Bit(0x10)
    estop = Bit(0x80)
    reserved = Bits(0x60)


class RioTraceByte(FlagByte):
    """RoboRIO to DS, offset 4: what the user's code observes."""

    __slots__ = ()
    robot_code = Bit(0x20)
    is_roborio = Bit(0x10)
    test = Bit(0x08)
    autonomous = Bit(0x04)
    teleop = Bit(0x02)
    disabled = Bit(0x01)
    reserved = Bits(0xC0)


class StationFlags2027(FlagByte):
    """Flags of the station info for the driver station of 2027."""

    __slots__ = ()
    fms_lite = Bit(0x01)
    reserved = Bits(0xFE)


class DsHelloFlags(FlagByte):
    """Flags of the hello of a driver station of 2027; their meaning is not published."""

    __slots__ = ()


class LogStatusByte(FlagByte):
    """Status in the DS log frame."""

    __slots__ = ()
    brownout = Bit(0x80)
    watchdog = Bit(0x40)
    ds_teleop = Bit(0x20)
    ds_auto = Bit(0x10)
    ds_disable = Bit(0x08)
    robot_teleop = Bit(0x04)
    robot_auto = Bit(0x02)
    robot_disable = Bit(0x01)


class ErrorFlags(FlagByte):
    """Flags of an error message of the robot."""

    __slots__ = ()
    is_error = Bit(0x01)
    is_lv_code = Bit(0x02)
    reserved = Bits(0xFC)


class DashboardFlags(FlagByte):
    """Flags of the dashboard mode frame."""

    __slots__ = ()
    docked = Bit(0x04)
    simulated = Bit(0x01)
    reserved = Bits(0xFA)
