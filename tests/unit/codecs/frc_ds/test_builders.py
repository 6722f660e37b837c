from datetime import UTC, datetime

import pytest

from aoabridge.codecs import frc_ds
from aoabridge.codecs.frc_ds import builders
from aoabridge.codecs.frc_ds.fms_ds import EventCode
from aoabridge.errors import EncodeError

NOON = datetime(2026, 12, 30, 11, 59, 27, 394018, UTC)


def fms(**more):
    values = {"mode": "autonomous", "enabled": True, "station": 3, "moment": NOON, "remaining_time_s": 15}
    return builders.build_fms_control(65536, **values | more)


def test_fms_control_counts_months_from_zero_and_versions_from_zero():
    fields = frc_ds.to_fields(fms())
    assert (fields["sequence"], fields["comm_version"], fields["request"]["raw"]) == (0, 0, 0)
    assert fields["date"]["month"] == 11
    assert fields["date"]["iso_month0"] == "2026-12-30T11:59:27.394018"
    assert frc_ds.to_fields(fms(month_base=1))["date"]["month"] == 12
    assert fields["tags"] == []
    assert frc_ds.encode("fms2ds-udp", fms())[3] == 0x06
    assert fms().date.to_datetime() == NOON


def test_game_data_is_never_cut():
    assert frc_ds.encode("fms2ds-udp", fms(game_data="12345678"))[22:] == b"\x09\x2012345678"
    with pytest.raises(EncodeError):
        fms(game_data="123456789")
    with pytest.raises(EncodeError):
        fms(game_data="ääääx")


def test_the_other_three():
    status = builders.build_ds_status(7, team=1503, mode="teleop", enabled=True, battery_volts=12.5)
    assert frc_ds.encode("ds2fms-udp", status).hex() == "0007003c05df0c80"
    control = builders.build_ds_control(1, mode="test", enabled=False, station=5, fms_attached=True)
    assert frc_ds.encode("ds2rio-udp", control).hex() == "000101091005"
    rio = builders.build_rio_status(1, mode="autonomous", enabled=True, battery_volts=12.5, request_date=True)
    assert frc_ds.encode("rio2ds-udp", rio).hex() == "00010106340c8001"
    idle = builders.build_rio_status(1, mode="autonomous", enabled=False, battery_volts=12.5)
    assert idle.trace.disabled
    assert not idle.trace.autonomous


def test_an_event_code_keeps_its_year():
    run = frc_ds.TcpFrames((EventCode("2026casj"),))
    assert frc_ds.encode("fms2ds-tcp", run) == b"\x00\x0a\x14\x082026casj"
