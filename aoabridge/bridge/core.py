"""The relay's decisions: what happens on NetworkTables, on the links and by time, and what goes out in return.

Pure: inputs are method calls with the time as an argument, outputs are taken. ``now`` is monotonic seconds everywhere;
``time_us`` is the server's clock (its estimate, or local monotonic time without a server).
"""

from collections import Counter
from collections.abc import Iterable

import msgspec

from aoabridge.bridge.announcer import Announcer
from aoabridge.bridge.dialog import Dialog
from aoabridge.bridge.fanout import Fanout
from aoabridge.bridge.heartbeat import HEARTBEAT_TOPIC, Heartbeat
from aoabridge.bridge.link import Link, LinkInfo
from aoabridge.bridge.owners import Ownership
from aoabridge.bridge.policy import compile_patterns
from aoabridge.bridge.put_desk import PutDesk
from aoabridge.bridge.puts import PutRules
from aoabridge.bridge.refusals import Notice, Refusals
from aoabridge.bridge.robot import RobotConnection
from aoabridge.bridge.settings import AccessSettings, RelaySettings
from aoabridge.bridge.topics import MemoryBudget, TopicTable
from aoabridge.codecs.wpistruct import SchemaRegistry
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

HEARTBEAT_BLOCKED_S = 1.0  # an app that has not read for this long cannot show the robot's state
MAX_SLEEP_S = 0.5  # conditions of a link that no deadline names (an app gone stale) are seen this late at most
IDLE_SLEEP_S = 5.0  # without a link everything has its deadline


class CoreSettings(msgspec.Struct, frozen=True):
    """Configuration of the relay; ``own_patterns`` are globs of topics that only the bridge itself publishes."""

    relay: RelaySettings = RelaySettings()
    access: AccessSettings = AccessSettings()
    topics_period_s: float = 10.0
    heartbeat: bool = True
    own_patterns: tuple[str, ...] = ()


