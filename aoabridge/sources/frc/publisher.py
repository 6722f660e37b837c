"""What each packet and frame becomes: topics of its origin, and the robot program's tables if that is wanted."""

from collections.abc import Callable
from typing import Any

from aoabridge.codecs.frc_ds import DsControl, DsStatus, FmsControl, RioStatus, Tag
from aoabridge.codecs.frc_ds.fms_ds import GameData2027
from aoabridge.codecs.frc_ds.joystick import Joystick
from aoabridge.sources.base import Address
from aoabridge.sources.board import TopicBoard, Writer
from aoabridge.sources.frc import fms, robot
from aoabridge.sources.frc.structs import SCHEMAS
from aoabridge.sources.frc.tables import DRIVER_STATION, FMS_INFO, MatchTable
from aoabridge.sources.settings import FrcSettings

__all__ = ["FrcPublisher"]

LITE_PORT, CONTROL_PORT = 1120, 1121
MAX_PAIRS = 64  # pairs of sender and endpoint that are remembered for their game data


class FrcPublisher:
    """Writes decoded packets; remembers only what the next packet of the same link needs."""

    def __init__(self, board: TopicBoard, settings: FrcSettings) -> None:
        self._board = board
        self._settings = settings
        self._frames = robot.RobotFrames()
        self._packets = robot.RobotPackets(settings.rumble_order)
        self._game_data_pairs: dict[tuple[str, Address], None] = {}
        self._lite = False
        wanted = {FMS_INFO: settings.write_fms_info, DRIVER_STATION: settings.write_driver_station}
        self.tables = {
            name: MatchTable(board, name, settings.info_from) for name, is_wanted in wanted.items() if is_wanted
        }
        self._frame_writers: dict[str, Callable[[Tag, Writer], None]] = {
            "fms2ds-tcp": fms.write_fms_frame,
            "ds2fms-tcp": fms.write_ds_frame,
            "ds2rio-tcp": robot.write_command_frame,
            "rio2ds-tcp": self._frames.write,
            "ds2dash-tcp": robot.write_dash_frame,
        }

    def write_datagram(self, packet: Any, out: Writer, pair: tuple[str, Address], *, ds_linked: bool) -> None:
        """One datagram; ``pair``: endpoint key and sender. ``ds_linked``: a driver station answers its FMS."""
        if isinstance(packet, FmsControl):
            self._schema("FrcFmsControl")
            fms.write_fms_control(packet, out, self._settings.month_base)
            self._lite_by_port(pair[0], out)
            self._game_data(packet, out, pair)
            for table in self.tables.values():
                table.on_fms_control(packet, ds_linked=ds_linked)
        elif isinstance(packet, DsStatus):
            self._schema("FrcDsStatus")
            fms.write_ds_status(packet, out)
        elif isinstance(packet, DsControl):
            self._schema("FrcDsControl")
            if any(isinstance(tag, Joystick) for tag in packet.tags):
                self._schema("FrcJoystick")
            self._packets.write_command(packet, out)
            for table in self.tables.values():
                table.on_ds_control(packet)
        elif isinstance(packet, RioStatus):
            self._schema("FrcRioStatus")
            self._packets.write_status(packet, out)

    def write_frame(self, protocol: str, tag: Tag, out: Writer) -> None:
        """One frame."""
        self._frame_writers[protocol](tag, out)
        for table in self.tables.values():
            table.on_frame(protocol.removesuffix("-tcp"), tag)

    def forget(self, protocol: str) -> None:
        """The topics of a protocol are gone."""
        if protocol == "rio2ds-tcp":
            self._frames.forget()
        if protocol == "ds2rio-udp":
            self._packets.forget_command()
        if protocol == "rio2ds-udp":
            self._packets.forget_robot()
        if protocol == "fms2ds-udp":
            self._lite = False
            self._game_data_pairs.clear()
        if protocol == f"{self._settings.info_from}-udp":
            for table in self.tables.values():
                table.forget()

    def _schema(self, name: str) -> None:
        self._board.schema(name, SCHEMAS[name])

    def _lite_by_port(self, key: str, out: Writer) -> None:
        """An FMS Lite sends to a port of its own; a full one that follows it takes the word back."""
        port = int(key.rpartition(":")[2])
        if port == LITE_PORT or (port == CONTROL_PORT and self._lite):
            self._lite = port == LITE_PORT
            out.flag("Lite", self._lite)

    def _game_data(self, packet: FmsControl, out: Writer, pair: tuple[str, Address]) -> None:
        """Tag 0x20; once seen on a link its absence means an empty text."""
        texts = [tag.game_data for tag in packet.tags if isinstance(tag, GameData2027)]
        if not texts and (pair not in self._game_data_pairs or packet.faults):
            return
        if len(self._game_data_pairs) >= MAX_PAIRS and pair not in self._game_data_pairs:
            self._game_data_pairs.pop(next(iter(self._game_data_pairs)))
        self._game_data_pairs[pair] = None
        text = texts[-1] if texts else ""
        out.text("GameData", text)
        for table in self.tables.values():
            table.on_game_data("fms2ds", text)
