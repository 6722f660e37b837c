"""Encoding: raw decides, derived keys are passed over, ranges are errors with the path of the field."""

import json
import math
from pathlib import Path

import pytest

from aoabridge.codecs import frc_ds
from aoabridge.codecs.frc_ds.ds_rio import Countdown, GameData
from aoabridge.codecs.frc_ds.fms_ds import FmsGameData, Ping
from aoabridge.codecs.frc_ds.values import Single
from aoabridge.errors import DecodeError, EncodeError, TruncatedError

VECTORS = json.loads((Path(__file__).parents[3] / "vectors" / "frc_ds_vectors.json").read_text())
BLANK = {
    "fms2ds-udp": frc_ds.to_fields(frc_ds.decode("fms2ds-udp", bytes(22))),
    "ds2fms-udp": frc_ds.to_fields(frc_ds.decode("ds2fms-udp", bytes(8))),
    "ds2rio-udp": frc_ds.to_fields(frc_ds.decode("ds2rio-udp", bytes(6))),
    "rio2ds-udp": frc_ds.to_fields(frc_ds.decode("rio2ds-udp", bytes(8))),
}


def refused(protocol, fields):
    with pytest.raises(EncodeError) as caught:
        frc_ds.encode(protocol, fields)
    return caught.value.field


def header(protocol, **changes):
    return BLANK[protocol] | changes


def tag_bytes(protocol, **tag):
    return frc_ds.encode(protocol, header(protocol, tags=[tag]))[len(frc_ds.encode(protocol, BLANK[protocol])) :]


def frame_bytes(protocol, **tag):
    return frc_ds.encode(protocol, {"frames": [tag]})


@pytest.mark.parametrize(
    ("protocol", "changes", "path"),
    [
        ("fms2ds-udp", {"sequence": 65536}, "sequence"),
        ("fms2ds-udp", {"sequence": -1}, "sequence"),
        ("fms2ds-udp", {"sequence": True}, "sequence"),
        ("fms2ds-udp", {"sequence": 1.0}, "sequence"),
        ("fms2ds-udp", {"comm_version": 256}, "comm_version"),
        ("fms2ds-udp", {"match_number": 65536}, "match_number"),
        ("fms2ds-udp", {"play_number": 256}, "play_number"),
        ("fms2ds-udp", {"remaining_time_s": 65536}, "remaining_time_s"),
        ("fms2ds-udp", {"control": {"raw": 256}}, "control"),
        ("fms2ds-udp", {"control": {"raw": 4, "enabled": False}}, "control.enabled"),
        ("fms2ds-udp", {"control": {"raw": 0, "mode": "test"}}, "control.mode"),
        ("fms2ds-udp", {"control": {"mode": "driving"}}, "control.mode"),
        ("fms2ds-udp", {"control": {"raw": 0x38, "reserved": 0x18}}, "control.reserved"),
        ("fms2ds-udp", {"control": {"reserved": 4}}, "control.reserved"),
        ("fms2ds-udp", {"control": {"enbled": True}}, "control.enbled"),
        ("fms2ds-udp", {"control": 4}, "control"),
        ("fms2ds-udp", {"station": {"raw": 1, "alliance": "blue"}}, "station.alliance"),
        ("fms2ds-udp", {"station": {"raw": 1, "position": 1}}, "station.position"),
        ("fms2ds-udp", {"station": {"raw": 6, "alliance": "red"}}, "station.alliance"),
        ("fms2ds-udp", {"station": {"alliance": "red"}}, "station.position"),
        ("fms2ds-udp", {"station": {"alliance": "red", "position": 4}}, "station.position"),
        ("fms2ds-udp", {"station": {"alliance": "green", "position": 1}}, "station.alliance"),
        ("fms2ds-udp", {"station": {"raw": 256}}, "station"),
        ("fms2ds-udp", {"tournament_level": {"raw": 1, "name": "playoff"}}, "tournament_level.name"),
        ("fms2ds-udp", {"tournament_level": {"raw": 9, "name": "playoff"}}, "tournament_level.name"),
        ("fms2ds-udp", {"tournament_level": {"name": "final"}}, "tournament_level.name"),
        ("fms2ds-udp", {"tournament_level": {"raw": 256}}, "tournament_level"),
        ("fms2ds-udp", {"tags": {}}, "tags"),
        ("fms2ds-udp", {"tags": [7]}, "tags[0]"),
        ("fms2ds-udp", {"speed": 1}, "speed"),
        ("ds2fms-udp", {"battery_volts": math.nan}, "battery_volts"),
        ("ds2fms-udp", {"battery_volts": math.inf}, "battery_volts"),
        ("ds2fms-udp", {"battery_volts": 256.0}, "battery_volts"),
        ("ds2fms-udp", {"battery_volts": -0.01}, "battery_volts"),
        ("ds2fms-udp", {"team": 65536}, "team"),
    ],
)
def test_header_rules(protocol, changes, path):
    assert refused(protocol, header(protocol, **changes)) in (path, f"{path}.raw")


