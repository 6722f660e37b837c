"""A field (FMS) that runs one match: hands stations out, sends the control datagrams, watches its driver stations.

For the bench: on a field only the official system may talk. Sans-IO; times are seconds of one monotonic clock.
Sources: Cheesy Arena 2026, the teams' FMS document.
"""

from collections import Counter, deque
from datetime import UTC, datetime
from typing import TypeAlias

import msgspec

from aoabridge.codecs import frc_ds
from aoabridge.codecs.frc_ds import FrameReader, Tag, TcpFrames
from aoabridge.codecs.frc_ds import fms_ds as wire
from aoabridge.codecs.frc_ds.builders import MAX_GAME_DATA_BYTES, build_fms_control
from aoabridge.codecs.frc_ds.enums import Station, StationFlags2027, StationStatus, TournamentLevel
from aoabridge.codecs.frc_ds.versions import VERSION_TAGS
from aoabridge.errors import DecodeError
from aoabridge.simulators.match import MatchSettings, Stops

__all__ = ["CONTROL_PORT", "LITE_PORT", "FieldSettings", "FmsSimulator"]

Address: TypeAlias = tuple[str, int]

PERIOD_S = 0.5
DS_LOST_S = 1.0
SILENT_S = 5.0  # a connection without a complete frame is closed
CONTROL_PORT, LITE_PORT = 1121, 1120
CHALLENGE_NUMBER = 1503  # any of 1000..2000
NO_STATION = 0  # what a team that is not in the match is told
MAX_NOTES = 50
UDP, TCP = "fms2ds-udp", "fms2ds-tcp"


class FieldSettings(msgspec.Struct, frozen=True):
    """``teams``: station 0..5 -> team. ``target``: where datagrams go before a driver station has connected.

    ``game_data_at_s`` in seconds of the match, None = from the start. ``month_base``: number of January on the wire.
    """

    teams: dict[int, int]
    target: Address
    match: MatchSettings = MatchSettings()
    estops: dict[int, float] = msgspec.field(default_factory=dict)
    astops: dict[int, float] = msgspec.field(default_factory=dict)
    level: int = TournamentLevel.PRACTICE
    match_number: int = 1
    play_number: int = 1
    event: str = ""
    game_data: str = ""
    game_data_at_s: float | None = None
    lite: bool = False
    month_base: int = 0
    challenge: str = ""
    versions: bool = False


class _Team(msgspec.Struct):
    """One team of the match; ``address`` of its driver station once that has connected."""

    station: int
    team: int
    address: Address
    is_2027: bool = False
    sequence: int = 0
    heard_at: float | None = None


class _Connection(msgspec.Struct):
    host: str
    reader: FrameReader
    heard_at: float
    team: int | None = None
    known: bool = False


