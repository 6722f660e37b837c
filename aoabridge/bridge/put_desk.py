"""Orders to NetworkTables on behalf of phones: puts, the end of a link, and the run pulses that must not outlive it."""

from collections import Counter
from collections.abc import Mapping

import msgspec

from aoabridge.bridge.link import Link
from aoabridge.bridge.outbox import ControlKind
from aoabridge.bridge.owners import Ownership, is_run_pulse
from aoabridge.bridge.puts import PutRules
from aoabridge.bridge.topics import TopicTable, value_bytes
from aoabridge.errors import LinkError
from aoabridge.phone.messages import Ident, PutMessage, ack_line, error_line
from aoabridge.values import SCHEMA_TYPE, LinkId, NtValue, Put, PutOp, PutResult

__all__ = ["Answer", "PutDesk"]

MAX_WAITING_BYTES = 16 * 1024 * 1024  # of one link's puts: ntcore takes 25 MB/s, a phone may send more
NO_LINK = 0  # orders that no end of a link takes back


class Answer(msgspec.Struct, frozen=True):
    """What became of a put: ``refusal`` is for the phone; ``asked`` says that a phone put the value, not the bridge."""

    refusal: LinkError | None
    asked: bool


class _Asked(msgspec.Struct):
    """A put under way; ``muted`` once the run of the app that asked for it is over."""

    link: LinkId
    key: str
    ident: Ident | None
    held: int
    muted: bool = False


