"""The whole file is right or nothing of it is used; every fault is named where it stands."""

from pathlib import Path

import pytest

from aoabridge.config import Config, load_config, parse_config, rendered
from aoabridge.config.diff import flat
from aoabridge.config.loader import default_config, default_name

EXAMPLE = (Path(__file__).parents[2] / "vectors" / "config_example.toml").read_text()
EXAMPLE_ONLY = {"name", "nt.team"}


def faults(text: str) -> list[tuple[str, int, int, str]]:
    result = parse_config(text, "f.toml", host="box", own=lambda host: host in {"127.0.0.1", "0.0.0.0", "10.9.9.9"})
    assert (result.config is None) == bool(result.errors)
    return [(str(error.key), error.line or 0, error.column or 0, str(error)) for error in result.errors]


def test_the_annotated_example_parses_and_equals_the_defaults_where_it_is_not_an_example() -> None:
    loaded = parse_config(EXAMPLE, "example.toml").config
    assert loaded is not None
    shown, defaults = flat(loaded), flat(default_config("pi-left"))
    assert {key for key in shown if shown[key] != defaults.get(key)} - EXAMPLE_ONLY == {
        "device[pixel7].name",
        "device[pixel7].serial",
        "device[pixel7].port",
        *(f"device[pixel7].{name}" for name in ("put_allow", "put_deny", "subscribe_allow", "subscribe_deny")),
    }
    assert loaded.device[0].put_deny == ("/RoboRoute/Run*",)


