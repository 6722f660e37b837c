"""USB checks against an emulated sysfs: who may be opened, who is unknown, what is missing."""

from pathlib import Path

import pytest

from aoabridge.cli.checks.result import Outcome
from aoabridge.cli.checks.usb import device_checks, host_checks, rule_checks
from aoabridge.phone.filter import DeviceRules


def device(root: Path, port: str, ids: tuple[str, str], interface: tuple[str, str, str]) -> None:
    attributes = {
        "idVendor": ids[0],
        "idProduct": ids[1],
        "busnum": "1",
        "devnum": port.rpartition("-")[2],
        "devpath": port.rpartition("-")[2],
        "serial": "ABCD1234",
        "manufacturer": "Maker",
        "product": "Phone",
        "speed": "480",
        "bDeviceClass": "00",
        "bDeviceSubClass": "00",
        "bDeviceProtocol": "00",
        "bConfigurationValue": "1",
        "authorized": "1",
    }
    triple = zip(("bInterfaceClass", "bInterfaceSubClass", "bInterfaceProtocol"), interface, strict=True)
    interfaces = {"bInterfaceNumber": "00", **dict(triple), "interface": "MTP"}
    for folder, values in ((port, attributes), (f"{port}:1.0", interfaces)):
        path = root / "sys/bus/usb/devices" / folder
        path.mkdir(parents=True)
        for name, value in values.items():
            (path / name).write_text(value + "\n")


def test_a_kernel_without_usb_and_one_without_a_controller(tmp_path: Path) -> None:
    (check,) = host_checks(tmp_path)
    assert (check.code, check.outcome) == ("usb-none", Outcome.FAIL)
    assert "kernel" in (check.fix or "")
    (tmp_path / "sys/bus/usb/devices").mkdir(parents=True)
    (check,) = host_checks(tmp_path)
    assert check.fix == "Use the board's USB-A port, enable the controller"
    (tmp_path / "sys/bus/usb/devices/usb1").mkdir()
    (check,) = host_checks(tmp_path)
    assert check.outcome is Outcome.PASS


def test_the_rule_is_looked_for_where_udev_looks(tmp_path: Path) -> None:
    (check,) = rule_checks(tmp_path)
    assert (check.outcome, check.fix) == (Outcome.FAIL, "`sudo aoabridge service install`")
    (tmp_path / "etc/udev/rules.d").mkdir(parents=True)
    (tmp_path / "etc/udev/rules.d/70-aoabridge.rules").write_text("")
    (check,) = rule_checks(tmp_path)
    assert check.text == "udev rule: /etc/udev/rules.d/70-aoabridge.rules"


@pytest.mark.parametrize("opens", [True, False])
def test_a_phone_that_may_not_be_opened_fails_with_the_cure(tmp_path: Path, opens: bool) -> None:
    device(tmp_path, "1-1", ("04e8", "6860"), ("06", "01", "01"))
    (check,) = device_checks(tmp_path, DeviceRules(), lambda _: opens)
    assert (check.code, check.subject) == ("usb-permission", "1-1")
    assert check.outcome is (Outcome.PASS if opens else Outcome.FAIL)
    assert opens or "udevadm trigger" in (check.fix or "")


def test_a_phone_of_an_unknown_maker_gets_both_lines_to_add(tmp_path: Path) -> None:
    device(tmp_path, "1-1", ("2b4c", "1013"), ("06", "01", "01"))
    (check,) = device_checks(tmp_path, DeviceRules(), lambda _: True)
    assert (check.code, check.outcome) == ("usb-unlisted", Outcome.WARN)
    assert 'allow = ["2b4c:*"]' in (check.fix or "")
    assert 'ATTR{idVendor}=="2b4c"' in (check.fix or "")


def test_nothing_but_a_keyboard_is_no_phone(tmp_path: Path) -> None:
    device(tmp_path, "1-1", ("046d", "c31c"), ("03", "01", "01"))
    (check,) = device_checks(tmp_path, DeviceRules(), lambda _: True)
    assert check.text == "No phone is plugged in"
