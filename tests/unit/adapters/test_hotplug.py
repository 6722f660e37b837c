"""Scans of sysfs trees built in a temporary directory, and the monitor."""

from pathlib import Path
from typing import Any

import pytest

from aoabridge.adapters import hotplug
from aoabridge.adapters.hotplug import Monitor, scan
from aoabridge.phone.aoa import UsbDevice, UsbInterface

PHONE = {
    "idVendor": "04e8",
    "idProduct": "6860",
    "busnum": "1",
    "devnum": "5",
    "devpath": "1",
    "serial": "R9PR307K2Q",
    "manufacturer": "SAMSUNG",
    "product": "SM-T500",
    "speed": "480",
    "bDeviceClass": "00",
    "bDeviceSubClass": "00",
    "bDeviceProtocol": "00",
    "bConfigurationValue": "1",
    "authorized": "1",
    "power/control": "on",
}
INTERFACE = {
    "bInterfaceNumber": "00",
    "bInterfaceClass": "06",
    "bInterfaceSubClass": "01",
    "bInterfaceProtocol": "01",
    "interface": "MTP",
}


class Tree:
    """A sysfs with the devices elsewhere and links to them in the bus directory, as the kernel does it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.bus = root / "bus" / "usb" / "devices"
        self.bus.mkdir(parents=True)

    def add(self, name: str, attributes: dict[str, str]) -> Path:
        path = self.root / "devices" / name
        for attribute, value in attributes.items():
            (path / attribute).parent.mkdir(parents=True, exist_ok=True)
            (path / attribute).write_text(value + "\n")
        (self.bus / name).symlink_to(path)
        return path


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def changed(base: dict[str, str], **values: str | None) -> dict[str, str]:
    merged = {**base, **values}
    return {key: value for key, value in merged.items() if value is not None}


def test_everything_that_decides_is_read(tree: Tree) -> None:
    tree.add("1-1.3", PHONE)
    tree.add("1-1.3:1.0", INTERFACE)
    driver = tree.root / "bus" / "usb" / "drivers" / "usbfs"
    driver.mkdir(parents=True)
    second = tree.add("1-1.3:1.1", changed(INTERFACE, bInterfaceNumber="01", bInterfaceClass="ff", interface=None))
    (second / "driver").symlink_to(driver)
    assert scan(tree.root) == (
        UsbDevice(
            port="1-1.3",
            vendor=0x04E8,
            product=0x6860,
            busnum=1,
            devnum=5,
            serial="R9PR307K2Q",
            maker="SAMSUNG",
            model="SM-T500",
            speed_mbps=480.0,
            interfaces=(UsbInterface(0, 6, 1, 1, "MTP", ""), UsbInterface(1, 0xFF, 1, 1, "", "usbfs")),
        ),
    )


@pytest.mark.parametrize(
    ("values", "field", "expected"),
    [
        ({"serial": None}, "serial", ""),
        ({"serial": ""}, "serial", ""),
        ({"bConfigurationValue": ""}, "configuration", 0),
        ({"bConfigurationValue": None}, "configuration", 0),
        ({"authorized": "0"}, "authorized", False),
        ({"authorized": None}, "authorized", True),
        ({"power/control": "auto"}, "power_control", "auto"),
        ({"speed": "5000"}, "speed_mbps", 5000.0),
        ({"bDeviceClass": "09"}, "klass", 9),
        ({"product": "Gerät"}, "model", "Gerät"),
    ],
)
def test_optional_and_unusual_values(tree: Tree, values: dict[str, Any], field: str, expected: object) -> None:
    tree.add("1-1", changed(PHONE, **values))
    (device,) = scan(tree.root)
    assert getattr(device, field) == expected


@pytest.mark.parametrize("missing", ["idVendor", "idProduct", "busnum", "devnum"])
def test_a_device_that_vanishes_counts_as_absent(tree: Tree, missing: str) -> None:
    tree.add("1-1", changed(PHONE, **{missing: None}))
    tree.add("1-2", PHONE)
    assert [device.port for device in scan(tree.root)] == ["1-2"]


def test_a_device_replaced_during_the_scan_counts_as_absent(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tree.add("1-1", PHONE)
    original = hotplug._peer

    def replace_then_read(device: Path) -> str:
        (path / "devnum").write_text("6\n")
        return original(device)

    monkeypatch.setattr(hotplug, "_peer", replace_then_read)
    assert scan(tree.root) == ()
    monkeypatch.undo()
    assert len(scan(tree.root)) == 1


def test_an_interface_that_vanishes_is_left_out(tree: Tree) -> None:
    tree.add("1-1", PHONE)
    tree.add("1-1:1.0", changed(INTERFACE, bInterfaceClass=None))
    tree.add("1-1:1.1", changed(INTERFACE, bInterfaceNumber="01"))
    (device,) = scan(tree.root)
    assert [interface.number for interface in device.interfaces] == [1]


def test_root_hubs_and_interfaces_are_no_devices(tree: Tree) -> None:
    tree.add("usb1", PHONE)
    tree.add("1-0:1.0", INTERFACE)
    tree.add("1-1", PHONE)
    tree.add("1-1:1.0", INTERFACE)
    assert [device.port for device in scan(tree.root)] == ["1-1"]


@pytest.mark.parametrize(
    ("port", "peer_port", "expected"),
    [("1-1", "usb2/2-0:1.0/usb2-port1", "2-1"), ("1-1.3", "usb2/2-1/2-1:1.0/2-1-port3", "2-1.3"), ("1-2", None, "")],
)
def test_the_companion_port(tree: Tree, port: str, peer_port: str | None, expected: str) -> None:
    path = tree.add(port, PHONE)
    own = tree.root / "ports" / port
    own.mkdir(parents=True)
    (path / "port").symlink_to(own)
    if peer_port is not None:
        target = tree.root / "devices" / peer_port
        target.mkdir(parents=True)
        (own / "peer").symlink_to(target)
    (device,) = scan(tree.root)
    assert device.peer == expected


def test_no_usb_at_all(tmp_path: Path) -> None:
    assert scan(tmp_path) == ()


def test_twenty_devices_are_quick(tree: Tree) -> None:
    for number in range(1, 21):
        tree.add(f"1-{number}", changed(PHONE, devnum=str(number)))
        tree.add(f"1-{number}:1.0", INTERFACE)
    assert [device.devnum for device in scan(tree.root)] == sorted(range(1, 21), key=str)


class FakeUdev:
    """What pyudev's monitor offers, with a queue."""

    def __init__(self, queue: list[object]) -> None:
        self.queue = queue

    def poll(self, timeout: float) -> object:
        assert timeout == 0
        item = self.queue.pop(0) if self.queue else None
        if isinstance(item, OSError):
            raise item
        return item


@pytest.mark.parametrize(
    ("queue", "calls"), [([], 0), ([object()], 1), ([object()] * 5, 1), ([OSError(105, "ENOBUFS")], 1)]
)
def test_a_burst_of_events_asks_for_one_scan(queue: list[object], calls: int) -> None:
    monitor = Monitor.__new__(Monitor)
    monitor._monitor = FakeUdev(list(queue))
    seen: list[None] = []
    monitor.drain(lambda: seen.append(None))
    assert len(seen) == calls


def test_the_real_monitor_listens_or_is_missed_once(caplog: pytest.LogCaptureFixture) -> None:
    monitor = Monitor.open()
    if monitor is None:
        assert [record.levelname for record in caplog.records] == ["WARNING"]
    else:
        assert monitor.fileno() >= 0
        monitor.drain(lambda: None)
        monitor.close()


def test_without_netlink_the_rescan_has_to_do(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_arguments: object, **_named: object) -> None:
        raise OSError(97, "Address family not supported by protocol")

    monkeypatch.setattr(hotplug.pyudev.Monitor, "from_netlink", refuse)
    assert Monitor.open() is None
    assert [record.levelname for record in caplog.records] == ["WARNING"]
