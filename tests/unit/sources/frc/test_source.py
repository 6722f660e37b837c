"""Behaviour of the driver station source in virtual time."""

import pytest

from aoabridge.codecs.wpistruct import SchemaRegistry
from aoabridge.sources.base import Source
from aoabridge.sources.frc import FrcSettings, FrcSource
from aoabridge.sources.frc.structs import SCHEMAS
from aoabridge.sources.frc.tables import CONTROL_WORD_SCHEMA
from aoabridge.sources.settings import StaleFrc
from aoabridge.sources.table import SOURCES
from aoabridge.values import Withdrawal

SENDER = ("127.0.0.1", 5000)
FMS, DS, CMD, RIO = "fms2ds-udp:1121", "ds2fms-udp:1160", "ds2rio-udp:1110", "rio2ds-udp:1150"
FMS_TCP, DS_TCP, RIO_TCP = "fms2ds-tcp:1751", "ds2fms-tcp:1750", "rio2ds-tcp:1740"


class Bench:
    """A source and the NT topics that result from it."""

    def __init__(self, *listen, **options):
        self.source = FrcSource(FrcSettings(listen=listen, **options), "bench")
        self.topics, self.withdrawn, self.log = {}, [], []
        self.schemas = {}

    def take(self):
        for item in self.source.take_publications():
            name = item.topic.removeprefix("/FRC/bench/")
            if isinstance(item, Withdrawal):
                self.withdrawn.append(name)
                del self.topics[name]
            elif name.startswith("/.schema/"):
                assert name not in self.schemas
                self.schemas[name] = item
            else:
                self.topics[name] = item.value
                self.log.append(item)

    def datagram(self, key, data, now, sender=SENDER):
        self.source.on_datagram(key, data, sender, now)
        self.take()

    def tick(self, now):
        self.source.on_tick(now)
        self.take()

    def stream(self, key, number, data, now):
        self.source.on_stream(key, number, bytes.fromhex(data), now)
        self.take()

    def history(self, name):
        return [item.value for item in self.log if item.topic == f"/FRC/bench/{name}"]


def cmd(sequence, control=0, tail=b""):
    return sequence.to_bytes(2) + bytes([1, control, 0x10, 0]) + tail


def fms(sequence=0, control=0, station=0, tail=b""):
    return sequence.to_bytes(2) + bytes([0, control, 0, station, *bytes(16)]) + tail


def ds(team, sequence=0):
    return sequence.to_bytes(2) + b"\x00\x20" + team.to_bytes(2) + b"\x0c\x80"


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


def test_sequence_numbers_belong_to_a_pair():
    bench = Bench(FMS, DS)
    for station in (0, 1, 2):
        bench.datagram(FMS, fms(7, station=station), 1.0)
        bench.datagram(DS, ds(station + 1, 7), 1.0)
    bench.datagram(FMS, fms(7), 1.0, ("127.0.0.1", 6000))
    assert bench.source.counters["fms2ds-udp/Duplicates"] == bench.source.counters["ds2fms-udp/Duplicates"] == 0
    assert len(bench.history("Fms/Control")) == 4


def test_silence_first_disconnects_then_withdraws():
    bench = Bench(CMD, RIO, stale_ms=StaleFrc(fms=1000, robot=250), forget_s=2.0)
    bench.datagram(CMD, cmd(1), 10.0)
    bench.tick(10.0)
    assert bench.topics["Link/ds2rio-udp/Connected"] is True
    assert bench.topics["Link/rio2ds-udp/Connected"] is False
    due = bench.source.next_deadline(10.0)
    assert due == 10.25
    bench.tick(10.2)
    assert bench.topics["Link/ds2rio-udp/Connected"] is True
    bench.tick(10.25)
    assert bench.topics["Link/ds2rio-udp/Connected"] is False
    assert "Command/Enabled" in bench.topics
    bench.tick(11.99)
    assert bench.withdrawn == []
    bench.tick(12.0)
    assert not [name for name in bench.topics if not name.startswith("Link/")]
    assert bench.topics["Link/ds2rio-udp/Received"] == 1
    bench.datagram(CMD, cmd(2), 13.0)
    assert bench.topics["Command/Enabled"] is False
    assert bench.topics["Link/ds2rio-udp/Connected"] is True


