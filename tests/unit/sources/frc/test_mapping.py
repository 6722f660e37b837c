"""Every row of the mapping cases, through the source."""

import json
from pathlib import Path

import pytest

from aoabridge.codecs.wpistruct import SchemaRegistry
from aoabridge.sources.frc import FrcSettings, FrcSource
from aoabridge.sources.frc.tables import control_word, fms_control_data, station_values
from aoabridge.values import Publication

CASES = json.loads((Path(__file__).parents[3] / "vectors" / "frc_nt_mapping.json").read_text())
ROOT = "/FRC/bench/"
SENDER = ("127.0.0.1", 5000)
SUMS = {"Robot/Console/Errors", "Robot/Console/Warnings"}


def of_kind(kind):
    rows = [case for case in CASES if case["kind"] == kind]
    return pytest.mark.parametrize("case", rows, ids=[case["name"] for case in rows])


def published(source):
    """Last value of every topic below the root, and the schemas."""
    topics, schemas = {}, {}
    for item in source.take_publications():
        assert isinstance(item, Publication)
        if item.topic.startswith("/.schema/"):
            schemas[item.topic.removeprefix("/.schema/struct:")] = item.value.decode()
        else:
            assert item.topic.startswith(ROOT)
            topics[item.topic.removeprefix(ROOT)] = item
    return topics, schemas


@of_kind("publications")
@pytest.mark.parametrize("chunk", [0, 1])
def test_publications(case, chunk):
    protocol = case["protocol"]
    key = f"{protocol}:40000"
    options = {"month_base": case["input"]["month_base"]} if "month_base" in case["input"] else {}
    source = FrcSource(FrcSettings(listen=(key,), **options), "bench")
    data = bytes.fromhex(case["input"]["hex"])
    if protocol.endswith("-udp"):
        source.on_datagram(key, data, SENDER, 10.0)
    else:
        source.on_connection(key, 1, SENDER, 10.0)
        for at in range(0, len(data), chunk or len(data)):
            source.on_stream(key, 1, data[at : at + (chunk or len(data))], 10.0)
    topics, schemas = published(source)
    topics = {name: item for name, item in topics.items() if not name.startswith("Link/") and name not in SUMS}
    assert topics.keys() == case["expect"].keys()
    registry = SchemaRegistry()
    for name, text in schemas.items():
        registry.add(name, text)
    for name, expected in case["expect"].items():
        item = topics[name]
        assert item.type == expected["type"], name
        if "hex" in expected:
            assert item.value.hex() == expected["hex"]
            assert item.keep_all
            struct_name = item.type.removeprefix("struct:").removesuffix("[]")
            codec = registry.codec(struct_name)
            assert len(item.value) % codec.size == 0
        elif item.type.startswith("double"):
            assert item.value == pytest.approx(expected["value"], rel=1e-12, abs=1e-12)
        else:
            assert item.value == expected["value"]
            assert type(item.value) is type(expected["value"])


def as_expected(data, word):
    return {"FMSControlData": data, "ControlWord": word, "ControlWord_hex": word.to_bytes(8, "little").hex()}


@of_kind("ds2rio_control")
def test_ds2rio_control(case):
    control, request = case["input"]["control"], case["input"]["request"]
    links = {"fms": bool(control & 0x08), "ds": bool(request & 0x10)}
    assert as_expected(fms_control_data(control, **links), control_word(control, **links)) == case["expect"]
    source = table_source("ds2rio-udp:1110", "ds2rio")
    source.on_datagram("ds2rio-udp:1110", bytes([0, 1, 1, control, request, 0]), SENDER, 1.0)
    assert_tables(source, case["expect"])


@of_kind("fms2ds_control")
def test_fms2ds_control(case):
    control, linked = case["input"]["control"], case["input"]["ds_linked"]
    links = {"fms": True, "ds": linked}
    assert as_expected(fms_control_data(control, **links), control_word(control, **links)) == case["expect"]
    source = table_source("fms2ds-udp:1121", "fms2ds", "ds2fms-udp:1160")
    source.on_datagram("ds2fms-udp:1160", bytes(8), SENDER, 8.5 if linked else 7.9)
    source.on_datagram("fms2ds-udp:1121", bytes([0, 1, 0, control, *bytes(18)]), SENDER, 9.0)
    assert_tables(source, case["expect"])


@of_kind("station")
def test_station(case):
    assert station_values(case["input"]["station"]) == case["expect"]
    source = table_source("fms2ds-udp:1121", "fms2ds")
    source.on_datagram("fms2ds-udp:1121", bytes([*bytes(5), case["input"]["station"], *bytes(16)]), SENDER, 9.0)
    values = {item.topic: item.value for item in source.take_publications()}
    expected = {name: value for name, value in case["expect"].items() if value is not None}
    for name in case["expect"]:
        assert values.get(f"/DriverStation/{name}") == expected.get(name)
        if name != "AllianceStationID":
            assert values.get(f"/FMSInfo/{name}") == expected.get(name)


@of_kind("tournament_level")
def test_tournament_level(case):
    source = table_source("fms2ds-udp:1121", "fms2ds")
    header = [*bytes(6), case["input"]["tournament_level"], *bytes(15)]
    source.on_datagram("fms2ds-udp:1121", bytes(header), SENDER, 9.0)
    values = {item.topic: item.value for item in source.take_publications()}
    assert values.get("/FMSInfo/MatchType") == case["expect"]["MatchType"]
    assert values.get("/DriverStation/MatchType") == case["expect"]["MatchType"]


def table_source(key, info_from, *more):
    settings = FrcSettings(
        listen=(key, *more), write_fms_info=True, write_driver_station=True, info_from=info_from, name="bench"
    )
    source = FrcSource(settings, "other")
    for table in ("/FMSInfo", "/DriverStation"):
        source.on_table_owner(table, False, 0.0)
    return source


def assert_tables(source, expect):
    values = {item.topic: item for item in source.take_publications()}
    assert values["/FMSInfo/FMSControlData"].value == expect["FMSControlData"]
    word = values["/DriverStation/ControlWord"]
    assert word.type == "struct:ControlWord"
    assert word.value.hex() == expect["ControlWord_hex"]
    assert int.from_bytes(word.value, "little") == expect["ControlWord"]
