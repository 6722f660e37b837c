"""FrcSource: datagrams and streams of the driver station protocols in, publications out. It answers nothing.

The one thing it ever sends is the keepalive ``00 00`` on a console connection that the configuration asks for.
"""

from collections.abc import Callable

from aoabridge.codecs import frc_ds
from aoabridge.codecs.frc_ds import DsStatus, FmsControl, Frame
from aoabridge.errors import DecodeError
from aoabridge.sources.base import Address, Endpoint, OutgoingDatagram, SenderFilter, SourceIssue, SourceStatus
from aoabridge.sources.board import TopicBoard
from aoabridge.sources.frc.links import Link
from aoabridge.sources.frc.origins import Origins, Place
from aoabridge.sources.frc.ports import ANYWHERE, endpoints_of, protocol_of
from aoabridge.sources.frc.publisher import FrcPublisher
from aoabridge.sources.frc.streams import Connection, Connections
from aoabridge.sources.meters import Order, RateLimit
from aoabridge.sources.settings import FrcSettings
from aoabridge.values import Publication, Withdrawal

__all__ = ["FrcSource"]

REPORT_S = 1.0  # figures of the links
KEEPALIVE_S = 2.0  # what console viewers keep
KEEPALIVE = b"\0\0"
SILENT_S = 5.0
BAD_FRACTION = 0.05
DS_LINKED_S = 1.0


