"""The simulated field against the simulated driver station, in virtual time, and each rule by itself."""

import itertools
from typing import Any

import pytest

from aoabridge.codecs import frc_ds
from aoabridge.codecs.frc_ds import FmsControl, TcpFrames
from aoabridge.codecs.frc_ds import fms_ds as wire
from aoabridge.codecs.frc_ds.enums import DsHelloFlags
from aoabridge.simulators.ds import DriverStation, DsSettings, RobotLink
from aoabridge.simulators.fms import FieldSettings, FmsSimulator
from aoabridge.simulators.match import MatchSettings
from aoabridge.simulators.rio import RobotEnd

TARGET = ("127.0.0.1", 1121)
MATCH = MatchSettings(pre_s=1, auto_s=2, pause_s=1, teleop_s=3, post_s=1)


def field(**options: Any) -> FmsSimulator:
    settings = {"teams": {0: 1503}, "target": TARGET, "match": MATCH} | options
    return FmsSimulator(FieldSettings(**settings), 100.0)


def controls(simulator: FmsSimulator, until: float, begin: float = 100.0) -> list[tuple[float, FmsControl]]:
    """Every control datagram with the time at which it left."""
    now, sent = begin, []
    while now <= until:
        simulator.on_tick(now)
        sent += [(now, frc_ds.decode("fms2ds-udp", data)) for data, _ in simulator.take_datagrams()]
        now = max(simulator.next_deadline(now), now + 0.001)
    return sent


def hello(simulator: FmsSimulator, tag: Any, number: int = 1, now: float = 100.0) -> list[dict[str, Any]]:
    simulator.on_connection(number, ("127.0.0.1", 5000), now)
    simulator.on_stream(number, frc_ds.encode("ds2fms-tcp", TcpFrames((tag,))), now)
    data = b"".join(data for where, data in simulator.take_frames() if where == number)
    frames: list[dict[str, Any]] = frc_ds.to_fields(frc_ds.decode("fms2ds-tcp", data))["frames"]
    return frames


def test_every_half_second_and_at_once_at_the_four_transitions() -> None:
    sent = controls(field(), 108.0)
    times = [round(now - 100.0, 2) for now, _ in sent]
    assert {1.0, 3.0, 4.0, 7.0} <= set(times)
    assert max(b - a for a, b in itertools.pairwise(times)) <= 0.51
    assert [packet.sequence for _, packet in sent] == list(range(len(sent)))
    modes = [(packet.control.mode, packet.control.enabled) for _, packet in sent]
    assert list(dict.fromkeys(modes)) == [
        ("autonomous", False), ("autonomous", True), ("teleop", False), ("teleop", True),
    ]  # fmt: skip
    assert sent[-1][1].remaining_time_s == 0
    assert not sent[-1][1].control.enabled


def test_stops_and_the_header() -> None:
    simulator = field(estops={0: 4.0}, level=2, match_number=41, play_number=2, month_base=1)
    sent = controls(simulator, 108.0)
    stopped = [packet for now, packet in sent if now >= 105.0]
    assert stopped
    assert all(packet.control.estop and not packet.control.enabled for packet in stopped)
    packet = sent[0][1]
    assert (packet.comm_version, packet.tournament_level, packet.match_number, packet.play_number) == (0, 2, 41, 2)
    assert packet.date.month == 1  # 1970-01-01 of the virtual clock, January = 1


@pytest.mark.parametrize(
    ("tag", "name", "status"),
    [
        (wire.TeamNumber(1503), "station_info", "good"),
        (wire.TeamNumber(9), "station_info", "waiting"),
        (wire.DsHello2027(6000, DsHelloFlags(0), "1503"), "station_info_2027", "good"),
        (wire.DsHello2027(6000, DsHelloFlags(0), "9"), "station_info_2027", "waiting"),
        (wire.DsHello2027(6000, DsHelloFlags(0), "x9"), "station_info_2027", "invalid_team"),
    ],
)
def test_the_answer_to_a_hello_is_of_its_generation(tag: Any, name: str, status: str) -> None:
    simulator = field(event="TEST")
    frames = hello(simulator, tag)
    assert [frame["name"] for frame in frames] == [name, "event_code"]
    assert frames[0]["status"]["name"] == status
    assert simulator.take_closures() == []


def test_a_first_frame_that_is_no_hello_ends_the_connection() -> None:
    simulator = field()
    assert hello(simulator, wire.Ping()) == []
    assert simulator.take_closures() == [1]


def test_five_seconds_without_a_frame_end_the_connection() -> None:
    simulator = field()
    hello(simulator, wire.TeamNumber(1503))
    controls(simulator, 104.9)
    assert simulator.take_closures() == []
    controls(simulator, 105.1, 104.95)
    assert simulator.take_closures() == [1]


