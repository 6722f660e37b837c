"""What every source is to the rest of the bridge: endpoints it wants, datagrams in, publications and datagrams out.

A source is pure: an adapter owns the sockets described by ``endpoints()``, hands in what arrives and asks for what is
to leave. All times are seconds of one monotonic clock, given as an argument.
"""

from collections.abc import Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import Literal, Protocol, TypeAlias

import msgspec

from aoabridge.values import Publication, Withdrawal

__all__ = [
    "Address",
    "Endpoint",
    "OutgoingDatagram",
    "SenderFilter",
    "Source",
    "SourceIssue",
    "SourceStatus",
]

Address: TypeAlias = tuple[str, int]
OutgoingDatagram: TypeAlias = tuple[str, bytes, Address]

MAX_REMEMBERED_SENDERS = 1024  # verdicts kept per filter; forged senders must not grow it without end


class Endpoint(msgspec.Struct, frozen=True):
    """One socket that a source asks for.

    ``direction``: ``listen`` = bind ``bind``:``port`` (UDP) or accept there (TCP); ``connect`` = connect to
    ``host``:``port``, so that the kernel drops every other sender; ``send`` = an unbound UDP socket that only sends.
    ``allow_from`` are networks; loopback always counts as allowed.
    """

    key: str
    kind: Literal["udp", "tcp"]
    bind: str
    port: int
    allow_from: tuple[str, ...] = ()
    direction: Literal["listen", "connect", "send"] = "listen"
    host: str = ""
    max_peers: int = 8


class SourceIssue(msgspec.Struct, frozen=True):
    """A condition of the issue table that holds now: its code and the sentence to show."""

    code: str
    sentence: str


class SourceStatus(msgspec.Struct, frozen=True):
    """Figures of the snapshot; ``hz`` over the last full second, ``age_s`` None before the first packet.

    ``relays``: received commands are sent on.
    """

    hz: float
    age_s: float | None
    bad: int
    gaps: int
    issues: tuple[SourceIssue, ...] = ()
    relays: bool = False


class Source(Protocol):
    """The one interface between an adapter and a source; input from the network raises nothing."""

    @property
    def counters(self) -> Mapping[str, int]:
        """Events since start, by name."""
        ...

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the sockets wanted, constant over the life of the source."""
        ...

    def on_endpoint(self, endpoint_key: str, address: Address | None, now: float) -> None:
        """Note that an endpoint is open at this local address, or (None) that it could not be opened or was lost."""
        ...

    def on_datagram(self, endpoint_key: str, data: bytes, sender: Address, now: float) -> None:
        """Take one datagram; the source itself checks the sender."""
        ...

    def on_connection(self, endpoint_key: str, connection_id: int, peer: Address | None, now: float) -> None:
        """Note a TCP connection: ``peer`` when it begins, None when it has ended."""
        ...

    def on_stream(self, endpoint_key: str, connection_id: int, data: bytes, now: float) -> None:
        """Take bytes of one TCP connection, in any chunking."""
        ...

    def on_tick(self, now: float) -> None:
        """Do what is due: rates, staleness, throttled values."""
        ...

    def on_send_failed(self, endpoint_key: str, now: float) -> None:
        """Note that a datagram of this endpoint could not be sent."""
        ...

    def close(self, now: float) -> None:
        """End what was begun with the far end; what that takes is among the next datagrams."""
        ...

    def take_publications(self) -> list[Publication | Withdrawal]:
        """Remove and return what is to be published or withdrawn, in order."""
        ...

    def take_datagrams(self) -> list[OutgoingDatagram]:
        """Remove and return (endpoint key, bytes, target) to send; a TCP ``connect`` endpoint writes the bytes."""
        ...

    def take_closures(self) -> list[tuple[str, int]]:
        """Remove and return (endpoint key, connection id) of the TCP connections to close."""
        ...

    def status(self, now: float) -> SourceStatus:
        """Return the figures of the snapshot."""
        ...

    def next_deadline(self, now: float) -> float | None:
        """Return the time at which ``on_tick`` is wanted at the latest, None if nothing is due."""
        ...


class SenderFilter:
    """Whether a sender's address is allowed: loopback always, else one of the given networks."""

    def __init__(self, allow_from: Sequence[str]) -> None:
        """Take addresses or CIDR networks, IPv4 or IPv6; ValueError names a text that is neither."""
        self._networks = [ip_network(text, strict=False) for text in allow_from]
        self._verdicts: dict[str, bool] = {}

    def allows(self, host: str) -> bool:
        """Return the verdict; a text that is no address is refused."""
        verdict = self._verdicts.get(host)
        if verdict is None:
            if len(self._verdicts) >= MAX_REMEMBERED_SENDERS:
                self._verdicts.clear()
            verdict = self._verdicts[host] = self._judge(host)
        return verdict

    def _judge(self, host: str) -> bool:
        try:
            address = ip_address(host.partition("%")[0])
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None)
        if mapped is not None:  # a dual-stack socket reports IPv4 senders as ::ffff:a.b.c.d
            address = mapped
        return address.is_loopback or any(address in network for network in self._networks)
