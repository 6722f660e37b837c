"""From the topics of the robot to the phones that want them: who is attached to what, and every new value."""

from collections import Counter
from collections.abc import Mapping

from aoabridge.bridge.link import Link
from aoabridge.bridge.outbox import Slot
from aoabridge.bridge.puts import SCHEMA_TYPE, PutRules
from aoabridge.bridge.topics import Topic, TopicTable, value_bytes
from aoabridge.codecs.wpistruct import SchemaRegistry, schema_topic_type
from aoabridge.errors import LinkError, SchemaError
from aoabridge.phone.keys import is_reserved, normalise_key
from aoabridge.phone.messages import Subscribe, Unsubscribe
from aoabridge.phone.session import Options
from aoabridge.values import LinkId, NtValue

__all__ = ["Fanout"]


class Fanout:
    """Topics, schemas, and the slots of every link. Times are monotonic seconds."""

    def __init__(
        self, topics: TopicTable, registry: SchemaRegistry, rules: PutRules, links: Mapping[LinkId, Link]
    ) -> None:
        self._topics = topics
        self._registry = registry
        self._rules = rules
        self._links = links
        self._prefixed: set[str] = set()  # types known only from a schema root below some prefix
        self.counters: Counter[str] = Counter()
        self.schema_faults: dict[str, SchemaError] = {}
        self._sampled_changed = False

    # Topics.

    def announce(self, name: str, type_: str, now: float, *, own: bool) -> Topic:
        """A topic exists with this type; replaces what was known of the name."""
        self.remove(name)
        topic = self._topics.announce(name, type_, own=own)
        if topic.struct is not None:
            topic.resolve(self._registry, now)
        self._rebind(topic.key)
        return topic

    def remove(self, name: str) -> None:
        """A topic is gone; subscriptions stay and apply when it returns."""
        topic = self._topics.remove(name)
        if topic is None:
            return
        for link in self._links.values():
            slot = link.slots.get(topic.key)
            if slot is not None and slot.topic is topic:
                self._detach(link, topic.key)
        self._rebind(topic.key)  # a bare name may have stood behind the one with the slash

    def set_value(
        self, topic: Topic, value: NtValue, time_us: int, now: float, *, writer: LinkId | None = None
    ) -> None:
        """A topic has a new value, for every phone but the one that wrote it."""
        topic.count += 1
        topic.seen_at = now
        if topic.type == SCHEMA_TYPE:
            self._on_schema(topic, value, now)
        if not self._topics.hold(topic, value, time_us) and not self._hold_after_shedding(topic, value, time_us):
            self.counters["too_large"] += 1
            error = LinkError("too much data is held for phones: the value is skipped", "too-large", topic=topic.key)
            for slot in topic.slots:
                slot.outbox.add_fault(error)
            return
        if topic.render is None:
            return
        for slot in topic.slots:
            if writer is None or self._links[writer].outbox is not slot.outbox:
                slot.outbox.offer(slot, now)

    def _hold_after_shedding(self, topic: Topic, value: NtValue, time_us: int) -> bool:
        for link in self._links.values():
            link.outbox.shed(value_bytes(value))
        return self._topics.hold(topic, value, time_us)

    # Schemas.

    def _on_schema(self, topic: Topic, value: NtValue, now: float) -> None:
        described = schema_topic_type(topic.name)
        if described is None or not isinstance(value, bytes):
            return
        type_name, plain = described
        if not plain and type_name not in self._prefixed and type_name in self._registry:
            return  # the plain root wins
        changed = self._add_schema(type_name, value)
        (self._prefixed.discard if plain else self._prefixed.add)(type_name)
        if not topic.own:
            self._rules.server_schema(type_name, plain=plain)
        self.schemas_changed(changed, now)

    def _add_schema(self, type_name: str, text: bytes) -> frozenset[str]:
        try:
            changed = self._rules.add_server_schema(type_name, text)
        except SchemaError as error:
            # Unknown is better than wrong numbers: the old definition goes too.
            self.counters["schema_limit" if error.code.startswith("limit") else "schema_errors"] += 1
            self.schema_faults[type_name] = error
            return self._registry.discard(type_name)
        self.schema_faults.pop(type_name, None)
        return changed

    def schemas_changed(self, type_names: frozenset[str], now: float) -> None:
        """Codecs became available or changed: send the values that were held for them."""
        for topic in self._topics.of_structs(type_names):
            topic.resolve(self._registry, now)
            if topic.render is not None and topic.value is not None:
                for slot in topic.slots:
                    slot.outbox.offer(slot, now)

    # Subscriptions.

    def take_sampled(self) -> set[str] | None:
        """The topics of which some phone wants every sample, if that may have changed since the last call."""
        if not self._sampled_changed:
            return None
        self._sampled_changed = False
        return {
            slot.topic.name for link in self._links.values() for slot in link.slots.values() if slot.lane is not None
        }

    def subscribe(self, link: Link, message: Subscribe) -> list[LinkError]:
        """Add to what a phone wants and send current values at once; returns the refused keys."""
        options = Options(message.every_sample, message.period_s)
        refused: list[LinkError] = []
        for text in message.keys:
            try:
                key = _subscription_key(text, prefix=message.prefix)
                if is_reserved(key) or not (key.endswith("/") or link.may_subscribe.permits(key)):
                    raise LinkError("this topic may not be subscribed", "forbidden", topic=key)
                link.subscriptions.add(key, options)
            except LinkError as error:
                refused.append(error)
                continue
            for topic in self._matching(key):
                self._attach(link, topic, link.subscriptions.find(topic.key) or options)
        return refused

    def unsubscribe(self, link: Link, message: Unsubscribe) -> None:
        """Remove from what a phone wants; unknown keys are ignored."""
        for text in message.keys:
            try:
                key = _subscription_key(text, prefix=message.prefix)
            except LinkError:
                continue
            link.subscriptions.remove(key)
            for topic in self._matching(key):
                if link.subscriptions.find(topic.key) is None:
                    self._detach(link, topic.key)

    def detach_all(self, link: Link) -> None:
        """The link ended or starts over."""
        for key in list(link.slots):
            self._detach(link, key)

    def recheck_access(self, link: Link) -> None:
        """The access patterns changed: detach what is no longer allowed, attach what now is."""
        for key in [key for key in link.slots if not link.may_subscribe.permits(key)]:
            self._detach(link, key)
        for topic in list(self._topics):
            if topic.key not in link.slots:
                self._bind(link, topic.key)

    def _matching(self, key: str) -> list[Topic]:
        if not key.endswith("/"):
            topic = self._topics.by_key(key)
            return [] if topic is None else [topic]
        return [
            topic
            for topic in self._topics
            if topic.key.startswith(key) and not is_reserved(topic.key) and self._topics.by_key(topic.key) is topic
        ]

    def _rebind(self, key: str) -> None:
        for link in self._links.values():
            self._bind(link, key)

    def _bind(self, link: Link, key: str) -> None:
        topic = self._topics.by_key(key)
        options = link.subscriptions.find(key)
        if topic is not None and options is not None and not is_reserved(key):
            self._attach(link, topic, options)

    def _attach(self, link: Link, topic: Topic, options: Options) -> None:
        """Give a link a topic and its current value; refused patterns inside a subtree are passed over."""
        slot = link.slots.get(topic.key)
        if slot is None or slot.topic is not topic or slot.options != options:
            if not link.may_subscribe.permits(topic.key):
                return
            self._detach(link, topic.key)
            slot = link.slots[topic.key] = Slot(topic, options, link.outbox)
            topic.slots.append(slot)
            self._sampled_changed |= slot.lane is not None
        link.outbox.refresh(slot)

    def _detach(self, link: Link, key: str) -> None:
        slot = link.slots.pop(key, None)
        if slot is not None:
            self._sampled_changed |= slot.lane is not None
            link.outbox.remove(slot)
            slot.topic.slots.remove(slot)


def _subscription_key(text: str, *, prefix: bool) -> str:
    key = normalise_key(text)
    return key + "/" if prefix and not key.endswith("/") else key
