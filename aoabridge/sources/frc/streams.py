"""Connections of the driver station source: frames put together, teams found out, slow peers closed."""

import msgspec

from aoabridge.codecs.frc_ds import Frame, FrameReader, Tag
from aoabridge.codecs.frc_ds.fms_ds import DsHello2027, TeamNumber
from aoabridge.sources.frc.links import Link
from aoabridge.sources.frc.origins import Origins, Place

__all__ = ["FRAME_S", "Connection", "Connections"]

FRAME_S = 5.0  # a frame begun and not finished within this closes its connection
MAX_TEAM = 65_535
DS_PROTOCOL = "ds2fms-tcp"


class Connection(msgspec.Struct):
    """One connection; ``team`` of a driver station, 0 until it is known, None on every other link."""

    place: Place
    link: Link
    reader: FrameReader
    team: int | None
    partial_since: float | None = None


class Connections:
    """All connections, and which one speaks for a team."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._open: dict[Place, Connection] = {}
        self._speaker: dict[int, Place] = {}

    def open(self, place: Place, link: Link, now: float) -> Connection:
        """A connection begins."""
        team = 0 if link.protocol == DS_PROTOCOL else None
        connection = self._open[place] = Connection(place, link, FrameReader(link.protocol), team)
        link.connections.add(place)
        self._origins.connect(link.protocol, team, place, now)
        return connection

    def find(self, place: Place) -> Connection | None:
        """The connection, if it is open."""
        return self._open.get(place)

    def close(self, place: Place, now: float) -> Connection | None:
        """A connection has ended; an unfinished frame counts as truncated."""
        connection = self._open.pop(place, None)
        if connection is not None:
            connection.link.connections.discard(place)
            connection.link.count("Truncated", int(connection.reader.pending > 0))
            self._origins.disconnect(place, now)
            self._speaker = {team: speaker for team, speaker in self._speaker.items() if speaker != place}
        return connection

    def feed(self, connection: Connection, data: bytes, now: float) -> list[Frame]:
        """The frames that are complete now."""
        frames = connection.reader.feed(data)
        if not connection.reader.pending:
            connection.partial_since = None
        elif frames or connection.partial_since is None:
            connection.partial_since = now
        return frames

    def hear(self, connection: Connection, tag: Tag, now: float) -> bool:
        """Note who a driver station is; False if a newer connection speaks for its team."""
        if connection.link.protocol != DS_PROTOCOL:
            return True
        if isinstance(tag, TeamNumber | DsHello2027):
            connection.team = _team_of(tag)
            if connection.team:
                self._speaker[connection.team] = connection.place
            self._origins.connect(DS_PROTOCOL, connection.team, connection.place, now)
        return self._speaker.get(connection.team or 0, connection.place) == connection.place

    def overdue(self, now: float) -> list[Place]:
        """Connections whose frame should have ended by now."""
        return [
            place
            for place, connection in self._open.items()
            if connection.partial_since is not None and now >= connection.partial_since + FRAME_S
        ]

    def next_deadline(self) -> float:
        """When the next frame is overdue."""
        begun = [connection.partial_since for connection in self._open.values() if connection.partial_since is not None]
        return min(begun, default=float("inf")) + FRAME_S


def _team_of(tag: TeamNumber | DsHello2027) -> int:
    """The team, 0 if it is unreadable or out of range."""
    if isinstance(tag, TeamNumber):
        return tag.team
    text = tag.team_text
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or len(text) > 9:
        return 0
    return int(text) if int(text) <= MAX_TEAM else 0