# (text, key, line, column, part of the message); the column is the value's, that of the key if the key is the fault
ONE_FAULT = [
    ("schema = true", "schema", 1, 10, "not an integer"),
    ("schema = 0", "schema", 1, 10, "not in 1..1"),
    ("schema = 2", "schema", 1, 10, "newer"),
    ('name = "Pi Left"', "name", 1, 8, "made of a-z"),
    ("name = 5", "name", 1, 8, "not a text"),
    ("relay = { max_line_bytes = 4095 }", "relay.max_line_bytes", 1, 28, "4096..16777216"),
    ("relay = { put_rate = 5001 }", "relay.put_rate", 1, 22, "1..5000"),
    ("relay = { put_burst = 0 }", "relay.put_burst", 1, 23, "1.."),
    ("relay = { max_subscriptions = 20001 }", "relay.max_subscriptions", 1, 31, "1..20000"),
    ("relay = { sample_lane = 0 }", "relay.sample_lane", 1, 25, "1.."),
    ("relay = { error_lines_per_s = 0 }", "relay.error_lines_per_s", 1, 31, "1.."),
    ("relay = 5", "relay", 1, 9, "not a table"),
    ('log = { level = "loud" }', "log.level", 1, 17, "debug, info"),
    ('log = { format = "xml" }', "log.format", 1, 18, "auto, text, json"),
    ("log = { ring = 1 }", "log.ring", 1, 16, "not in"),
    ('log = { levels = { "aoabridge.adapters.usb" = "loud" } }', "log.levels.aoabridge.adapters.usb", 1, 47, "debug"),
    ('[record]\nenabled = "yes"', "record.enabled", 2, 11, "true or false"),
    ('[record]\ndir = "rel/ative"', "record.dir", 2, 7, "absolute"),
    ("[record]\ntopics = [1]", "record.topics", 2, 11, "not a text"),
    ("[record]\nphone_lines = 1", "record.phone_lines", 2, 15, "true or false"),
    ("[record]\nrotate_mib = 0", "record.rotate_mib", 2, 14, "not in"),
    ("[record]\nkeep_mib = 0", "record.keep_mib", 2, 12, "not in"),
    ("[record]\nmin_free_mib = -1", "record.min_free_mib", 2, 16, "not in"),
    ("[nt]\nteam = 99999", "nt.team", 2, 8, "99999 is not in 1..25599"),
    ('[nt]\nteam = "6458"', "nt.team", 2, 8, "not an integer"),
    ('[nt]\nserver = "6458"', "nt.server", 2, 10, "not a server"),
    ('[nt]\nserver = ["10.0.0.2", "a b"]', "nt.server", 2, 23, "not a host name"),
    ("[nt]\nserver = []", "nt.server", 2, 10, "empty"),
    ('[nt]\nserver = "a:99999"', "nt.server", 2, 10, "not a host name"),
    ("[nt]\nembedded = 1", "nt.embedded", 2, 12, "true or false"),
    ('[nt]\nlisten = "here"', "nt.listen", 2, 10, "not an IP address"),
    ("[nt]\nport = 0", "nt.port", 2, 8, "1..65535"),
    ("[nt]\nperiod_ms = 15", "nt.period_ms", 2, 13, "multiple of 10"),
    ("[nt]\nperiod_ms = 4", "nt.period_ms", 2, 13, "5..1000"),
    ("[nt]\nstatus = 0", "nt.status", 2, 10, "true or false"),
    ('[nt]\nalerts = "Alerts"', "nt.alerts", 2, 10, "own group"),
    ('[nt]\nelastic = "no"', "nt.elastic", 2, 11, "true or false"),
    ("[nt]\nteam = 1\nembedded = true", "nt.embedded", 3, 12, "excludes nt.team"),
    ('[nt]\nteam = 1\nserver = "a"', "nt.server", 3, 10, "excludes nt.team"),
    (f'[phone]\nmanufacturer = "{"x" * 256}"', "phone.manufacturer", 2, 16, "255 bytes"),
    ("[phone]\nmodel = 1", "phone.model", 2, 9, "not a text"),
    ("[phone]\nversion = 1.2", "phone.version", 2, 11, "not a text"),
    ('[phone]\ndescription = "a\\u0000b"', "phone.description", 2, 15, "control characters"),
    ("[phone]\nuri = []", "phone.uri", 2, 7, "not a text"),
    ("[phone]\nserial = 5", "phone.serial", 2, 10, "not a text"),
    ("[phone]\nheartbeat = 1", "phone.heartbeat", 2, 13, "true or false"),
    ("[phone]\ntopics_period_s = 11.5", "phone.topics_period_s", 2, 19, "1..11"),
    ("[phone]\ntopics_period_s = nan", "phone.topics_period_s", 2, 19, "1..11"),
    ("[devices]\nmax = 9", "devices.max", 2, 7, "1..8"),
    ('[devices]\naccept = "all"', "devices.accept", 2, 10, "known-makers"),
    ('[devices]\nallow = ["2b4c"]', "devices.allow", 2, 10, "vid:pid"),
    ('[devices]\ndeny = ["2b4c:*", "nonsense"]', "devices.deny", 2, 19, "serial:"),
    ("[devices]\nreset_stuck = 1", "devices.reset_stuck", 2, 15, "true or false"),
    ("[devices]\nsimulated = 1", "devices.simulated", 2, 13, "true or false"),
    ('[[device]]\nname = "a"', "device[0]", 1, 1, "needs serial or port"),
    ('[[device]]\nserial = "x"', "device[0].name", 1, 1, "is missing"),
    ('[[device]]\nname = "A"\nserial = "x"', "device[0].name", 2, 8, "made of a-z"),
    ('[[device]]\nname = "a"\nserial = ""', "device[0].serial", 3, 10, "a serial number"),
    ('[[device]]\nname = "a"\nport = "usb3"', "device[0].port", 3, 8, "a port such as"),
    ('[[device]]\nname = "a"\nserial = "x"\nput_deny = [""]', "device[0].put_deny", 4, 13, "a pattern"),
    ('[[device]]\nname="a"\nserial="x"\n[[device]]\nname = "a"\nport="1-1"', "device[1].name", 5, 8, "names two"),
    ('[[device]]\nname="a"\nserial="x"\n[[device]]\nname="b"\nserial="x"', "device[1].serial", 6, 8, "named already"),
    ('[device]\nname = "a"\nserial = "x"', "device", 1, 1, "[[device]]"),
    ('[access]\nput_allow = "*"', "access.put_allow", 2, 13, "not a list"),
    ("[access]\nput_deny = [1]", "access.put_deny", 2, 13, "not a text"),
    ("[access]\nsubscribe_allow = 0", "access.subscribe_allow", 2, 19, "not a list"),
    (f"[access]\nsubscribe_deny = {['/x'] * 257}".replace("'", '"'), "access.subscribe_deny", 2, 18, "limit is 256"),
    ('[web]\nenabled = "no"', "web.enabled", 2, 11, "true or false"),
    ("[web]\nport = 70000", "web.port", 2, 8, "1..65535"),
    ('[web]\nbind = "all"', "web.bind", 2, 8, "not an IP address"),
    ('[web]\nallow_from = ["private", "10.0.0.1/8"]', "web.allow_from", 2, 26, "host bits"),
    ('[web]\nhosts = ["a b"]', "web.hosts", 2, 10, "host name"),
    ("[web]\ncontrol = true", "web.control", 2, 11, "needs web.token_file"),
    ('[web]\ntoken_file = "t"', "web.token_file", 2, 14, "absolute"),
    ("[sources]\nfrc = 5", "sources.frc", 2, 7, "not a table"),
    ("[sources]\nfrc = { month_base = 2 }", "sources.frc.month_base", 2, 22, "0..1"),
    ('[sources.frc]\nlisten = ["ds2rio-udp:0"]', "sources.frc.listen", 2, 11, "port from 1"),
    ('[sources.frc]\nlisten = ["nt:1"]', "sources.frc.listen", 2, 11, "does not begin"),
    ('[sources.frc]\nlisten = ["ds2rio-udp:9", "rio2ds-udp:9"]', "sources.frc.listen", 2, 27, "twice"),
    ('[sources.frc]\nconnect = ["fms2ds-tcp@10.0.0.1:1750"]', "sources.frc.connect", 2, 12, "driver station"),
    ('[sources.frc]\nbind = "0.0.0.0"', "sources.frc.bind", 2, 8, "allow_from"),
    ('[sources.frc]\nrumble_order = "up"', "sources.frc.rumble_order", 2, 16, "left-right"),
    ("[sources.frc]\nstale_ms = { fms = 1 }", "sources.frc.stale_ms.fms", 2, 20, "10..60000"),
    ("[sources.frc]\nstale_ms = { fmz = 100 }", "sources.frc.stale_ms.fmz", 2, 14, "unknown key"),
    ("[sources.frc]\nforget_s = 0.4", "sources.frc.forget_s", 2, 12, "0.5..60"),
    ("[sources.frc]\nmax_rate = 5001", "sources.frc.max_rate", 2, 12, "1..5000"),
    ("[sources.j519]\nport = 0", "sources.j519.port", 2, 8, "1..65535"),
    ("[sources.j519]\nversion = 65536", "sources.j519.version", 2, 11, "0..65535"),
    ('[sources.j519]\nversion = "ask"', "sources.j519.version", 2, 11, "query"),
    ("[sources.j519]\nversion = true", "sources.j519.version", 2, 11, "query"),
    ("[sources.j519]\npublish_hz = 501", "sources.j519.publish_hz", 2, 14, "0..500"),
    ("[sources.j519]\naxes = 10", "sources.j519.axes", 2, 8, "1..9"),
    ('[sources.j519]\nhost = "1.2.3.4"\nbyte_order = "auto"', "sources.j519.byte_order", 3, 14, "passive"),
    ('[sources.j519]\ngeneration = "driver"\nversion = 2', "sources.j519.version", 3, 11, "3, 4"),
    ('[[sources.j519]]\nname="a"\n[[sources.j519]]\nname = "a"', "sources.j519[1].name", 4, 8, "two sources"),
    ("[sources.teleop]\nvehicles = [0]", "sources.teleop.vehicles", 2, 13, "1..32767"),
    ("[sources.teleop]\nvehicle_ports = [10013]", "sources.teleop.vehicle_ports", 2, 17, "port 10013"),
    ("[sources.teleop]\nvehicle_ports = [10010]", "sources.teleop.vehicle_ports", 2, 17, "taken by port"),
    ('[sources.teleop]\nforward_ui = "127.0.0.1:10010"', "sources.teleop.forward_ui", 2, 14, "endless loop"),
    ('[sources.teleop]\nforward_panosim = "0.0.0.0:10015"', "sources.teleop.forward_panosim", 2, 19, "endless loop"),
    ('[sources.teleop]\nforward_ui = "10.9.9.9:10013"', "sources.teleop.forward_ui", 2, 14, "endless loop"),
    ('[sources.teleop]\nforward_ui = "10.9.9.9"', "sources.teleop.forward_ui", 2, 14, "host:port"),
    ('[sources.teleop]\ndownlink_relay = "10.1.1.1:9"', "sources.teleop.downlink_relay", 2, 18, "needs downlink_ports"),
    ('[sources.teleop]\nvehicle_names = { 00A = "Link" }', "sources.teleop.vehicle_names.00A", 2, 25, "free name"),
    ('[sources.teleop]\nvehicle_names = { 00A="x", 00B="x" }', "sources.teleop.vehicle_names", 2, 17, "one name"),
    ("[sources.teleop]\nscale = { speed_kmh = 0 }", "sources.teleop.scale.speed_kmh", 2, 23, "not allowed"),
    ("[sources.teleop]\nscale = { speed_kmh = -1.0 }", "sources.teleop.scale.speed_kmh", 2, 23, "not in"),
    ("[sources.teleop]\nscale = { speed_kmh = inf }", "sources.teleop.scale.speed_kmh", 2, 23, "not in"),
    ("[sources.teleop]\nscale = { speed = 1.0 }", "sources.teleop.scale.speed", 2, 19, "unknown key"),
]


