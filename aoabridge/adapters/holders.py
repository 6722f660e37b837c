"""Who else has a USB device open, as far as the kernel lets us see."""

from pathlib import Path
from typing import Final

__all__ = ["holder_of"]

_PROC: Final = Path("/proc")


def holder_of(busnum: int, devnum: int, proc: Path = _PROC) -> tuple[str, str]:
    """Name and systemd unit ("" = none) of another process that has the device node open; ("", "") if none shows.

    Takes some milliseconds per hundred processes, and sees other users' processes only with the rights for it.
    """
    node = f"/dev/bus/usb/{busnum:03d}/{devnum:03d}"
    own = (proc / "self").resolve().name
    for process in proc.iterdir():
        if process.name.isdigit() and process.name != own and _has_open(process, node):
            return _name(process), _unit(process)
    return "", ""


def _has_open(process: Path, node: str) -> bool:
    try:
        return any(str(descriptor.readlink()) == node for descriptor in (process / "fd").iterdir())
    except OSError:
        return False  # not ours to see, or gone


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text().strip()
    except OSError:
        return process.name


def _unit(process: Path) -> str:
    try:
        last = (process / "cgroup").read_text().strip().rpartition("/")[2]
    except OSError:
        return ""
    return last if last.endswith(".service") else ""
