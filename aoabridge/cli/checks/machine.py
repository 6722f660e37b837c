"""Platform, service, group, journal, power: what does not depend on a phone or a robot."""

import grp
import os
import platform
import pwd
import sys
from collections.abc import Iterator
from pathlib import Path

from aoabridge.adapters.host import HostProbe
from aoabridge.cli.checks.result import Check, from_issue, passed
from aoabridge.errors import UsbError

__all__ = ["group_checks", "journal_checks", "library_checks", "platform_checks", "power_checks", "unit_checks"]

OLDEST_GLIBC = (2, 35)  # of the NetworkTables wheels
OLDEST_PYTHON = (3, 11)
LARGE_JOURNAL_BYTES = 500 * 1024 * 1024
GROUP = "aoabridge"
LOCAL_UNIT = "etc/systemd/system/aoabridge.service"
PACKAGED_UNITS = ("usr/lib/systemd/system/aoabridge.service", "lib/systemd/system/aoabridge.service")


def platform_checks(
    glibc: str | None = None, bits_64: bool | None = None, python: tuple[int, int] | None = None
) -> Iterator[Check]:
    """64 bits, a C library that the wheels run on, Python; the arguments stand in for this machine's."""
    found = platform.libc_ver()[1] if glibc is None else glibc
    wide = sys.maxsize > 2**32 if bits_64 is None else bits_64
    version = sys.version_info[:2] if python is None else python
    complaints = []
    if not wide:
        complaints.append("32-bit userland")
    if found and tuple(int(part) for part in found.split(".")[:2]) < OLDEST_GLIBC:
        complaints.append(f"glibc {found} is older than 2.35")
    if version < OLDEST_PYTHON:
        complaints.append(f"Python {version[0]}.{version[1]} is older than 3.11")
    if complaints:
        yield from_issue("platform", reason=", ".join(complaints))
    else:
        shown = f"{platform.machine()}, Python {version[0]}.{version[1]}" + (f", glibc {found}" if found else "")
        yield passed("platform", f"platform: {shown}")


def library_checks() -> Iterator[Check]:
    """A libusb that starts."""
    from aoabridge.adapters.usb import load_backend  # noqa: PLC0415 - the one check that needs libusb

    try:
        _, origin = load_backend()
    except UsbError as error:
        yield from_issue("usb-none", fix=f"{error}: `sudo apt install libusb-1.0-0`"[:120])
    else:
        yield passed("usb-none", f"libusb: {origin} library")


def group_checks(user: str | None = None) -> Iterator[Check]:
    """The group of the device nodes exists and the user is in it; root needs none."""
    name = user or pwd.getpwuid(os.geteuid()).pw_name
    try:
        group = grp.getgrnam(GROUP)
    except KeyError:
        yield from_issue("group-missing", name, fix="`sudo aoabridge service install` creates the group")
        return
    account = pwd.getpwnam(name)
    if account.pw_uid == 0 or name in group.gr_mem or account.pw_gid == group.gr_gid:
        yield passed("group-missing", f"{name} may use the device nodes of group {GROUP}")
    else:
        yield from_issue("group-missing", name)


def unit_checks(root: Path) -> Iterator[Check]:
    """No local copy of the unit that hides the packaged one."""
    local = root / LOCAL_UNIT
    packaged = next((root / name for name in PACKAGED_UNITS if (root / name).is_file()), None)
    if packaged is None and not local.is_file():
        yield passed("unit-edited", "no service is installed")
    elif packaged is not None and local.is_file() and local.read_bytes() != packaged.read_bytes():
        yield from_issue("unit-edited")
    else:
        yield passed("unit-edited", "the service unit is the packaged one")


def journal_checks(root: Path) -> Iterator[Check]:
    """The journal leaves room on a small card."""
    total = 0
    for folder, _, names in os.walk(root / "var/log/journal"):
        for name in names:
            try:
                total += (Path(folder) / name).stat().st_size
            except OSError:
                continue
    if total > LARGE_JOURNAL_BYTES:
        yield from_issue("journal-large")
    else:
        yield passed("journal-large", f"journal: {total // 2**20} MiB on disk")


def power_checks(root: Path) -> Iterator[Check]:
    """No under-voltage now, and enough buffer memory for USB."""
    throttled = HostProbe(None, root).read().throttled
    if throttled:
        yield from_issue("usb-power", fix="5 V supply with more current, shorter cable")
    elif throttled is not None:
        yield passed("usb-power", "power supply: no under-voltage")
    limit = root / "sys/module/usbcore/parameters/usbfs_memory_mb"
    if limit.is_file() and 0 < int(limit.read_text().strip() or "0") < 16:
        yield from_issue("usb-memory")