def test_a_silent_udp_link_does_not_live_on_its_stream():
    bench = Bench(FMS, FMS_TCP, forget_s=2.0)
    bench.source.on_connection(FMS_TCP, 1, SENDER, 1.0)
    bench.stream(FMS_TCP, 1, "000614044341534a", 1.0)
    bench.datagram(FMS, fms(control=4), 1.0)
    bench.tick(3.5)
    assert "Fms/Enabled" not in bench.topics
    assert bench.topics["Fms/EventCode"] == "CASJ"
    bench.source.on_connection(FMS_TCP, 1, None, 10.0)
    bench.tick(11.9)
    assert "Fms/EventCode" in bench.topics
    bench.tick(12.0)
    assert "Fms/EventCode" not in bench.topics
    assert bench.topics["Link/fms2ds-tcp/Connected"] is False


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


def test_teams_each_have_their_subtree_up_to_a_limit():
    bench = Bench(DS, max_teams=2)
    for team in (1, 2, 3):
        bench.datagram(DS, ds(team), 1.0)
    assert {name.split("/")[1] for name in bench.topics if name.startswith("Ds/")} == {"1", "2"}
    assert bench.source.counters["ds2fms-udp/Received"] == 3
    bench.tick(7.0)
    bench.datagram(DS, ds(3, 1), 7.0)
    assert {name.split("/")[1] for name in bench.topics if name.startswith("Ds/")} == {"3"}


def test_a_second_connection_of_a_team_replaces_the_first():
    bench = Bench(DS_TCP)
    for number in (1, 2):
        bench.source.on_connection(DS_TCP, number, SENDER, 1.0)
        bench.stream(DS_TCP, number, "00031805df", 1.0)
    bench.stream(DS_TCP, 1, "00021b61", 1.1)
    assert "Ds/1503/ChallengeResponse" not in bench.topics
    bench.stream(DS_TCP, 2, "00021b62", 1.1)
    assert bench.topics["Ds/1503/ChallengeResponse"] == "b"
    bench.source.on_connection(DS_TCP, 1, None, 2.0)
    bench.tick(20.0)
    assert bench.topics["Ds/1503/ChallengeResponse"] == "b"
    bench.source.on_connection(DS_TCP, 2, None, 21.0)
    bench.tick(26.0)
    assert "Ds/1503/ChallengeResponse" not in bench.topics


def test_team_of_a_2027_hello():
    bench = Bench(DS_TCP)
    bench.stream(DS_TCP, 1, "000a1ec35001053130303031", 1.0)
    assert bench.topics["Ds/10001/Generation"] == "2027"
    bench.stream(DS_TCP, 2, "000a1ec35001053939393939", 1.0)
    assert bench.topics["Ds/0/UdpPort"] == 50000


def test_unfinished_frames_close_their_connection():
    bench = Bench(RIO_TCP)
    bench.source.on_connection(RIO_TCP, 4, SENDER, 1.0)
    bench.stream(RIO_TCP, 4, "0000", 1.0)
    bench.tick(50.0)
    assert bench.source.take_closures() == []
    bench.stream(RIO_TCP, 4, "00", 51.0)
    bench.stream(RIO_TCP, 4, "03", 54.0)
    bench.tick(55.9)
    assert bench.source.take_closures() == []
    assert bench.source.next_deadline(55.9) == 56.0
    bench.tick(56.0)
    assert bench.source.take_closures() == [(RIO_TCP, 4)]
    assert bench.topics["Link/rio2ds-tcp/Connected"] is False
    assert bench.source.counters["rio2ds-tcp/Truncated"] == 1
    bench.stream(RIO_TCP, 4, "0003006869", 56.1)
    assert "Robot/Console/Message" not in bench.topics
    bench.source.on_connection(RIO_TCP, 4, None, 56.2)
    bench.source.on_connection(RIO_TCP, 4, SENDER, 57.0)
    bench.stream(RIO_TCP, 4, "0003006869", 57.0)
    assert bench.topics["Robot/Console/Message"] == "hi"


