"""Between the USB phones and the relay: link starts in the relay's terms, and what the core sees of a link back."""

from collections.abc import Sequence

from aoabridge.adapters.usb_pump import PumpEvent
from aoabridge.bridge.link import LinkInfo
from aoabridge.bridge.settings import AccessSettings
from aoabridge.daemon.phones import LinkStart, PhoneHost
from aoabridge.daemon.relay import Relay
from aoabridge.values import LinkId

__all__ = ["UsbLinks"]


class UsbLinks:
    """The sink of a PhoneHost. ``host`` is set once it exists, before its start."""

    def __init__(self, relay: Relay) -> None:
        self.host: PhoneHost
        self._relay = relay
        self._told: dict[LinkId, tuple[bool, bool, bool]] = {}

    def link_up(self, link: LinkId, start: LinkStart) -> None:
        """A phone's interface is claimed."""
        entry = start.entry
        access = AccessSettings(put_allow=(), subscribe_allow=())
        if entry is not None:
            access = AccessSettings(entry.put_allow, entry.put_deny, entry.subscribe_allow, entry.subscribe_deny)
        self._relay.link_up(self.host, link, LinkInfo(start.name, start.packet_size, start.adopted, access))

    def link_events(self, link: LinkId, events: Sequence[PumpEvent]) -> None:
        """What its threads saw."""
        for event in events:
            self._relay.link_event(link, event)

    def link_farewell(self, link: LinkId) -> bytes:
        """The last lines of an orderly end."""
        return self._relay.link_farewell(link)

    def link_down(self, link: LinkId, reason: str) -> None:
        """The link is over."""
        del reason
        self._told.pop(link, None)
        self._relay.link_down(link)

    def tell_status(self, now: float) -> None:
        """Pass on which links live and which are stale, when that changes."""
        for ident, link in self._relay.core.links.items():
            seen = link.live, link.stale(now), link.valid_line
            if self._told.get(ident) != seen:
                self._told[ident] = seen
                self.host.on_link_status(ident, live=seen[0], stale=seen[1], valid_line=seen[2])
