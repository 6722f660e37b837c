"""Behaviour of the driver station source in virtual time."""

import pytest

from aoabridge.codecs.wpistruct import SchemaRegistry
from aoabridge.sources.base import Source
from aoabridge.sources.frc import FrcSettings, FrcSource
from aoabridge.sources.frc.structs import SCHEMAS
from aoabridge.sources.frc.tables import CONTROL_WORD_SCHEMA
from aoabridge.sources.table import SOURCES
from fakes.frc_source import CMD, DS, FMS, RIO, SENDER, Bench, cmd, ds, fms


def test_schemas_compile_to_the_documented_sizes():
    registry = SchemaRegistry()
    for name, text in SCHEMAS.items():
        registry.add(name, text)
    registry.add("ControlWord", CONTROL_WORD_SCHEMA)
    sizes = {name: registry.codec(name).size for name in (*SCHEMAS, "ControlWord")}
    assert sizes == {
        "FrcFmsControl": 22,
        "FrcDsStatus": 10,
        "FrcDsControl": 6,
        "FrcRioStatus": 10,
        "FrcJoystick": 45,
        "ControlWord": 8,
    }


def test_struct_bytes_decode_to_the_header():
    bench = Bench(FMS, DS, RIO)
    bench.datagram(FMS, bytes.fromhex("12340046000501000203000f42401718191a1b7e0009"), 1.0)
    bench.datagram(DS, bytes.fromhex("0102003c05df0c80"), 1.0)
    bench.datagram(RIO, bytes.fromhex("01020104200c8001"), 1.0)
    registry = SchemaRegistry()
    for name, item in bench.schemas.items():
        assert item.type == "structschema"
        registry.add(name.removeprefix("/.schema/struct:"), item.value)
    control = registry.codec("FrcFmsControl").decode(bench.topics["Fms/Control"])
    assert control["sequence"] == 0x1234
    assert (control["mode"], control["enabled"], control["astop"], control["estop"]) == (2, True, True, False)
    assert (control["match_number"], control["play_number"], control["date_us"]) == (2, 3, 1_000_000)
    assert (control["second"], control["year"], control["remaining_time_s"]) == (0x17, 0x7E, 9)
    status = registry.codec("FrcDsStatus").decode(bench.topics["Ds/1503/Status"])
    assert (status["team"], status["battery_volts"], status["robot_comms"]) == (1503, 12.5, True)
    rio = registry.codec("FrcRioStatus").decode(bench.topics["Robot/Status"])
    assert (rio["robot_code"], rio["battery_volts"], rio["request_date"]) == (True, 12.5, 1)


def test_foreign_senders_are_counted_and_change_nothing():
    bench = Bench(CMD, allow_from=("10.1.0.0/16",))
    bench.datagram(CMD, cmd(1), 1.0, ("192.168.0.9", 1))
    assert bench.topics == {}
    assert bench.source.counters["ds2rio-udp/Rejected"] == 1
    for host in ("10.1.2.3", "::1", "127.8.8.8", "::ffff:10.1.9.9"):
        bench.datagram(CMD, cmd(1), 1.0, (host, 1))
    assert bench.source.counters["ds2rio-udp/Received"] == 4
    bench.datagram(CMD, cmd(1), 1.0, ("nonsense", 1))
    assert bench.source.counters["ds2rio-udp/Rejected"] == 2
    bench.source.on_datagram("nowhere:1", cmd(1), SENDER, 1.0)


def test_counters_of_bad_input():
    bench = Bench(CMD)
    bench.datagram(CMD, b"\0" * 5, 1.0)
    bench.datagram(CMD, cmd(1, 3, bytes.fromhex("00" + "0207" + "00" + "0199")), 1.0)
    counters = {name.partition("/")[2]: value for name, value in bench.source.counters.items()}
    assert counters["Received"] == 2
    assert (counters["Truncated"], counters["Faults"]) == (1, 2)
    assert (counters["UnknownTags"], counters["UnknownValues"]) == (1, 1)
    status = bench.source.status(1.0)
    assert status.bad == 3


