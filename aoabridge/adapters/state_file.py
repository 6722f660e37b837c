"""Files that survive a power cut: either the old content or the new one, never a mixture."""

import contextlib
import os
from pathlib import Path

__all__ = ["remove_leftovers", "write_atomically"]

TEMPORARY = ".tmp"
NEW_MODE = 0o644  # status and last-good copies are for everybody to read


def write_atomically(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace a file: temporary file beside it, fsync, rename, fsync of the directory; the mode is kept.

    ``durable`` False leaves out both fsyncs, for memory file systems. Raises OSError and then leaves the old file.
    """
    try:
        mode = path.stat().st_mode & 0o7777
    except FileNotFoundError:
        mode = NEW_MODE
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        try:
            os.fchmod(descriptor, mode)  # the umask of the service hides files from everybody
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    if durable:
        _sync_directory(path.parent)


def remove_leftovers(path: Path) -> None:
    """Remove what writers of this file left behind when they were killed; for the one process that writes it."""
    with contextlib.suppress(OSError):  # a read-only card keeps them, and nobody minds
        for found in path.parent.iterdir():
            name = found.name
            begin = f".{path.name}."
            if name.startswith(begin) and name.removeprefix(begin).removesuffix(TEMPORARY).isdecimal():
                found.unlink()


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