class BridgeCore:
    """Topics, links, and who put what. ``wall_offset_s`` + ``now`` is the wall clock of the heartbeat."""

    def __init__(self, settings: CoreSettings, *, wall_offset_s: float = 0.0) -> None:
        self.links: dict[LinkId, Link] = {}
        self.budget = MemoryBudget()
        self.topics = TopicTable(self.budget)
        self.registry = SchemaRegistry()
        self.owners = Ownership()
        self.robot = RobotConnection()
        self._refusals = Refusals()
        self.counters = self._refusals.counters
        self.put_errors = self._refusals.put_errors
        rules = PutRules(self.topics, self.registry, self.owners)
        self.fanout = Fanout(self.topics, self.registry, rules, self.links)
        self.desk = PutDesk(self.topics, rules, self.owners, self.links)
        self._announcer = Announcer(self.topics, self.robot, self.counters)
        self._dialog = Dialog(
            topics=self.topics,
            rules=rules,
            fanout=self.fanout,
            desk=self.desk,
            robot=self.robot,
            announcer=self._announcer,
            refusals=self._refusals,
        )
        self._heartbeat = Heartbeat(wall_offset_s)
        self._publications: list[Publication | Withdrawal] = []
        self._ended: Counter[str] = Counter()  # counters of links that are over
        self._stopping = False
        self.configure(settings)

    def configure(self, settings: CoreSettings) -> None:
        """Apply settings, to running links too where they can change."""
        self.settings = settings
        self._announcer.set_period(settings.topics_period_s)
        self._dialog.settings = settings.relay
        self._dialog.own = compile_patterns((HEARTBEAT_TOPIC, *settings.own_patterns))
        for link in self.links.values():
            link.configure(settings.access, settings.relay)
            self.fanout.recheck_access(link)

    @property
    def settled(self) -> bool:
        """True if a robot is connected and its topics are known."""
        return self.robot.settled

    # NetworkTables.

    def on_connection(self, event: Connected | Disconnected, now: float) -> None:
        """The robot connection came or went."""
        was_settled = self.robot.settled
        self.robot.on_event(event, now)
        if isinstance(event, Disconnected):
            self.fanout.server_lost()
            for ident, error in self.desk.drop_all():
                if (link := self.links.get(ident)) is not None:
                    self._refusals.refuse_put(link, error, now)
        self._beat(now)
        if was_settled:
            self._announcer.tell_status(self.links.values())

    def on_topics(self, batch: Iterable[Announced | Unannounced], now: float) -> None:
        """Topics came and went on the server."""
        for event in batch:
            known = self.topics.find(event.topic)
            if known is not None and known.own:
                continue
            if isinstance(event, Unannounced):
                self.fanout.remove(event.topic)
                continue
            self.robot.on_announce(now)
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
            answer = self.desk.result(result)
            if answer.refusal is not None and (link := self.links.get(result.put.link)) is not None:
                self._refusals.refuse_put(link, answer.refusal, now)
            if result.accepted:
                self._show_put(result.put, now, time_us, writer=result.put.link if answer.asked else None)

    def _show_put(self, put: Put, now: float, time_us: int, writer: LinkId | None) -> None:
        owned = self.owners.find(put.topic)
        if put.value is None or owned is None or owned.type != put.type:
            return  # it is no longer ours, or has another type by now
        topic = self.topics.find(put.topic)
        if topic is None or topic.type != put.type:
            topic = self.fanout.announce(put.topic, put.type, now, own=False)
        self.fanout.set_value(topic, put.value, time_us, now, writer=writer)

    # Links.

    def on_link_up(self, ident: LinkId, info: LinkInfo, now: float) -> None:
        """A phone's interface is claimed: lines flow at once, whether its app ever says anything or not."""
        settings = self.settings
        link = Link(ident, info, access=settings.access, settings=settings.relay, budget=self.budget, now=now)
        self.links[ident] = link
        self._announcer.welcome(link, now)
        self._dialog.lower_pulses(link, now)
        if self._stopping:
            link.close()

    def on_link_bytes(
        self, ident: LinkId, chunk: bytes, now: float, *, age_s: float = 0.0, pause_s: float | None = None
    ) -> None:
        """Bytes of a phone, read ``age_s`` ago, after it had none for ``pause_s`` (None: ever since the last)."""
        link = self.links[ident]
        link.chunk_age_s = age_s
        link.on_chunk(now, pause_s)
        link.counters["rx_bytes"] += len(chunk)
        for line in link.decoder.feed(chunk):
            self._dialog.read(link, line, now)

    def on_link_idle(self, ident: LinkId, now: float) -> None:  # noqa: ARG002  # every input has the time
        """A read of the phone returned nothing: what it wrote before we came has been read."""
        self.links[ident].end_backlog()

    def on_link_resync(self, ident: LinkId, now: float) -> None:
        """Inbound bytes were lost: the line they belong to is dropped."""
        self.links[ident].on_resync(now)

    def on_bytes_accepted(self, ident: LinkId, count: int, now: float, *, error: bool = False) -> None:
        """The transfer last taken is over: ``count`` bytes were accepted, or with ``error`` nobody knows how many."""
        self.links[ident].accepted(count, now, error=error)

    def on_link_down(self, ident: LinkId, now: float) -> None:
        """The link is gone: nothing that its phone said may outlive it."""
        link = self.links[ident]
        self.fanout.detach_all(link)
        self._ended.update(link.counters)
        del self.links[ident]
        self._announcer.forget(ident)
        self._refusals.forget(ident)
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
            for error in self.desk.release(ident, now):
                self._refusals.refuse_put(link, error, now)
            link.close()

    # Time.

    def on_tick(self, now: float) -> None:
        """Whatever is due by time alone."""
        if self.robot.tick(now):
            self.fanout.server_settled(now)
            self._announcer.tell_status(self.links.values())
            for link in self.links.values():
                self._dialog.lower_pulses(link, now)
        for link in self.links.values():
            link.tick(now)
            self._announcer.tick(link, now)
        self.desk.unpublish_due(now)
        self._beat(now)

    def _beat(self, now: float) -> None:
        may = self.settings.heartbeat and self.robot.settled and not self._stopping
        alive = may and any(_shows_the_robot(link, now) for link in self.links.values())
        self._publications += self._heartbeat.tick(now, alive=alive)

    @property
    def next_beat(self) -> float | None:
        """When the heartbeat is said next; None while there is none."""
        return self._heartbeat.next_due()

    def next_deadline(self, now: float) -> float:
        """When ``on_tick`` or ``take_bytes`` has something to do if no other input comes first."""
        if self.desk.waiting or self._publications:
            return now
        due = [
            now + (MAX_SLEEP_S if self.links else IDLE_SLEEP_S),
            self._heartbeat.next_due(),
            self.robot.next_due(),
            self.owners.next_due(),
            self._announcer.next_due(),
        ]
        due += [link.next_due(now) for link in self.links.values() if not link.in_flight]
        return min(at for at in due if at is not None)

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
        return self._refusals.take_notices()

    def totals(self) -> Counter[str]:
        """Counters of all links since start, ended ones included."""
        totals = self._ended.copy()
        for link in self.links.values():
            totals.update(link.counters)
        return totals


def _shows_the_robot(link: Link, now: float) -> bool:
    blocked_s = 0.0 if link.blocked_since is None else now - link.blocked_since
    return link.live and not link.stale(now) and blocked_s <= HEARTBEAT_BLOCKED_S
