"""Tells the service manager how we are: readiness, status, reload, stop, sign of life.

Speaks the notification protocol itself, on a socket that never blocks: the C binding holds the interpreter's lock
while it waits, which would stop every thread.
"""

import contextlib
import os
import socket
from collections.abc import Mapping

__all__ = ["Notifier"]

STATUS_S = 1.0  # the status line changes at most so often


class Notifier:
    """All calls are harmless without a service manager. Times are monotonic seconds."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._socket: socket.socket | None = None
        if self._address:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        self.watchdog_s = _watchdog_s(environment)
        """How often ``alive`` is wanted: half of the manager's patience; None = never."""
        self._status = ""
        self._sent_status = ""
        self._status_at: float | None = None

    def ready(self) -> None:
        """Everything that must be there is there."""
        self._send("READY=1")

    def reloading(self, monotonic_us: int) -> None:
        """The configuration is read again; ``ready`` must follow."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={monotonic_us}")

    def stopping(self) -> None:
        """The end has begun."""
        self._send("STOPPING=1")

    def alive(self) -> None:
        """Every thread has shown life."""
        self._send("WATCHDOG=1")

    def status(self, text: str, now: float) -> None:
        """One line for ``systemctl status``; sent on change, at most once per second."""
        self._status = " ".join(text.split())
        self.on_tick(now)

    def on_tick(self, now: float) -> None:
        """Send a status that had to wait."""
        if self._status == self._sent_status:
            return
        if self._status_at is None or now - self._status_at >= STATUS_S:
            self._status_at, self._sent_status = now, self._status
            self._send(f"STATUS={self._status}")

    def close(self) -> None:
        """Nothing is sent any more."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, message: str) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):  # a manager that does not listen is none of our trouble
                self._socket.sendto(message.encode("utf-8", "replace"), self._address)


def _watchdog_s(environment: Mapping[str, str]) -> float | None:
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    try:
        microseconds = int(environment.get("WATCHDOG_USEC", "0"))
    except ValueError:
        return None
    return microseconds / 2_000_000 if microseconds > 0 else None