def test_a_frame_that_waited_does_not_revive_its_connection():
    bench = Bench(DS_TCP, max_rate=1, forget_s=2.0)
    bench.source.on_connection(DS_TCP, 1, SENDER, 1.0)
    bench.stream(DS_TCP, 1, "0000" + "00031805df", 1.0)
    bench.source.on_connection(DS_TCP, 1, None, 1.1)
    bench.tick(2.0)
    bench.tick(10.0)
    assert not [name for name in bench.topics if name.startswith("Ds/")]
    assert bench.topics["Link/ds2fms-tcp/Connected"] is False
    assert bench.source.next_deadline(10.0) == 11.0


def test_foreign_peers_are_closed():
    bench = Bench(RIO_TCP)
    bench.source.on_connection(RIO_TCP, 4, ("10.0.0.9", 1), 1.0)
    bench.stream(RIO_TCP, 4, "0003006869", 1.0)
    assert bench.source.take_closures() == [(RIO_TCP, 4)]
    assert "Robot/Console/Message" not in bench.topics
    assert bench.source.counters["rio2ds-tcp/Rejected"] == 1


def test_the_only_thing_ever_sent_is_the_keepalive_of_a_console():
    key = "rio2ds-tcp@10.64.58.2:1740"
    source = FrcSource(FrcSettings(listen=(FMS, DS, CMD, RIO, FMS_TCP, DS_TCP), connect=(key,)), "bench")
    endpoint = source.endpoints()[-1]
    assert (endpoint.direction, endpoint.host, endpoint.port, endpoint.kind) == ("connect", "10.64.58.2", 1740, "tcp")
    for udp in (FMS, DS, CMD, RIO):
        source.on_datagram(udp, bytes(22), SENDER, 1.0)
    for number, tcp in enumerate((FMS_TCP, DS_TCP)):
        source.on_connection(tcp, number, SENDER, 1.0)
        source.on_stream(tcp, number, bytes.fromhex("0000" + "00031805df"), 1.0)
    source.on_tick(1.0)
    assert source.take_datagrams() == []
    source.on_connection(key, 9, ("10.64.58.2", 1740), 2.0)
    keepalive = (key, b"\0\0", ("10.64.58.2", 1740))
    assert source.take_datagrams() == [keepalive]
    source.on_tick(3.9)
    assert source.take_datagrams() == []
    source.on_tick(4.0)
    assert source.take_datagrams() == [keepalive]
    source.on_connection(key, 9, None, 5.0)
    source.on_tick(9.0)
    assert source.take_datagrams() == []


def test_game_data_tag_absent_means_empty_only_on_a_link_that_had_it():
    bench = Bench(FMS)
    bench.datagram(FMS, fms(0), 1.0)
    assert "Fms/GameData" not in bench.topics
    bench.datagram(FMS, fms(1, tail=b"\x04\x20RLR"), 1.0)
    bench.datagram(FMS, fms(0), 1.0, ("127.0.0.1", 9))
    assert bench.topics["Fms/GameData"] == "RLR"
    bench.datagram(FMS, fms(2, tail=b"\x09\x20"), 1.0)  # a broken tag says nothing
    assert bench.topics["Fms/GameData"] == "RLR"
    bench.datagram(FMS, fms(3), 1.0)
    assert bench.topics["Fms/GameData"] == ""