@pytest.mark.parametrize(("text", "key", "line", "column", "message"), ONE_FAULT, ids=[row[0] for row in ONE_FAULT])
def test_one_mistake_is_one_error_at_its_place(text: str, key: str, line: int, column: int, message: str) -> None:
    found = faults(text)
    assert [item[:3] for item in found] == [(key, line, column)], found
    assert message in found[0][3]


def example_keys() -> list[tuple[int, str]]:
    """Line number and line of every ``key = value`` of the example that is not commented out."""
    lines = EXAMPLE.splitlines()
    return [(n, line) for n, line in enumerate(lines, 1) if "=" in line.split("#")[0]]


@pytest.mark.parametrize(("number", "line"), example_keys())
def test_a_misspelt_key_of_the_example_is_one_error_at_the_key(number: int, line: str) -> None:
    lines = EXAMPLE.splitlines()
    name = line.partition("=")[0].strip()
    lines[number - 1] = line.replace(name, name[:1] + "x" + name[1:], 1)
    found = faults("\n".join(lines))
    assert [(item[1], item[2]) for item in found] == [(number, 1)], found
    assert "unknown key" in found[0][3]


@pytest.mark.parametrize(("number", "line"), example_keys())
def test_a_value_of_another_type_in_the_example_is_one_error_at_the_value(number: int, line: str) -> None:
    lines = EXAMPLE.splitlines()
    name = line.partition("=")[0]
    lines[number - 1] = f"{name}= 1979-05-27"
    found = faults("\n".join(lines))
    assert [(item[1], item[2]) for item in found] == [(number, len(name) + 3)], found


