"""One daemon at a time: a lock on a file, held for the life of the process."""

import fcntl
import os
import time
from pathlib import Path

__all__ = ["InstanceLock"]

RETRY_S = 0.1


class InstanceLock:
    """An exclusive lock beside the control socket; the kernel frees it however the process ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def acquire(self, wait_s: float) -> bool:
        """Take the lock, waiting up to ``wait_s`` for an instance that is ending; False if it does not. OSError."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    os.close(descriptor)
                    return False
                time.sleep(RETRY_S)
            else:
                self._descriptor = descriptor
                return True

    def release(self) -> None:
        """Let the next one in. Idempotent."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