def test_lite_by_port():
    bench = Bench("fms2ds-udp:1120", FMS)
    bench.datagram(FMS, fms(0), 1.0)
    assert "Fms/Lite" not in bench.topics
    bench.datagram("fms2ds-udp:1120", fms(1), 1.0)
    assert bench.topics["Fms/Lite"] is True
    bench.datagram(FMS, fms(2), 1.0)
    assert bench.topics["Fms/Lite"] is False


def test_what_is_not_known_any_more_is_withdrawn():
    bench = Bench(CMD, RIO)
    bench.datagram(CMD, cmd(1, tail=bytes.fromhex("050740000000")), 1.0)
    bench.datagram(CMD, cmd(2, tail=bytes.fromhex("0507bf800000")), 1.0)
    assert "Command/RemainingTime_s" in bench.withdrawn
    bench.datagram(RIO, bytes.fromhex("00010104200c8000"), 1.0)
    bench.datagram(RIO, bytes.fromhex("0002010420256000"), 1.0)
    assert bench.topics["Robot/BatteryValid"] is False
    assert "Robot/Battery_volts" not in bench.topics


def test_joysticks_hold_their_slots_and_the_limits_of_the_roborio():
    bench = Bench(CMD)
    axes, povs = bytes([13, *range(13)]), bytes([1, 0xFF, 0xFF])
    whole = b"\x0c" + axes + bytes([40, 0x80, 0, 0, 0, 1]) + povs
    tail = bytes.fromhex("010c") + bytes.fromhex("030c05ff") + bytes([len(whole)]) + whole
    bench.datagram(CMD, cmd(1, tail=tail), 1.0)
    data = bench.topics["Command/Joysticks"]
    registry = SchemaRegistry()
    registry.add("FrcJoystick", SCHEMAS["FrcJoystick"])
    first, third = registry.codec("FrcJoystick").decode_array(data)
    assert (first["slot"], first["absent"]) == (0, True)
    assert (third["slot"], third["absent"], third["axis_count"], third["button_count"]) == (2, False, 12, 32)
    assert (third["buttons"], third["povs"][0], third["axes"][11]) == (1, -1, 11)
    assert len(bench.topics["Command/Joystick/2/Axes"]) == 13
    assert bench.topics["Command/Joystick/2/Buttons"][0] is True
    assert bench.topics["Command/Joystick/2/Buttons"][39] is True
    assert bench.topics["Command/Joystick/0/Axes"] == []
    assert "Command/Joystick/1/Axes" not in bench.topics


def test_rumble_order():
    tail = bytes.fromhex("090100000001ffff0000")
    for order, sides in (("left-right", (1.0, 0.0)), ("right-left", (0.0, 1.0))):
        bench = Bench(RIO, rumble_order=order)
        bench.datagram(RIO, bytes.fromhex("00010104200c8000") + tail, 1.0)
        output = "Robot/JoystickOutput/0/Rumble"
        assert (bench.topics[f"{output}Left"], bench.topics[f"{output}Right"]) == sides


def test_console_lines_all_count():
    bench = Bench(RIO_TCP)
    line = "000a0c3f80000000016869" + "0a"
    bench.stream(RIO_TCP, 1, line * 3, 1.0)
    assert bench.history("Robot/Console/Output") == ["hi\n"] * 3
    assert all(item.keep_all for item in bench.log if item.topic.endswith("Output"))


def test_errors_and_warnings_are_summed():
    bench = Bench(RIO_TCP, publish_hz=0)
    for flags, occurrences in ((1, 3), (0, 0), (1, 0), (0, 5)):
        frame = bytes.fromhex("00000000" + "0001") + occurrences.to_bytes(2) + bytes(4) + bytes([flags]) + bytes(6)
        data = (len(frame) + 1).to_bytes(2) + b"\x0b" + frame
        bench.stream(RIO_TCP, 1, data.hex(), 1.0)
    assert (bench.topics["Robot/Console/Errors"], bench.topics["Robot/Console/Warnings"]) == (4, 6)


