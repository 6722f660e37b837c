"""From a phone's put to what is set on NetworkTables: topic name, type and value, and the schemas that go before."""

import re
from typing import Any

import msgspec

from aoabridge.bridge.coerce import canonical_type, check_size, coerce, infer, is_struct_type
from aoabridge.bridge.owners import Ownership
from aoabridge.bridge.render import struct_name
from aoabridge.bridge.topics import TopicTable
from aoabridge.codecs.wpistruct import Encoded, SchemaRegistry, StructCodec
from aoabridge.errors import EncodeError, LinkError, SchemaError
from aoabridge.phone.messages import PutMessage
from aoabridge.values import SCHEMA_ROOT, SCHEMA_TYPE, LinkId, NtValue

_INLINE_NAME = re.compile(r"[ \t\r\n]*struct[ \t\r\n]+([^\s{]+)")

__all__ = ["PutPlan", "PutRules"]

MAX_NAMES = 4_096  # of types kept in mind; a registry holds a quarter of them
LIMITS_OF_ALL = ("limit_types", "limit_total")  # what all types share: a phone must not use up what robots need


class PutPlan(msgspec.Struct, frozen=True):
    """What to set. ``schemas`` are (topic, text) in publishing order; ``truncated`` are text fields that were cut."""

    topic: str
    type: str
    value: NtValue
    schemas: tuple[tuple[str, str], ...] = ()
    truncated: tuple[str, ...] = ()