def test_dates_name_their_part():
    date = BLANK["fms2ds-udp"]["date"]
    assert refused("fms2ds-udp", header("fms2ds-udp", date=date | {"month": 256})) == "date.month"
    assert refused("fms2ds-udp", header("fms2ds-udp", date=date | {"microseconds": 1 << 32})) == "date.microseconds"
    assert refused("fms2ds-udp", header("fms2ds-udp", date={"year": 1})).startswith("date.")
    derived = date | {"iso_month0": "nonsense", "iso_month1": 7}
    assert frc_ds.encode("fms2ds-udp", header("fms2ds-udp", date=derived)) == bytes(22)


def test_missing_fields_are_named():
    for protocol, fields in BLANK.items():
        for key in fields:
            if key != "tags":
                assert refused(protocol, {name: value for name, value in fields.items() if name != key}) == key
    assert refused("fms2ds-tcp", {}) == "frames"
    assert refused("fms2ds-tcp", {"frames": [], "tags": []}) == "tags"


@pytest.mark.parametrize(
    ("protocol", "tag", "path"),
    [
        ("ds2fms-udp", {"id": None, "size": 0, "name": None, "raw_hex": ""}, "tags[0].id"),
        ("ds2fms-udp", {"name": "keepalive"}, "tags[0].name"),
        ("ds2fms-udp", {"id": 1, "name": "laptop_metrics"}, "tags[0].name"),
        ("ds2fms-udp", {"id": 256, "name": None, "raw_hex": ""}, "tags[0].id"),
        ("ds2fms-udp", {"id": 9, "name": None}, "tags[0].raw_hex"),
        ("ds2fms-udp", {"name": None, "raw_hex": ""}, "tags[0].id"),
        ("ds2fms-udp", {"id": 9, "name": "nine", "raw_hex": ""}, "tags[0].name"),
        ("ds2fms-udp", {"id": 9, "name": None, "raw_hex": "0"}, "tags[0].raw_hex"),
        ("ds2fms-udp", {"id": 9, "name": None, "raw_hex": "00", "more": 1}, "tags[0].more"),
        ("ds2fms-udp", {"id": 9, "name": None, "raw_hex": "00" * 255}, "tags[0]"),
        ("ds2fms-udp", {"name": "pd_info", "raw_hex": "00" * 255}, "tags[0]"),
        (
            "ds2fms-udp",
            {"name": "comms_metrics", "lost_packets": 1, "sent_packets": 65536, "average_trip_time_ms": 0},
            "tags[0].sent_packets",
        ),
        ("ds2fms-udp", {"name": "laptop_metrics", "battery_percent": 1}, "tags[0].cpu_percent"),
        ("ds2fms-udp", {"name": "laptop_metrics", "battery_percent": 1, "cpu_percent": 2, "gpu": 3}, "tags[0].gpu"),
        ("ds2rio-udp", {"name": "countdown", "remaining_time_s": math.nan}, "tags[0].remaining_time_s"),
        ("ds2rio-udp", {"name": "countdown", "remaining_time_s": math.inf}, "tags[0].remaining_time_s"),
        ("ds2rio-udp", {"name": "countdown", "remaining_time_s": 1e39}, "tags[0].remaining_time_s"),
        ("ds2rio-udp", {"name": "countdown", "remaining_time_s": 10**400}, "tags[0].remaining_time_s"),
        ("ds2rio-udp", {"name": "countdown", "remaining_time_s": {"f32_bits": "7fc0000"}}, "tags[0].remaining_time_s"),
        ("ds2rio-udp", {"name": "countdown", "remaining_time_s": "2"}, "tags[0].remaining_time_s"),
        ("ds2rio-udp", {"name": "joystick", "axes": [128], "button_count": 0, "povs": []}, "tags[0].axes[0]"),
        (
            "ds2rio-udp",
            {"name": "joystick", "axes": [], "button_count": 256, "buttons_hex": "", "povs": []},
            "tags[0].button_count",
        ),
        (
            "ds2rio-udp",
            {"name": "joystick", "axes": [], "button_count": 9, "buttons_hex": "00", "povs": []},
            "tags[0].buttons_hex",
        ),
        (
            "ds2rio-udp",
            {"name": "joystick", "axes": [], "button_count": 9, "pressed": [10], "povs": []},
            "tags[0].pressed[0]",
        ),
        (
            "ds2rio-udp",
            {"name": "joystick", "axes": [], "button_count": 9, "pressed": [0], "povs": []},
            "tags[0].pressed[0]",
        ),
        ("ds2rio-udp", {"name": "joystick", "axes": [], "button_count": 9, "povs": []}, "tags[0].buttons_hex"),
        ("ds2rio-udp", {"name": "joystick", "axes": [], "button_count": 0, "povs": [1, 40000]}, "tags[0].povs[1]"),
        (
            "ds2rio-udp",
            {"name": "joystick", "absent": True, "axes": [1], "button_count": 0, "povs": []},
            "tags[0].absent",
        ),
        ("ds2rio-udp", {"name": "joystick", "axes": [0] * 256, "button_count": 0, "povs": []}, "tags[0].axes"),
        ("ds2rio-udp", {"name": "joystick", "axes": [0] * 255, "button_count": 0, "povs": []}, "tags[0]"),
        ("ds2rio-udp", {"name": "timezone", "timezone": "x" * 255}, "tags[0]"),
        ("ds2rio-udp", {"name": "timezone", "timezone": "\ud800"}, "tags[0].timezone"),
        ("ds2rio-udp", {"name": "date", "date": {"microseconds": 0}}, "tags[0].date.second"),
        ("rio2ds-udp", {"name": "joystick_output", "absent": True, "outputs": 1}, "tags[0].outputs"),
        (
            "rio2ds-udp",
            {"name": "joystick_output", "absent": False, "outputs": 1 << 32, "rumble_a": 0, "rumble_b": 0},
            "tags[0].outputs",
        ),
        (
            "rio2ds-udp",
            {"name": "joystick_output", "absent": False, "outputs": None, "rumble_a": 0, "rumble_b": 0},
            "tags[0].outputs",
        ),
        ("rio2ds-udp", {"name": "pdp_log", "raw_hex": "00" * 24}, "tags[0].raw_hex"),
        ("rio2ds-udp", {"name": "pdp_log", "currents_amps": [0.0] * 16}, "tags[0].raw_hex"),
        (
            "rio2ds-udp",
            {"name": "cpu_info", "cpus": [{"time_critical": 0, "above_normal": 0, "normal": 0}]},
            "tags[0].cpus[0].low",
        ),
    ],
)
def test_tag_rules(protocol, tag, path):
    assert refused(protocol, header(protocol, tags=[tag])) == path


