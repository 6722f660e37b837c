"""A phone's pipe without USB: the pump's end blocks like a transfer, the app's end belongs to the event loop."""

import threading
from collections import deque
from collections.abc import Callable

from aoabridge.errors import UsbError
from aoabridge.phone.aoa import IN_READ_BYTES

__all__ = ["MemoryPipe"]

HIGH_SPEED_PACKET = 512
UNREAD_BYTES = 256 * 1024  # as much as a phone buffers for an app that does not read


class MemoryPipe:
    """Bytes both ways between a LinkPump and a simulated app; ``on_data`` is called from the writer thread."""

    def __init__(self, on_data: Callable[[], None], packet_size: int = HIGH_SPEED_PACKET) -> None:
        self.packet_size = packet_size
        self._on_data = on_data
        self._changed = threading.Condition()
        self._to_host: deque[bytes] = deque()
        self._to_app = bytearray()
        self._gone = False

    # The pump's end.

    def read(self, timeout_ms: int) -> bytes | None:
        """The next bytes of the app, None if none came in time; UsbError NO_DEVICE after ``hang_up``."""
        with self._changed:
            self._changed.wait_for(lambda: self._to_host or self._gone, timeout_ms / 1000)
            self._require_device("read")
            return self._to_host.popleft() if self._to_host else None

    def write(self, data: bytes, timeout_ms: int) -> int:
        """Bytes taken: all, or 0 while the app does not read; UsbError NO_DEVICE after ``hang_up``."""
        with self._changed:
            self._changed.wait_for(lambda: self._gone or len(self._to_app) < UNREAD_BYTES, timeout_ms / 1000)
            self._require_device("write")
            if len(self._to_app) >= UNREAD_BYTES:
                return 0
            self._to_app += data
        self._on_data()
        return len(data)

    def clear_halt_in(self) -> None:
        """Nothing ever halts here."""

    def clear_halt_out(self) -> None:
        """Nothing ever halts here."""

    def close(self) -> None:
        """The host is done with the pipe."""
        self.hang_up()

    def _require_device(self, step: str) -> None:
        if self._gone and not self._to_host:
            raise UsbError("the simulated phone is gone", errno=19, kind="NO_DEVICE", step=step, port="memory")

    # The app's end.

    def send(self, data: bytes) -> None:
        """The app writes."""
        with self._changed:
            self._to_host.extend(data[start : start + IN_READ_BYTES] for start in range(0, len(data), IN_READ_BYTES))
            self._changed.notify_all()

    def receive(self) -> bytes:
        """Everything that was written for the app since the last call; never blocks."""
        with self._changed:
            data = bytes(self._to_app)
            self._to_app.clear()
            self._changed.notify_all()
        return data

    def hang_up(self) -> None:
        """The phone is unplugged."""
        with self._changed:
            self._gone = True
            self._changed.notify_all()

    @property
    def gone(self) -> bool:
        """True after an end from either side."""
        return self._gone
