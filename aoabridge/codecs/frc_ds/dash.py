"""Driver station to dashboard: TCP 1741. Source: FRCture."""

from typing import Annotated, Self

from aoabridge.codecs.frc_ds.ds_rio import DisableFaults, MatchInfo, Message, RailFaults
from aoabridge.codecs.frc_ds.enums import DashboardFlags
from aoabridge.codecs.frc_ds.frames import TcpProtocol
from aoabridge.codecs.frc_ds.tags import Tag, TagTable
from aoabridge.codecs.wire import U8, U32, WireInt
from aoabridge.errors import EncodeError

__all__ = ["DS2DASH_TCP", "DbMode", "Ip4", "RobotIp"]


class Ip4(WireInt):
    """An IPv4 address as its 32 bits; JSON and ``str`` are the dotted form."""

    __slots__ = ()

    def __str__(self) -> str:
        return ".".join(str(octet) for octet in self.to_bytes(4))

    def to_fields(self) -> str:
        """Dotted form."""
        return str(self)

    @classmethod
    def from_fields(cls, value: object, path: str) -> Self:
        """Inverse of ``to_fields``."""
        words = value.split(".") if isinstance(value, str) else []
        if len(words) != 4 or not all(word.isascii() and word.isdigit() and len(word) <= 3 for word in words):
            raise EncodeError(f"{path}: an address like 10.15.3.2 expected, got {value!r:.40}", path)
        if any(int(word) > 0xFF for word in words):
            raise EncodeError(f"{path}: {value} is no address", path)
        return cls.from_bytes(bytes(int(word) for word in words))


class RobotIp(Tag, frozen=True):
    """Address of the robot, ``0.0.0.0`` = none."""

    ID, NAME = 0x08, "robot_ip"
    ip: Annotated[Ip4, U32]


class DbMode(Tag, frozen=True):
    """Mode of the driver station's window."""

    ID, NAME = 0x09, "db_mode"
    flags: Annotated[DashboardFlags, U8]


DS2DASH_TCP = TcpProtocol(
    "ds2dash-tcp", TagTable(Message, DisableFaults, RailFaults, MatchInfo, RobotIp, DbMode, stream=True)
)