class FrcSource:
    """One ``[sources.frc]``: see ``sources.base.Source`` for the methods."""

    def __init__(self, settings: FrcSettings, bridge_name: str) -> None:
        self._settings = settings
        self._board = TopicBoard(f"/FRC/{settings.name or bridge_name}/", settings.publish_hz)
        self._figures = self._board.writer("link")
        self._endpoints = {endpoint.key: endpoint for endpoint in endpoints_of(settings)}
        self._filter = SenderFilter(ANYWHERE if settings.replay else settings.allow_from)
        self._links = {
            protocol: Link(protocol, (settings.stale_ms.fms if "fms" in protocol else settings.stale_ms.robot) / 1000)
            for protocol in dict.fromkeys(map(protocol_of, self._endpoints))
        }
        self._link_of = {key: self._links[protocol_of(key)] for key in self._endpoints}
        self._limits: dict[str, RateLimit[Callable[[float], None]]] = {
            key: RateLimit(settings.max_rate) for key in self._endpoints
        }
        self._origins = Origins(self._board, settings.forget_s, settings.max_teams)
        self._streams = Connections(self._origins)
        self._publisher = FrcPublisher(self._board, settings)
        self._out: list[OutgoingDatagram] = []
        self._closures: list[Place] = []
        self._refused: set[Place] = set()  # closed by us; what still arrives of them is not looked at
        self._keepalive_at: dict[Place, float] = {}
        self._started_at: float | None = None
        self._report_at = float("-inf")
        self._duty_at = float("-inf")  # nothing is due by time alone before
        self._reported = (0, 0)
        self._bad_fraction = 0.0
        self._now = 0.0

    def endpoints(self) -> tuple[Endpoint, ...]:
        """The sockets wanted; none while a capture is replayed."""
        return () if self._settings.replay else tuple(self._endpoints.values())

    @property
    def counters(self) -> dict[str, int]:
        """``<protocol id>/<counter>`` -> events since start."""
        self._collect()
        return {f"{name}/{key}": count for name, link in self._links.items() for key, count in link.counts.items()}

    def on_endpoint(self, endpoint_key: str, address: Address | None, now: float) -> None:
        """Nothing depends on whether a socket is open."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The robot program's tables that are to be written while they are free."""
        return tuple(self._publisher.tables)

    def on_table_owner(self, table: str, owned: bool | None, now: float) -> None:
        """Another program publishes below this table; False: it is known that none does; None: it is not known.

        Nothing is written before it was said to be free.
        """
        self._begin(now)
        if table in self._publisher.tables:
            self._publisher.tables[table].on_owner(owned)

    def on_datagram(self, endpoint_key: str, data: bytes, sender: Address, now: float) -> None:
        """One datagram; a foreign sender is counted and nothing else."""
        self._begin(now)
        link = self._link_of.get(endpoint_key)
        if link is None:
            return
        if not self._filter.allows(sender[0]):
            link.count("Rejected")
            return

        def accept(now: float) -> None:
            self._accept(link, endpoint_key, data, sender, now)

        if self._limits[endpoint_key].offer(accept, now):
            accept(now)
        else:
            self._duty_at = now

    def _accept(self, link: Link, key: str, data: bytes, sender: Address, now: float) -> None:
        link.count("Received")
        try:
            packet = frc_ds.decode(link.protocol, data)
        except DecodeError:
            link.count("Truncated")
            return
        link.count_unknown(packet)
        was_connected = link.is_connected(now)
        link.meter.mark(now)
        link.peer = sender
        if not was_connected:
            link.write_connected(self._figures, now)
            self._duty_at = now
        team = packet.team if isinstance(packet, DsStatus) else None
        receiver = packet.station if isinstance(packet, FmsControl) else team
        order = link.sequence.judge((key, sender, receiver), packet.sequence, now)
        out = self._origins.hear(link.protocol, team, now)
        if order in (Order.DUPLICATE, Order.LATE) or out is None:
            return
        before = self._board.replaced_texts
        ds_link = self._links.get("ds2fms-udp")
        linked = ds_link is not None and ds_link.meter.is_fresh(now, DS_LINKED_S)
        self._publisher.write_datagram(packet, out, (key, sender), ds_linked=linked)
        link.count("TextReplaced", self._board.replaced_texts - before)

    def on_connection(self, endpoint_key: str, connection_id: int, peer: Address | None, now: float) -> None:
        """A TCP connection begins (``peer``) or has ended; a foreign peer is counted and closed."""
        self._begin(now)
        self._duty_at = now
        place = (endpoint_key, connection_id)
        endpoint = self._endpoints.get(endpoint_key)
        self._refused.discard(place)
        if peer is None or endpoint is None:
            self._close(place, now)
            return
        link = self._links[protocol_of(endpoint_key)]
        if endpoint.direction == "listen" and not self._filter.allows(peer[0]):
            link.count("Rejected")
            self._refuse(place)
            return
        self._open(place, now)
        link.peer = peer
        if endpoint.direction == "connect":
            self._keepalive_at[place] = now
            self._keep_alive(now)

    def _refuse(self, place: Place) -> None:
        self._closures.append(place)
        self._refused.add(place)

    def _open(self, place: Place, now: float) -> Connection:
        link = self._links[protocol_of(place[0])]
        connection = self._streams.open(place, link, now)
        link.write_connected(self._figures, now)
        return connection

    def _close(self, place: Place, now: float) -> None:
        self._keepalive_at.pop(place, None)
        connection = self._streams.close(place, now)
        if connection is not None:
            connection.link.write_connected(self._figures, now)

    def on_stream(self, endpoint_key: str, connection_id: int, data: bytes, now: float) -> None:
        """Bytes of one connection, in any chunking."""
        self._begin(now)
        self._duty_at = now
        place = (endpoint_key, connection_id)
        if endpoint_key not in self._endpoints or place in self._refused:
            return
        connection = self._streams.find(place) or self._open(place, now)
        for frame in self._streams.feed(connection, data, now):

            def accept(now: float, frame: Frame = frame) -> None:
                self._accept_frame(connection, frame, now)

            if self._limits[endpoint_key].offer(accept, now):
                accept(now)

    def _accept_frame(self, connection: Connection, frame: Frame, now: float) -> None:
        if self._streams.find(connection.place) is not connection:
            return  # it waited for its second, and its connection has ended since
        link = connection.link
        link.count("Received")
        link.count("Faults", int(frame.fault is not None))
        link.count("UnknownTags", int(frame.is_unknown))
        link.count("UnknownValues", frame.unknown_values)
        link.meter.mark(now)
        if not self._streams.hear(connection, frame.tag, now):
            return
        out = self._origins.hear(link.protocol, connection.team, now)
        if out is not None:
            before = self._board.replaced_texts
            self._publisher.write_frame(link.protocol, frame.tag, out)
            link.count("TextReplaced", self._board.replaced_texts - before)

    def _begin(self, now: float) -> None:
        self._now = now
        if self._started_at is None:
            self._started_at = now

    def on_tick(self, now: float) -> None:
        """Waiting datagrams, unfinished frames, keepalives, silence, figures."""
        self._begin(now)
        if now < self._duty_at and not self._origins.changed:
            return
        for limit in self._limits.values():
            accept = limit.take(now)
            if accept is not None:
                accept(now)
        for place in self._streams.overdue(now):
            self._refuse(place)
            self._close(place, now)
        self._keep_alive(now)
        for protocol in self._origins.forget_silent(now):
            self._publisher.forget(protocol)
        for link in self._links.values():
            link.write_connected(self._figures, now)
        if now >= self._report_at:
            self._report_at = now + REPORT_S
            self._report(now)
        self._origins.changed = False
        self._duty_at = self._next_duty(now)

    def _keep_alive(self, now: float) -> None:
        for place, due in self._keepalive_at.items():
            if now >= due:
                endpoint = self._endpoints[place[0]]
                self._out.append((endpoint.key, KEEPALIVE, (endpoint.host, endpoint.port)))
                self._keepalive_at[place] = now + KEEPALIVE_S

    def _collect(self) -> None:
        for protocol, link in self._links.items():
            limits = [limit.dropped for key, limit in self._limits.items() if protocol_of(key) == protocol]
            link.collect(sum(limits))

    def _report(self, now: float) -> None:
        self._collect()
        for link in self._links.values():
            link.write(self._figures, now)
        received = sum(link.counts["Received"] for link in self._links.values())
        bad = sum(link.counts["Truncated"] + link.counts["Faults"] for link in self._links.values())
        new, new_bad = received - self._reported[0], bad - self._reported[1]
        self._reported = (received, bad)
        self._bad_fraction = new_bad / new if new > 0 else 0.0

    def on_send_failed(self, endpoint_key: str, now: float) -> None:
        """Nothing depends on a keepalive."""

    def close(self, now: float) -> None:
        """Nothing: no far end is told anything."""

    def take_publications(self) -> list[Publication | Withdrawal]:
        """What is to be published, in order."""
        return self._board.take(self._now)

    def take_datagrams(self) -> list[OutgoingDatagram]:
        """Keepalives of the configured console connections, never anything else."""
        out, self._out = self._out, []
        return out

    def take_closures(self) -> list[Place]:
        """Connections to close."""
        closures, self._closures = self._closures, []
        return closures

    def status(self, now: float) -> SourceStatus:
        """Figures over all links, and what is wrong now."""
        self._collect()
        links = list(self._links.values())
        age_s = min((age for link in links if (age := link.meter.age_s(now)) is not None), default=None)
        for link in links:
            link.meter.roll(now)
        return SourceStatus(
            hz=sum(link.meter.rate_hz for link in links),
            age_s=age_s,
            bad=sum(link.bad for link in links),
            gaps=sum(link.counts["SequenceGaps"] for link in links),
            issues=tuple(self._issues(now, age_s)),
        )

    def _issues(self, now: float, age_s: float | None) -> list[SourceIssue]:
        issues = []
        started_at = now if self._started_at is None else self._started_at
        if (now - started_at if age_s is None else age_s) > SILENT_S:
            issues.append(SourceIssue("source-silent", "frc: nothing received"))
        if self._bad_fraction > BAD_FRACTION:
            issues.append(SourceIssue("source-bad", f"frc: {self._bad_fraction:.0%} undecodable"))
        for table in self._publisher.tables.values():
            if table.owned:
                issues.append(SourceIssue("fms-info-owned", f"{table.name} belongs to another program"))
        return issues

    def next_deadline(self, now: float) -> float | None:
        """When ``on_tick`` is wanted."""
        waiting_until = self._board.next_deadline()
        if self._origins.changed:
            return now
        return max(now, self._duty_at if waiting_until is None else min(self._duty_at, waiting_until))

    def _next_duty(self, now: float) -> float:
        """When something is due by time alone; a datagram puts that off, or asks for the next tick at once."""
        due: list[float | None] = [self._report_at, self._origins.next_deadline(), self._streams.next_deadline()]
        due += [limit.due() for limit in self._limits.values()]
        due += [at for link in self._links.values() if (at := link.stale_at()) is not None and at > now]
        due += self._keepalive_at.values()
        return min(at for at in due if at is not None)
