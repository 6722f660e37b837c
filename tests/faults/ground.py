"""What the campaign makes of the machine around its daemon: a small disk, and a wall clock of its own."""

import ctypes
import os
import subprocess
from pathlib import Path

__all__ = ["SmallDisk", "WallClock"]

CLONE_NEWNS, MS_REC, MS_PRIVATE, MNT_DETACH = 0x20000, 0x4000, 0x40000, 2
DISK_BYTES = 24 << 20
SOURCE = Path(__file__).with_name("wall_clock.c")
PIECE = bytes(64 << 10)


def _call(name: str, *arguments: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


class SmallDisk:
    """A file system in memory, seen by this process and its children alone: it ends with them, however they end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"
        path.mkdir()
        _call("unshare", CLONE_NEWNS)
        _call("mount", None, b"/", None, MS_REC | MS_PRIVATE, None)
        _call("mount", b"tmpfs", bytes(path), b"tmpfs", 0, f"size={DISK_BYTES}".encode())

    def fill(self) -> bool:
        """Write until nothing more fits; True if that was so."""
        with self._filler.open("ab", buffering=0) as file:
            while True:
                try:
                    file.write(PIECE)
                except OSError:
                    return os.statvfs(self.path).f_bavail == 0

    def empty(self) -> None:
        """Room again."""
        self._filler.unlink(missing_ok=True)

    def close(self) -> None:
        """Take it away."""
        _call("umount2", bytes(self.path), MNT_DETACH)


class WallClock:
    """The wall clock of programs that run with ``environment``."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "wall-clock"
        library = directory / "wall_clock.so"
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE)], check=True)
        self._offset_ns = 0
        self.step(0)
        self.environment = {"WALL_CLOCK": str(self._file)}
        self.library = library

    def step(self, seconds: float) -> None:
        """Put it forward or back."""
        self._offset_ns += round(seconds * 1e9)
        if not self._file.exists():
            self._file.write_bytes(bytes(8))
        with self._file.open("r+b", buffering=0) as file:
            file.write(self._offset_ns.to_bytes(8, "little", signed=True))
