"""Which program keeps a phone to itself: asked in a thread, as /proc has to be searched for it."""

from aoabridge.adapters.holders import holder_of
from aoabridge.daemon.attach import AttachThreads
from aoabridge.errors import UsbError
from aoabridge.phone.aoa import UsbDevice

__all__ = ["BusyPhones"]


class BusyPhones:
    """Remembers the last answer for every port."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, str]] = {}

    def of(self, port: str) -> dict[str, str]:
        """``process`` and ``unit`` for the text of an issue; empty as long as nobody knows."""
        return self._found.get(port, {})

    def ask(self, device: UsbDevice | None, attach: AttachThreads) -> None:
        """A call found the device busy; None = it has gone since."""
        if device is None:
            return

        def done(found: tuple[str, str] | UsbError) -> None:
            if not isinstance(found, UsbError):
                self._found[device.port] = {"process": found[0] or "another program", "unit": found[1] or "?"}

        attach.at_once(device.port, lambda: holder_of(*device.address), done)
