"""The inline form of a phone's ``schema`` field: one text that holds a type and, where they occur, its nested types."""

import re

import msgspec

from aoabridge.codecs.wpistruct.layout import Record
from aoabridge.codecs.wpistruct.limits import DEFAULT_LIMITS, Limits
from aoabridge.codecs.wpistruct.names import listed
from aoabridge.codecs.wpistruct.schema import (
    IDENTIFIER,
    PRIMITIVES,
    Declarations,
    Parsed,
    Reader,
    check_fields,
    declaration_text,
    first_difference,
    schema_text,
    utf8,
)
from aoabridge.errors import SchemaError

__all__ = ["InlineText", "inline_text", "parse_inline"]

_RESERVED = frozenset((*PRIMITIVES, "struct", "enum"))
_FIRST = re.compile(r"[^A-Za-z_\x80-\U0010ffff]")
_FOREIGN = re.compile(r"[^A-Za-z0-9_\x80-\U0010ffff]")


class InlineText(msgspec.Struct, frozen=True):
    """What an inline text says: its top-level type, and every type it defines, the innermost first."""

    type_name: str
    types: dict[str, Declarations]


class _InlineReader(Reader):
    """Reads nested definitions where a type name may stand."""

    def __init__(self, text: str, limits: Limits) -> None:
        super().__init__(text, None, limits)
        self.bodies: list[tuple[str, list[Parsed]]] = []  # innermost first: in the order in which they end
        self._open: list[str] = []

    def definition(self) -> str:
        """Read ``NAME { body }`` and return the name."""
        name = self._struct_name()
        self._definition_body(name, self.at)
        return name

    def type_reference(self) -> str:
        """Read a type name, ``struct NAME`` or a whole nested definition."""
        if self.token != "struct":
            return super().type_reference()
        self.advance()
        at = self.at
        name = self._struct_name()
        if self.token == "{":
            self._definition_body(name, at)
        return name

    def _struct_name(self) -> str:
        if self.token in _RESERVED:
            raise self.expected("the name of a struct")
        return self.take_name("the name of a struct")

    def _definition_body(self, name: str, at: int) -> None:
        if name in self._open:
            code = "recursive" if name == self._open[-1] else "circular"
            chain = listed([name, *reversed(self._open[self._open.index(name) + 1 :])], " <- ")
            raise self.error(code, f"struct {name} contains itself: {chain}", at)
        if len(self._open) >= self.limits.depth:
            raise self.error("limit_depth", f"more than {self.limits.depth} levels of structs", at)
        self._open.append(name)
        self.take("{")
        fields = self.body("}")
        self.take("}")
        self._open.pop()
        self.bodies.append((name, fields))


def parse_inline(text: str, limits: Limits = DEFAULT_LIMITS) -> InlineText:
    """Read one inline text; SchemaError for whatever can be said without knowing other types."""
    utf8(text, limits.inline_bytes, "limit_inline", None)
    reader = _InlineReader(text, limits)
    reader.take("struct")
    top = reader.definition()
    if reader.token == ";":
        _end_after_semicolon(reader)
    elif reader.kind is not None:
        raise reader.expected("';' or the end of the text")
    types: dict[str, Declarations] = {}
    for name, fields in reader.bodies:
        reader.type_name = name
        declarations = check_fields(reader, name, fields)
        known = types.setdefault(name, declarations)
        if known is not declarations and (differing := first_difference(known, declarations)) is not None:
            raise SchemaError(f"struct {name} is defined twice; field {differing} differs", "conflict", name)
    for name, declarations in types.items():
        utf8(schema_text(declarations), limits.text_bytes, "limit_text", name)
    return InlineText(top, types)


def _end_after_semicolon(reader: _InlineReader) -> None:
    """Check that a single ``;`` is the end; a run of them was read as one token."""
    second = reader.text.find(";", reader.at + 1, reader.end)
    if second >= 0:
        raise reader.error("syntax", "expected end of text, got ';'", second)
    reader.advance()
    if reader.kind is not None:
        raise reader.expected("end of text")


def inline_text(record: Record, limits: Limits = DEFAULT_LIMITS) -> str | None:
    """Return the canonical inline text of a laid-out struct; None if it is longer than the limit."""
    name = record.type_name
    if re.fullmatch(IDENTIFIER, name) is None:
        name = _FIRST.sub("_", name[0]) + _FOREIGN.sub("_", name[1:])
    return _definition_text(record, name, limits.inline_bytes, {})


def _definition_text(record: Record, name: str, limit: int, done: dict[str, str]) -> str | None:
    parts: list[str] = []
    length = len(name.encode("utf-8")) + len("struct  {}")
    for member in record.members:
        inner = member.record
        type_text: str | None = None
        if inner is not None:
            type_text = done.get(inner.type_name) or _definition_text(inner, inner.type_name, limit, done)
            # Every level contains the ones below it: as soon as one is too long, the whole is.
            if type_text is None:
                return None
            done[inner.type_name] = type_text
        parts.append(f"{declaration_text(member.field, type_text)};")
        length += len(parts[-1].encode("utf-8")) + bool(parts[1:])
        if length > limit:
            return None
    return f"struct {name} {{{' '.join(parts)}}}"
