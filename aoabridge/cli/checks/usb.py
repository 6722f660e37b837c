"""USB as the kernel shows it: a host, the udev rule, each device and whether we may open it."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from aoabridge.adapters.hotplug import scan
from aoabridge.cli.checks.result import Check, Outcome, from_issue, passed
from aoabridge.phone.aoa import UsbDevice
from aoabridge.phone.filter import UNAUTHORIZED_ROW, Decision, DeviceRules, decide

__all__ = ["RULE_NAME", "device_checks", "host_checks", "rule_checks", "udev_line"]

RULE_NAME = "70-aoabridge.rules"
RULE_FOLDERS = ("etc/udev/rules.d", "run/udev/rules.d", "usr/lib/udev/rules.d", "lib/udev/rules.d")


def host_checks(root: Path) -> Iterator[Check]:
    """A USB host with at least one root hub."""
    devices = root / "sys/bus/usb/devices"
    if not (root / "sys/bus/usb").is_dir():
        yield from_issue("usb-none", fix="The kernel has no USB: load usbcore, or give the container /sys/bus/usb")
    elif not any(path.name.startswith("usb") for path in devices.glob("usb*")):
        yield from_issue("usb-none")
    else:
        yield passed("usb-none", "USB host present")


def rule_checks(root: Path) -> Iterator[Check]:
    """The rule that gives phones to our group."""
    found = next((root / folder / RULE_NAME for folder in RULE_FOLDERS if (root / folder / RULE_NAME).is_file()), None)
    if found is None:
        fix = "`sudo aoabridge service install`"
        yield Check("usb-permission", Outcome.FAIL, f"The udev rule {RULE_NAME} is not installed", fix)
    else:
        yield passed("usb-permission", f"udev rule: /{found.relative_to(root)}")


def device_checks(root: Path, rules: DeviceRules, may_open: Callable[[Path], bool] | None = None) -> Iterator[Check]:
    """Every device that is or looks like a phone."""
    opens = may_open or _may_open
    phones = 0
    for device in scan(root / "sys"):
        verdict = decide(device, rules, device.serial)
        if verdict.decision is not Decision.IGNORE:
            phones += 1
            yield _phone(device, root, opens)
        elif verdict.unlisted:
            phones += 1
            vid = f"{device.vendor:04x}"
            yield from_issue(
                "usb-unlisted", device.port, vid=vid, fix=f'Add `allow = ["{vid}:*"]`; udev: {udev_line(vid)}'
            )
        elif verdict.row == UNAUTHORIZED_ROW:
            phones += 1
            yield Check(
                "usb-permission", Outcome.FAIL, f"{device.port}: {verdict.reason}", "Allow it in USBGuard", device.port
            )
    if not phones:
        fix = "Plug a phone in with a data cable and unlock it"
        yield Check("phone-lost", Outcome.WARN, "No phone is plugged in", fix)


def udev_line(vid: str) -> str:
    """The line for a maker that the rule does not list."""
    return f'`ATTR{{idVendor}}=="{vid}", GROUP="aoabridge", MODE="0660"`'


def _phone(device: UsbDevice, root: Path, opens: Callable[[Path], bool]) -> Check:
    node = root / f"dev/bus/usb/{device.busnum:03d}/{device.devnum:03d}"
    name = (
        " ".join(part for part in (device.maker, device.model) if part) or f"{device.vendor:04x}:{device.product:04x}"
    )
    if opens(node):
        return passed("usb-permission", f"{device.port}: {name} can be opened", device.port)
    return from_issue("usb-permission", device.port)


def _may_open(node: Path) -> bool:
    return os.access(node, os.R_OK | os.W_OK)
