"""One match as a field runs it: periods, what is left of each, emergency stops. Source: Cheesy Arena 2026."""

from typing import NamedTuple

import msgspec

__all__ = ["STATIONS", "MatchSettings", "Moment", "Stops", "parse_stop", "parse_team"]

STATIONS = ("red1", "red2", "red3", "blue1", "blue2", "blue3")


class MatchSettings(msgspec.Struct, frozen=True):
    """Lengths of the periods in seconds of the match clock, which runs ``speed`` times as fast as ours."""

    pre_s: float = 5.0
    auto_s: float = 20.0
    pause_s: float = 3.0
    teleop_s: float = 140.0
    post_s: float = 5.0
    speed: float = 1.0

    def transitions_s(self) -> tuple[float, float, float, float]:
        """The four moments of the match clock at which a period changes; 0 = the match begins."""
        auto_end = self.auto_s
        teleop_begin = auto_end + self.pause_s
        return (0.0, auto_end, teleop_begin, teleop_begin + self.teleop_s)

    def moment(self, clock_s: float) -> "Moment":
        """What holds at ``clock_s`` of the match clock; negative = before the match."""
        begin, auto_end, teleop_begin, end = self.transitions_s()
        if clock_s < begin:
            return Moment("pre", "autonomous", False, int(self.auto_s))
        if clock_s < auto_end:
            return Moment("auto", "autonomous", True, int(self.auto_s) - int(clock_s))
        if clock_s < teleop_begin:
            return Moment("pause", "teleop", False, int(self.teleop_s))
        if clock_s < end:
            return Moment("teleop", "teleop", True, max(0, int(end) - int(clock_s)))
        return Moment("post", "teleop", False, 0)


class Moment(NamedTuple):
    """Period, mode, whether robots are enabled, and whole seconds left of the period."""

    period: str
    mode: str
    enabled: bool
    remaining_time_s: int


class Stops:
    """Emergency and autonomous stops: seconds of the match clock by station."""

    def __init__(self, estops: dict[int, float], astops: dict[int, float]) -> None:
        self._estops = estops
        self._astops = astops

    def apply(self, station: int, clock_s: float, moment: Moment) -> tuple[bool, bool, bool]:
        """(enabled, estop, astop) of a station: an e-stop lasts to the end, an a-stop disables in auto only."""
        estop = clock_s >= self._estops.get(station, float("inf"))
        astop = clock_s >= self._astops.get(station, float("inf"))
        enabled = moment.enabled and not estop and not (astop and moment.mode == "autonomous")
        return enabled, estop, astop

    def times_s(self) -> list[float]:
        """When any of them is pressed."""
        return [*self._estops.values(), *self._astops.values()]


def _station(text: str) -> int:
    if text not in STATIONS:
        raise ValueError(f"unknown station {text!r}: {', '.join(STATIONS)}")
    return STATIONS.index(text)


def parse_stop(text: str) -> tuple[int, float]:
    """``red1@30`` -> (station 0..5, second of the match clock); ValueError."""
    station, mark, second = text.partition("@")
    try:
        return _station(station), float(second if mark else "nothing")
    except ValueError as error:
        raise ValueError(f"{text!r} is not STATION@SECOND: {error}") from None


def parse_team(text: str) -> tuple[int, int]:
    """``red1=1503`` -> (station 0..5, team); ValueError."""
    station, _, team = text.partition("=")
    if not (team.isascii() and team.isdigit() and 0 < int(team) <= 0xFFFF):
        raise ValueError(f"{text!r} is not STATION=TEAM")
    return _station(station), int(team)