class PutDesk:
    """Turns puts into orders, keeps who put what, and answers results. Times are monotonic seconds."""

    def __init__(self, topics: TopicTable, rules: PutRules, owners: Ownership, links: Mapping[LinkId, Link]) -> None:
        self._topics = topics
        self._rules = rules
        self._owners = owners
        self._links = links
        self._orders: list[Put] = []
        self._asked: dict[int, _Asked] = {}
        self._waiting: Counter[LinkId] = Counter()  # bytes of puts under way
        self._serial = 0
        self.counters: Counter[str] = Counter()

    @property
    def waiting(self) -> bool:
        """True if there are orders to take."""
        return bool(self._orders)

    def take(self) -> list[Put]:
        """The orders since the last call."""
        orders, self._orders = self._orders, []
        return orders

    def put(self, link: Link, message: PutMessage) -> None:
        """Order what a phone asked for; raises LinkError if it is refused."""
        if self._waiting[link.ident] >= MAX_WAITING_BYTES:
            raise LinkError("too much that was put is still on its way to the robot", "rate-limited")
        plan = self._rules.plan(message, link.ident)
        for topic, text in plan.schemas:
            self._order(link.ident, PutOp.SET, topic, SCHEMA_TYPE, text.encode())
        serial = self._order(link.ident, PutOp.SET, plan.topic, plan.type, plan.value)
        held = value_bytes(plan.value)
        self._asked[serial] = _Asked(link.ident, message.key, message.ident, held)
        self._waiting[link.ident] += held
        self._owners.note(link.ident, plan.topic, plan.type, plan.value, serial)
        if plan.truncated:
            self.counters["put_truncated"] += 1
            text = f"text was cut to fit: {', '.join(plan.truncated)}"
            link.outbox.put_control(error_line("bad-value", text, topic=message.key), ControlKind.ERROR)

    def result(self, result: PutResult) -> Answer:
        """Acknowledge an accepted put, or say what to tell the phone of a refused one."""
        put = result.put
        asked = self._answered(put.serial)
        if put.type == SCHEMA_TYPE and not result.accepted:
            self._rules.schema_refused(put.topic)
        if asked is None:
            self.counters["puts_refused_late"] += not result.accepted
            return Answer(None, asked=False)
        if self._owners.note_result(put.topic, put.serial, accepted=result.accepted):
            self._order(NO_LINK, PutOp.UNPUBLISH, put.topic)
        link = None if asked.muted else self._links.get(asked.link)
        if result.code is not None:
            self.counters["puts_refused_late"] += 1
            refusal = LinkError(result.message, result.code, topic=asked.key, ident=asked.ident)
            return Answer(None if link is None else refusal, asked=True)
        self.counters["puts"] += 1
        if link is not None:
            link.counters["puts"] += 1
            if asked.ident is not None:
                link.outbox.put_control(ack_line(asked.ident), ControlKind.ACK)
        return Answer(None, asked=True)

    def _answered(self, serial: int) -> _Asked | None:
        asked = self._asked.pop(serial, None)
        if asked is not None:
            self._waiting[asked.link] -= asked.held
            if not self._waiting[asked.link]:
                del self._waiting[asked.link]
        return asked

    def mute(self, link: LinkId) -> None:
        """Another run of the app began: what became of the puts of the earlier one is not for it."""
        for asked in self._asked.values():
            asked.muted |= asked.link == link

    def lower_foreign(self, link: Link, now: float) -> None:
        """A link came up: run pulses that stand high and belong to no live link are lowered before its first put."""
        for topic in self._topics:
            if topic.value is not True or not is_run_pulse(topic.name, topic.type):
                continue
            owned = self._owners.find(topic.name)
            lowered_already = owned is not None and owned.value is False
            if not lowered_already and (owned is None or not owned.links - {link.ident}):
                self._order(NO_LINK, PutOp.SET, topic.name, "boolean", False)
                self._owners.lower(link.ident, topic.name, now)

    def release(self, link: LinkId, now: float) -> list[LinkError]:
        """The link ended: what waits of it is refused, run pulses that it left high are lowered, its topics go.

        A press that still waited would otherwise be seen just after the phone was unplugged. Returns the refusals.
        """
        refusals = self._refuse_waiting(link)
        if self._waiting[link]:
            self._order(link, PutOp.RELEASE, "")
        for topic in self._owners.release(link, now):
            self._order(NO_LINK, PutOp.SET, topic, "boolean", False)
        return refusals

    def _refuse_waiting(self, link: LinkId) -> list[LinkError]:
        """Take back the puts that were not handed over yet; a false is kept, it may be what lowers a pulse."""
        refusals: list[LinkError] = []
        kept: list[Put] = []
        for order in self._orders:
            if order.link != link or order.value is False or order.serial not in self._asked:
                kept.append(order)
                continue
            asked = self._asked[order.serial]
            self._answered(order.serial)
            if self._owners.note_result(order.topic, order.serial, accepted=False):
                kept.append(self._new(NO_LINK, PutOp.UNPUBLISH, order.topic))
            if not asked.muted:
                refusals.append(LinkError("the link is over", "not-connected", asked.key, asked.ident))
        self._orders = kept
        return refusals

    def unpublish_due(self, now: float) -> None:
        """Order the end of topics whose last owner is gone."""
        for topic in self._owners.take_due(now):
            self._order(NO_LINK, PutOp.UNPUBLISH, topic)

    def drop_all(self) -> list[tuple[LinkId, LinkError]]:
        """The robot connection is lost: nothing of a phone may be sent to the next server.

        Returns the refusals of puts that were not even handed over.
        """
        lost: list[tuple[LinkId, LinkError]] = []
        for order in self._orders:
            asked = self._answered(order.serial)
            if asked is not None and not asked.muted:
                refusal = LinkError("the robot connection was lost", "not-connected", asked.key, asked.ident)
                lost.append((asked.link, refusal))
        self._orders.clear()
        for topic in self._owners.take_all():
            self._order(NO_LINK, PutOp.UNPUBLISH, topic)
        return lost

    def retype(self, topic: str, type_: str) -> None:
        """A topic was announced with this type: our publisher of another type is dropped."""
        owned = self._owners.find(topic)
        if owned is not None and owned.type != type_ and self._owners.forget(topic):
            self._order(NO_LINK, PutOp.UNPUBLISH, topic)

    def _order(self, link: LinkId, op: PutOp, topic: str, type_: str = "", value: NtValue | None = None) -> int:
        order = self._new(link, op, topic, type_, value)
        self._orders.append(order)
        return order.serial

    def _new(self, link: LinkId, op: PutOp, topic: str, type_: str = "", value: NtValue | None = None) -> Put:
        self._serial += 1
        return Put(self._serial, link, op, topic, type_, value)
