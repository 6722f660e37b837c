"""Numbers with names in Stream Motion packets; every field keeps a number that is not listed as a plain int."""

from enum import IntEnum

__all__ = ["ContactStop", "DataStyle", "FsType", "GpioCommand", "GpioType", "IoClass", "ThresholdType"]


class IoClass(IntEnum):
    """Kinds of controller ports."""

    NONE = 0
    DI = 1
    DO = 2
    RI = 8
    RO = 9
    SI = 11
    SO = 12
    WI = 16
    WO = 17
    UI = 20
    UO = 21
    WSI = 26
    WSO = 27
    F = 35
    M = 36


class DataStyle(IntEnum):
    """What the axes of a Motion are. Cartesian is for six-axis robots that keep their configuration."""

    CARTESIAN = 0
    JOINT = 1


class ThresholdType(IntEnum):
    """Which limit a Request asks for."""

    VELOCITY = 0
    ACCELERATION = 1
    JERK = 2


class ContactStop(IntEnum):
    """State of the contact stop of a collaborative robot."""

    NONE = 0
    SAFE = 1
    STOP = 2
    DSBL = 3
    ESCP = 4


class FsType(IntEnum):
    """Force sensor in use."""

    UNSELECTED = 0
    EMBEDDED = 1
    EXTERNAL = 2
    UNAVAILABLE = 0xFFFFFFFF


class GpioCommand(IntEnum):
    """First number of an entry of GpioConfig."""

    NONE = 0
    IO_CMD = 1
    IO_STATE = 2
    NUM_REG_CMD = 3
    NUM_REG_STATE = 4


class GpioType(IntEnum):
    """Second number of an entry of GpioConfig."""

    DO = 0
    DI = 1
    RO = 2
    RI = 3
    AO = 4
    AI = 5
    F = 6
    FLOAT_REGISTER = 100