def test_a_station_of_2027_is_answered_where_it_listens() -> None:
    simulator = field()
    simulator.on_tick(100.0)
    assert [target for _, target in simulator.take_datagrams()] == [TARGET]
    hello(simulator, wire.DsHello2027(6000, DsHelloFlags(0), "1503"))
    simulator.on_tick(100.5)
    assert [target for _, target in simulator.take_datagrams()] == [("127.0.0.1", 6000)]


def test_game_data_is_said_when_it_is_set() -> None:
    simulator = field(game_data="LRL", game_data_at_s=2.0)
    assert "game_data" not in [frame["name"] for frame in hello(simulator, wire.TeamNumber(1503))]
    controls(simulator, 102.9)
    assert simulator.take_frames() == []
    simulator.on_tick(103.0)
    assert simulator.take_frames() == [(1, bytes.fromhex("00051c034c524c"))]


def test_a_silent_station_is_lost_and_goes_on_getting_datagrams() -> None:
    simulator = field()
    assert simulator.lost(100.0) == [1503]
    station = DriverStation(DsSettings(), 100.0)
    station.on_tick(100.0)
    simulator.on_datagram(station.take_datagrams()[0], ("127.0.0.1", 5000), 100.0)
    assert simulator.lost(100.9) == []
    assert simulator.lost(101.1) == [1503]
    assert controls(simulator, 103.0)


def test_the_driver_station_follows_the_field_and_disables_after_a_second_of_silence() -> None:
    simulator, station = field(), DriverStation(DsSettings(), 100.0)
    for now, packet in controls(simulator, 102.0):
        station.on_datagram(frc_ds.encode("fms2ds-udp", packet), now)
    station.on_tick(102.0)
    assert (station.mode, station.enabled, station.fms_attached(102.0)) == ("autonomous", True, True)
    station.take_datagrams()
    station.on_tick(103.5)
    status = frc_ds.decode("ds2fms-udp", station.take_datagrams()[-1])
    assert not status.status.enabled
    assert next(tag.name for tag in status.tags) == "comms_metrics"


@pytest.mark.parametrize(("generation", "first"), [("ni", "team_number"), ("2027", "ds_hello_2027")])
def test_the_driver_station_says_hello_first_and_then_pings(generation: Any, first: str) -> None:
    station = DriverStation(DsSettings(generation=generation), 100.0)
    station.on_connected(100.0)
    station.on_tick(101.0)
    frames = frc_ds.to_fields(frc_ds.decode("ds2fms-tcp", b"".join(station.take_stream())))["frames"]
    assert [frame["name"] for frame in frames] == [first, "ping", "log_data"]


def test_robot_and_driver_station_talk() -> None:
    station = DriverStation(DsSettings(), 0.0)
    link, robot = RobotLink(station, 0.0), RobotEnd(0.0)
    tags: dict[str, int] = {}
    dates = 0
    for step in range(150):
        now = step * 0.02 + 1e-6  # rounding must not make a tick early
        link.on_tick(now)
        for data in link.take_datagrams():
            dates += any(tag.name == "date" for tag in frc_ds.decode("ds2rio-udp", data).tags)
            robot.on_datagram(data, now)
        for data in robot.take_datagrams():
            packet = frc_ds.decode("rio2ds-udp", data)
            assert packet.faults == ()
            for tag in packet.tags:
                tags[str(tag.name)] = tags.get(str(tag.name), 0) + 1
            link.on_datagram(data)
    assert link.counters["datagrams_in"] == link.counters["datagrams_out"] == 150
    assert dates == 1  # asked for once, told once, without joysticks
    assert tags == {
        "disk_info": 3, "cpu_info": 3, "ram_info": 3, "pdp_log": 3, "can_metrics": 3, "joystick_output": 18,
    }  # fmt: skip


def test_the_console_and_what_is_told_on_connecting() -> None:
    station = DriverStation(DsSettings(), 0.0)
    link, robot = RobotLink(station, 0.0), RobotEnd(0.0)
    link.on_connected(0.0)
    robot.on_connection(1, True)
    first = link.take_stream()
    assert len(first) == 1
    names = [frame["name"] for frame in frc_ds.to_fields(frc_ds.decode("ds2rio-tcp", first[0]))["frames"]]
    assert names == ["keepalive", *["joystick_descriptor"] * 6, "match_info", "game_data"]
    station.game_data = "LRL"
    link.on_tick(0.5)
    assert [tag.name for tag in frc_ds.decode("ds2rio-tcp", link.take_stream()[0]).frames] == [
        "match_info",
        "game_data",
    ]
    robot.on_tick(1.0)
    said = b"".join(data for _, data in robot.take_frames())
    packet = frc_ds.decode("rio2ds-tcp", said)
    assert packet.faults == ()
    assert {"version_info", "disable_faults", "rail_faults", "standard_output", "error_message"} == {
        tag.name for tag in packet.frames
    }
