"""SchemaRegistry: every struct type known by name, in any order of arrival, with what depends on what."""

import graphlib
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping

import msgspec

from aoabridge.codecs.wpistruct.compiler import StructCodec, compile_codec
from aoabridge.codecs.wpistruct.inline import InlineText, parse_inline
from aoabridge.codecs.wpistruct.layout import Extent, Measure, Record, extent, lay_out, measure
from aoabridge.codecs.wpistruct.limits import (
    DEFAULT_LIMITS,
    MAX_CACHED_CODECS,
    MAX_CACHED_INLINE_TEXTS,
    MAX_CACHED_VALUES,
    Limits,
)
from aoabridge.codecs.wpistruct.names import STRUCT_PREFIX, checked_name, listed
from aoabridge.codecs.wpistruct.schema import (
    Declarations,
    first_difference,
    parse_schema,
    schema_text,
    utf8,
)
from aoabridge.errors import SchemaError

__all__ = ["Conflict", "InlineAdded", "InlineCheck", "SchemaRegistry"]


class Conflict(msgspec.Struct, frozen=True):
    """A type that is known otherwise, and the first field that differs."""

    type_name: str
    field: str


class InlineCheck(msgspec.Struct, frozen=True):
    """What an inline text would do: its top-level type, the types it would define anew, those it contradicts."""

    type_name: str
    new: tuple[str, ...]
    conflicts: tuple[Conflict, ...]


class InlineAdded(msgspec.Struct, frozen=True):
    """The top-level type of an inline text, and every type whose codec became available or changed by it."""

    type_name: str
    changed: frozenset[str]


class _Definition(msgspec.Struct, frozen=True):
    declarations: Declarations
    text: bytes
    own: Measure


class _Staged(msgspec.Struct, frozen=True):
    """Checked changes that are not yet made."""

    definitions: dict[str, _Definition]
    extents: dict[str, Extent]
    text_bytes: int
    changed: frozenset[str]
    affected: frozenset[str]


