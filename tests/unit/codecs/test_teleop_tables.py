"""The remote-driving document row by row: ports, numbers of each datagram, and what each number means.

Offsets and sizes are held against C structures in ``test_teleop.py``.
"""

import pytest

from aoabridge.codecs import teleop
from aoabridge.codecs.teleop import Downlink, HomeCtrl, HomeTrigger, Uplink
from aoabridge.sources.settings import DEFAULT_UPLINK_PORT, TeleopSettings
from aoabridge.sources.teleop import TeleopSource

VEHICLES = (0x00A, 0x00B, 0x00C)


def test_ports_of_the_document() -> None:
    settings = TeleopSettings()
    assert DEFAULT_UPLINK_PORT == 10010  # UI_PORT
    assert settings.trigger_port == 10013  # STATE_PORT
    assert settings.ctrl_port == 10015  # LOCAL_PORT
    listened = {endpoint.port for endpoint in TeleopSource(settings, "x").endpoints()}
    assert listened == {10010, 10013, 10015}  # and nothing is sent: PANOSIM_IP is no default


@pytest.mark.parametrize(
    ("packet", "head"),
    [
        (Uplink(10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), "aa0af10a"),
        (Downlink(10, 0, 0, 0, 0, 0, 0), "aa0af10a"),
        (HomeCtrl(10, 0, 0, 0, 0, 0), "000a010a"),
        (HomeTrigger(0), "10001100"),
    ],
)
def test_header_and_id(packet: teleop.TeleopPacket, head: str) -> None:
    assert teleop.encode(packet)[:4].hex() == head


@pytest.mark.parametrize(
    ("field", "names"),
    [
        ("vehicle_state", {0: "normal", 1: "fault"}),
        ("ctrl_sign", {0: "auto", 1: "remote"}),
        ("ctrl_info", {0: "none", 1: "takeover_request", 2: "vehicle_fault"}),
        ("ctrl_state", {0: "nothing", 1: "remote", 2: "sync"}),
    ],
)
def test_meanings(field: str, names: dict[int, str]) -> None:
    for number in range(-1, 5):
        assert teleop.label(field, number) == names.get(number, f"unknown({number})")


def test_documented_ranges() -> None:
    assert teleop.DEFAULT_VEHICLES == VEHICLES
    assert all(teleop.check(Downlink(vehicle, 0, 100, 0, 1, 0, 0)) == [] for vehicle in VEHICLES)
    assert teleop.check(Downlink(13, 0, 101, -1, 2, 1, 0)) == [
        "out_of_range:rc_acc_pedal",
        "out_of_range:rc_brake_pedal",
        "reserved_nonzero:unused",
        "unknown_enum:ctrl_sign",
        "unknown_vehicle:vehicle_id",
    ]
    assert teleop.check(HomeCtrl(0, 0, 0, 100, 100, 5)) == []  # 0 = no vehicle is observed
    assert teleop.check(Uplink(10, 2, 0, 0, 0, 0, 0, 0, 3, 0, 1)) == [
        "reserved_nonzero:unused0",
        "undocumented:ctrl_info",
        "unknown_enum:vehicle_state",
    ]
