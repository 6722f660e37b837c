"""Who speaks: topics of an origin live as long as it was heard lately, or a connection of it is open."""

from typing import TypeAlias

import msgspec

from aoabridge.sources.board import TopicBoard, Writer

__all__ = ["Origins", "Place"]

Place: TypeAlias = tuple[str, int]
"""Endpoint key and number of a connection."""

PREFIXES = {
    "fms2ds-udp": "Fms/",
    "fms2ds-tcp": "Fms/",
    "ds2rio-udp": "Command/",
    "ds2rio-tcp": "Command/",
    "rio2ds-udp": "Robot/",
    "rio2ds-tcp": "Robot/",
    "ds2dash-tcp": "Dash/",
}
"""Where a protocol writes; those of a driver station to its FMS write below ``Ds/<team>/``."""


class _Origin(msgspec.Struct):
    protocol: str
    seen_at: float
    team: int | None
    writer: Writer
    places: set[Place] = msgspec.field(default_factory=set)


class Origins:
    """Every origin by protocol, for driver stations also by team; at most ``max_teams`` of these."""

    def __init__(self, board: TopicBoard, forget_s: float, max_teams: int) -> None:
        self._board = board
        self._forget_s = forget_s
        self._max_teams = max_teams
        self.changed = False  # another one speaks, or a connection of one began or ended: it may be due sooner
        self._origins: dict[str, _Origin] = {}

    def hear(self, protocol: str, team: int | None, now: float) -> Writer | None:
        """The hand that writes for this origin; None for one team too many."""
        origin = self._touch(protocol, team, now)
        return None if origin is None else origin.writer

    def _touch(self, protocol: str, team: int | None, now: float) -> _Origin | None:
        name = _name(protocol, team)
        origin = self._origins.get(name)
        if origin is None:
            teams = {known.team for known in self._origins.values()} - {None}
            if team is not None and team not in teams and len(teams) >= self._max_teams:
                return None
            writer = self._board.writer(name, PREFIXES[protocol] if team is None else f"Ds/{team}/")
            origin = self._origins[name] = _Origin(protocol, now, team, writer)
            self.changed = True
        origin.seen_at = now
        return origin

    def connect(self, protocol: str, team: int | None, place: Place, now: float) -> None:
        """A connection belongs to this origin from now on; of a known team it takes the place of an older one."""
        self.disconnect(place, now)
        origin = self._touch(protocol, team, now)
        if origin is not None:
            if team:
                origin.places.clear()
            origin.places.add(place)

    def disconnect(self, place: Place, now: float) -> None:
        """A connection has ended."""
        self.changed = True
        for origin in self._origins.values():
            if place in origin.places:
                origin.places.discard(place)
                origin.seen_at = now

    def forget_silent(self, now: float) -> list[str]:
        """Withdraw the topics of every origin that was silent for too long; returns their protocols."""
        silent = {name: origin for name, origin in self._origins.items() if self._due(origin) <= now}
        for name in silent:
            del self._origins[name]
            self._board.forget(name)
        return [origin.protocol for origin in silent.values()]

    def next_deadline(self) -> float:
        """When the next origin is due."""
        return min(map(self._due, self._origins.values()), default=float("inf"))

    def _due(self, origin: _Origin) -> float:
        return float("inf") if origin.places else origin.seen_at + self._forget_s


def _name(protocol: str, team: int | None) -> str:
    return protocol if team is None else f"{protocol}/{team}"
