"""The status on NetworkTables: exact topics and types, nothing invented, nothing sent twice."""

from typing import Any

import msgspec
import pytest

from aoabridge.status import HostView, PhoneView, RobotView, SourceView, build_snapshot
from aoabridge.status.topics import StatusTopics, segment
from aoabridge.values import Publication, Withdrawal
from fakes.views import PIXEL, SCOUT, inputs

ROOT = "/AOABridge/pi-left/"
BRIDGE = {
    **dict.fromkeys(("version", "buildDate", "instanceId", "verdict", "status", "record/file"), "string"),
    **dict.fromkeys(("heartbeat", "phoneCount", "nt/flaps", "record/dropped"), "int"),
    **dict.fromkeys((f"relay/{name}" for name in ("coalesced", "dropped", "refusedPuts", "badLines")), "int"),
    **dict.fromkeys((".timesync/offset_us", ".timesync/rtt2_us"), "int"),
    **dict.fromkeys(("ready", "throttled", "record/active"), "boolean"),
    **dict.fromkeys(("uptimeSec", "cpuPct", "rssMiB", "cpuTempC", "relay/toPhoneHz", "relay/toRobotHz"), "double"),
    "issues": "string[]",
}
PHONE = {
    "connected": "boolean",
    **dict.fromkeys(("state", "serial", "model", "port", "app", "appVersion"), "string"),
    **dict.fromkeys(("rxHz", "txHz", "latencyMillis", "lastSeenAgeSec", "batteryPercent"), "double"),
    **dict.fromkeys(("coalesced", "dropped", "reconnects", "subscriptions"), "int"),
}
HOST = HostView(6.1, 44.0, 52.0, False, 3100, False)
FULL = PhoneView(
    "pixel7",
    "live",
    "1-1.2",
    serial="2A211F",
    model="Pixel 7",
    app="scouting",
    app_version="2",
    rx_hz=50,
    tx_hz=12,
    latency_ms=4,
    last_line_age_s=0.1,
    battery_percent=82,
)


def snapshot(**changes: Any) -> dict[str, Any]:
    return build_snapshot(inputs(host=HOST, **changes), [])


def published(out: list[Publication | Withdrawal]) -> dict[str, Publication]:
    return {item.topic: item for item in out if isinstance(item, Publication)}


def withdrawn(out: list[Publication | Withdrawal]) -> set[str]:
    return {item.topic for item in out if isinstance(item, Withdrawal)}


def test_exactly_the_documented_topics_and_types_appear() -> None:
    topics = StatusTopics("pi-left", "0a1b2c3d", "2026-03-01")
    source = SourceView("teleop", "pi-left", True, 50.0, 0.02)
    record = msgspec.structs.replace(inputs().record, active=True, file="x.wpilog")
    out = published(topics.on_tick(snapshot(phones=(FULL,), sources=(source,), record=record)))
    expected = {f"{ROOT}{name}": kind for name, kind in BRIDGE.items()}
    expected |= {f"{ROOT}devices/pixel7/{name}": kind for name, kind in PHONE.items()}
    expected |= {f"{ROOT}sources/teleop/{name}": kind for name, kind in (("hz", "double"), ("ageSec", "double"))}
    expected |= {f"{ROOT}sources/teleop/{name}": "int" for name in ("bad", "gaps")}
    expected["/AOABridge/.bridges/0a1b2c3d/name"] = "string"
    assert {topic: item.type for topic, item in out.items()} == expected
    python = {"string": str, "int": int, "double": float, "boolean": bool, "string[]": list}
    assert all(type(item.value) is python[item.type] for item in out.values())
    assert out[f"{ROOT}devices/pixel7/serial"].value == "211F"
    assert out[f"{ROOT}ready"].value is True


def test_unknown_values_are_not_published_and_taken_back_when_they_become_unknown() -> None:
    topics = StatusTopics("pi-left", "x")
    first = published(topics.on_tick(snapshot(phones=(FULL,))))
    assert f"{ROOT}buildDate" not in first
    assert f"{ROOT}record/file" not in first
    gone = withdrawn(topics.on_tick(snapshot(phones=(PIXEL,), robot=RobotView("connecting"))))
    assert gone == {
        f"{ROOT}devices/pixel7/model",
        f"{ROOT}devices/pixel7/app",
        f"{ROOT}devices/pixel7/appVersion",
        f"{ROOT}devices/pixel7/lastSeenAgeSec",
        f"{ROOT}.timesync/offset_us",
        f"{ROOT}.timesync/rtt2_us",
    }


def test_only_the_heartbeat_is_sent_when_nothing_changes() -> None:
    topics = StatusTopics("pi-left", "x")
    still = snapshot()
    topics.on_tick(still)
    assert [item.topic for item in topics.on_tick(still)] == [f"{ROOT}heartbeat"]
    assert published(topics.on_tick(still))[f"{ROOT}heartbeat"].value == 2


def test_figures_once_per_second_wait_for_the_second_tick_and_states_do_not() -> None:
    topics = StatusTopics("pi-left", "x")
    topics.on_tick(snapshot(uptime_s=1.0))
    assert set(published(topics.on_tick(snapshot(uptime_s=1.5, phones=(SCOUT,))))) >= {f"{ROOT}phoneCount"}
    assert f"{ROOT}uptimeSec" in published(topics.on_tick(snapshot(uptime_s=2.0)))
    assert f"{ROOT}uptimeSec" not in published(topics.on_tick(snapshot(uptime_s=2.5)))


@pytest.mark.parametrize("before", [1, 2])
def test_beats_say_the_figures_of_each_second_wherever_ticks_fall(before: int) -> None:
    topics = StatusTopics("pi-left", "x")
    for _ in range(before):
        topics.on_tick(snapshot())
    said = [published(topics.on_beat({"cpuTempC": 50.0 + beat, "rssMiB": None})) for beat in range(9)]
    temperatures = [beat[f"{ROOT}cpuTempC"].value for beat in said if f"{ROOT}cpuTempC" in beat]
    assert temperatures == [50.0 + beat for beat in range(before % 2, 9, 2)]
    assert all(f"{ROOT}heartbeat" in beat and f"{ROOT}rssMiB" not in beat for beat in said)


def test_a_beat_begins_no_topic() -> None:
    topics = StatusTopics("pi-left", "x")
    topics.on_tick(build_snapshot(inputs(host=HostView(6.1, 44.0, None, False, 3100, False)), []))
    said = [item.topic for _ in range(3) for item in topics.on_beat({"cpuTempC": 50.0})]
    assert f"{ROOT}cpuTempC" not in said


def test_a_phone_that_is_forgotten_loses_its_topics() -> None:
    topics = StatusTopics("pi-left", "x")
    topics.on_tick(snapshot(phones=(FULL,)))
    gone = withdrawn(topics.on_tick(snapshot(phones=())))
    assert gone == {f"{ROOT}devices/pixel7/{name}" for name in PHONE}


def test_everything_can_be_taken_back_and_comes_again() -> None:
    topics = StatusTopics("pi-left", "x")
    first = published(topics.on_tick(snapshot()))
    assert withdrawn(topics.withdraw_all()) == set(first)
    assert set(published(topics.on_tick(snapshot()))) == set(first)


def test_names_become_one_segment() -> None:
    assert [segment(name) for name in ("pixel7", "a/b c", "\x1b", "")] == ["pixel7", "a_b_c", "_", "_"]