@pytest.mark.parametrize(
    ("protocol", "frame", "path"),
    [
        ("fms2ds-tcp", {"name": "event_code", "event_code": "x" * 256}, "frames[0].event_code"),
        ("fms2ds-tcp", {"name": "event_code", "event_code": 7}, "frames[0].event_code"),
        ("fms2ds-tcp", {"name": "challenge_question", "question": "", "random_value": -1}, "frames[0].random_value"),
        (
            "fms2ds-tcp",
            {"name": "station_info", "station": {"raw": 0}, "status": {"raw": 0, "name": "bad"}},
            "frames[0].status.name",
        ),
        ("fms2ds-tcp", {"name": "keepalive", "id": 0}, "frames[0].id"),
        ("fms2ds-tcp", {"name": "keepalive", "raw_hex": ""}, "frames[0].raw_hex"),
        ("fms2ds-tcp", {"name": "rio_version"}, "frames[0].version_status"),
        ("fms2ds-tcp", {"name": "rio_version", "version_status": "good"}, "frames[0].version"),
        ("fms2ds-tcp", {"name": "rio_version", "version_status": "go>od", "version": "1"}, "frames[0].version_status"),
        ("fms2ds-tcp", {"id": 0x33, "name": None, "raw_hex": "00" * 65535}, "frames[0]"),
        ("rio2ds-tcp", {"name": "message", "text": "x" * 65535}, "frames[0]"),
        (
            "rio2ds-tcp",
            {
                "name": "version_info",
                "device_type": {"raw": 0},
                "unknown": 0,
                "can_id": 0,
                "device_name": "",
                "version": "é" * 128,
            },
            "frames[0].version",
        ),
        (
            "ds2fms-tcp",
            {"name": "error_and_event", "messages": [{"labview_s": 1 << 63, "labview_fraction": 0, "text": ""}]},
            "frames[0].messages[0].labview_s",
        ),
        (
            "ds2fms-tcp",
            {"name": "error_and_event", "messages": [{"labview_s": 0, "labview_fraction": -1, "text": ""}]},
            "frames[0].messages[0].labview_fraction",
        ),
        ("ds2dash-tcp", {"name": "robot_ip", "ip": "10.15.3.256"}, "frames[0].ip"),
        ("ds2dash-tcp", {"name": "robot_ip", "ip": "10.15.3"}, "frames[0].ip"),
        ("ds2dash-tcp", {"name": "db_mode", "flags": {"raw": 5, "docked": False}}, "frames[0].flags.docked"),
    ],
)
def test_frame_rules(protocol, frame, path):
    assert refused(protocol, {"frames": [frame]}) == path


