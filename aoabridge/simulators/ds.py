"""A driver station: NI's or that of 2027 towards the field, and the 20 ms link to a robot. For the bench. Sans-IO.

Times are seconds of one monotonic clock. Sources: captures of 2021 and 2024, Cheesy Arena 2026.
"""

import math
from collections import Counter, deque
from datetime import UTC, datetime
from typing import Literal

import msgspec

from aoabridge.codecs import frc_ds
from aoabridge.codecs.frc_ds import Date, FrameReader, Keepalive, RioStatus, Tag, TcpFrames, ds_rio
from aoabridge.codecs.frc_ds import fms_ds as wire
from aoabridge.codecs.frc_ds.builders import build_ds_control, build_ds_status
from aoabridge.codecs.frc_ds.enums import DsHelloFlags, LogStatusByte, MatchType
from aoabridge.codecs.frc_ds.joystick import Joystick
from aoabridge.codecs.frc_ds.values import Single
from aoabridge.errors import DecodeError

__all__ = ["DriverStation", "DsSettings", "RobotLink"]

FMS_PERIOD_S = 0.5
PING_S = 1.0
FMS_SILENT_S = 1.0  # then the robot is disabled
LAPTOP_EVERY = 5
ROBOT_PERIOD_S = 0.02
KEEPALIVE_S = 2.08
STICKS, SLOTS = 2, 6
BUTTONS = 10
MAX_NOTES = 50


class DsSettings(msgspec.Struct, frozen=True):
    """``udp_port``: where control datagrams of the field are taken; a driver station of 2027 tells it the field."""

    team: int = 1503
    generation: Literal["ni", "2027"] = "ni"
    udp_port: int = 1121
    battery_volts: float = 12.5
    with_robot: bool = False


class DriverStation:
    """The side towards the field. What the field commands is in ``mode``, ``enabled``, ``estop``, ``station``."""

    def __init__(self, settings: DsSettings, now: float) -> None:
        self.settings = settings
        self.counters: Counter[str] = Counter()
        self.notes: deque[str] = deque(maxlen=MAX_NOTES)
        self.mode, self.enabled, self.estop, self.station = "teleop", False, False, 0
        self.remaining_time_s = -1.0
        self.event, self.game_data = "", ""
        self.match_number, self.play_number, self.level = 0, 0, 0
        self.lost_packets = 0
        self.sent_packets = 0
        self._heard_at: float | None = None
        self._status_at = now
        self._ping_at: float | None = None
        self._sequence = 0
        self._reader = FrameReader("fms2ds-tcp")
        self._datagrams: list[bytes] = []
        self._stream: list[bytes] = []

    def fms_attached(self, now: float) -> bool:
        """True while the field's datagrams come."""
        return self._heard_at is not None and now - self._heard_at < FMS_SILENT_S

    # In.

    def on_connected(self, now: float) -> None:
        """Connected to the field: the hello is the first thing said."""
        self._reader = FrameReader("fms2ds-tcp")
        settings = self.settings
        if settings.generation == "ni":
            self._say(wire.TeamNumber(settings.team))
        else:
            self._say(wire.DsHello2027(settings.udp_port, DsHelloFlags(0), str(settings.team)))
        self._ping_at = now + PING_S

    def on_closed(self) -> None:
        """The connection has ended; whoever runs this tries again."""
        self._ping_at = None
        self._stream.clear()

    def on_stream(self, data: bytes) -> None:
        """Bytes of the field."""
        for frame in self._reader.feed(data):
            self.counters["frames_in"] += 1
            tag = frame.tag
            if isinstance(tag, wire.EventCode):
                self.event = str(tag.event_code)
            elif isinstance(tag, wire.FmsGameData):
                self.game_data = str(tag.game_data)
            elif isinstance(tag, wire.ChallengeQuestion):
                self._say(wire.ChallengeResponse(str(self.settings.team * tag.random_value % 23)))
            self.notes.append(f"field: {tag.name or 'unknown frame'}")

    def on_datagram(self, data: bytes, now: float) -> None:
        """A control datagram of the field."""
        try:
            packet = frc_ds.decode("fms2ds-udp", data)
        except DecodeError:
            self.counters["rejected"] += 1
            return
        self.counters["datagrams_in"] += 1
        self._heard_at = now
        self.mode, self.enabled, self.estop = packet.control.mode, packet.control.enabled, packet.control.estop
        self.station = int(packet.station)
        self.remaining_time_s = float(packet.remaining_time_s)
        self.match_number, self.play_number = packet.match_number, packet.play_number
        self.level = int(packet.tournament_level)

    # Time.

    def on_tick(self, now: float) -> None:
        """Send what is due; after a second of silence nothing is enabled any more."""
        if not self.fms_attached(now):
            self.enabled = False
        if now >= self._status_at:
            self._status_at = max(self._status_at + FMS_PERIOD_S, now)
            self._status()
        if self._ping_at is not None and now >= self._ping_at:
            self._ping_at = max(self._ping_at + PING_S, now)
            log = LogStatusByte.from_fields(
                {"ds_disable": not self.enabled, "robot_disable": not self.enabled}, "status"
            )
            self._say(
                wire.Ping(), wire.LogData(8, self.lost_packets & 0xFF, self.settings.battery_volts, log, 10, 40, 1.5)
            )

    def _status(self) -> None:
        settings = self.settings
        tags: tuple[Tag, ...] = (wire.CommsMetrics(self.lost_packets & 0xFFFF, self.sent_packets & 0xFFFF, 4),)
        if self._sequence % LAPTOP_EVERY == 0:
            tags += (wire.LaptopMetrics(87, 21),)
        packet = build_ds_status(
            self._sequence,
            team=settings.team,
            mode=self.mode,
            enabled=self.enabled,
            estop=self.estop,
            battery_volts=settings.battery_volts if settings.with_robot else 0.0,
            robot_comms=settings.with_robot,
            tags=tags,
        )
        self._sequence = (self._sequence + 1) & 0xFFFF
        self.counters["datagrams_out"] += 1
        self._datagrams.append(frc_ds.encode("ds2fms-udp", packet))

    def next_deadline(self, now: float) -> float:
        """When ``on_tick`` is wanted."""
        due = self._status_at if self._ping_at is None else min(self._status_at, self._ping_at)
        return max(now, due)

    # Out.

    def take_datagrams(self) -> list[bytes]:
        """Remove and return the datagrams for the field."""
        taken, self._datagrams = self._datagrams, []
        return taken

    def take_stream(self) -> list[bytes]:
        """Remove and return what is to be written to the field, one piece per write."""
        taken, self._stream = self._stream, []
        return taken

    def _say(self, *tags: Tag) -> None:
        self.counters["frames_out"] += len(tags)
        self._stream.append(frc_ds.encode("ds2fms-tcp", TcpFrames(tags)))


