"""From the topics of the robot to the phones that want them: who is attached to what, and every new value."""

from collections import Counter
from collections.abc import Mapping

from aoabridge.bridge.link import Link
from aoabridge.bridge.puts import PutRules
from aoabridge.bridge.slots import Place, Slot
from aoabridge.bridge.topics import MAX_SAMPLED_VALUE_BYTES, Topic, TopicTable, value_bytes
from aoabridge.codecs.wpistruct import SchemaRegistry, schema_topic_type
from aoabridge.errors import LinkError, SchemaError
from aoabridge.phone.keys import is_reserved, normalise_key, parents
from aoabridge.phone.messages import Subscribe, Unsubscribe
from aoabridge.phone.session import Options
from aoabridge.values import SCHEMA_TYPE, LinkId, NtValue

__all__ = ["Fanout"]

MAX_SCHEMA_FAULTS = 1_024  # types whose refused schema is told, each once


class Fanout:
    """Topics, schemas, and the slots of every link. Times are monotonic seconds."""

    def __init__(
        self, topics: TopicTable, registry: SchemaRegistry, rules: PutRules, links: Mapping[LinkId, Link]
    ) -> None:
        self._topics = topics
        self._registry = registry
        self._rules = rules
        self._links = links
        self._trusting = False  # the schemas of an earlier server hold for this one too
        self._confirmed: set[str] = set()  # types whose schema came from this server
        self._held_for: dict[str, set[str]] = {}  # type that is to be confirmed -> structs that wait for it
        self.counters: Counter[str] = Counter()
        self._told_faults: set[str] = set()  # types whose refused schema has been told
        self._schema_faults: dict[str, SchemaError] = {}
        self._sampled_changed = False

    # Topics.

    def announce(self, name: str, type_: str, now: float, *, own: bool) -> Topic:
        """A topic exists with this type; replaces what was known of the name."""
        self.remove(name)
        topic = self._topics.announce(name, type_, own=own)
        if topic.struct is not None:
            self._resolve(topic, now)
        self._rebind(topic.key)
        return topic

    def remove(self, name: str) -> None:
        """A topic is gone; subscriptions stay and apply when it returns."""
        topic = self._topics.remove(name)
        if topic is None:
            return
        for slot in list(topic.slots):
            self._detach(slot.link, topic.key)
        if topic.type == SCHEMA_TYPE and (described := schema_topic_type(topic.name)) is not None and described[1]:
            self._rules.schema_gone(described[0])
        if self._topics.by_key(topic.key) is not None:
            self._rebind(topic.key)  # a bare name stood behind the one with the slash

    def set_value(
        self, topic: Topic, value: NtValue, time_us: int, now: float, *, writer: LinkId | None = None
    ) -> None:
        """A topic has a new value, for every phone but the one that wrote it."""
        topic.count += 1
        topic.seen_at = now
        if topic.type == SCHEMA_TYPE:
            self._on_schema(topic, value, now)
        if not self._topics.hold(topic, value, time_us) and not self._hold_with_less(topic, value, time_us):
            self._skip(topic)
            return
        if topic.render is None:
            return
        link = None if writer is None else self._links.get(writer)
        for slot in topic.slots:
            if link is None or link.outbox is not slot.outbox:
                slot.outbox.offer(slot, now)

    def _hold_with_less(self, topic: Topic, value: NtValue, time_us: int) -> bool:
        """Make room: samples go first, then for a value that is not large itself the large ones."""
        held = value_bytes(value)
        for link in self._links.values():
            link.outbox.shed(held)
        if held <= MAX_SAMPLED_VALUE_BYTES:
            for large in self._topics.give_up_large(held):
                self._skip(large)
        return self._topics.hold(topic, value, time_us)

    def _skip(self, topic: Topic) -> None:
        """The value of a topic is not held; each phone that wants it is told once."""
        self.counters["too_large"] += 1
        error = LinkError("too much data is held for phones: the value is skipped", "too-large", topic=topic.key)
        for slot in topic.slots:
            slot.outbox.add_fault(error)

    # Schemas.

    def server_lost(self) -> None:
        """The next server may define the same names otherwise, and values come before their schemas."""
        for name in [topic.name for topic in self._topics if not topic.own]:
            self.remove(name)
        self._trusting = False
        self._confirmed.clear()
        self._held_for.clear()
        self._rules.server_lost()

    def server_settled(self, now: float) -> None:
        """What this server has not defined by now means what it meant before."""
        self._trusting = True
        self._held_for.clear()
        for name in self._topics.struct_names():
            self._resolve_held(name, now)

    def _on_schema(self, topic: Topic, value: NtValue, now: float) -> None:
        described = schema_topic_type(topic.name)
        if described is None or not isinstance(value, bytes):
            return
        type_name, plain = described
        if not plain and self._rules.has_plain(type_name):
            return  # the plain root wins
        changed = self._add_schema(type_name, value)
        if not topic.own:
            self._rules.server_schema(type_name, plain=plain)
        if not self._trusting and type_name in self._registry:
            self._confirmed.add(type_name)
        self.schemas_changed(changed, now)
        for name in self._held_for.pop(type_name, ()):
            self._resolve_held(name, now)

    def _add_schema(self, type_name: str, text: bytes) -> frozenset[str]:
        try:
            changed = self._rules.add_server_schema(type_name, text)
        except SchemaError as error:
            # Unknown is better than wrong numbers: the old definition goes too.
            self.counters["schema_limit" if error.code.startswith("limit") else "schema_errors"] += 1
            if type_name not in self._told_faults and len(self._told_faults) < MAX_SCHEMA_FAULTS:
                self._told_faults.add(type_name)
                self._schema_faults[type_name] = error
            return self._registry.discard(type_name)
        return changed

    def take_schema_faults(self) -> dict[str, SchemaError]:
        """Types whose schema was refused since the last call, each type once for ever."""
        faults, self._schema_faults = self._schema_faults, {}
        return faults

    def schemas_changed(self, type_names: frozenset[str], now: float) -> None:
        """Codecs became available or changed: send the values that were held for them."""
        for topic in self._topics.of_structs(type_names):
            self._resolve(topic, now)
            self._offer_current(topic, now)

    def _resolve_held(self, struct_name: str, now: float) -> None:
        for topic in self._topics.of_structs([struct_name]):
            if topic.render is None:
                self._resolve(topic, now)
                self._offer_current(topic, now)

    def _resolve(self, topic: Topic, now: float) -> None:
        name = topic.struct or ""
        doubt = None if self._trusting or topic.own else self._unconfirmed(name)
        if doubt is None:
            topic.resolve(self._registry, now)
        else:
            topic.hold_back(now)
            self._held_for.setdefault(doubt, set()).add(name)

    def _unconfirmed(self, type_name: str) -> str | None:
        """A type that this server should define before values of ``type_name`` are read."""
        try:
            return next((name for name in self._registry.nested(type_name) if name not in self._confirmed), None)
        except SchemaError:
            return min(self._registry.missing(type_name), default=type_name)

    def _offer_current(self, topic: Topic, now: float) -> None:
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
        subtrees: set[str] = set()
        for text in dict.fromkeys(message.keys):
            try:
                key = _subscription_key(text, prefix=message.prefix)
                if is_reserved(key) or not (key.endswith("/") or link.may_subscribe.permits(key)):
                    raise LinkError("this topic may not be subscribed", "forbidden", topic=key)
                link.subscriptions.add(key, options)
            except LinkError as error:
                refused.append(error)
                continue
            if key.endswith("/"):
                subtrees.add(key)
            else:
                self._bind(link, key, again=True)
        if subtrees:
            for topic in self._topics:
                if any(parent in subtrees for parent in parents(topic.key)):
                    self._bind(link, topic.key, again=True)
        return refused

    def unsubscribe(self, link: Link, message: Unsubscribe) -> None:
        """Remove from what a phone wants; unknown keys are ignored."""
        touched: set[str] = set()
        for text in dict.fromkeys(message.keys):
            try:
                key = _subscription_key(text, prefix=message.prefix)
            except LinkError:
                continue
            if link.subscriptions.remove(key):
                touched.add(key)
        if any(key.endswith("/") for key in touched):
            touched = set(link.slots)
        for key in touched & link.slots.keys():
            self._reconsider(link, link.slots[key])

    def _reconsider(self, link: Link, slot: Slot) -> None:
        """A subscription is gone: another one may still want the topic, in its own way."""
        options = link.subscriptions.find(slot.topic.key)
        if options == slot.options:
            return
        waiting = slot.place is not Place.NOWHERE
        self._detach(link, slot.topic.key)
        if options is not None:
            successor = self._add_slot(link, slot.topic, options)
            if waiting:
                link.outbox.refresh(successor)

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
                self._bind(link, topic.key, again=False)

    def _rebind(self, key: str) -> None:
        if not is_reserved(key):
            for link in self._links.values():
                self._bind(link, key, again=False)

    def _bind(self, link: Link, key: str, *, again: bool) -> None:
        """Give a link what it wants under a key, and its current value; with ``again`` also one that it has."""
        topic = self._topics.by_key(key)
        options = link.subscriptions.find(key)
        if topic is None or options is None or is_reserved(key):
            return
        slot = link.slots.get(key)
        if slot is None or slot.topic is not topic or slot.options != options:
            if not link.may_subscribe.permits(key):
                return  # passed over inside a subtree
            self._detach(link, key)
            slot = self._add_slot(link, topic, options)
        elif not again:
            return
        link.outbox.refresh(slot)

    def _add_slot(self, link: Link, topic: Topic, options: Options) -> Slot:
        slot = link.slots[topic.key] = Slot(topic, options, link)
        topic.slots.append(slot)
        self._sampled_changed |= slot.lane is not None
        return slot

    def _detach(self, link: Link, key: str) -> None:
        slot = link.slots.pop(key, None)
        if slot is not None:
            self._sampled_changed |= slot.lane is not None
            link.outbox.remove(slot)
            slot.topic.slots.remove(slot)


def _subscription_key(text: str, *, prefix: bool) -> str:
    key = normalise_key(text)
    return key + "/" if prefix and not key.endswith("/") else key