def test_device_names_are_made_safe_and_limited():
    bench = Bench(RIO_TCP)
    for index in range(70):
        name = f"../{index}/é".encode() + b"x" * 80
        frame = bytes(4) + bytes([len(name)]) + name + b"\x011"
        bench.stream(RIO_TCP, 1, ((len(frame) + 1).to_bytes(2) + b"\x0a" + frame).hex(), 1.0)
    devices = [name for name in bench.topics if name.startswith("Robot/Versions/")]
    assert len(devices) == 64
    assert all(len(name.split("/")) == 3 and len(name.split("/")[2]) == 64 for name in devices)
    assert "Robot/Versions/.._0__" + "x" * 58 in devices


def test_texts_are_cut_and_replaced_and_counted():
    bench = Bench(RIO_TCP)
    text = b"\xff" + b"a" * 5000
    frame = b"\x00" + text
    bench.stream(RIO_TCP, 1, (len(frame).to_bytes(2) + frame).hex(), 1.0)
    assert bench.topics["Robot/Console/Message"] == "\ufffd" + "a" * 4095
    assert bench.source.counters["rio2ds-tcp/TextReplaced"] == 1


def tables(info_from="ds2rio", **more):
    return Bench(
        CMD, FMS, "ds2rio-tcp:1741", write_fms_info=True, write_driver_station=True, info_from=info_from, **more
    )


def test_tables_are_withheld_until_it_is_known_that_nobody_else_writes():
    bench = tables()
    bench.datagram(CMD, cmd(1, 4), 1.0)
    assert not [name for name in bench.topics if name.startswith("/FMSInfo")]
    bench.source.on_table_owner("/FMSInfo", False, 1.0)
    bench.take()
    assert bench.topics["/FMSInfo/FMSControlData"] == 33
    assert bench.topics["/FMSInfo/.type"] == "FMSInfo"
    types = {item.topic: item.properties for item in bench.log}
    assert types["/FMSInfo/.type"] == {"SmartDashboard": "FMSInfo"}
    names = [item.topic for item in bench.log]
    assert names.index("/FMSInfo/StationNumber") < names.index("/FMSInfo/IsRedAlliance")
    assert not [name for name in bench.topics if name.startswith("/DriverStation")]
    bench.source.on_table_owner("/FMSInfo", True, 2.0)
    bench.take()
    assert not [name for name in bench.topics if name.startswith("/FMSInfo")]
    assert [issue.code for issue in bench.source.status(2.0).issues] == ["fms-info-owned"]
    bench.datagram(CMD, cmd(2, 4), 2.0)
    assert not [name for name in bench.topics if name.startswith("/FMSInfo")]


def test_tables_from_frames_and_their_end():
    bench = tables()
    for table in ("/FMSInfo", "/DriverStation"):
        bench.source.on_table_owner(table, False, 0.0)
    bench.datagram(CMD, cmd(1, 4), 1.0)
    bench.stream("ds2rio-tcp:1741", 1, "000a07045743424302001201" + "00040e524c52", 1.0)
    for table, game_data in (("/FMSInfo", "GameSpecificMessage"), ("/DriverStation", "GameData")):
        values = {
            name.removeprefix(table + "/"): value for name, value in bench.topics.items() if name.startswith(table)
        }
        assert values[game_data] == "RLR"
        assert (values["EventName"], values["MatchType"]) == ("WCBC", 2)
        assert (values["MatchNumber"], values["ReplayNumber"]) == (18, 1)
    assert bench.topics["/DriverStation/OpMode"] == ""
    bench.tick(6.0)
    assert not [name for name in bench.topics if name.startswith(("/FMSInfo", "/DriverStation"))]


def test_tables_are_off_by_default():
    bench = Bench(CMD)
    bench.source.on_table_owner("/FMSInfo", False, 0.0)
    bench.datagram(CMD, cmd(1), 1.0)
    assert not [name for name in bench.topics if not name.startswith(("Command/", "Link/"))]


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