def test_all_errors_of_a_file_are_listed_in_the_order_of_their_lines() -> None:
    text = 'name = "X"\n[nt]\nteam = 0\nprot = 5\n[web]\ncontrol = true\n[[device]]\nname = "p"\n'
    assert [item[:2] for item in faults(text)] == [
        ("name", 1),
        ("nt.team", 3),
        ("nt.prot", 4),
        ("web.control", 6),
        ("device[0]", 7),
    ]


def test_hints_name_the_nearest_key_or_the_section_that_has_it() -> None:
    def hint(text: str) -> str | None:
        return parse_config(text, "f").errors[0].hint

    assert hint("[access]\nput_denny = []") == 'did you mean "put_deny"?'
    assert hint("team = 6458") == "there is nt.team"
    assert hint('[nt]\nserver = "6458"') == "that is a team number: use nt.team"
    assert hint("[nt]\nserver = 6458") == "that is a team number: use nt.team"


def test_a_device_error_names_index_and_name() -> None:
    error = parse_config('[[device]]\nname = "pixel7"\nserial = "x"\nport = 3', "f").errors[0]
    assert error.key == "device[0].port"
    assert 'device "pixel7"' in str(error)


def test_an_error_is_shown_with_file_line_column_and_key() -> None:
    error = parse_config("[nt]\nteam = 99999", "/etc/aoabridge.toml").errors[0]
    assert rendered(error) == "/etc/aoabridge.toml:2:8: nt.team: 99999 is not in 1..25599"