class FmsSimulator:
    """``counters`` of what was sent and heard, ``notes`` in words; ``take_*`` give what is to be sent."""

    def __init__(self, settings: FieldSettings, now: float, *, wall_offset_s: float = 0.0) -> None:
        self.settings = settings
        self.counters: Counter[str] = Counter()
        self.notes: deque[str] = deque(maxlen=MAX_NOTES)
        self._begin = now + settings.match.pre_s / settings.match.speed
        self._wall_offset_s = wall_offset_s
        self._stops = Stops(settings.estops, settings.astops)
        self._teams = [_Team(station, team, settings.target) for station, team in sorted(settings.teams.items())]
        self._connections: dict[int, _Connection] = {}
        self._next_at = now
        self._edges = self._edge_times(now)
        self._game_data_sent = False
        self._datagrams: list[tuple[bytes, Address]] = []
        self._frames: list[tuple[int, bytes]] = []
        self._closures: list[int] = []

    def _edge_times(self, now: float) -> list[float]:
        match = self.settings.match
        clock_s = [*match.transitions_s(), *self._stops.times_s()]
        if self.settings.game_data_at_s is not None:
            clock_s.append(self.settings.game_data_at_s)
        edges = sorted(self._begin + second / match.speed for second in clock_s)
        return [edge for edge in edges if edge > now]

    # What holds now.

    def clock_s(self, now: float) -> float:
        """Second of the match, negative before it."""
        return (now - self._begin) * self.settings.match.speed

    def finished(self, now: float) -> bool:
        """True once the time after the match is over."""
        match = self.settings.match
        return self.clock_s(now) >= match.transitions_s()[-1] + match.post_s

    def period(self, now: float) -> str:
        """Name ``pre``, ``auto``, ``pause``, ``teleop`` or ``post``."""
        return self.settings.match.moment(self.clock_s(now)).period

    def lost(self, now: float) -> list[int]:
        """Teams whose driver station has gone silent or was never heard."""
        return [team.team for team in self._teams if team.heard_at is None or now - team.heard_at > DS_LOST_S]

    def _game_data(self, now: float) -> str:
        at_s = self.settings.game_data_at_s
        return self.settings.game_data if at_s is None or self.clock_s(now) >= at_s else ""

    # In.

    def on_connection(self, number: int, peer: Address | None, now: float) -> None:
        """A driver station connects, or (None) its connection has ended."""
        if peer is None:
            self._connections.pop(number, None)
        else:
            self._connections[number] = _Connection(peer[0], FrameReader("ds2fms-tcp"), now)

    def on_stream(self, number: int, data: bytes, now: float) -> None:
        """Bytes of a connection."""
        connection = self._connections.get(number)
        if connection is None:
            return
        for frame in connection.reader.feed(data):
            connection.heard_at = now
            self.counters["frames_in"] += 1
            if connection.known:
                self._note(f"{connection.team}: {frame.tag.name or 'unknown frame'}")
            elif not self._greet(number, connection, frame.tag, now):
                self._close(number)
                return

    def on_datagram(self, data: bytes, sender: Address, now: float) -> None:
        """A status datagram of a driver station."""
        try:
            packet = frc_ds.decode("ds2fms-udp", data)
        except DecodeError as error:
            self._note(f"{sender[0]}: {error}")
            return
        self.counters["datagrams_in"] += 1
        for team in self._teams:
            if team.team == packet.team:
                team.heard_at = now

    def _greet(self, number: int, connection: _Connection, tag: Tag, now: float) -> bool:
        """Answer the first frame by its generation; False if it is no hello."""
        if not isinstance(tag, wire.TeamNumber | wire.DsHello2027):
            self._note(f"{connection.host}: {tag.name or 'unknown frame'} instead of a hello")
            return False
        is_2027 = isinstance(tag, wire.DsHello2027)
        connection.team = _team_of(tag)
        connection.known = True
        place = next((team for team in self._teams if team.team == connection.team), None)
        if place is None:
            status = StationStatus.INVALID_TEAM if connection.team is None else StationStatus.WAITING
        else:
            status = StationStatus.GOOD
            place.is_2027 = is_2027
            place.address = (connection.host, tag.udp_port if isinstance(tag, wire.DsHello2027) else place.address[1])
        station = Station(NO_STATION if place is None else place.station)
        self._say(number, self._assignment(is_2027, station, status, connection.team or 0))
        self._say_more(number, now)
        self._note(f"{connection.team}: {'2027' if is_2027 else 'ni'} driver station, {status.name.lower()}")
        return True

    def _assignment(self, is_2027: bool, station: Station, status: StationStatus, team: int) -> Tag:
        if is_2027:
            return wire.StationInfo2027(station, status, StationFlags2027(int(self.settings.lite)), team)
        return wire.StationInfo(station, status)

    def _say_more(self, number: int, now: float) -> None:
        settings = self.settings
        if settings.event:
            self._say(number, wire.EventCode(settings.event))
        if settings.versions:
            self._say(number, *(tag(b"<good>2026.1") for tag in VERSION_TAGS))
        if settings.challenge:
            self._say(number, wire.ChallengeQuestion(settings.challenge, CHALLENGE_NUMBER))
        if self._game_data(now):
            self._say(number, wire.FmsGameData(self._game_data(now)))

    # Time.

    def on_tick(self, now: float) -> None:
        """Send what is due, close who is silent."""
        if now >= self._next_at or (self._edges and now >= self._edges[0]):
            self._edges = [edge for edge in self._edges if edge > now]
            self._next_at = now + PERIOD_S
            self._tell_game_data(now)
            for team in self._teams:
                self._control(team, now)
        for number, connection in list(self._connections.items()):
            if now - connection.heard_at >= SILENT_S:
                self._note(f"{connection.team or connection.host}: silent")
                self._close(number)

    def next_deadline(self, now: float) -> float:
        """When ``on_tick`` is wanted."""
        due = [self._next_at, *self._edges[:1]]
        due += [connection.heard_at + SILENT_S for connection in self._connections.values()]
        return max(now, min(due))

    def _tell_game_data(self, now: float) -> None:
        if self._game_data_sent or not self._game_data(now):
            return
        self._game_data_sent = True
        for number, connection in self._connections.items():
            if connection.known:
                self._say(number, wire.FmsGameData(self._game_data(now)))

    def _control(self, team: _Team, now: float) -> None:
        settings, clock_s = self.settings, self.clock_s(now)
        moment = settings.match.moment(clock_s)
        enabled, estop, astop = self._stops.apply(team.station, clock_s, moment)
        game_data = self._game_data(now) if team.is_2027 else ""
        packet = build_fms_control(
            team.sequence,
            mode=moment.mode,
            enabled=enabled,
            estop=estop,
            astop=astop,
            station=team.station,
            moment=datetime.fromtimestamp(now + self._wall_offset_s, UTC),
            remaining_time_s=moment.remaining_time_s,
            level=settings.level,
            match_number=settings.match_number,
            play_number=settings.play_number,
            game_data=game_data if len(game_data.encode()) <= MAX_GAME_DATA_BYTES else "",
            month_base=settings.month_base,
        )
        team.sequence = (team.sequence + 1) & 0xFFFF
        self.counters["datagrams_out"] += 1
        self._datagrams.append((frc_ds.encode(UDP, packet), team.address))

    # Out.

    def take_datagrams(self) -> list[tuple[bytes, Address]]:
        """Remove and return the datagrams to send."""
        taken, self._datagrams = self._datagrams, []
        return taken

    def take_frames(self) -> list[tuple[int, bytes]]:
        """Remove and return (connection, bytes) to write."""
        taken, self._frames = self._frames, []
        return taken

    def take_closures(self) -> list[int]:
        """Remove and return the connections to close."""
        taken, self._closures = self._closures, []
        return taken

    def _say(self, number: int, *tags: Tag) -> None:
        self.counters["frames_out"] += len(tags)
        self._frames.append((number, frc_ds.encode(TCP, TcpFrames(tags))))

    def _close(self, number: int) -> None:
        self._connections.pop(number, None)
        self._closures.append(number)

    def _note(self, text: str) -> None:
        self.notes.append(text)


def _team_of(tag: wire.TeamNumber | wire.DsHello2027) -> int | None:
    """Team of a hello, None if it is unreadable or out of range."""
    if isinstance(tag, wire.TeamNumber):
        return tag.team
    text = tag.team_text
    if isinstance(text, str) and text.isascii() and text.isdigit() and 0 < int(text) <= 0xFFFF:
        return int(text)
    return None