def test_booleans_at_once_numbers_at_their_rate_structs_every_time():
    bench = Bench(FMS, publish_hz=20)
    for index in range(10):
        now = 1 + index * 0.02
        bench.datagram(FMS, fms(index, control=4 * (index == 3))[:20] + index.to_bytes(2), now)
    assert bench.history("Fms/Enabled") == [False, True, False]
    assert len(bench.history("Fms/Control")) == 10
    assert bench.history("Fms/RemainingTime_s") == [0, 3, 6, 9]
    every = Bench(FMS, publish_hz=0)
    for index in range(5):
        every.datagram(FMS, fms(index)[:20] + index.to_bytes(2), 1.0)
    assert every.history("Fms/RemainingTime_s") == [0, 1, 2, 3, 4]


def test_a_waiting_number_leaves_at_its_deadline():
    bench = Bench(FMS)
    bench.datagram(FMS, fms(0)[:20] + b"\0\5", 1.0)
    bench.datagram(FMS, fms(1)[:20] + b"\0\4", 1.01)
    bench.tick(1.01)
    assert bench.history("Fms/RemainingTime_s") == [5]
    due = bench.source.next_deadline(1.01)
    assert due == pytest.approx(1.05)
    bench.tick(due)
    assert bench.history("Fms/RemainingTime_s") == [5, 4]


def test_units_are_properties():
    bench = Bench(FMS, RIO)
    bench.datagram(FMS, fms(), 1.0)
    bench.datagram(RIO, bytes.fromhex("01020104200c8001"), 1.0)
    units = {item.topic.rpartition("/")[2]: item.properties for item in bench.log}
    assert units["RemainingTime_s"] == {"unit": "s"}
    assert units["Battery_volts"] == {"unit": "V"}
    assert units["MatchNumber"] is None


@pytest.mark.parametrize(
    ("numbers", "accepted", "gaps", "late", "duplicates"),
    [
        ([(1, 0), (2, 0), (3, 0)], 3, 0, 0, 0),
        ([(1, 0), (1, 0), (2, 0)], 2, 0, 0, 1),
        ([(1, 0), (5, 0)], 2, 3, 0, 0),
        ([(65535, 0), (0, 0)], 2, 0, 0, 0),
        ([(1, 0), (4, 0), (3, 0.9), (2, 0.9), (1, 0.9), (5, 0.9)], 3, 2, 3, 0),
        ([(1, 0), (65533, 0)], 2, 0, 0, 0),
        ([(5, 0), (4, 1.1)], 2, 0, 0, 0),
        ([(0, 0), (32767, 0)], 2, 32766, 0, 0),
        ([(0, 0), (32768, 0)], 2, 0, 0, 0),
        ([(10, 0), (7, 0), (6, 0)], 2, 0, 1, 0),
    ],
)
def test_sequence_numbers(numbers, accepted, gaps, late, duplicates):
    bench = Bench(CMD)
    for number, after in numbers:
        bench.datagram(CMD, cmd(number), 1 + after)
    assert len(bench.history("Command/Control")) == accepted
    counters = bench.source.counters
    found = [counters[f"ds2rio-udp/{name}"] for name in ("SequenceGaps", "OutOfOrder", "Duplicates")]
    assert found == [gaps, late, duplicates]
    assert bench.source.status(2.0).gaps == gaps


def test_what_stays_as_it_was_is_said_once_and_again_after_a_silence():
    stick = bytes.fromhex("060c" + "0140" + "0103" + "00")
    bench = Bench(CMD, RIO, forget_s=2.0)
    for start in (1.0, 9.0):
        for index in range(3):
            now = start + index * 0.02
            bench.datagram(CMD, cmd(int(start) * 100 + index, 4, stick), now)
            bench.datagram(RIO, (int(start) * 100 + index).to_bytes(2) + bytes.fromhex("0104200c8000"), now)
        bench.tick(start + 0.1)
        assert bench.topics["Command/Enabled"] is bench.topics["Robot/Enabled"] is True
        assert bench.topics["Command/Joystick/0/Buttons"] == [True]
        assert bench.topics["Command/Joystick/0/Axes"] == [64 / 127]
        bench.tick(start + 3)
        assert not [name for name in bench.topics if not name.startswith("Link/")]
    for name in ("Command/Enabled", "Command/Mode", "Command/Joystick/0/Buttons", "Robot/Enabled", "Robot/UserMode"):
        assert len(bench.history(name)) == 2
    assert len(bench.history("Command/Joysticks")) == len(bench.history("Command/Control")) == 6


