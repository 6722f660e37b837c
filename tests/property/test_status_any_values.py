"""Whatever the inputs, every surface stays within its bounds, strict JSON, and free of control characters."""

import json

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from aoabridge.issues import ISSUES
from aoabridge.status import IssueBoard, PhoneView, RobotView, build_snapshot
from aoabridge.status.alerts import Alerts
from aoabridge.status.terminal import status_lines
from aoabridge.status.text import printable
from aoabridge.status.topics import StatusTopics
from aoabridge.values import Publication
from fakes.views import inputs

texts = st.text(max_size=40)
numbers = st.one_of(st.none(), st.floats(), st.integers(-(2**40), 2**40))
phones = st.builds(
    PhoneView,
    name=texts,
    state=st.sampled_from(["live", "linked", "stale", "absent", "blocked"]),
    port=texts,
    serial=st.one_of(st.none(), texts),
    model=st.one_of(st.none(), texts),
    app=st.one_of(st.none(), texts),
    rx_hz=st.floats(),
    latency_ms=numbers,
    last_line_age_s=numbers,
    battery_percent=numbers,
)
robots = st.builds(
    RobotView,
    state=st.sampled_from(["unset", "connecting", "connected", "lost", "serving"]),
    address=st.one_of(st.none(), texts),
    client=st.one_of(st.none(), texts),
    since_s=numbers,
    offset_us=st.one_of(st.none(), st.integers()),
)
cases = st.lists(st.tuples(st.sampled_from(sorted(ISSUES)), texts, st.dictionaries(st.just("port"), texts)), max_size=8)


@given(st.lists(phones, max_size=4), robots, cases)
@settings(deadline=None)
def test_every_surface_keeps_its_bounds(views: list[PhoneView], robot: RobotView, raised: list) -> None:
    board = IssueBoard()
    for code, subject, data in raised:
        board.set(code, subject, True, 0.0, hold=False, data=data)
    issues = board.open_issues()
    assert all(len(issue.sentence) <= 60 and len(issue.fix) <= 120 for issue in issues)
    snapshot = build_snapshot(inputs(phones=tuple(views), robot=robot), issues)
    assert json.loads(json.dumps(snapshot, allow_nan=False)) == snapshot
    assert msgspec.json.decode(msgspec.json.encode(snapshot)) == snapshot
    lines = status_lines(snapshot)
    assert max(map(len, lines)) <= 80
    assert all(printable(line) == line for line in lines)
    for item in (*StatusTopics("pi", "x").on_tick(snapshot), *Alerts("A").on_tick(issues)):
        assert isinstance(item, Publication)
        assert item.value == item.value  # no NaN
        assert item.topic.isprintable()
        assert "//" not in item.topic
