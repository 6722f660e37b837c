import logging
import math
from typing import Any

import pytest

from aoabridge.adapters.nt_events import MAX_LOG_LINES, EventReader, OwnValues
from aoabridge.values import Announced, ClockSync, Connected, Disconnected, NtValue, Unannounced, Update

NOW_US = 1_000_000_000


class Event:
    """What ntcore hands out, reduced to what is read; any attribute missing in a kind raises, as there."""

    def __init__(self, flags: int, **data: Any) -> None:
        self.flags = flags
        self.data = type("Data", (), data)()


class Value:
    def __init__(self, value: Any, server_time_us: int) -> None:
        self._value = value
        self._time_us = server_time_us

    def value(self) -> Any:
        if isinstance(self._value, Exception):
            raise self._value
        return self._value

    def server_time(self) -> int:
        return self._time_us

    def isString(self) -> bool:  # noqa: N802  # ntcore's name
        return not isinstance(self._value, UnicodeDecodeError) or self._value.reason != "array"


class Topic:
    def __init__(self, name: str) -> None:
        self._name = name

    def getName(self) -> str:  # noqa: N802  # ntcore's name
        return self._name


def value_event(topic: str, value: Any, time_us: int = NOW_US, flags: int = 64) -> Event:
    return Event(flags, topic=Topic(topic), value=Value(value, time_us))


def connected(protocol: int = 0x0401, host: str = "10.0.0.2") -> Event:
    return Event(2, remote_ip=host, remote_port=5810, protocol_version=protocol)


def log_line(message: str, level: int = 40) -> Event:
    return Event(256, message=message, level=level)


@pytest.fixture
def own() -> OwnValues:
    return OwnValues()


@pytest.fixture
def reader(own: OwnValues) -> EventReader:
    return EventReader(own, lambda: NOW_US)


def test_flags_are_tested_by_bit(reader: EventReader) -> None:
    batch = reader.read(
        [
            Event(40, name="/p", type_str="double", properties='{"unit":"V"}'),
            Event(32, name="/p", type_str="double", properties="{}"),
            value_event("/p", 1.5, flags=64 | 1),
            Event(16, name="/p", type_str=""),
        ]
    )
    assert batch.events == [Announced("/p", "double"), Update("/p", 1.5, NOW_US), Unannounced("/p")]
    assert batch.control == [Announced("/p", "double"), Unannounced("/p")]


def test_connection_and_clock(reader: EventReader) -> None:
    sync = Event(512, serverTimeOffset=12, rtt2=34, valid=True)
    batch = reader.read([connected(), sync, Event(4)])
    assert batch.events == [Connected("10.0.0.2:5810"), ClockSync(12, 34, True), Disconnected()]
    assert batch.lost
    assert not reader.read([connected()]).lost


def test_the_port_of_a_server_on_ipv6_stands_apart(reader: EventReader) -> None:
    assert reader.read([connected(host="fe80::1")]).events == [Connected("[fe80::1]:5810")]


def test_connections_of_a_servers_clients_are_ignored(own: OwnValues) -> None:
    batch = EventReader(own, lambda: NOW_US, connections=False).read([connected(), Event(4)])
    assert batch.events == []
    assert not batch.lost


def test_old_server_is_reported(reader: EventReader, caplog: pytest.LogCaptureFixture) -> None:
    reader.read([connected(0x0400)])
    assert reader.old_server
    assert "old server" in caplog.text
    reader.read([connected(0x0401)])
    assert not reader.old_server


def test_one_bad_event_does_not_cost_the_batch(reader: EventReader) -> None:
    batch = reader.read([value_event("/a", 1), Event(64), Event(8), value_event("/b", 2)])
    assert batch.events == [Update("/a", 1, NOW_US), Update("/b", 2, NOW_US)]
    assert reader.bad_events == 2


def test_an_event_that_finds_no_memory_is_not_taken_for_a_bad_one(reader: EventReader) -> None:
    with pytest.raises(MemoryError):
        reader.read([value_event("/a", MemoryError())])