@pytest.mark.parametrize(
    ("text", "line", "column"), [("x = [1\n", 2, 1), ("a = 1\nb = = 2", 2, 5), ("a = 1\na = 2", 2, 6)]
)
def test_a_syntax_error_has_line_and_column(text: str, line: int, column: int) -> None:
    errors = parse_config(text, "f").errors
    assert [(error.line, error.column, error.key) for error in errors] == [(line, column, None)]


@pytest.mark.parametrize("depth", [*range(300, 360), 5000])
def test_a_text_that_is_nested_too_deeply_is_one_error(depth: int) -> None:
    for opening, closing in (("[", "]"), ("{a=", "}")):
        errors = parse_config(f"x = {opening * depth}1{closing * depth}", "f").errors
        assert len(errors) == 1
        assert str(errors[0]) in {"nested too deeply", "unknown key"}


def test_an_empty_list_of_sources_is_as_none_written() -> None:
    config = parse_config("[sources]\nfrc = []\n", "f", host="box").config
    assert config == default_config("box")


def test_a_missing_file_means_the_defaults(tmp_path: Path) -> None:
    result = load_config(tmp_path / "none.toml", host="Pit_Pi.local")
    assert result.source == "defaults"
    assert result.config is not None
    assert result.config.name == "pit-pi"
    assert result.config.sources.teleop[0].name == "pit-pi"


def test_a_file_that_is_too_long_not_text_or_a_directory_is_one_error(tmp_path: Path) -> None:
    long, binary = tmp_path / "long", tmp_path / "binary"
    long.write_text("#" * (256 * 1024 + 1))
    binary.write_bytes(b"a = 1\nb = '\xff'")
    assert "256 KiB" in str(load_config(long).errors[0])
    error = load_config(binary).errors[0]
    assert (error.line, error.column) == (2, 6)
    assert "cannot be read" in str(load_config(tmp_path).errors[0])


def test_more_than_64_devices_are_refused_with_the_limit() -> None:
    text = "".join(f'[[device]]\nname = "d{n}"\nserial = "s{n}"\n' for n in range(65))
    assert faults(text) == [("device", 1, 1, "65 entries, the limit is 64")]


def test_host_names_become_bridge_names() -> None:
    names = [default_name(host) for host in ("raspberrypi", "Pi.local", "a_b c", "---", "x" * 40)]
    assert names == ["raspberrypi", "pi", "a-b-c", "aoabridge", "x" * 32]


def test_several_sources_keep_their_names_and_take_the_bridges_if_they_have_none() -> None:
    text = 'name = "b"\n[[sources.j519]]\nname = "arm"\n[[sources.j519]]\nport = 60016\n'
    config = parse_config(text, "f").config
    assert isinstance(config, Config)
    assert [source.name for source in config.sources.j519] == ["arm", "b"]