class SchemaRegistry:
    """Struct types by name. Every method that raises leaves the registry as it was.

    Type names may be given with a leading ``struct:``, never with ``[]`` (see ``split_type_string``).
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self._definitions: dict[str, _Definition] = {}
        self._extents: dict[str, Extent] = {}
        self._text_bytes = 0
        self._codecs: OrderedDict[tuple[str, bool], StructCodec] = OrderedDict()
        self._codec_values = 0
        self._inline_names: OrderedDict[str, str] = OrderedDict()  # texts that add nothing to what is known

    def __contains__(self, type_name: str) -> bool:
        return type_name.removeprefix(STRUCT_PREFIX) in self._definitions

    def add(self, type_name: str, schema: str | bytes) -> frozenset[str]:
        """Define or redefine a type by its WPILib schema text.

        Return the types whose codec became available, changed, or was lost because a nested type is now missing.
        Raises SchemaError.
        """
        name = checked_name(type_name, self.limits.name_bytes)
        text = utf8(schema, self.limits.text_bytes, "limit_text", name)
        known = self._definitions.get(name)
        if known is not None and known.text == text:
            return frozenset()
        declarations = parse_schema(name, text, self.limits)
        if known is not None and known.declarations == declarations:
            self._check_total(self._text_bytes + len(text) - len(known.text), name)
            self._text_bytes += len(text) - len(known.text)
            self._definitions[name] = _Definition(known.declarations, text, known.own)
            return frozenset()
        return self._commit(self._stage({name: _Definition(declarations, text, measure(declarations))}))

    def add_inline(self, text: str) -> str:
        """Define every type of an inline text, all or none, and return the name of the outermost.

        Raises SchemaError: ``conflict`` if a type is known otherwise, ``unresolved`` if a nested one is known nowhere.
        """
        return self.admit_inline(text).type_name

    def admit_inline(self, text: str, replace: Collection[str] = ()) -> InlineAdded:
        """Do as ``add_inline`` does, say what changed, and redefine the types in ``replace`` instead of refusing."""
        known = self._inline_names.get(text)
        if known is not None:
            self._inline_names.move_to_end(text)
            return InlineAdded(known, frozenset())
        parsed = parse_inline(text, self.limits)
        new, conflicts = self._compare(parsed)
        for conflict in conflicts:
            if conflict.type_name not in replace:
                message = f"struct {conflict.type_name} is known with another field {conflict.field}"
                raise SchemaError(message, "conflict", conflict.type_name)
        staged = self._stage(_defined(parsed, [*new, *(conflict.type_name for conflict in conflicts)]))
        self._check_complete(parsed, staged)
        changed = self._commit(staged) if staged.affected else frozenset()
        self._inline_names[text] = parsed.type_name
        if len(self._inline_names) > MAX_CACHED_INLINE_TEXTS:
            self._inline_names.popitem(last=False)
        return InlineAdded(parsed.type_name, changed)

    def check_inline(self, text: str) -> InlineCheck:
        """Try an inline text without any change; SchemaError for every fault but a contradiction of known types."""
        parsed = parse_inline(text, self.limits)
        new, conflicts = self._compare(parsed)
        staged = self._stage(_defined(parsed, [*new, *(conflict.type_name for conflict in conflicts)]))
        self._check_complete(parsed, staged)
        return InlineCheck(parsed.type_name, tuple(new), tuple(conflicts))

    def difference(self, type_name: str, schema: str | bytes) -> str | None:
        """Name the first field in which a schema text differs from the known type, None if they mean the same.

        Raises SchemaError if the text cannot be read or the type is not known.
        """
        name = type_name.removeprefix(STRUCT_PREFIX)
        return first_difference(self._definition(name).declarations, parse_schema(name, schema, self.limits))

    def discard(self, type_name: str) -> frozenset[str]:
        """Forget a type; return the types that lost their codec by it, itself included."""
        name = type_name.removeprefix(STRUCT_PREFIX)
        definition = self._definitions.get(name)
        if definition is None:
            return frozenset()
        affected = self._affected([name])
        lost = frozenset([user for user in affected if self._extents[user].complete])
        self._forget(affected)
        del self._definitions[name], self._extents[name]
        self._text_bytes -= len(definition.text)
        for user in self._innermost_first(affected - {name}, self._definitions, ()):
            self._extents[user] = extent(user, self._definitions[user].own, self._extents, self.limits)
        return lost

    def codec(self, type_name: str, *, enum_names: bool = False) -> StructCodec:
        """Return the codec of a type, compiled on first use; SchemaError ``unresolved`` if a type is missing.

        With ``enum_names`` it decodes an enum field to the first name of its value, if there is one.
        """
        name = type_name.removeprefix(STRUCT_PREFIX)
        key = (name, enum_names)
        codec = self._codecs.get(key)
        if codec is not None:
            self._codecs.move_to_end(key)
            return codec
        self._require(name)
        values = self._extents[name].values
        codec = compile_codec(self._record(name, {}), values, self.limits, enum_names=enum_names)
        self._codecs[key] = codec
        self._codec_values += values
        while len(self._codecs) > MAX_CACHED_CODECS or self._codec_values > MAX_CACHED_VALUES:
            (oldest, _), _ = self._codecs.popitem(last=False)
            self._codec_values -= self._extents[oldest].values
        return codec

    def schema(self, type_name: str) -> str:
        """Return the canonical WPILib text of one type, nested types by name; SchemaError ``unresolved``."""
        return schema_text(self._definition(type_name.removeprefix(STRUCT_PREFIX)).declarations)

    def nested(self, type_name: str) -> tuple[str, ...]:
        """Return the type and all it contains, the innermost first, itself last; SchemaError ``unresolved``."""
        name = type_name.removeprefix(STRUCT_PREFIX)
        self._require(name)
        order: dict[str, None] = {}
        self._collect(name, order)
        return tuple(order)

    def missing(self, type_name: str) -> frozenset[str]:
        """Return the types that must be added before this one has a codec."""
        found: set[str] = set()
        seen: set[str] = set()
        waiting = [type_name.removeprefix(STRUCT_PREFIX)]
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            definition = self._definitions.get(name)
            if definition is None:
                found.add(name)
            elif not self._extents[name].complete:
                waiting += definition.own.nested
        return frozenset(found)

    def _definition(self, name: str) -> _Definition:
        definition = self._definitions.get(name)
        if definition is None:
            raise SchemaError(f"struct {name} is not known", "unresolved", name)
        return definition

    def _require(self, name: str) -> None:
        known = self._extents.get(name)
        if known is None or not known.complete:
            raise _unresolved(name, self.missing(name))

    def _collect(self, name: str, order: dict[str, None]) -> None:
        for inner in self._definitions[name].own.nested:
            if inner not in order:
                self._collect(inner, order)
        order[name] = None

    def _record(self, name: str, records: dict[str, Record]) -> Record:
        """Lay out a type whose nested types are all known; each of them once."""
        if name not in records:
            definition = self._definitions[name]
            for inner in definition.own.nested:
                self._record(inner, records)
            records[name] = lay_out(name, definition.declarations, records)
        return records[name]

    def _compare(self, parsed: InlineText) -> tuple[list[str], list[Conflict]]:
        new: list[str] = []
        conflicts: list[Conflict] = []
        for name, declarations in parsed.types.items():
            known = self._definitions.get(name)
            if known is None:
                new.append(name)
            elif (field := first_difference(known.declarations, declarations)) is not None:
                conflicts.append(Conflict(name, field))
        return new, conflicts

    def _check_complete(self, parsed: InlineText, staged: _Staged) -> None:
        """Raise ``unresolved`` if a type of the text names one that nobody knows."""
        if all(staged.extents[name].complete for name in parsed.types):
            return
        known = self._definitions | staged.definitions
        reachable = {inner for name in parsed.types for inner in known[name].own.nested}
        missing: set[str] = {name for name in reachable if name not in known}
        for name in reachable - missing - staged.definitions.keys():
            missing |= self.missing(name) - staged.definitions.keys()
        raise _unresolved(parsed.type_name, missing)

    def _stage(self, changes: dict[str, _Definition]) -> _Staged:
        """Check what the registry would be with these definitions; SchemaError if it may not be."""
        definitions = self._definitions | changes
        last = next(reversed(changes), None)
        if len(definitions) > self.limits.types:
            raise SchemaError(f"more than {self.limits.types} types", "limit_types", last)
        text_bytes = self._text_bytes
        for name, definition in changes.items():
            old = self._definitions.get(name)
            text_bytes += len(definition.text) - (len(old.text) if old is not None else 0)
        self._check_total(text_bytes, last)
        affected = self._affected(changes)
        extents = self._extents.copy()
        for name in self._innermost_first(affected, definitions, changes):
            extents[name] = extent(name, definitions[name].own, extents, self.limits)
        changed = [
            name
            for name in affected
            if extents[name].complete or ((old_extent := self._extents.get(name)) is not None and old_extent.complete)
        ]
        return _Staged(changes, extents, text_bytes, frozenset(changed), affected)

    def _check_total(self, text_bytes: int, type_name: str | None) -> None:
        if text_bytes > self.limits.total_bytes:
            raise SchemaError(f"more than {self.limits.total_bytes} bytes of schemas", "limit_total", type_name)

    def _affected(self, names: Iterable[str]) -> frozenset[str]:
        """Return these types and all that contain one of them, directly or not."""
        affected = set(names)
        frontier = affected
        while frontier:
            frontier = {
                name
                for name, definition in self._definitions.items()
                if name not in affected and not definition.own.nested.keys().isdisjoint(frontier)
            }
            affected = affected | frontier
        return frozenset(affected)

    def _innermost_first(
        self, names: Collection[str], definitions: Mapping[str, _Definition], changes: Collection[str]
    ) -> Iterable[str]:
        """Order types so that nested ones come first; SchemaError ``circular`` for a type that contains itself."""
        sorter: graphlib.TopologicalSorter[str] = graphlib.TopologicalSorter()
        wanted = dict.fromkeys(names).keys()  # of two views & walks the shorter one
        for name in names:
            sorter.add(name, *(definitions[name].own.nested.keys() & wanted))
        try:
            return tuple(sorter.static_order())
        except graphlib.CycleError as error:
            raise _circular(error.args[1][:-1], changes) from None

    def _commit(self, staged: _Staged) -> frozenset[str]:
        self._forget(staged.affected)
        self._definitions.update(staged.definitions)
        self._extents = staged.extents
        self._text_bytes = staged.text_bytes
        return staged.changed

    def _forget(self, names: Iterable[str]) -> None:
        """Drop what was derived from these types."""
        for name in names:
            for enum_names in (False, True):
                if self._codecs.pop((name, enum_names), None) is not None:
                    self._codec_values -= self._extents[name].values
        self._inline_names.clear()


def _defined(parsed: InlineText, names: Iterable[str]) -> dict[str, _Definition]:
    definitions: dict[str, _Definition] = {}
    for name in names:
        declarations = parsed.types[name]
        definitions[name] = _Definition(declarations, schema_text(declarations).encode("utf-8"), measure(declarations))
    return definitions


def _circular(cycle: list[str], changes: Collection[str]) -> SchemaError:
    start = next(index for index, name in enumerate(cycle) if name in changes)
    chain = listed(cycle[start:] + cycle[:start], " <- ")
    return SchemaError(f"struct {cycle[start]} contains itself: {chain}", "circular", cycle[start])


def _unresolved(type_name: str, missing: Collection[str]) -> SchemaError:
    message = f"struct {type_name} needs types that are not known: {listed(sorted(missing))}"
    return SchemaError(message, "unresolved", type_name)
