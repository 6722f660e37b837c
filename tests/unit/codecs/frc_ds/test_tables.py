"""The seed document's tables and those of the other links, row by row: offsets, bits, numbers, tags and their keys."""

import pytest

from aoabridge.codecs import frc_ds

HEADERS = {  # protocol -> (key, offset, octets) in wire order
    "fms2ds-udp": [
        ("sequence", 0, 2),
        ("comm_version", 2, 1),
        ("control", 3, 1),
        ("request", 4, 1),
        ("station", 5, 1),
        ("tournament_level", 6, 1),
        ("match_number", 7, 2),
        ("play_number", 9, 1),
        ("date", 10, 10),
        ("remaining_time_s", 20, 2),
    ],
    "ds2fms-udp": [
        ("sequence", 0, 2),
        ("comm_version", 2, 1),
        ("status", 3, 1),
        ("team", 4, 2),
        ("battery_volts", 6, 2),
    ],
    "ds2rio-udp": [
        ("sequence", 0, 2),
        ("comm_version", 2, 1),
        ("control", 3, 1),
        ("request", 4, 1),
        ("station", 5, 1),
    ],
    "rio2ds-udp": [
        ("sequence", 0, 2),
        ("comm_version", 2, 1),
        ("status", 3, 1),
        ("trace", 4, 1),
        ("battery_volts", 5, 2),
        ("request_date", 7, 1),
    ],
}
DATE = [("microseconds", 10, 4), ("second", 14, 1), ("minute", 15, 1), ("hour", 16, 1)]
DATE += [("day", 17, 1), ("month", 18, 1), ("year", 19, 1)]
BITS = {
    ("fms2ds-udp", "control"): {"enabled": 0x04, "estop": 0x80, "astop": 0x40, "reserved": 0x38},
    ("fms2ds-udp", "request"): {},
    ("ds2fms-udp", "status"): {
        "enabled": 0x04,
        "rio_ping": 0x08,
        "radio_ping": 0x10,
        "robot_comms": 0x20,
        "bit6": 0x40,
        "estop": 0x80,
    },
    ("ds2rio-udp", "control"): {"enabled": 0x04, "fms_attached": 0x08, "estop": 0x80, "reserved": 0x70},
    ("ds2rio-udp", "request"): {
        "ds_connected": 0x10,
        "reboot_rio": 0x08,
        "restart_code": 0x04,
        "bit0": 0x01,
        "reserved": 0xE2,
    },
    ("rio2ds-udp", "status"): {
        "enabled": 0x04,
        "code_initializing": 0x08,
        "brownout": 0x10,
        "estop": 0x80,
        "reserved": 0x60,
    },
    ("rio2ds-udp", "trace"): {
        "robot_code": 0x20,
        "is_roborio": 0x10,
        "test": 0x08,
        "autonomous": 0x04,
        "teleop": 0x02,
        "disabled": 0x01,
        "reserved": 0xC0,
    },
}
MODES = {0: "teleop", 1: "test", 2: "autonomous", 3: "invalid"}
VERSION_NAMES = [
    "wpilib_version",
    "rio_version",
    "ds_version",
    "pdp_version",
    "pcm_version",
    "canjag_version",
    "cantalon_version",
    "third_party_version",
]
VERSIONS = {number: (name, "layout version_status version raw_hex") for number, name in enumerate(VERSION_NAMES)}
MATCH_INFO = ("match_info", "event_name match_type match_number replay_number")
MESSAGE = ("message", "text")
DISABLE, RAIL = ("disable_faults", "comms_faults faults_12v"), ("rail_faults", "faults_6v faults_5v faults_3v3")
USAGE = ("usage_report", "team unknown entries")
TAGS = {
    "fms2ds-udp": {0x20: ("game_data_2027", "game_data")},
    "ds2fms-udp": {
        0x00: ("field_radio_metrics", "signal_strength bandwidth_utilization"),
        0x01: ("comms_metrics", "lost_packets sent_packets average_trip_time_ms"),
        0x02: ("laptop_metrics", "battery_percent cpu_percent"),
        0x03: ("robot_radio_metrics", "signal_strength bandwidth_utilization"),
        0x04: ("pd_info", "raw_hex"),
    },
    "ds2rio-udp": {
        0x07: ("countdown", "remaining_time_s"),
        0x0C: ("joystick", "absent axes button_count buttons_hex pressed povs"),
        0x0F: ("date", "date"),
        0x10: ("timezone", "timezone"),
    },
    "rio2ds-udp": {
        0x01: ("joystick_output", "absent outputs rumble_a rumble_b"),
        0x04: ("disk_info", "block free_bytes"),
        0x05: ("cpu_info", "cpus"),
        0x06: ("ram_info", "block free_bytes"),
        0x08: ("pdp_log", "currents_amps raw_hex"),
        0x09: ("unknown_09", "raw_hex"),
        0x0E: ("can_metrics", "utilization bus_off tx_full rx_errors tx_errors"),
    },
    "fms2ds-tcp": VERSIONS
    | {
        0x14: ("event_code", "event_code"),
        0x19: ("station_info", "station status"),
        0x1A: ("challenge_question", "question random_value"),
        0x1C: ("game_data", "game_data"),
        0x1F: ("station_info_2027", "station status flags team"),
    },
    "ds2fms-tcp": VERSIONS
    | {
        0x15: USAGE,
        0x16: (
            "log_data",
            "trip_time_raw trip_time_ms lost_packets battery_volts status can_raw signal_db_raw bandwidth_mbps",
        ),
        0x17: ("error_and_event", "messages"),
        0x18: ("team_number", "team"),
        0x1B: ("challenge_response", "response"),
        0x1C: ("ping_1c", ""),
        0x1D: ("ping", ""),
        0x1E: ("ds_hello_2027", "udp_port flags team_text"),
    },
    "ds2rio-tcp": {
        0x02: (
            "joystick_descriptor",
            "index is_xbox joystick_type device_name axis_types button_count pov_count",
        ),
        0x07: MATCH_INFO,
        0x0E: ("game_data", "game_data"),
    },
    "rio2ds-tcp": {
        0x00: MESSAGE,
        0x01: USAGE,
        0x04: DISABLE,
        0x05: RAIL,
        0x0A: ("version_info", "device_type unknown can_id device_name version end_of_list"),
        0x0B: ("error_message", "timestamp_s sequence occurrences code flags details location call_stack"),
        0x0C: ("standard_output", "timestamp_s sequence text"),
        0x0D: ("unknown_0d", "raw_hex"),
    },
    "ds2dash-tcp": {
        0x00: MESSAGE,
        0x04: DISABLE,
        0x05: RAIL,
        0x07: MATCH_INFO,
        0x08: ("robot_ip", "ip"),
        0x09: ("db_mode", "flags"),
    },
}