def test_each_joystick_is_said_when_it_changes():
    sticks = ["060c" + "0140" + "0100" + "00", "060c" + "0140" + "0101" + "00"]
    bench = Bench(CMD)
    for index, pair in enumerate([(0, 0), (0, 1), (0, 1), (1, 0)]):
        tail = bytes.fromhex("".join(sticks[which] for which in pair))
        bench.datagram(CMD, cmd(index, 0, tail), 1 + index)
        both = bench.topics["Command/Joysticks"]
        assert [both[at : at + 45][16] for at in (0, 45)] == list(pair)
        assert [both[0], both[45]] == [0, 1]
    assert bench.history("Command/Joystick/0/Buttons") == [[False], [True]]
    assert bench.history("Command/Joystick/1/Buttons") == [[False], [True], [False]]


def test_one_more_team_is_due_in_its_own_time():
    bench = Bench(DS, forget_s=0.5)
    bench.tick(0.9)
    bench.datagram(DS, ds(1, 1), 1.0)
    bench.tick(1.0)
    for team, sequence, now in ((2, 1, 1.1), (1, 2, 1.4)):
        bench.datagram(DS, ds(team, sequence), now)
        bench.tick(max(now, bench.source.next_deadline(now)))
    assert bench.source.next_deadline(1.5) <= 1.6
    bench.tick(1.6)
    assert {name.split("/")[1] for name in bench.topics if name.startswith("Ds/")} == {"1"}


def test_sequence_numbers_belong_to_a_pair():
    bench = Bench(FMS, DS)
    for station in (0, 1, 2):
        bench.datagram(FMS, fms(7, station=station), 1.0)
        bench.datagram(DS, ds(station + 1, 7), 1.0)
    bench.datagram(FMS, fms(7), 1.0, ("127.0.0.1", 6000))
    assert bench.source.counters["fms2ds-udp/Duplicates"] == bench.source.counters["ds2fms-udp/Duplicates"] == 0
    assert len(bench.history("Fms/Control")) == 4


def test_figures_once_a_second():
    bench = Bench(CMD)
    bench.tick(9.99)
    for index in range(50):
        bench.datagram(CMD, cmd(index), 10 + index * 0.02)
    bench.tick(11.0)
    assert bench.topics["Link/ds2rio-udp/Rate_hz"] == 50.0
    assert bench.topics["Link/ds2rio-udp/Age_ms"] == pytest.approx(20)
    assert bench.topics["Link/ds2rio-udp/Peer"] == "127.0.0.1:5000"
    assert bench.topics["Link/ds2rio-udp/Received"] == 50
    status = bench.source.status(11.0)
    assert (status.hz, status.issues) == (50.0, ())
    assert status.age_s == pytest.approx(0.02)


def test_issues():
    bench = Bench(CMD)
    bench.tick(1.0)
    assert bench.source.status(6.0).issues == ()
    assert [issue.code for issue in bench.source.status(6.1).issues] == ["source-silent"]
    for index in range(10):
        bench.datagram(CMD, cmd(index) if index else b"bad", 7.0)
    bench.tick(8.0)
    assert [issue.code for issue in bench.source.status(8.0).issues] == ["source-bad"]


def test_the_rate_limit_keeps_the_newest():
    bench = Bench(CMD, max_rate=3)
    for index in range(10):
        bench.datagram(CMD, cmd(index, 4 * (index == 9)), 1.0 + index * 0.01)
    assert len(bench.history("Command/Control")) == 3
    assert bench.source.counters["ds2rio-udp/RateLimited"] == 6
    assert bench.source.next_deadline(1.2) <= 2.0
    bench.tick(2.0)
    assert bench.history("Command/Control")[-1][:2] == b"\x09\x00"
    assert bench.topics["Command/Enabled"] is True


def test_nothing_is_bound_while_a_capture_is_replayed():
    assert FrcSource(FrcSettings(replay="file.pcap"), "x").endpoints() == ()
    default = FrcSource(FrcSettings(), "x").endpoints()
    assert [(endpoint.key, endpoint.kind, endpoint.bind, endpoint.port) for endpoint in default] == [
        ("ds2rio-udp:1110", "udp", "127.0.0.1", 1110),
        ("rio2ds-udp:1150", "udp", "127.0.0.1", 1150),
    ]


def test_every_source_of_the_table_is_one():
    assert [kind.key for kind in SOURCES] == ["frc", "j519", "teleop"]
    for kind in SOURCES:
        source: Source = kind.source(kind.settings(), "bench")
        for name in dir(Source):
            assert name.startswith("_") or hasattr(source, name)
        assert isinstance(source.take_publications(), list)
