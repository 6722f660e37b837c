"""The robot program's tables ``/FMSInfo`` and ``/DriverStation``: written on request, while nobody else does.

Sources: WPILib 2023 to 2027 (types, bits, schema of ControlWord).
"""

from typing import Any

from aoabridge.codecs.frc_ds import DsControl, FmsControl, Tag, ds_rio, fms_ds
from aoabridge.codecs.frc_ds.enums import Station
from aoabridge.sources.board import TopicBoard
from aoabridge.sources.frc.fms import station_id
from aoabridge.values import NtValue

__all__ = [
    "CONTROL_WORD_SCHEMA",
    "DRIVER_STATION",
    "FMS_INFO",
    "TABLES",
    "MatchTable",
    "control_word",
    "fms_control_data",
    "station_values",
]

CONTROL_WORD_SCHEMA = (
    "uint64 opModeHash:56;enum{unknown=0,autonomous=1,teleoperated=2,utility=3} uint64 robotMode:2;"
    "bool enabled:1;bool eStop:1;bool fmsAttached:1;bool dsAttached:1;"
)
FMS_INFO, DRIVER_STATION = "/FMSInfo", "/DriverStation"
TABLES = (FMS_INFO, DRIVER_STATION)
ENABLED, TEST, AUTONOMOUS, ESTOP = 0x04, 0x01, 0x02, 0x80
ROBOT_MODES = (2, 3, 1, 0)  # wire mode -> mode of ControlWord: teleoperated, utility, autonomous, unknown
KNOWN_TYPES = range(4)


def fms_control_data(control: int, *, fms: bool, ds: bool) -> int:
    """The integer of ``/FMSInfo/FMSControlData`` for a control byte."""
    bits = (control & ENABLED, control & AUTONOMOUS, control & TEST, control & ESTOP, fms, ds)
    return sum(1 << place for place, bit in enumerate(bits) if bit)


def control_word(control: int, *, fms: bool, ds: bool) -> int:
    """The integer of ``/DriverStation/ControlWord`` for a control byte."""
    flags = (control & ENABLED, control & ESTOP, fms, ds)
    return ROBOT_MODES[control & 0x03] << 56 | sum(1 << 58 + place for place, bit in enumerate(flags) if bit)


def station_values(station: int) -> dict[str, bool | int | None]:
    """StationNumber, IsRedAlliance (None = leave as it is) and AllianceStationID of a station byte."""
    known = Station(station).known
    return {
        "StationNumber": station % 3 + 1 if known else None,
        "IsRedAlliance": station < 3 if known else None,
        "AllianceStationID": station_id(station),
    }


class MatchTable:
    """One of the two tables, fed from one of the two links; silent unless it is ``free`` of other publishers."""

    def __init__(self, board: TopicBoard, table: str, source: str) -> None:
        self.free = False
        self.owned = False
        self._board = board
        self._table = table
        self.name = table
        self._origin = table
        self._source = source
        self._known: dict[str, tuple[str, NtValue]] = {}

    def on_owner(self, owned: bool | None) -> None:
        """Another program publishes below the table, (False) nobody does, or (None) nobody can tell."""
        self.owned, self.free = owned is True, owned is False
        if not self.free:
            self._board.forget(self._origin)
        elif self._known:
            self._flush()

    def forget(self) -> None:
        """The link fell silent: nothing is known any more."""
        self._known.clear()
        self._board.forget(self._origin)

    def on_ds_control(self, packet: DsControl) -> None:
        """A datagram of the driver station to the robot."""
        if self._source == "ds2rio":
            self._control(int(packet.control), fms=packet.control.fms_attached, ds=packet.request.ds_connected)
            self._station(packet.station)
            self._flush()

    def on_fms_control(self, packet: FmsControl, *, ds_linked: bool) -> None:
        """A datagram of the FMS; ``ds_linked``: its driver station answers."""
        if self._source != "fms2ds":
            return
        self._control(int(packet.control), fms=True, ds=ds_linked)
        self._station(packet.station)
        self._set("MatchNumber", "int", packet.match_number)
        self._set("ReplayNumber", "int", packet.play_number)
        if packet.tournament_level in KNOWN_TYPES:
            self._set("MatchType", "int", int(packet.tournament_level))
        self._flush()

    def on_game_data(self, source: str, text: str | bytes) -> None:
        """Game data from one of the links."""
        if source == self._source:
            self._set("GameSpecificMessage" if self._table == FMS_INFO else "GameData", "string", _text(text))
            self._flush()

    def on_frame(self, source: str, tag: Tag) -> None:
        """A frame from one of the links."""
        if source != self._source:
            return
        if isinstance(tag, ds_rio.GameData | fms_ds.FmsGameData):
            self.on_game_data(source, tag.game_data)
        elif isinstance(tag, fms_ds.EventCode):
            self._set("EventName", "string", _text(tag.event_code))
        elif isinstance(tag, ds_rio.MatchInfo):
            self._set("EventName", "string", _text(tag.event_name))
            self._set("MatchNumber", "int", tag.match_number)
            self._set("ReplayNumber", "int", tag.replay_number)
            if tag.match_type in KNOWN_TYPES:
                self._set("MatchType", "int", int(tag.match_type))
        else:
            return
        self._flush()

    def _control(self, control: int, *, fms: bool, ds: bool) -> None:
        if self._table == FMS_INFO:
            self._set("FMSControlData", "int", fms_control_data(control, fms=fms, ds=ds))
        else:
            word = control_word(control, fms=fms, ds=ds)
            self._set("ControlWord", "struct:ControlWord", word.to_bytes(8, "little"))
            self._set("OpMode", "string", "")

    def _station(self, station: int) -> None:
        values = station_values(station)
        for name in ("StationNumber", "IsRedAlliance"):  # dashboards combine the two when the second arrives
            value = values[name]
            if value is not None:
                self._set(name, "boolean" if name == "IsRedAlliance" else "int", value)
        if self._table == DRIVER_STATION:
            self._set("AllianceStationID", "int", station_id(station))

    def _set(self, name: str, type_string: str, value: NtValue) -> None:
        self._known[name] = (type_string, value)

    def _flush(self) -> None:
        if not self.free:
            return
        word = self._table.removeprefix("/")
        say: Any = self._board.say
        if self._table == DRIVER_STATION:
            self._board.schema("ControlWord", CONTROL_WORD_SCHEMA)
        say(self._origin, f"{self._table}/.type", "string", word, {"SmartDashboard": word})
        for name, (type_string, value) in self._known.items():
            say(self._origin, f"{self._table}/{name}", type_string, value)


def _text(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode(errors="replace")
