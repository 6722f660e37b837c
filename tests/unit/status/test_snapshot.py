"""The snapshot's shape is a promise to other programs."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aoabridge.status import HostView, IssueBoard, PhoneView, RobotView, SourceView, build_snapshot
from aoabridge.status.snapshot import masked
from fakes.views import PIXEL, ROBOT, SCOUT, inputs

KEYS = {
    "": "schema verdict sentence name version team stale time uptime_s robot phones sources relay host record config "
    "issues",
    "time": "wall mono_s wall_trusted",
    "robot": "state address client since_s flaps offset_us rtt2_us enabled mode match",
    "relay": "topics robot_to_phone_hz phone_to_robot_hz put_errors",
    "host": "cpu_percent rss_mib temp_c throttled disk_free_mib read_only",
    "record": "active file dropped",
    "config": "path state restart_needed",
}
PHONE = (
    "name state port serial model app app_version rx_hz tx_hz latency_ms last_line_age_s dropped coalesced "
    "refused_puts reconnects battery_percent subscriptions"
)


def test_every_key_of_schema_1_is_there() -> None:
    board = IssueBoard()
    board.set("phone-lost", "scout", True, 749.1, data={"port": "1-1.3"})
    snapshot = build_snapshot(inputs(phones=(SCOUT, PIXEL)), board.open_issues())
    for section, keys in KEYS.items():
        assert set(keys.split()) <= set(snapshot[section] if section else snapshot), section
    assert set(PHONE.split()) <= set(snapshot["phones"][0])
    assert snapshot["issues"] == [
        {
            "code": "phone-lost",
            "severity": "problem",
            "subject": "scout",
            "sentence": "scout lost",
            "fix": "Push the plug in at port 1-1.3, then unlock it",
            "since_s": 12.1,
            "count": 1,
        }
    ]
    assert (snapshot["schema"], snapshot["stale"]) == (1, False)
    assert (snapshot["verdict"], snapshot["sentence"]) == ("problem", "1 of 2 phones lost; robot connected")


def test_serials_show_their_last_four() -> None:
    assert build_snapshot(inputs(phones=(SCOUT,)), [])["phones"][0]["serial"] == "…7K2Q"
    assert masked(None) is None


def test_sources_are_keyed_by_kind_and_by_name_if_there_are_several() -> None:
    sources = (SourceView("frc", "x"), SourceView("j519", "a", True, 125.0, 0.01), SourceView("j519", "b", True))
    shown = build_snapshot(inputs(sources=sources), [])["sources"]
    assert list(shown) == ["frc", "j519:a", "j519:b"]
    assert shown["frc"] == {"enabled": False}
    assert (shown["j519:a"]["hz"], shown["j519:b"]["age_s"]) == (125.0, None)


@given(st.floats(), st.floats(), st.one_of(st.none(), st.floats()))
@settings(deadline=None)
def test_no_number_is_ever_a_sentinel_and_the_json_is_strict(latency: float, age: float, temp: float | None) -> None:
    phone = PhoneView("p", "live", "1-1", latency_ms=latency, last_line_age_s=age)
    snapshot = build_snapshot(inputs(phones=(phone,), host=HostView(temp_c=temp)), [])
    json.dumps(snapshot, allow_nan=False)


@pytest.mark.parametrize(
    ("phones", "robot", "codes", "expected"),
    [
        ((PIXEL,), ROBOT, (), ("ok", "1 phone flowing, robot connected")),
        ((PIXEL, PIXEL), ROBOT, (), ("ok", "2 phones flowing, robot connected")),
        ((), ROBOT, (), ("waiting", "no phone; robot connected")),
        ((PIXEL,), RobotView("connecting"), (), ("waiting", "1 phone flowing; robot not connected")),
        ((), RobotView("connecting"), (), ("waiting", "no phone; robot not connected")),
        ((), RobotView("unset"), ("nt-unset",), ("problem", "no phone; no robot chosen")),
        ((SCOUT,), ROBOT, ("phone-lost",), ("problem", "scout lost; robot connected")),
        ((PIXEL,), RobotView("lost"), ("nt-lost",), ("problem", "1 phone flowing; robot lost")),
        ((PIXEL,), ROBOT, ("usb-power",), ("ok", "1 phone flowing, robot connected")),
        ((PIXEL,), RobotView("serving"), (), ("ok", "1 phone flowing, we are the server")),
        (
            (PIXEL,),
            ROBOT,
            ("name-conflict", "source-bind"),
            ("problem", "Another bridge is called scout (+1 more); 1 phone flowing; robot connected"),
        ),
    ],
)
def test_verdict_and_sentence(
    phones: tuple[PhoneView, ...], robot: RobotView, codes: tuple[str, ...], expected: tuple[str, str]
) -> None:
    board = IssueBoard()
    for code in codes:
        board.set(code, "scout", True, 0.0)
    snapshot = build_snapshot(inputs(phones=phones, robot=robot), board.open_issues())
    assert (snapshot["verdict"], snapshot["sentence"]) == expected


def test_a_phone_that_does_not_flow_is_named_by_its_issue() -> None:
    board = IssueBoard()
    board.set("app-stalled", "pixel7", True, 0.0, hold=False)
    snapshot = build_snapshot(inputs(), board.open_issues())
    assert snapshot["sentence"] == "The app on pixel7 does not read; robot connected"