class PutRules:
    """Decides type and value of every put, from the topics and schemas that are known."""

    def __init__(self, topics: TopicTable, registry: SchemaRegistry, owners: Ownership) -> None:
        self._topics = topics
        self._registry = registry
        self._owners = owners
        self._from_server: set[str] = set()  # types that another client defined
        self._inline: set[str] = set()  # types that are known from phones only
        self._published: dict[str, str] = {}  # schemas that we publish, type name -> text
        self._on_server: set[str] = set()  # types whose plain schema topic another client publishes
        self._changed: frozenset[str] = frozenset()
        self._admitted: frozenset[str] = frozenset()  # types that the put under decision defined

    def server_schema(self, type_name: str, *, plain: bool) -> None:
        """Another client published the schema of a type, under the ``plain`` root or below some other."""
        if len(self._from_server) >= MAX_NAMES:
            self._from_server = {name for name in self._from_server if name in self._registry}
        self._from_server.add(type_name)
        self._inline.discard(type_name)
        if plain:
            self._on_server.add(type_name)
            self._published.pop(type_name, None)

    def has_plain(self, type_name: str) -> bool:
        """True if another client publishes the schema of a type under the plain root: then that one counts."""
        return type_name in self._on_server

    def schema_gone(self, type_name: str) -> None:
        """The schema topic under the plain root is no longer there."""
        self._on_server.discard(type_name)

    def add_server_schema(self, type_name: str, text: bytes) -> frozenset[str]:
        """Add what a server topic says; a phone's unused types give way. Raises SchemaError."""
        try:
            return self._registry.add(type_name, text)
        except SchemaError as error:
            if error.code in LIMITS_OF_ALL and self.make_room():
                return self._registry.add(type_name, text)
            raise

    def server_lost(self) -> None:
        """The next server may not have the schemas that this one had, our own included."""
        self._on_server.clear()
        self._published.clear()

    def schema_refused(self, topic: str) -> None:
        """A schema that ``plan`` listed was not published after all."""
        self._published.pop(topic.rpartition(":")[2], None)

    def make_room(self) -> bool:
        """Forget the phones' types that no topic uses; True if there were any."""
        unused = [name for name in self._inline if self._replaceable(name)]
        for name in unused:
            self._registry.discard(name)
            self._published.pop(name, None)
        self._inline.difference_update(unused)
        return bool(unused)

    def plan(self, message: PutMessage, link: LinkId) -> PutPlan:
        """Return what to set; raises LinkError with the code for the phone, and then leaves nothing of it behind."""
        self._admitted = frozenset()
        try:
            plan = self._plan(message)
            check_size(plan.value, message.key)
            self._owners.check_room(link, plan.topic)
        except LinkError as error:
            self._take_back()
            raise LinkError(str(error), error.code, topic=message.key, ident=message.ident) from error
        self._published.update((topic.rpartition(":")[2], text) for topic, text in plan.schemas)
        return plan

    def _take_back(self) -> None:
        """A refused put defines nothing: a type of the same name may be the robot's, in another form."""
        for name in self._admitted:
            self._changed |= self._registry.discard(name)
        self._inline -= self._admitted

    def _plan(self, message: PutMessage) -> PutPlan:
        name, known = self._target(message.key)
        named = None if message.type is None else canonical_type(message.type)
        if message.value is None and (known or named) != "json":
            raise LinkError("null is not a value", "bad-value")
        if known is not None and named is not None and named != known:
            raise LinkError(f"topic is {known}, the put says {named}", "type-mismatch")
        type_ = known or named
        if type_ in ("rpc", SCHEMA_TYPE):
            raise LinkError(f"{type_} topics are not for phones", "forbidden")
        if message.schema is not None:
            return self._struct_by_text(name, type_, message.value, message.schema)
        if type_ is None:
            return PutPlan(name, *infer(message.value))
        if is_struct_type(type_):
            return self._struct(name, type_, message.value)
        return PutPlan(name, type_, coerce(message.value, type_, explicit=named is not None))

    def _target(self, key: str) -> tuple[str, str | None]:
        """The NT name a key means, and its type if it exists or we publish it."""
        topic = self._topics.by_key(key)
        if topic is not None:
            return topic.name, topic.type
        owned = self._owners.find(key)
        return key, None if owned is None else owned.type

    def _struct_by_text(self, name: str, type_: str | None, value: Any, text: str) -> PutPlan:
        if not isinstance(value, dict | list):
            raise LinkError("a struct is an object, several are an array of objects", "type-mismatch")
        suffix = "[]" if isinstance(value, list) else ""
        named = _INLINE_NAME.match(text)
        if type_ is not None and named is not None and type_ != f"struct:{named[1]}{suffix}":
            # Before the text is read: a refused put leaves none of its types behind.
            raise LinkError(f"topic is {type_}, the put is struct:{named[1]}{suffix}", "type-mismatch")
        return self._struct(name, f"struct:{self._declare(text)}{suffix}", value)

    def _declare(self, text: str) -> str:
        """Add an inline schema; a definition that only we published and no topic uses gives way."""
        try:
            return self._admit(text)
        except SchemaError as error:
            code = "schema-conflict" if error.code == "conflict" else "bad-schema"
            raise LinkError(str(error), code) from error

    def _admit(self, text: str) -> str:
        try:
            added = self._registry.admit_inline(text)
        except SchemaError as error:
            if error.code == "conflict":
                conflicts = [conflict.type_name for conflict in self._registry.check_inline(text).conflicts]
                added = self._registry.admit_inline(text, [name for name in conflicts if self._replaceable(name)])
            elif error.code in LIMITS_OF_ALL and self.make_room():
                added = self._registry.admit_inline(text)
            else:
                raise
        self._changed |= added.changed
        self._admitted = added.changed - self._from_server
        self._inline |= self._admitted
        return added.type_name

    def take_changed(self) -> frozenset[str]:
        """Types that puts defined or redefined since the last call."""
        changed, self._changed = self._changed, frozenset()
        return changed

    def _replaceable(self, type_name: str) -> bool:
        if type_name not in self._inline:
            return False
        users = {topic.struct for topic in self._topics if topic.struct is not None}
        users |= {struct_name(type_) for type_ in self._owners.types() if is_struct_type(type_)}
        return not any(self._uses(user, type_name) for user in users)

    def _uses(self, user: str, type_name: str) -> bool:
        try:
            return type_name in self._registry.nested(user)
        except SchemaError:
            return user == type_name

    def _struct(self, name: str, type_: str, value: Any) -> PutPlan:
        type_name = struct_name(type_)
        is_array = type_.endswith("[]")
        if not isinstance(value, list if is_array else dict):
            raise LinkError(
                f"topic is {type_}, expected {'an array of objects' if is_array else 'an object'}", "type-mismatch"
            )
        try:
            codec = self._registry.codec(type_name)
            schemas = self._unpublished(type_name)
        except SchemaError as error:
            raise LinkError(f"the schema of {type_name} is not known: {error}", "bad-schema") from error
        encoded = _encode(codec, value)
        return PutPlan(name, type_, encoded.data, schemas, encoded.truncated)

    def _unpublished(self, type_name: str) -> tuple[tuple[str, str], ...]:
        """Schemas the server may not have, innermost first."""
        texts = ((name, self._registry.schema(name)) for name in self._registry.nested(type_name))
        return tuple(
            (SCHEMA_ROOT + name, text)
            for name, text in texts
            if name not in self._on_server and self._published.get(name) != text
        )


def _encode(codec: StructCodec, value: Any) -> Encoded:
    try:
        return codec.encode_array_checked(value) if isinstance(value, list) else codec.encode_checked(value)
    except EncodeError as error:
        raise LinkError(str(error), "bad-value") from error
