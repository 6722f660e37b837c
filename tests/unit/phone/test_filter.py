from typing import Any

import pytest

from aoabridge.phone.aoa import UsbDevice, UsbInterface
from aoabridge.phone.filter import Decision, DeviceName, DeviceRules, decide

ANY = DeviceRules(accept="any")


def device(ids: str = "04e8:6860", *interfaces: str, **more: Any) -> UsbDevice:
    vendor, product = (int(part, 16) for part in ids.split(":"))
    listed = []
    for number, text in enumerate(interfaces):
        triple, _, string = text.partition("=")
        listed.append(UsbInterface(number, *(int(part, 16) for part in triple.split("/")), string))
    return UsbDevice("1-1", vendor, product, 1, 5, interfaces=tuple(listed), **more)


def with_driver(ids: str, driver: str) -> UsbDevice:
    return UsbDevice(
        "1-1", int(ids[:4], 16), int(ids[5:], 16), 1, 5, interfaces=(UsbInterface(0, 255, 0, 0, "", driver),)
    )


MTP = "06/01/01"
ADB = "ff/42/01"

ROWS: list[tuple[str, UsbDevice, DeviceRules, Decision, int]] = [
    ("deny beats accessory", device("18d1:2d00"), DeviceRules(deny=("18d1:2d0*",)), Decision.IGNORE, 1),
    ("deny beats allow", device(), DeviceRules(deny=("04e8:*",), allow=("04e8:6860",)), Decision.IGNORE, 1),
    ("deny by port", device(), DeviceRules(deny=("port:1-1",)), Decision.IGNORE, 1),
    ("deny by serial", device(serial="X1"), DeviceRules(deny=("serial:X1",)), Decision.IGNORE, 1),
    ("apple with adb", device("05ac:12a8", ADB), ANY, Decision.IGNORE, 1),
    ("root hub", device("1d6b:0002"), ANY, Decision.IGNORE, 1),
    ("hub", device("04e8:2514", klass=9), ANY, Decision.IGNORE, 1),
    ("not authorised", device(authorized=False), ANY, Decision.IGNORE, 0),
    ("accessory", device("18d1:2d01", "ff/ff/00", ADB), DeviceRules(accept="listed"), Decision.ADOPT, 2),
    ("accessory with audio", device("18d1:2d05"), DeviceRules(), Decision.ADOPT, 2),
    ("audio only", device("18d1:2d02"), DeviceRules(allow=("18d1:2d02",)), Decision.IGNORE, 3),
    ("audio and adb", device("18d1:2d03", ADB), ANY, Decision.IGNORE, 3),
    ("allowed printer", device("1234:0001", "07/01/02"), DeviceRules(allow=("1234:*",)), Decision.PROBE, 4),
    ("listed only", device("04e8:6860", MTP), DeviceRules(accept="listed"), Decision.IGNORE, 5),
    ("adb of any maker", device("2207:0006", ADB), DeviceRules(), Decision.PROBE, 6),
    ("adb and storage", device("2207:0006", "08/06/50", ADB), DeviceRules(), Decision.PROBE, 6),
    ("keyboard", device("04e8:7021", "03/01/01"), DeviceRules(), Decision.IGNORE, 7),
    ("printer", device("04e8:3413", "07/01/02"), DeviceRules(), Decision.IGNORE, 7),
    ("stick", device("04e8:61f5", "08/06/50"), ANY, Decision.IGNORE, 7),
    ("card reader", device("0bda:0169", "0b/00/00"), ANY, Decision.IGNORE, 7),
    ("webcam", device("046d:0825", "0e/01/00", "01/01/00"), ANY, Decision.IGNORE, 7),
    ("headset", device("04e8:a001", "01/01/00", "01/02/00"), DeviceRules(), Decision.IGNORE, 7),
    ("phone as midi", device("04e8:6860", "01/01/00", "01/03/00"), DeviceRules(), Decision.PROBE, 9),
    ("modem", with_driver("12d1:1506", "option"), DeviceRules(), Decision.IGNORE, 8),
    ("modem, any", with_driver("1199:9071", "qmi_wwan"), ANY, Decision.IGNORE, 8),
    ("phone with adb as modem", device("19d2:0307", ADB), DeviceRules(), Decision.PROBE, 6),
    ("charge only", device("04e8:6860", "ff/ff/00"), DeviceRules(), Decision.PROBE, 9),
    ("no interface at all", device("04e8:6860"), DeviceRules(), Decision.PROBE, 9),
    ("mixed maker, dock", device("17ef:3083", "ff/ff/00"), DeviceRules(), Decision.IGNORE, 9),
    ("mixed maker, mtp", device("17ef:7c97", MTP), DeviceRules(), Decision.PROBE, 9),
    ("mixed maker, midi", device("0b05:7770", "01/01/00", "01/03/00"), DeviceRules(), Decision.PROBE, 9),
    ("mixed maker, named", device("0502:3325", "ff/ff/00=MTP"), DeviceRules(), Decision.PROBE, 9),
    ("mixed maker, any", device("17ef:3083", "ff/ff/00"), ANY, Decision.IGNORE, 9),
    ("anything, any", device("0424:ec00", "ff/00/ff"), ANY, Decision.PROBE, 10),
    ("anything", device("0424:ec00", "ff/00/ff"), DeviceRules(), Decision.IGNORE, 11),
]  # fmt: skip


@pytest.mark.parametrize(
    ("probed", "rules", "decision", "row"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_the_first_row_that_matches_decides(
    probed: UsbDevice, rules: DeviceRules, decision: Decision, row: int
) -> None:
    verdict = decide(probed, rules, probed.serial)
    assert (verdict.decision, verdict.row) == (decision, row)
    assert verdict.reason


def test_a_stall_may_be_a_locked_phone_only_of_a_known_maker_or_with_adb() -> None:
    assert decide(device(), DeviceRules(), "").retry
    assert decide(device("2207:0006", ADB), DeviceRules(), "").retry
    assert not decide(device(), DeviceRules(allow=("04e8:*",)), "").retry
    assert not decide(device("0424:ec00", "ff/00/ff"), ANY, "").retry


@pytest.mark.parametrize(
    ("probed", "unlisted"),
    [
        (device("0e79:1405", MTP, "ff/ff/00"), True),
        (device("0e79:1405", "ff/ff/00=MTP"), True),
        (device("0e79:1405", "ff/ff/00", model="Android Tablet"), True),
        (device("04a9:3218", MTP), False),
        (device("0424:ec00", "ff/00/ff"), False),
    ],
)
def test_what_looks_like_a_phone_is_pointed_out(probed: UsbDevice, unlisted: bool) -> None:
    assert decide(probed, DeviceRules(), "").unlisted is unlisted


def test_listed_needs_every_named_property() -> None:
    rules = DeviceRules(
        accept="listed",
        devices=(DeviceName("both", "S1", "1-1"), DeviceName("serial", "S1"), DeviceName("port", "", "1-2")),
    )
    assert rules.listed("S1", "1-1") == rules.devices[0]
    assert rules.listed("S1", "1-9") == rules.devices[1]
    assert rules.listed("", "1-2") == rules.devices[2]
    assert rules.listed("", "1-1") is None
    assert decide(device(serial="S1"), rules, "S1").decision is Decision.PROBE
    assert decide(device(serial="S1"), rules, "").row == 5  # a serial that two phones share names none of them
