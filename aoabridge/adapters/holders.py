"""Who else has a USB device or a port, as far as the kernel lets us see."""

from collections.abc import Iterator, Set
from pathlib import Path
from typing import Final

__all__ = ["holder_of", "port_holder"]

_PROC: Final = Path("/proc")
_OPEN: Final = ("0A", "07")  # TCP that listens, UDP that is bound


def holder_of(busnum: int, devnum: int, proc: Path = _PROC) -> tuple[str, str]:
    """Name and systemd unit ("" = none) of another process that has the device node open; ("", "") if none shows.

    Takes some milliseconds per hundred processes, and sees other users' processes only with the rights for it.
    """
    return _holder({f"/dev/bus/usb/{busnum:03d}/{devnum:03d}"}, proc)


def port_holder(port: int, kind: str, proc: Path = _PROC) -> str:
    """Name of another process that listens on this port of ``kind`` "tcp" or "udp"; "" if none shows."""
    return _holder({f"socket:[{inode}]" for inode in _inodes(port, kind, proc)}, proc)[0]


def _inodes(port: int, kind: str, proc: Path) -> Iterator[str]:
    for table in (f"net/{kind}", f"net/{kind}6"):
        try:
            rows = (proc / table).read_text().splitlines()[1:]
        except OSError:  # a kernel without IPv6
            continue
        for row in rows:
            fields = row.split()
            if int(fields[1].rpartition(":")[2], 16) == port and fields[3] in _OPEN:
                yield fields[9]


def _holder(targets: Set[str], proc: Path) -> tuple[str, str]:
    own = (proc / "self").resolve().name
    for process in proc.iterdir() if targets else ():
        if process.name.isdigit() and process.name != own and _has_open(process, targets):
            return _name(process), _unit(process)
    return "", ""


def _has_open(process: Path, targets: Set[str]) -> bool:
    try:
        return any(str(descriptor.readlink()) in targets for descriptor in (process / "fd").iterdir())
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
