"""What passes between the host of the phones and its surroundings: links, their sink, hot-plug events."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

from aoabridge.adapters.usb import UsbHost, UsbPipe
from aoabridge.adapters.usb_pump import LinkPump, PumpEvent
from aoabridge.errors import UsbError
from aoabridge.phone.aoa import OUT_TIMEOUT_MS, UsbDevice
from aoabridge.phone.filter import DeviceName
from aoabridge.values import LinkId

__all__ = ["Link", "LinkSink", "LinkStart", "Watcher"]

# A transfer comes back after its timeout; on a machine that has no time, later. The process has to end for a thread
# that hangs, so it is given as long as the watchdog gives it; less where the process ends anyway.
JOIN_S: Final = OUT_TIMEOUT_MS / 1000 + 2.5
STOP_JOIN_S: Final = OUT_TIMEOUT_MS / 1000 + 0.5


class LinkStart(msgspec.Struct, frozen=True):
    """What a new link is; ``adopted`` = bytes from before it may arrive; ``entry`` = its ``[[device]]``."""

    name: str
    port: str
    serial: str
    model: str
    packet_size: int
    adopted: bool
    entry: DeviceName | None


class LinkSink(Protocol):
    """Takes the links; called on the event loop only, never concurrently."""

    def link_up(self, link: LinkId, start: LinkStart) -> None:
        """A link begins: bytes may be offered from now on."""

    def link_events(self, link: LinkId, events: Sequence[PumpEvent]) -> None:
        """What happened on a link, in order."""

    def link_farewell(self, link: LinkId) -> bytes:
        """The next transfer of an orderly end (rest of a line, then the disconnect line); b"" = no more."""
        ...

    def link_down(self, link: LinkId, reason: str) -> None:
        """The link is over; nothing of it follows."""


class Watcher(Protocol):
    """A source of hot-plug events."""

    def fileno(self) -> int:
        """The descriptor to wait on."""
        ...

    def drain(self, on_event: Callable[[], None]) -> None:
        """Empties the queue, calls ``on_event`` if there was anything."""

    def close(self) -> None:
        """Ends it."""


class Link:
    """One open link: its pipe, its pump, and the port it hangs on.

    Closing, ``reset`` and ``reopen`` block, for attach threads; each raises UsbError ``HANG`` and leaves the handle
    open if a thread of the pump does not end: closing under a running transfer aborts the process.
    """

    def __init__(self, link: LinkId, port_id: int, pipe: UsbPipe, pump: LinkPump) -> None:
        self.link = link
        self.port_id = port_id
        self.pipe = pipe
        self.pump = pump
        self.moved = asyncio.Event()
        self.ended = False

    async def send_all(self, following: Callable[[], bytes], timeout: float) -> None:
        """Sends what ``following`` gives, one transfer after the other, until it gives b"" or time is up."""
        with contextlib.suppress(asyncio.TimeoutError):
            async with asyncio.timeout(timeout):
                await self._settled()
                while (data := following()) and self.pump.offer(data):
                    await self._settled()

    async def _settled(self) -> None:
        """Waits until no transfer is under way; ``moved`` is set by every event and by the end of the link."""
        while self.pump.in_flight and not self.ended:
            self.moved.clear()
            await self.moved.wait()

    def close(self) -> None:
        """Ends both threads, then the pipe."""
        self._join(JOIN_S)
        self.pipe.close()

    def close_at_stop(self) -> None:
        """As ``close``, in the time that an orderly stop of the process has."""
        self._join(STOP_JOIN_S)
        self.pipe.close()

    def reset(self) -> None:
        """Ends both threads, resets the device and closes the pipe; raises UsbError."""
        self._join(JOIN_S)
        try:
            self.pipe.reset()
        finally:
            self.pipe.close()

    def reopen(self, usb: UsbHost, device: UsbDevice, turn: int) -> UsbPipe | None:
        """Closes, then opens once more; raises UsbError."""
        self.close()
        return usb.open(device, turn)

    def _join(self, timeout: float) -> None:
        if not self.pump.stop(timeout):
            message = f"a USB thread of {self.pump.name} does not end"
            raise UsbError(message, errno=None, kind="HANG", step="join", port=self.pump.name)