class RobotLink:
    """The side towards the robot: control datagrams with two moving joysticks, and what is told on connecting."""

    def __init__(self, station: DriverStation, now: float, *, wall_offset_s: float = 0.0) -> None:
        self.counters: Counter[str] = Counter()
        self._ds = station
        self._begin = self._next_at = now
        self._wall_offset_s = wall_offset_s
        self._sequence = 0
        self._answered = False
        self._wants_date = False
        self._told: tuple[Tag, ...] = ()
        self._keepalive_at: float | None = None
        self._datagrams: list[bytes] = []
        self._stream: list[bytes] = []

    def on_datagram(self, data: bytes) -> None:
        """A status datagram of the robot."""
        try:
            packet: RioStatus = frc_ds.decode("rio2ds-udp", data)
        except DecodeError:
            self.counters["rejected"] += 1
            return
        self._answered = True
        self._wants_date = packet.request_date == 1
        self.counters["datagrams_in"] += 1

    def on_connected(self, now: float) -> None:
        """Connected to the robot: keepalive, six joysticks, match and game data in one segment."""
        sticks = [
            ds_rio.JoystickDescriptor(slot, 0, 20, f"Stick {slot}", (0, 1, 4), BUTTONS, 1)
            if slot < STICKS
            else ds_rio.JoystickDescriptor(slot, 0, -1, "", (), 0, 0)
            for slot in range(SLOTS)
        ]
        self._told = self._match()
        self._say(Keepalive(), *sticks, *self._told)
        self._keepalive_at = now + KEEPALIVE_S

    def _match(self) -> tuple[Tag, Tag]:
        ds = self._ds
        match = ds_rio.MatchInfo(ds.event, _match_type(ds.level), ds.match_number, ds.play_number & 0xFF)
        return match, ds_rio.GameData(ds.game_data)

    def _say(self, *tags: Tag) -> None:
        self._stream.append(frc_ds.encode("ds2rio-tcp", TcpFrames(tags)))

    def on_closed(self) -> None:
        """The connection has ended."""
        self._keepalive_at = None

    def on_tick(self, now: float) -> None:
        """Send what is due."""
        if now >= self._next_at:
            self._next_at = max(self._next_at + ROBOT_PERIOD_S, now)
            self._control(now)
        if self._keepalive_at is not None and now >= self._keepalive_at:
            self._keepalive_at = now + KEEPALIVE_S
            self._say(Keepalive())
        if self._keepalive_at is not None and (match := self._match()) != self._told:
            self._told = match
            self._say(*match)

    def _control(self, now: float) -> None:
        ds, attached = self._ds, self._ds.fms_attached(now)
        tags: tuple[Tag, ...]
        if self._wants_date:
            moment = datetime.fromtimestamp(now + self._wall_offset_s, UTC)
            tags = (ds_rio.DateTag(Date.from_datetime(moment)), ds_rio.Timezone("UTC0"))
            self._wants_date = False
        else:
            tags = (ds_rio.Countdown(Single.of(ds.remaining_time_s if attached else -1.0)), *self._sticks(now))
        packet = build_ds_control(
            self._sequence,
            mode=ds.mode,
            enabled=ds.enabled,
            station=ds.station,
            estop=ds.estop,
            fms_attached=attached,
            ds_connected=self._answered,
            tags=tags,
        )
        self._sequence = (self._sequence + 1) & 0xFFFF
        ds.sent_packets += 1
        self.counters["datagrams_out"] += 1
        self._datagrams.append(frc_ds.encode("ds2rio-udp", packet))

    def _sticks(self, now: float) -> list[Tag]:
        turn = now - self._begin
        sticks: list[Tag] = []
        for slot in range(STICKS):
            axes = tuple(round(127 * math.sin(turn + place + slot)) for place in range(3))
            pressed = 1 << int(turn) % BUTTONS
            sticks.append(Joystick(False, axes, BUTTONS, pressed.to_bytes(2), (int(turn) % 8 * 45,)))
        return sticks + [Joystick(True)] * (SLOTS - STICKS)

    def next_deadline(self, now: float) -> float:
        """When ``on_tick`` is wanted."""
        return max(now, self._next_at)

    def take_datagrams(self) -> list[bytes]:
        """Remove and return the datagrams for the robot."""
        taken, self._datagrams = self._datagrams, []
        return taken

    def take_stream(self) -> list[bytes]:
        """Remove and return what is to be written to the robot."""
        taken, self._stream = self._stream, []
        return taken


def _match_type(level: int) -> int:
    """Match type of the robot link for a tournament level; they have the same numbers, but for the names of 0 and 3."""
    return level if level in tuple(MatchType) else MatchType.NONE