def size_of(protocol):
    return sum(octets for _, _, octets in HEADERS[protocol])


def fields_with(protocol, offset, data):
    octets = bytearray(size_of(protocol))
    octets[offset : offset + len(data)] = data
    return frc_ds.to_fields(frc_ds.decode(protocol, bytes(octets)))


@pytest.mark.parametrize("protocol", HEADERS)
def test_header_fields_stand_where_the_table_says(protocol):
    assert list(fields_with(protocol, 0, b"")) == [key for key, _, _ in HEADERS[protocol]] + ["tags"]
    blank = fields_with(protocol, 0, b"")
    for key, offset, octets in HEADERS[protocol]:
        for at in range(offset, offset + octets):
            changed = fields_with(protocol, at, b"\x81")
            assert [name for name in blank if changed[name] != blank[name]] == [key]
        if octets == 2:
            value = fields_with(protocol, offset, b"\x12\x34")[key]
            assert value == (0x1234 / 256 if key == "battery_volts" else 0x1234)


def test_date_fields():
    blank = fields_with("fms2ds-udp", 0, b"")["date"]
    for key, offset, octets in DATE:
        value = int.from_bytes(bytes(range(1, octets + 1)))
        date = fields_with("fms2ds-udp", offset, value.to_bytes(octets))["date"]
        assert date[key] == value
        assert {name for name in blank if date[name] != blank[name]} - {"iso_month0", "iso_month1"} == {key}


@pytest.mark.parametrize(
    ("month", "iso0", "iso1"), [(0, "2024-01-31", None), (11, "2024-12-31", None), (12, None, "2024-12-31")]
)
def test_both_readings_of_the_month(month, iso0, iso1):
    date = fields_with("fms2ds-udp", 10, bytes([0, 0, 0, 7, 1, 2, 3, 31, month, 124]))["date"]
    assert date["iso_month0"] == (iso0 and f"{iso0}T03:02:01.000007")
    assert date["iso_month1"] == (iso1 and f"{iso1}T03:02:01.000007")


@pytest.mark.parametrize(
    "octets",
    [
        "ffffffff010203010579",
        "000f4240010203010579",
        "000000003c0203010579",
        "00000000013c03010579",
        "00000000010218010579",
        "00000000010203000579",
        "00000000010203200579",
    ],
)
def test_what_is_no_date_is_null(octets):
    date = fields_with("fms2ds-udp", 10, bytes.fromhex(octets))["date"]
    assert (date["iso_month0"], date["iso_month1"]) == (None, None)


