"""Which USB devices there are: a scan of sysfs, and udev events that say when to scan again."""

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyudev

from aoabridge.phone.aoa import UsbDevice, UsbInterface

__all__ = ["Monitor", "scan"]

_log = logging.getLogger(__name__)

_DEVICE_NAME: Final = re.compile(r"\d+-\d+(\.\d+)*")  # neither root hubs (usb1) nor interfaces (1-1:1.0)
_DEFAULT_ROOT: Final = Path("/sys")


def scan(root: Path = _DEFAULT_ROOT) -> tuple[UsbDevice, ...]:
    """Every device below ``root``/bus/usb/devices, by port; nothing is opened, no bus traffic.

    A device of which something vanishes during the scan counts as absent: the next scan decides.
    """
    directory = root / "bus" / "usb" / "devices"
    try:
        names = sorted(path.name for path in directory.iterdir())
    except OSError:
        return ()
    found = []
    for name in names:
        if _DEVICE_NAME.fullmatch(name):
            device = _read_device(directory / name, names)
            if device is not None:
                found.append(device)
    return tuple(found)


def _read_device(path: Path, names: list[str]) -> UsbDevice | None:
    try:
        device = UsbDevice(
            port=path.name,
            vendor=int(_text(path / "idVendor"), 16),
            product=int(_text(path / "idProduct"), 16),
            busnum=int(_text(path / "busnum")),
            devnum=int(_text(path / "devnum")),
            serial=_optional(path / "serial"),
            maker=_optional(path / "manufacturer"),
            model=_optional(path / "product"),
            klass=int(_optional(path / "bDeviceClass") or "0", 16),
            subclass=int(_optional(path / "bDeviceSubClass") or "0", 16),
            protocol=int(_optional(path / "bDeviceProtocol") or "0", 16),
            speed_mbps=float(_optional(path / "speed") or "0"),
            configuration=int(_optional(path / "bConfigurationValue") or "0"),
            authorized=_optional(path / "authorized") != "0",
            power_control=_optional(path / "power" / "control"),
            interfaces=_read_interfaces(path, names),
            peer=_peer(path),
        )
        # Read again: attributes that were missing because the device went away are not "without".
        return device if int(_text(path / "devnum")) == device.devnum else None
    except (OSError, ValueError):
        return None


def _read_interfaces(path: Path, names: list[str]) -> tuple[UsbInterface, ...]:
    prefix = f"{path.name}:"
    found = [_read_interface(path.parent / name) for name in names if name.startswith(prefix)]
    return tuple(sorted((i for i in found if i is not None), key=lambda interface: interface.number))


def _read_interface(path: Path) -> UsbInterface | None:
    """None if the interface is going away: its configuration changes, and its device is still there."""
    try:
        return UsbInterface(
            number=int(_text(path / "bInterfaceNumber"), 16),
            klass=int(_text(path / "bInterfaceClass"), 16),
            subclass=int(_text(path / "bInterfaceSubClass"), 16),
            protocol=int(_text(path / "bInterfaceProtocol"), 16),
            text=_optional(path / "interface"),
            driver=_link_name(path / "driver"),
        )
    except (FileNotFoundError, ValueError):
        return None


def _text(path: Path) -> str:
    return path.read_text("utf-8", "replace").strip()


def _optional(path: Path) -> str:
    """The attribute, "" without one."""
    try:
        return _text(path)
    except FileNotFoundError:
        return ""


def _link_name(path: Path) -> str:
    try:
        return path.readlink().name
    except OSError:
        return ""


def _peer(path: Path) -> str:
    """Port path of the same socket on the companion bus: port directory ``port`` -> its ``peer`` -> that port's name.

    Port directories are called ``usb2-port1`` at a root hub and ``2-1-port3`` at others.
    """
    target = _link_name(path / "port" / "peer")
    hub, _, number = target.rpartition("-port")
    if not hub or not number.isdigit():
        return ""
    return f"{hub.removeprefix('usb')}-{number}" if hub.startswith("usb") else f"{hub}.{number}"


class Monitor:
    """Watches udev for USB devices that come, go or change; says only that a scan is due, never what happened."""

    def __init__(self) -> None:
        context = pyudev.Context()
        self._monitor = pyudev.Monitor.from_netlink(context, source="udev")
        self._monitor.filter_by("usb", device_type="usb_device")
        self._monitor.start()

    @classmethod
    def open(cls) -> "Monitor | None":
        """A listening monitor, or None with one warning where there is none: the periodic rescan has to do."""
        try:
            return cls()
        except (OSError, ImportError) as error:
            _log.warning("no USB events (%s): phones are found by the scan every few seconds only", error)
            return None

    def fileno(self) -> int:
        """The descriptor to wait on for reading."""
        return int(self._monitor.fileno())

    def drain(self, on_event: Callable[[], None]) -> None:
        """Empties the queue and calls ``on_event`` once if there was anything in it."""
        seen = False
        try:
            while self._monitor.poll(timeout=0) is not None:
                seen = True
        except OSError:
            seen = True  # the kernel dropped events (ENOBUFS): all the more reason to look
        if seen:
            on_event()

    def close(self) -> None:
        """Releases the monitor; pyudev has no close, dropping the last reference is it."""
        del self._monitor