def test_texts_to_their_limits():
    assert frame_bytes("fms2ds-tcp", name="event_code", event_code="x" * 255)[:4] == b"\x01\x01\x14\xff"
    assert len(frame_bytes("rio2ds-tcp", name="message", text="x" * 65534)) == 65537
    assert len(tag_bytes("ds2rio-udp", name="timezone", timezone="x" * 254)) == 256
    error = {
        "name": "error_message",
        "timestamp_s": -1.5,
        "sequence": 0,
        "occurrences": 0,
        "code": -1,
        "flags": {"is_error": True},
        "details": "x" * 65536,
        "location": "",
        "call_stack": "",
    }
    assert refused("rio2ds-tcp", {"frames": [error]}) == "frames[0].details"


def test_datagrams_never_exceed_what_udp_carries():
    tag = {"name": "timezone", "timezone": "x" * 254}
    assert len(frc_ds.encode("ds2rio-udp", header("ds2rio-udp", tags=[tag] * 255))) == 65286
    assert refused("ds2rio-udp", header("ds2rio-udp", tags=[tag] * 256)) == "tags"


def test_names_and_ids():
    assert frame_bytes("ds2fms-tcp", name="ping") == b"\x00\x01\x1d"
    assert frame_bytes("ds2fms-tcp", name="ping_1c") == b"\x00\x01\x1c"
    assert frame_bytes("ds2fms-tcp", id=0x1D) == b"\x00\x01\x1d"
    assert frame_bytes("ds2fms-tcp", id=0x1D, name="ping", size=77) == b"\x00\x01\x1d"
    assert frame_bytes("ds2fms-tcp", name="keepalive") == b"\x00\x00"
    assert frame_bytes("ds2fms-tcp", id=0x33, raw_hex="aabb") == b"\x00\x03\x33\xaa\xbb"
    assert frame_bytes("ds2fms-tcp", id=0x18, name=None, raw_hex="AA") == b"\x00\x02\x18\xaa"