@pytest.mark.parametrize(("protocol", "key"), BITS)
def test_every_value_of_every_flag_byte(protocol, key):
    bits = BITS[protocol, key]
    offset = next(offset for name, offset, _ in HEADERS[protocol] if name == key)
    has_mode = key in ("control", "status")
    for raw in range(256):
        expected = {"raw": raw} | ({"mode": MODES[raw & 3]} if has_mode else {})
        expected |= {name: raw & mask if name == "reserved" else bool(raw & mask) for name, mask in bits.items()}
        fields = fields_with(protocol, offset, bytes([raw]))
        assert fields[key] == expected
        assert frc_ds.encode(protocol, fields)[offset] == raw
        parts = {name: value for name, value in expected.items() if name != "raw"}
        if parts:
            assert frc_ds.encode(protocol, fields | {key: parts})[offset] == raw


@pytest.mark.parametrize(("protocol", "offset"), [("fms2ds-udp", 5), ("ds2rio-udp", 5)])
def test_every_station(protocol, offset):
    names = [("red", 1), ("red", 2), ("red", 3), ("blue", 1), ("blue", 2), ("blue", 3)]
    for raw in range(256):
        alliance, position = names[raw] if raw < 6 else (None, None)
        packet = frc_ds.decode(protocol, bytes(offset) + bytes([raw]) + bytes(size_of(protocol) - offset - 1))
        assert frc_ds.to_fields(packet)["station"] == {"raw": raw, "alliance": alliance, "position": position}
        assert (packet.station.alliance, packet.station.position) == (alliance, position)
        assert packet.unknown_values == (raw > 5)


def test_every_level():
    names = ["match_test", "practice", "qualification", "playoff"]
    for raw in range(256):
        fields = fields_with("fms2ds-udp", 6, bytes([raw]))
        assert fields["tournament_level"] == {"raw": raw, "name": names[raw] if raw < 4 else None}


@pytest.mark.parametrize(
    ("protocol", "frame", "at", "key", "names"),
    [
        ("fms2ds-tcp", "0003190000", 4, "status", {0: "good", 1: "bad", 2: "waiting", 3: "invalid_team"}),
        ("fms2ds-tcp", "00061f0000000000", 4, "status", {0: "good", 1: "bad", 2: "waiting", 3: "invalid_team"}),
        (
            "ds2rio-tcp",
            "0006070000000000",
            4,
            "match_type",
            {0: "none", 1: "practice", 2: "qualification", 3: "elimination"},
        ),
        (
            "rio2ds-tcp",
            "00070a000000000000",
            3,
            "device_type",
            {0: "software", 2: "can_talon", 8: "pdp", 9: "pcm", 21: "pigeon"},
        ),
    ],
)
def test_enumerations_of_frames(protocol, frame, at, key, names):
    for raw in range(256):
        data = bytearray.fromhex(frame)
        data[at] = raw
        packet = frc_ds.decode(protocol, bytes(data))
        fields = frc_ds.to_fields(packet)
        assert fields["frames"][0][key] == {"raw": raw, "name": names.get(raw)}
        assert packet.unknown_values == (raw not in names)
        assert frc_ds.encode(protocol, fields) == data


@pytest.mark.parametrize("protocol", TAGS)
def test_tags_and_their_keys(protocol):
    table = frc_ds.PROTOCOLS[protocol].table
    assert {number: kind.NAME for number, kind in table.classes.items()} == {
        number: name for number, (name, _) in TAGS[protocol].items()
    }
    seen = {}
    for data in (bytes(length) for length in range(60)):
        for number in TAGS[protocol]:
            size = (len(data) + 1).to_bytes(2 if table.stream else 1)
            octets = b"" if table.stream else bytes(size_of(protocol))
            fields = frc_ds.to_fields(frc_ds.decode(protocol, octets + size + bytes([number]) + data))
            (tag,) = fields["frames" if table.stream else "tags"]
            if tag["name"] is not None:
                seen[number] = (tag["name"], set(tag) - {"id", "size", "name"})
    assert seen == {number: (name, set(keys.split())) for number, (name, keys) in TAGS[protocol].items()}


def test_all_protocols_and_packet_names():
    assert set(frc_ds.PROTOCOLS) == set(TAGS)
    names = {name: frc_ds.packet_name(name) for name in HEADERS}
    assert names == {
        "fms2ds-udp": "fms_control",
        "ds2fms-udp": "ds_status",
        "ds2rio-udp": "ds_control",
        "rio2ds-udp": "rio_status",
    }
    with pytest.raises(ValueError, match="unknown protocol"):
        frc_ds.decode("fms2ds", b"")
    with pytest.raises(ValueError, match="no stream"):
        frc_ds.FrameReader("fms2ds-udp")
