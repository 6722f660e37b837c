"""What the kernel says about this machine and this process; nothing here needs rights, everything may be unknown."""

import os
import time
from pathlib import Path

import msgspec

__all__ = ["HostFigures", "HostProbe"]

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_SENSORS = ("cpu-thermal", "cpu_thermal", "soc-thermal", "x86_pkg_temp", "acpitz")
_UNDER_VOLTAGE = 0x1  # bits of the firmware's word: now, and throttled now
_THROTTLED = 0x4
MAX_BYTES = 4096  # none of these files is longer than a page


class HostFigures(msgspec.Struct, frozen=True):
    """One reading; None = this machine cannot tell. ``cpu_percent`` is this process's share of one core."""

    cpu_percent: float | None
    rss_mib: float | None
    temp_c: float | None
    throttled: bool | None
    disk_free_mib: int | None
    read_only: bool | None


class HostProbe:
    """Reads small files of /proc and /sys below ``root``; a few hundred microseconds a call."""

    def __init__(self, directory: Path | None, root: Path = Path("/")) -> None:
        self._directory = directory
        self._root, self._memory = root, root / "proc/self/statm"
        self._cpu_s = time.process_time()
        self._at = time.monotonic()
        self._sensor = self._find_sensor()
        self._alarms = [
            path
            for path in (root / "sys/class/hwmon").glob("hwmon*/in0_lcrit_alarm")
            if _text(path.with_name("name")) == "rpi_volt"
        ]
        firmware = root / "sys/devices/platform/soc/soc:firmware/get_throttled"
        self._firmware = firmware if firmware.exists() else None

    def read(self) -> HostFigures:
        """The figures now; CPU since the last call."""
        free_mib, read_only = self._disk()
        return HostFigures(self._cpu(), self._rss(), self._temperature(), self._is_throttled(), free_mib, read_only)

    def _cpu(self) -> float | None:
        cpu_s, now = time.process_time(), time.monotonic()
        passed_s = now - self._at
        if passed_s < 0.05:  # too short to divide by
            return None
        percent = 100 * (cpu_s - self._cpu_s) / passed_s
        self._cpu_s, self._at = cpu_s, now
        return round(percent, 1)

    def _rss(self) -> float | None:
        fields = (_text(self._memory) or "").split()
        return round(int(fields[1]) * _PAGE_BYTES / 2**20, 1) if len(fields) > 1 and fields[1].isdecimal() else None

    def _temperature(self) -> float | None:
        text = None if self._sensor is None else _text(self._sensor)
        try:
            return None if text is None else int(text) / 1000
        except ValueError:
            return None

    def _find_sensor(self) -> Path | None:
        zones = sorted((self._root / "sys/class/thermal").glob("thermal_zone*"))
        kinds = {_text(zone / "type"): zone / "temp" for zone in reversed(zones)}
        return next((kinds[kind] for kind in _SENSORS if kind in kinds), None)

    def _is_throttled(self) -> bool | None:
        word = None if self._firmware is None else _text(self._firmware)
        if word is not None:
            try:
                return bool(int(word, 16) & (_UNDER_VOLTAGE | _THROTTLED))
            except ValueError:
                return None
        states = [_text(path) for path in self._alarms]
        return any(state == "1" for state in states) if states else None

    def _disk(self) -> tuple[int | None, bool | None]:
        if self._directory is None:
            return None, None
        try:
            found = os.statvfs(self._directory)
        except OSError:
            return None, None
        return found.f_bavail * found.f_frsize // 2**20, bool(found.f_flag & os.ST_RDONLY)


def _text(path: Path) -> str | None:
    # Without a file object, which costs several times as much: this is done every second.
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(file, MAX_BYTES).decode("ascii", "replace").strip()
    except OSError:
        return None
    finally:
        os.close(file)