def test_parts_stand_for_raw_where_it_is_missing():
    fields = header(
        "fms2ds-udp",
        control={"mode": "autonomous", "enabled": True, "astop": True},
        station={"alliance": "blue", "position": 2},
        tournament_level={"name": "playoff"},
    )
    assert frc_ds.encode("fms2ds-udp", fields)[3:7] == bytes([0x46, 0, 4, 3])


def test_buttons_from_pressed_only_without_their_octets():
    joystick = {"name": "joystick", "axes": [], "button_count": 10, "pressed": [1, 9, 10], "povs": []}
    assert tag_bytes("ds2rio-udp", **joystick) == bytes.fromhex("060c000a030100")
    assert tag_bytes("ds2rio-udp", **joystick, buttons_hex="fc00") == bytes.fromhex("060c000afc0000")
    assert tag_bytes("ds2rio-udp", name="joystick", absent=True) == bytes.fromhex("010c")
    assert tag_bytes("rio2ds-udp", name="joystick_output", absent=True) == bytes.fromhex("0101")


def test_versions_are_written_bare_without_their_octets():
    tag = {"name": "ds_version", "version_status": "good", "version": "1.2"}
    assert frame_bytes("fms2ds-tcp", **tag) == b"\x00\x0a\x02<good>1.2"
    assert frame_bytes("fms2ds-tcp", **tag, layout="nonsense", raw_hex="00") == b"\x00\x02\x02\x00"
    sixty = {"name": "ds_version", "version_status": "a" * 58, "version": "b\x00"}
    assert refused("fms2ds-tcp", {"frames": [sixty]}) == "frames[0].version_status"  # would read as two strings


@pytest.mark.parametrize(
    ("payload", "layout", "status", "version"),
    [
        ("<good>1>2", "bare", "good", "1>2"),
        ("<>", "bare", "", ""),
        ("<good", "unknown", None, None),
        ("", "unknown", None, None),
        ("\x06<good>\x011", "two_strings", "good", "1"),
        ("\x00\x00", "two_strings", "", ""),
        ("\x01<\x00", "two_strings", "<", ""),
        ("\x02<>\x00", "two_strings", "", ""),
        ("\x09<good>1.2", "one_string", "good", "1.2"),
        ("\x04good", "unknown", None, None),
        ("\x04<ood", "unknown", None, None),
        ("\x06<good>\x011x", "unknown", None, None),
    ],
)
def test_version_layouts(payload, layout, status, version):
    data = payload.encode("latin-1")
    packet = frc_ds.decode("fms2ds-tcp", (1 + len(data)).to_bytes(2) + b"\x01" + data)
    (tag,) = frc_ds.to_fields(packet)["frames"]
    assert (tag["layout"], tag["version_status"], tag["version"]) == (layout, status, version)
    assert tag["raw_hex"] == data.hex()


def test_floats_keep_every_bit():
    for bits in ("7fc00000", "7f800001", "ffc12345", "7f800000", "ff800000"):
        data = tag_bytes("ds2rio-udp", name="countdown", remaining_time_s={"f32_bits": bits})
        assert data == bytes.fromhex("0507" + bits)
        packet = frc_ds.decode("ds2rio-udp", bytes(6) + data)
        assert frc_ds.to_fields(packet)["tags"][0]["remaining_time_s"] == {"f32_bits": bits}
        assert frc_ds.encode("ds2rio-udp", packet) == bytes(6) + data
    data = tag_bytes("ds2rio-udp", name="countdown", remaining_time_s=-0.0)
    assert data == bytes.fromhex("050780000000")
    value = frc_ds.to_fields(frc_ds.decode("ds2rio-udp", bytes(6) + data))["tags"][0]["remaining_time_s"]
    assert math.copysign(1, value) == -1
    assert tag_bytes("ds2rio-udp", name="countdown", remaining_time_s=2) == bytes.fromhex("050740000000")
    assert Single.of(0.1).value == 0.10000000149011612


