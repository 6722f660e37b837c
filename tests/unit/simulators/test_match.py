"""The match clock: periods, what is left of them, stops."""

import pytest

from aoabridge.simulators.match import MatchSettings, Stops, parse_stop, parse_team

MATCH = MatchSettings(pre_s=5, auto_s=20, pause_s=3, teleop_s=140, post_s=5)


@pytest.mark.parametrize(
    ("clock_s", "expected"),
    [
        (-5.0, ("pre", "autonomous", False, 20)),
        (0.0, ("auto", "autonomous", True, 20)),
        (0.99, ("auto", "autonomous", True, 20)),
        (19.5, ("auto", "autonomous", True, 1)),
        (20.0, ("pause", "teleop", False, 140)),
        (23.0, ("teleop", "teleop", True, 140)),
        (23.99, ("teleop", "teleop", True, 140)),
        (24.0, ("teleop", "teleop", True, 139)),
        (162.9, ("teleop", "teleop", True, 1)),
        (163.0, ("post", "teleop", False, 0)),
    ],
)
def test_periods(clock_s: float, expected: tuple[str, str, bool, int]) -> None:
    assert tuple(MATCH.moment(clock_s)) == expected


def test_an_estop_lasts_to_the_end_and_an_astop_disables_in_auto_only() -> None:
    stops = Stops({0: 30.0}, {3: 10.0})
    assert stops.apply(0, 29.0, MATCH.moment(29.0)) == (True, False, False)
    assert stops.apply(0, 31.0, MATCH.moment(31.0)) == (False, True, False)
    assert stops.apply(0, 200.0, MATCH.moment(200.0)) == (False, True, False)
    assert stops.apply(3, 11.0, MATCH.moment(11.0)) == (False, False, True)
    assert stops.apply(3, 31.0, MATCH.moment(31.0)) == (True, False, True)
    assert stops.apply(1, 31.0, MATCH.moment(31.0)) == (True, False, False)


def test_options() -> None:
    assert parse_team("blue1=1503") == (3, 1503)
    assert parse_stop("red3@12.5") == (2, 12.5)
    for text in ("red4=1", "red1=0", "red1=70000", "red1", "red1=x"):
        with pytest.raises(ValueError, match=r"red"):
            parse_team(text)
    for text in ("red1", "red1@x", "green1@3"):
        with pytest.raises(ValueError, match="STATION@SECOND"):
            parse_stop(text)
