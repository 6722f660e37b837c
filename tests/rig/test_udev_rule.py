"""The udev rule under ``udevadm test`` on emulated devices: who gets the node, and who does not."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from aoabridge.phone.filter import KNOWN_MAKERS

RULES = Path(__file__).parents[2] / "udev" / "70-aoabridge.rules"
GROUP_ID = "64123"

# In a mount namespace of its own: no device database of earlier runs, the rule in place, the group known.
SCRIPT = """
set -e
mkdir -p /run/udev
mount -t tmpfs tmpfs /run/udev
mkdir -p /run/udev/rules.d
cp "$1" /run/udev/rules.d/70-aoabridge.rules
cp /etc/group "$2/group"
echo "aoabridge:x:$5:" >> "$2/group"
mount --bind "$2/group" /etc/group
exec umockdev-run -d "$2/record" -- udevadm test -a "$3" "$4"
"""

MTP = ["060101"]
MTP_ADB = ["060101", "ff4201"]
TETHER = ["e00103", "0a0000"]

GRANTED = {
    "mtp": ("add", "04e8:6860", "00", MTP),
    "mtp+adb": ("add", "04e8:6860", "00", MTP_ADB),
    "adb of any maker": ("add", "2207:0006", "00", ["ff4201"]),
    "charge only": ("add", "22b8:2e80", "00", ["ffff00"]),
    "no interface": ("add", "22b8:2e80", "00", []),
    "tether": ("add", "18d1:4ee4", "00", TETHER),
    "headset": ("add", "2833:0186", "00", MTP),
    "2d00": ("add", "18d1:2d00", "00", ["ffff00"]),
    "2d01": ("add", "18d1:2d01", "00", ["ffff00", "ff4201"]),
    "2d05": ("add", "18d1:2d05", "00", ["ffff00", "ff4201", "010100", "010200"]),
    "bind": ("bind", "18d1:2d00", "00", ["ffff00"]),
    "change": ("change", "04e8:6860", "00", MTP),
}
REFUSED = {
    "hub": ("add", "04e8:2514", "09", ["090000"]),
    "apple": ("add", "05ac:12a8", "00", ["060101", "ff4201"]),
    "printer": ("add", "04e8:3413", "00", ["070102"]),
    "keyboard": ("add", "04e8:7021", "00", ["030101", "030000"]),
    "disk": ("add", "04e8:61f5", "00", ["080650"]),
    "ptp camera": ("add", "04a9:3218", "00", ["060101"]),
    "unlisted mtp": ("add", "0e79:1405", "00", MTP),
    "remove": ("remove", "04e8:6860", "00", MTP),
}


def record(ids: str, device_class: str, interfaces: list[str]) -> str:
    vendor, product = ids.split(":")
    listed = ":" + "".join(f"{interface}:" for interface in interfaces)
    return "\n".join(
        [
            "P: /devices/usb1/1-1",
            "N: bus/usb/001/005",
            "E: SUBSYSTEM=usb",
            "E: DEVTYPE=usb_device",
            "E: DRIVER=usb",
            "E: BUSNUM=001",
            "E: DEVNUM=005",
            "E: DEVNAME=/dev/bus/usb/001/005",
            f"E: PRODUCT={vendor.lstrip('0')}/{product.lstrip('0')}/504",
            f"E: ID_USB_INTERFACES={listed}",
            f"A: idVendor={vendor}\\n",
            f"A: idProduct={product}\\n",
            f"A: bDeviceClass={device_class}\\n",
            "A: power/control=auto\\n",
            "",
        ]
    )


def udevadm_test(tmp_path: Path, action: str, ids: str, device_class: str, interfaces: list[str]) -> str:
    (tmp_path / "record").write_text(record(ids, device_class, interfaces))
    arguments = [str(RULES), str(tmp_path), action, "/devices/usb1/1-1", GROUP_ID]
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", SCRIPT, "sh", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    # A wrong key or an unknown group is only a line of text, with exit status 0.
    assert not re.search(r"70-aoabridge\.rules:\d+ (Invalid|Unknown)", output), output
    assert "Unknown group" not in output, output
    assert "70-aoabridge.rules" in output, output
    return output


def is_granted(output: str) -> bool:
    return bool(re.search(rf"70-aoabridge\.rules:\d+ GROUP {GROUP_ID}", output))


@pytest.mark.parametrize("name", GRANTED)
def test_granted(name: str, tmp_path: Path) -> None:
    output = udevadm_test(tmp_path, *GRANTED[name])
    assert is_granted(output), output
    assert re.search(r"70-aoabridge\.rules:\d+ MODE 0660", output), output
    assert re.search(r"70-aoabridge\.rules:\d+ ATTR '.*/power/control' writing 'on'$", output, re.MULTILINE), output
    assert re.search(r"^TAGS=.*:uaccess:", output, re.MULTILINE), output
    assert "SYSTEMD_WANTS" not in output


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, tmp_path: Path) -> None:
    output = udevadm_test(tmp_path, *REFUSED[name])
    assert not is_granted(output), output
    assert not re.search(r"70-aoabridge\.rules:\d+ (MODE|ATTR|TAG)", output), output


def test_the_rule_and_the_daemon_know_the_same_makers() -> None:
    lists = re.findall(r'ATTR\{idVendor\}=="([0-9a-f|]*\|[0-9a-f|]*)"', RULES.read_text())
    assert len(lists) == 1
    assert {int(vendor, 16) for vendor in lists[0].split("|")} == KNOWN_MAKERS


def test_the_tools_are_installed() -> None:
    assert all(shutil.which(tool) for tool in ("umockdev-run", "udevadm", "unshare"))