def test_volts_half_to_even():
    for volts, count in (
        (0.5 / 256, 0),
        (1.5 / 256, 2),
        (65535.5 / 256, None),
        (65535.49 / 256, 65535),
        (-0.5 / 256, 0),
    ):
        fields = header("ds2fms-udp", battery_volts=volts)
        if count is None:
            assert refused("ds2fms-udp", fields) == "battery_volts"
        else:
            assert frc_ds.encode("ds2fms-udp", fields)[6:8] == count.to_bytes(2)


def test_packets_of_another_protocol_are_refused():
    control = frc_ds.decode("ds2rio-udp", bytes(6))
    assert refused("fms2ds-udp", control) is None
    assert refused("fms2ds-tcp", control) is None
    assert refused("ds2fms-udp", frc_ds.TcpFrames(())) is None
    assert refused("fms2ds-tcp", frc_ds.TcpFrames((GameData("x"),))) == "frames[0]"
    assert frc_ds.encode("fms2ds-tcp", frc_ds.TcpFrames((FmsGameData("x"),))) == b"\x00\x03\x1c\x01x"
    assert (
        refused("ds2rio-udp", frc_ds.DsControl(0, 1, control.control, control.request, control.station, (Ping(),)))
        == "tags[0]"
    )
    with pytest.raises(EncodeError):
        frc_ds.encode(
            "ds2rio-udp", frc_ds.DsControl(0, 1, control.control, control.request, control.station, (Countdown(2.0),))
        )


def test_faults_of_the_first_kind_win_in_strict_and_all_are_kept_in_lenient():
    data = bytes(8) + bytes.fromhex("0201ff" + "00" + "0309" + "aabb" + "ff")
    packet = frc_ds.decode("ds2fms-udp", data)
    assert [fault.code for fault in packet.faults] == ["bad_tag_payload", "zero_size_tag", "tag_overrun"]
    assert (packet.unknown_tags, len(packet.tags)) == (1, 3)
    with pytest.raises(DecodeError) as caught:
        frc_ds.decode("ds2fms-udp", data, strict=True)
    assert (type(caught.value), caught.value.offset) == (DecodeError, 8)


def test_counts_of_unknown_things():
    packet = frc_ds.decode("fms2ds-udp", bytes([0, 0, 0, 3, 0, 9, 84, *bytes(15), 1, 0x99]))
    assert (packet.unknown_values, packet.unknown_tags) == (3, 1)
    run = frc_ds.decode("fms2ds-tcp", bytes.fromhex("0003190609" + "000114" + "000199"))
    assert (run.unknown_values, run.unknown_tags) == (2, 1)


def test_a_frame_larger_than_allowed_is_an_error_before_it_is_held():
    reader = frc_ds.FrameReader("fms2ds-tcp", max_frame=100)
    assert len(reader.feed(b"\x00\x00")) == 1
    with pytest.raises(DecodeError) as caught:
        reader.feed(b"\x01\x00" + bytes(50))
    assert caught.value.offset == 2
    assert reader.pending == 2


def test_the_reader_says_what_is_missing():
    reader = frc_ds.FrameReader("fms2ds-tcp")
    reader.feed(bytes.fromhex("0000" + "0003" + "19"))
    assert reader.pending == 3
    with pytest.raises(TruncatedError) as caught:
        reader.close()
    assert (caught.value.offset, caught.value.needed, caught.value.got) == (5, 7, 5)
