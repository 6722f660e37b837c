"""Orders to NetworkTables on behalf of phones: puts, the end of a link, and the run pulses that must not outlive it."""

from collections import Counter
from collections.abc import Mapping

from aoabridge.bridge.link import Link
from aoabridge.bridge.outbox import ControlKind
from aoabridge.bridge.owners import Ownership, is_run_pulse
from aoabridge.bridge.puts import SCHEMA_TYPE, PutPlan, PutRules
from aoabridge.bridge.topics import TopicTable
from aoabridge.errors import LinkError
from aoabridge.phone.messages import PutMessage, ack_line, error_line
from aoabridge.values import LinkId, NtValue, Put, PutOp, PutResult

__all__ = ["PutDesk"]


class PutDesk:
    """Turns puts into orders, keeps who put what, and answers results. Times are monotonic seconds."""

    def __init__(self, topics: TopicTable, rules: PutRules, owners: Ownership, links: Mapping[LinkId, Link]) -> None:
        self._topics = topics
        self._rules = rules
        self._owners = owners
        self._links = links
        self._orders: list[Put] = []
        self._asked: dict[int, PutMessage] = {}
        self._serial = 0
        self.counters: Counter[str] = Counter()

    def take(self) -> list[Put]:
        """The orders since the last call."""
        orders, self._orders = self._orders, []
        return orders

    def put(self, link: Link, message: PutMessage) -> PutPlan:
        """Order what a phone asked for; raises LinkError if it is refused."""
        plan = self._rules.plan(message)
        for topic, text in plan.schemas:
            self._order(link.ident, PutOp.SET, topic, SCHEMA_TYPE, text.encode())
        serial = self._order(link.ident, PutOp.SET, plan.topic, plan.type, plan.value)
        self._asked[serial] = message
        self._owners.note(link.ident, plan.topic, plan.type, plan.value)
        if plan.truncated:
            self.counters["put_truncated"] += 1
            text = f"text was cut to fit: {', '.join(plan.truncated)}"
            link.outbox.put_control(error_line("bad-value", text, topic=message.key), ControlKind.ERROR)
        return plan

    def result(self, result: PutResult) -> LinkError | None:
        """Acknowledge an accepted put; returns what to tell the phone of a refused one."""
        message = self._asked.pop(result.put.serial, None)
        link = self._links.get(result.put.link)
        if result.code is not None:
            self.counters["puts_refused_late"] += 1
            if result.put.type == SCHEMA_TYPE:
                self._rules.schema_refused(result.put.topic)
            if message is None:
                return None
            return LinkError(result.message, result.code, topic=message.key, ident=message.ident)
        if message is not None and link is not None:
            self.counters["puts"] += 1
            link.counters["puts"] += 1
            if message.ident is not None:
                link.outbox.put_control(ack_line(message.ident))
        return None

    def lower_foreign(self, link: Link, now: float) -> None:
        """A link came up: run pulses that stand high and belong to no live link are lowered before its first put."""
        for topic in self._topics:
            if topic.value is not True or not is_run_pulse(topic.name, topic.type):
                continue
            owned = self._owners.find(topic.name)
            lowered_already = owned is not None and owned.value is False
            if not lowered_already and (owned is None or not owned.links - {link.ident}):
                self._order(link.ident, PutOp.SET, topic.name, "boolean", False)
                self._owners.lower(link.ident, topic.name, now)

    def release(self, link: LinkId, now: float) -> None:
        """The link ended: lower the run pulses that it left high; its topics go after the release time."""
        for topic in self._owners.release(link, now):
            self._order(link, PutOp.SET, topic, "boolean", False)

    def unpublish_due(self, now: float) -> None:
        """Order the end of topics whose last owner is gone."""
        for topic in self._owners.take_due(now):
            self._order(0, PutOp.UNPUBLISH, topic)

    def drop_all(self) -> list[tuple[LinkId, LinkError]]:
        """The robot connection is lost: nothing of a phone may be sent to the next server.

        Returns the refusals of puts that were not even handed over.
        """
        lost = [
            (order.link, LinkError("the robot connection was lost", "not-connected", message.key, message.ident))
            for order in self._orders
            if (message := self._asked.pop(order.serial, None)) is not None
        ]
        self._orders.clear()
        for topic in self._owners.take_all():
            self._order(0, PutOp.UNPUBLISH, topic)
        return lost

    def retype(self, topic: str, type_: str) -> None:
        """A topic was announced with this type: our publisher of another type is dropped."""
        owned = self._owners.find(topic)
        if owned is not None and owned.type != type_ and self._owners.forget(topic):
            self._order(0, PutOp.UNPUBLISH, topic)

    def _order(self, link: LinkId, op: PutOp, topic: str, type_: str = "", value: NtValue | None = None) -> int:
        self._serial += 1
        self._orders.append(Put(self._serial, link, op, topic, type_, value))
        return self._serial