@pytest.mark.parametrize("unstamped_us", [0, 1])
def test_unstamped_values_get_the_estimate(reader: EventReader, unstamped_us: int) -> None:
    assert reader.read([value_event("/a", 1, unstamped_us)]).events == [Update("/a", 1, NOW_US)]
    assert reader.read([value_event("/a", 1, 2)]).events == [Update("/a", 1, 2)]


def test_bad_utf8_is_replaced_in_strings_and_skipped_in_arrays(reader: EventReader) -> None:
    text = UnicodeDecodeError("utf-8", b"a\xff", 1, 2, "string")
    element = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "array")
    batch = reader.read([value_event("/s", text), value_event("/sa", element)])
    assert batch.events == [Update("/s", "a\ufffd", NOW_US)]
    assert (reader.bad_utf8, reader.bad_events) == (2, 0)


def test_future_times_are_counted_and_logged_once_per_topic(
    reader: EventReader, caplog: pytest.LogCaptureFixture
) -> None:
    late_us = NOW_US + 5_000_001
    reader.read([value_event("/f", 1, late_us), value_event("/f", 2, late_us), value_event("/g", 1, late_us - 1)])
    assert reader.future_times == 2
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "/f" in caplog.text


def test_future_topics_do_not_fill_the_log(reader: EventReader, caplog: pytest.LogCaptureFixture) -> None:
    reader.read([value_event(f"/f{number}", 1, NOW_US * 2) for number in range(1_000)])
    assert reader.future_times == 1_000
    assert len(caplog.records) == MAX_LOG_LINES


def test_blockage_is_seen_on_its_first_line(reader: EventReader) -> None:
    batch = reader.read([log_line("dropping value set due to memory limits")])
    assert batch.blocked
    assert batch.events == []
    assert not reader.read([log_line("something else")]).blocked


def test_noise_of_the_client_stays_at_debug(reader: EventReader, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        reader.read([log_line("could not resolve 'x'"), log_line("CONNECTED NT4", 20), log_line("bad frame", 30)])
    assert [record.getMessage() for record in caplog.records] == ["ntcore: bad frame"]


def test_log_lines_are_bounded_per_connection(reader: EventReader, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        reader.read([log_line("bad frame")] * 1_000)
        assert len(caplog.records) == MAX_LOG_LINES
        reader.read([connected(), log_line("bad frame")])
    assert len(caplog.records) == MAX_LOG_LINES + 1


@pytest.mark.parametrize("value", [1, True, "x", b"x", math.nan, 1.5, [], [1], [math.nan, 1.0], ["a"]])
def test_echo_of_our_value_is_dropped(reader: EventReader, own: OwnValues, value: NtValue) -> None:
    own.note("/t", value)
    assert reader.read([value_event("/t", value)]).events == []
    assert reader.own_echoes == 1


@pytest.mark.parametrize(("ours", "theirs"), [(1, 2), ([1], [1, 1]), (math.nan, 1.0), ("a", "b"), (b"a", b"")])
def test_another_value_is_no_echo(reader: EventReader, own: OwnValues, ours: NtValue, theirs: NtValue) -> None:
    own.note("/t", ours)
    assert reader.read([value_event("/t", theirs)]).events == [Update("/t", theirs, NOW_US)]


def test_after_another_writer_our_value_is_no_echo_until_set_again(reader: EventReader, own: OwnValues) -> None:
    own.note("/t", True)
    batch = reader.read([value_event("/t", False), value_event("/t", True)])
    assert [event.value for event in batch.events if isinstance(event, Update)] == [False, True]
    own.note("/t", True)
    assert reader.read([value_event("/t", True)]).events == []


def test_reconnect_makes_echoes_possible_again(reader: EventReader, own: OwnValues) -> None:
    own.note("/t", True)
    reader.read([value_event("/t", False), connected()])
    assert reader.read([value_event("/t", True)]).events == []


def test_forgotten_topic_has_no_echo(reader: EventReader, own: OwnValues) -> None:
    own.note("/t", True)
    own.forget("/t")
    assert len(reader.read([value_event("/t", True)]).events) == 1
