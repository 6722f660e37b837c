"""What passes between the host of the phones and its surroundings: links, their sink, hot-plug events."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from aoabridge.adapters.usb import UsbPipe
from aoabridge.adapters.usb_pump import LinkPump, PumpEvent
from aoabridge.phone.filter import DeviceName
from aoabridge.values import LinkId

__all__ = ["Link", "LinkSink", "LinkStart", "Watcher"]


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

    def link_down(self, link: LinkId, reason: str) -> None:
        """The link is over; nothing of it follows."""


class Watcher(Protocol):
    """A source of hot-plug events."""

    def fileno(self) -> int:
        """The descriptor to wait on."""

    def drain(self, on_event: Callable[[], None]) -> None:
        """Empties the queue, calls ``on_event`` if there was anything."""

    def close(self) -> None:
        """Ends it."""


class Link:
    """One open link: its pipe, its pump, and the port it hangs on."""

    def __init__(self, link: LinkId, port_id: int, pipe: UsbPipe, pump: LinkPump) -> None:
        self.link = link
        self.port_id = port_id
        self.pipe = pipe
        self.pump = pump
        self.moved = asyncio.Event()
