"""The relay's decisions: what happens on NetworkTables, on the links and by time, and what goes out in return.

Pure: inputs are method calls with the time as an argument, outputs are taken. ``now`` is monotonic seconds everywhere;
``time_us`` is the server's clock (its estimate, or local monotonic time without a server).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from aoabridge import __version__
from aoabridge.bridge.fanout import Fanout
from aoabridge.bridge.link import Link, LinkInfo
from aoabridge.bridge.outbox import ControlKind
from aoabridge.bridge.owners import Ownership
from aoabridge.bridge.policy import compile_patterns
from aoabridge.bridge.put_desk import PutDesk
from aoabridge.bridge.puts import PutRules
from aoabridge.bridge.settings import AccessSettings, RelaySettings
from aoabridge.bridge.topics import MemoryBudget, TopicTable
from aoabridge.codecs.wpistruct import SchemaRegistry
from aoabridge.errors import LinkError
from aoabridge.phone.keys import is_reserved
from aoabridge.phone.lines import MAX_LINE_OUT, InboundLine
from aoabridge.phone.messages import (
    DISCONNECT_LINE,
    Hello,
    Message,
    Ping,
    Pong,
    PutMessage,
    Subscribe,
    TopicsRequest,
    Unsubscribe,
    hello_line,
    parse_line,
    pong_line,
    status_line,
    topics_line,
)
from aoabridge.values import (
    Announced,
    Connected,
    Disconnected,
    LinkId,
    Publication,
    Put,
    PutResult,
    Unannounced,
    Update,
    Withdrawal,
)

__all__ = ["HEARTBEAT_TOPIC", "BridgeCore", "CoreSettings", "Notice"]

HEARTBEAT_TOPIC: Final = "/RoboRoute/Heartbeat"
HEARTBEAT_S = 0.5
HEARTBEAT_BLOCKED_S = 1.0  # an app that has not read for this long cannot show the robot's state
SETTLE_S = 0.25  # after connecting, announces come for a while; until then "unknown topic" is not yet true
SETTLE_GAP_S = 0.05
SETTLE_MAX_S = 1.0
NOTICE_S = 1.0  # bad lines are logged at most once per second per phone


class CoreSettings(msgspec.Struct, frozen=True):
    """Configuration of the relay; ``own_patterns`` are globs of topics that only the bridge itself publishes."""

    relay: RelaySettings = RelaySettings()
    access: AccessSettings = AccessSettings()
    topics_period_s: float = 10.0
    heartbeat: bool = True
    own_patterns: tuple[str, ...] = ()


class Notice(msgspec.Struct, frozen=True):
    """A refused line worth one log line."""

    link: LinkId
    code: str
    text: str


class BridgeCore:
    """Topics, links, and who put what. ``wall_offset_s`` + ``now`` is the wall clock of the heartbeat."""

    def __init__(self, settings: CoreSettings, *, wall_offset_s: float = 0.0) -> None:
        self.links: dict[LinkId, Link] = {}
        self.budget = MemoryBudget()
        self.topics = TopicTable(self.budget)
        self.registry = SchemaRegistry()
        self.owners = Ownership()
        self.counters: Counter[str] = Counter()
        self.put_errors: Counter[str] = Counter()
        self._ended: Counter[str] = Counter()  # counters of links that are over
        self.settled = False
        self.address = ""
        rules = PutRules(self.topics, self.registry, self.owners)
        self._rules = rules
        self.fanout = Fanout(self.topics, self.registry, rules, self.links)
        self.desk = PutDesk(self.topics, rules, self.owners, self.links)
        self._wall_offset_s = wall_offset_s
        self._connected_at: float | None = None
        self._announced_at = 0.0
        self._publications: list[Publication | Withdrawal] = []
        self._beat_at: float | None = None
        self._list_due: dict[LinkId, float] = {}
        self._notices: list[Notice] = []
        self._noticed: dict[LinkId, float] = {}
        self._stopping = False
        self.configure(settings)

    def configure(self, settings: CoreSettings) -> None:
        """Apply settings, to running links too where they can change."""
        self.settings = settings
        self._own = compile_patterns((HEARTBEAT_TOPIC, *settings.own_patterns))
        for link in self.links.values():
            link.configure(settings.access, settings.relay)
            self.fanout.recheck_access(link)

    # NetworkTables.

    def on_connection(self, event: Connected | Disconnected, now: float) -> None:
        """The robot connection came or went."""
        was_settled, self.settled = self.settled, False
        if isinstance(event, Connected):
            self.address = _host(event.address)
            self._connected_at = self._announced_at = now
        else:
            self._connected_at = None
            for name in [topic.name for topic in self.topics if not topic.own]:
                self.fanout.remove(name)
            self._rules.server_lost()
            for link_id, error in self.desk.drop_all():
                self._refuse_put(self.links.get(link_id), error, now)
            self._beat_at = None
        if was_settled:
            self._tell_status()

    def on_topics(self, batch: Iterable[Announced | Unannounced], now: float) -> None:
        """Topics came and went on the server."""
        for event in batch:
            known = self.topics.find(event.topic)
            if known is not None and known.own:
                continue
            if isinstance(event, Unannounced):
                self.fanout.remove(event.topic)
                continue
            self._announced_at = now
            if known is not None and known.type == event.type and self.owners.find(event.topic) is not None:
                continue  # what we publish for a phone ourselves
            self.fanout.announce(event.topic, event.type, now, own=False)
            self.desk.retype(event.topic, event.type)

    def on_updates(self, batch: Iterable[Update], now: float) -> None:
        """Values of other clients arrived."""
        find, set_value = self.topics.find, self.fanout.set_value
        for update in batch:
            topic = find(update.topic)
            if topic is not None and not topic.own:
                set_value(topic, update.value, update.time_us, now)

    def on_publications(self, batch: Iterable[Publication | Withdrawal], now: float, time_us: int) -> None:
        """The bridge itself publishes: phones see it too, as a client's own values never come back to it."""
        for item in batch:
            if isinstance(item, Withdrawal):
                self.fanout.remove(item.topic)
                continue
            topic = self.topics.find(item.topic)
            if topic is None or topic.type != item.type or not topic.own:
                topic = self.fanout.announce(item.topic, item.type, now, own=True)
            self.fanout.set_value(topic, item.value, time_us, now)

    def on_put_results(self, batch: Iterable[PutResult], now: float, time_us: int) -> None:
        """What became of puts: acknowledge or refuse, and show accepted values to the other phones."""
        for result in batch:
            put = result.put
            refusal = self.desk.result(result)
            if refusal is not None:
                self._refuse_put(self.links.get(put.link), refusal, now)
            elif result.accepted and put.value is not None and self.owners.find(put.topic) is not None:
                topic = self.topics.find(put.topic)
                if topic is None or topic.type != put.type:
                    topic = self.fanout.announce(put.topic, put.type, now, own=False)
                self.fanout.set_value(topic, put.value, time_us, now, writer=put.link)

    # Links.

    def on_link_up(self, ident: LinkId, info: LinkInfo, now: float) -> None:
        """A phone's interface is claimed: lines flow at once, whether its app ever says anything or not."""
        settings = self.settings
        link = Link(ident, info, access=settings.access, settings=settings.relay, budget=self.budget, now=now)
        self.links[ident] = link
        self._welcome(link, now)

    def _welcome(self, link: Link, now: float) -> None:
        self._send_topics(link, now)
        link.outbox.put_control(self._status_line())
        self._lower_for(link, now)

    def on_link_bytes(self, ident: LinkId, chunk: bytes, now: float) -> None:
        """Bytes of a phone, as they were read."""
        link = self.links[ident]
        link.counters["rx_bytes"] += len(chunk)
        for line in link.decoder.feed(chunk):
            self._on_line(link, line, now)

    def on_link_idle(self, ident: LinkId, now: float) -> None:  # noqa: ARG002  # every input has the time
        """A read of the phone returned nothing: what it wrote before we came has been read."""
        self.links[ident].end_backlog()

    def on_link_resync(self, ident: LinkId, now: float) -> None:  # noqa: ARG002
        """Inbound bytes were lost: the line they belong to is dropped."""
        link = self.links[ident]
        link.counters["in_resync"] += 1
        link.decoder.resync()

    def on_bytes_accepted(self, ident: LinkId, count: int, now: float, *, error: bool = False) -> None:
        """The transfer last taken is over: ``count`` bytes were accepted, or with ``error`` nobody knows how many."""
        self.links[ident].accepted(count, now, error=error)

    def on_link_down(self, ident: LinkId, now: float) -> None:
        """The link is gone: nothing that its phone said may outlive it."""
        link = self.links[ident]
        self.fanout.detach_all(link)
        self._ended.update(link.counters)
        del self.links[ident]
        self._list_due.pop(ident, None)
        self._noticed.pop(ident, None)
        self.desk.release(ident, now)

    def begin_stop(self, now: float) -> None:
        """An orderly stop: no more puts or values, run pulses lowered, the phones told."""
        self._stopping = True
        for link in self.links.values():
            self.close_link(link.ident, now)

    def close_link(self, ident: LinkId, now: float) -> None:
        """This link will end in an orderly way: lower its run pulses, tell the phone."""
        link = self.links[ident]
        if not link.closing:
            link.close()
            link.outbox.put_control(DISCONNECT_LINE)
            self.desk.release(ident, now)

    # Messages.

    def _on_line(self, link: Link, line: InboundLine, now: float) -> None:
        link.counters["rx_lines"] += 1
        try:
            if line.oversize:
                text = f"the line is longer than {self.settings.relay.max_line_bytes} bytes"
                raise LinkError(text, "too-large")
            message = parse_line(line.data)
        except LinkError as error:
            if not link.swallow():
                link.counters["bad_lines"] += 1
                self._refuse(link, error, now, line.data)
            return
        link.note_line(line, now)
        try:
            self._ACTIONS[type(message)](self, link, message, line, now)
        except LinkError as error:
            self._refuse(link, error, now, line.data)

    def _on_subscribe(self, link: Link, message: Subscribe, line: InboundLine, now: float) -> None:
        link.subscribed = True
        for error in self.fanout.subscribe(link, message):
            self._refuse(link, error, now, line.data)

    def _on_unsubscribe(self, link: Link, message: Unsubscribe, line: InboundLine, now: float) -> None:
        del line, now
        self.fanout.unsubscribe(link, message)

    def _on_put(self, link: Link, message: PutMessage, line: InboundLine, now: float) -> None:
        try:
            self._check_put(link, message, line, now)
            self.desk.put(link, message)
            if changed := self._rules.take_changed():
                self.fanout.schemas_changed(changed, now)
        except LinkError as error:
            error.topic, error.ident = message.key, message.ident
            self._count_refusal(link, error)
            raise

    def _check_put(self, link: Link, message: PutMessage, line: InboundLine, now: float) -> None:
        if is_reserved(message.key) or (self._own is not None and self._own.match(message.key)):
            raise LinkError("this topic is not for phones to write", "forbidden")
        topic = self.topics.by_key(message.key)
        if not link.may_put.permits(message.key) or (topic is not None and topic.own):
            raise LinkError("this topic may not be put", "forbidden")
        if line.early:
            link.counters["backlog_puts_refused"] += 1
            raise LinkError("written before the bridge was there: put it again", "not-connected")
        if not self.settled or self._stopping or link.closing:
            raise LinkError("no robot is connected", "not-connected")
        if not link.puts.take(now):
            rate = self.settings.relay.put_rate
            raise LinkError(f"more than {rate} puts per second", "rate-limited")

    def _on_topics_request(self, link: Link, message: TopicsRequest, line: InboundLine, now: float) -> None:
        del line
        self._send_topics(link, now, types=message.types)

    def _on_hello(self, link: Link, message: Hello, line: InboundLine, now: float) -> None:
        del line
        again = link.pings is not None
        if again:
            self.fanout.detach_all(link)
            link.start_over()
            self.desk.release(link.ident, now)
        link.greet(message, now)
        link.outbox.put_control(hello_line(__version__, message.nonce, self._server_state()))
        if again:
            self._welcome(link, now)

    def _on_ping(self, link: Link, message: Ping, line: InboundLine, now: float) -> None:
        del line, now
        link.outbox.put_control(pong_line(message.ident))

    def _on_pong(self, link: Link, message: Pong, line: InboundLine, now: float) -> None:
        del line
        if link.pings is not None:
            link.pings.pong(message.ident, now)

    _ACTIONS: Final[Mapping[type[Message], Callable[..., None]]] = {
        Subscribe: _on_subscribe,
        Unsubscribe: _on_unsubscribe,
        PutMessage: _on_put,
        TopicsRequest: _on_topics_request,
        Hello: _on_hello,
        Ping: _on_ping,
        Pong: _on_pong,
    }

    def _refuse(self, link: Link, error: LinkError, now: float, line: bytes) -> None:
        self.counters[error.code] += 1
        link.refuse(error, now, line)
        if now - self._noticed.get(link.ident, -NOTICE_S) >= NOTICE_S:
            self._noticed[link.ident] = now
            self._notices.append(Notice(link.ident, error.code, str(error)))

    def _refuse_put(self, link: Link | None, error: LinkError, now: float) -> None:
        """A put that was ordered came back refused."""
        if link is not None:
            self._count_refusal(link, error)
            self._refuse(link, error, now, b"")

    def _count_refusal(self, link: Link, error: LinkError) -> None:
        self.put_errors[error.code] += 1
        link.counters["refused_puts"] += 1
        link.refused_code, link.refused_topic = error.code, error.topic or ""

    # Time.

    def on_tick(self, now: float) -> None:
        """Whatever is due by time alone."""
        self._settle(now)
        for link in self.links.values():
            link.tick(now)
            if now >= self._list_due[link.ident]:
                self._send_topics(link, now)
        self.desk.unpublish_due(now)
        self._beat(now)

    def _settle(self, now: float) -> None:
        if self.settled or self._connected_at is None:
            return
        waited = now - self._connected_at
        quiet = now - self._announced_at
        if (waited >= SETTLE_S and quiet >= SETTLE_GAP_S) or waited >= SETTLE_MAX_S:
            self.settled = True
            self._tell_status()
            for link in self.links.values():
                self._lower_for(link, now)

    def _lower_for(self, link: Link, now: float) -> None:
        if self.settled and link.must_lower:
            link.must_lower = False
            self.desk.lower_foreign(link, now)

    def _beat(self, now: float) -> None:
        alive = (
            self.settings.heartbeat
            and self.settled
            and not self._stopping
            and any(
                link.live
                and not link.stale(now)
                and (link.blocked_since is None or now - link.blocked_since <= HEARTBEAT_BLOCKED_S)
                for link in self.links.values()
            )
        )
        if not alive:
            if self._beat_at is not None:
                self._beat_at = None
                self._publications.append(Withdrawal(HEARTBEAT_TOPIC))
        elif self._beat_at is None or now - self._beat_at >= HEARTBEAT_S:
            late = self._beat_at is None or now - self._beat_at >= 2 * HEARTBEAT_S
            self._beat_at = now if late or self._beat_at is None else self._beat_at + HEARTBEAT_S
            self._publications.append(Publication(HEARTBEAT_TOPIC, "double", self._wall_offset_s + now))

    def next_deadline(self, now: float) -> float:
        """When ``on_tick`` or ``take_bytes`` has something to do if no other input comes first."""
        due = [now + HEARTBEAT_S]
        if self._beat_at is not None:
            due.append(self._beat_at + HEARTBEAT_S)
        if self._connected_at is not None and not self.settled:
            due.append(now + SETTLE_GAP_S)
        release = self.owners.next_due()
        if release is not None:
            due.append(release)
        for link in self.links.values():
            due.append(self._list_due[link.ident])
            if not link.in_flight:
                due.append(link.next_due(now))
        return min(due)

    # Outputs.

    def take_puts(self) -> list[Put]:
        """Orders to NetworkTables, in order."""
        return self.desk.take()

    def take_publications(self) -> list[Publication | Withdrawal]:
        """What the core itself publishes: the heartbeat."""
        publications, self._publications = self._publications, []
        return publications

    def take_bytes(self, ident: LinkId, now: float) -> bytes:
        """The next transfer of a link, packed and padded; b"" if there is none or one is in flight."""
        return self.links[ident].take_bytes(now)

    def take_notices(self) -> list[Notice]:
        """Refused lines to log, at most one per second and phone."""
        notices, self._notices = self._notices, []
        return notices

    def totals(self) -> Counter[str]:
        """Counters of all links since start, ended ones included."""
        totals = self._ended.copy()
        for link in self.links.values():
            totals.update(link.counters)
        return totals

    def _server_state(self) -> str:
        return "connected" if self.settled else "disconnected"

    def _status_line(self) -> bytes:
        return status_line(self._server_state(), self.address)

    def _tell_status(self) -> None:
        for link in self.links.values():
            link.outbox.put_control(self._status_line())

    def _send_topics(self, link: Link, now: float, *, types: bool = False) -> None:
        self._list_due[link.ident] = now + self.settings.topics_period_s
        keys = self.topics.keys()
        line = topics_line(keys, self._types(keys) if types else None)
        while len(line) > MAX_LINE_OUT:
            self.counters["topic_list_cut"] += 1
            keys = keys[: len(keys) * (MAX_LINE_OUT - 1) // len(line)]
            line = topics_line(keys, self._types(keys) if types else None)
        link.outbox.put_control(line, ControlKind.ANSWER if types else ControlKind.TOPICS)

    def _types(self, keys: list[str]) -> dict[str, Any]:
        return {key: topic.type for key in keys if (topic := self.topics.by_key(key)) is not None}


def _host(address: str) -> str:
    """The address without its port."""
    host, _, port = address.rpartition(":")
    return host if port.isdigit() and host else address
