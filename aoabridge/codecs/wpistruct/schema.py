"""WPILib struct schema text to declarations, and back to the canonical text.

Grammar: the WPILib struct specification 1.0, with identifiers outside ASCII as WPILib 2027 accepts them.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

import msgspec

from aoabridge.codecs.wpistruct.limits import DEFAULT_LIMITS, MAX_INT_CHARS, Limits
from aoabridge.errors import SchemaError

__all__ = [
    "IDENTIFIER",
    "PRIMITIVES",
    "Declaration",
    "Declarations",
    "Parsed",
    "Primitive",
    "Reader",
    "check_fields",
    "declaration_text",
    "first_difference",
    "parse_schema",
    "schema_text",
    "utf8",
]

# Explicit classes: \w, \d and \s of Python accept characters that the grammar does not know.
IDENTIFIER: Final = r"[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*"
_BLANKS: Final = r"[ \t\r\n]*"
# A run of semicolons is one token: empty declarations mean nothing, and 16 000 of them must cost nothing.
_TOKEN: Final = re.compile(
    rf"{_BLANKS}(?:({IDENTIFIER})|(-?[0-9]+|-)|([{{}}\[\]:=,])|(;)[; \t\r\n]*|(.)|\Z)", re.DOTALL
)
_NAME, _INT = 1, 2
# One enum entry with its separator, for speed; whatever does not match goes token by token and is explained there.
_ENUM_ENTRY: Final = re.compile(rf"{_BLANKS}({IDENTIFIER}){_BLANKS}={_BLANKS}(-?[0-9]{{1,18}}){_BLANKS}(?:,|(?=\}}))")

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_SATURATED = 10 * 2**64  # stands for every INT that is too long to read: no context accepts it
_MAX_UTF8_BYTES = 4  # of one character
_SHOWN_CHARS = 40  # of a foreign token in a message


class Primitive(msgspec.Struct, frozen=True, gc=False):
    """One built-in type: ``code`` of the struct module, size in bytes, whether it is an integer, its value range."""

    name: str
    code: str
    size: int
    is_integer: bool = False
    low: int = 0
    high: int = 0


def _integer(name: str, code: str, size: int, *, signed: bool) -> Primitive:
    bits = 8 * size
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return Primitive(name, code, size, True, low, high)


_FLOAT = Primitive("float", "f", 4)
_DOUBLE = Primitive("double", "d", 8)
PRIMITIVES: Final[dict[str, Primitive]] = {
    "bool": Primitive("bool", "?", 1),
    "char": Primitive("char", "s", 1),
    "int8": _integer("int8", "b", 1, signed=True),
    "int16": _integer("int16", "h", 2, signed=True),
    "int32": _integer("int32", "i", 4, signed=True),
    "int64": _integer("int64", "q", 8, signed=True),
    "uint8": _integer("uint8", "B", 1, signed=False),
    "uint16": _integer("uint16", "H", 2, signed=False),
    "uint32": _integer("uint32", "I", 4, signed=False),
    "uint64": _integer("uint64", "Q", 8, signed=False),
    "float": _FLOAT,
    "float32": _FLOAT,
    "double": _DOUBLE,
    "float64": _DOUBLE,
}


@dataclass(frozen=True, slots=True)
class Declaration:
    """One field, normalised: aliases resolved, ``count`` 1 = scalar, ``bits`` 0 = no bit-field, enum only on integers.

    Two declarations that mean the same compare equal. ``single`` remembers a written ``[1]``, which means nothing for
    the layout but lets an encoder's caller give a list of one.
    """

    type: str
    name: str
    count: int = 1
    bits: int = 0
    enum: tuple[tuple[str, int], ...] = ()
    single: bool = field(default=False, compare=False)


Declarations: TypeAlias = tuple[Declaration, ...]


class Parsed(NamedTuple):
    """A declaration and where its type, its name and its array size or bit width stand in the text (characters)."""

    declaration: Declaration
    type_at: int
    name_at: int
    number_at: int


def utf8(text: str | bytes, limit: int, code: str, type_name: str | None) -> bytes:
    """Return the text as bytes of valid UTF-8 within the limit; raise SchemaError ``code`` or ``encoding``."""
    if len(text) > limit:
        raise SchemaError(f"text of more than {limit} bytes", code, type_name)
    try:
        if isinstance(text, bytes):
            text.decode("utf-8")
            return text
        raw = text.encode("utf-8")
    except UnicodeDecodeError as error:
        raise SchemaError(f"{error.start}: not UTF-8", "encoding", type_name, error.start) from None
    except UnicodeEncodeError as error:
        position = len(error.object[: error.start].encode("utf-8"))
        raise SchemaError(f"{position}: lone surrogate", "encoding", type_name, position) from None
    if len(raw) > limit:
        raise SchemaError(f"text of more than {limit} bytes", code, type_name)
    return raw


class Reader:
    """Reads declarations token by token. ``kind``, ``token`` and ``at`` describe the token that comes next."""

    def __init__(self, text: str, type_name: str | None, limits: Limits = DEFAULT_LIMITS) -> None:
        self.text = text
        self.type_name = type_name
        self.limits = limits
        self.kind: int | None = None
        self.token = ""
        self.at = 0
        self.end = 0
        self.advance()

    def advance(self) -> None:
        """Step to the next token; at the end of the text ``kind`` is None and ``token`` is empty."""
        match = _TOKEN.match(self.text, self.end)
        if match is None or match.lastindex is None:
            self.kind, self.token, self.at = None, "", len(self.text)
            return
        self.kind = match.lastindex
        self.token = match[self.kind]
        self.at = match.start(self.kind)
        self.end = match.end()

    def error(self, code: str, message: str, at: int) -> SchemaError:
        """Build the error for the token at this character; its position counts bytes of UTF-8."""
        position = len(self.text[:at].encode("utf-8"))
        return SchemaError(f"{position}: {message}", code, self.type_name, position)

    def expected(self, what: str) -> SchemaError:
        """Build the syntax error for the token that comes next."""
        got = repr(self.token[:_SHOWN_CHARS]) if self.token else "end of text"
        return self.error("syntax", f"expected {what}, got {got}", self.at)

    def take(self, token: str, what: str | None = None) -> None:
        """Step over this punctuation."""
        if self.token != token:
            raise self.expected(what or f"'{token}'")
        self.advance()

    def take_name(self, what: str) -> str:
        """Step over an identifier and return it."""
        if self.kind != _NAME:
            raise self.expected(what)
        name = self.token
        self._check_name(name, self.at)
        self.advance()
        return name

    def _check_name(self, name: str, at: int) -> None:
        limit = self.limits.name_bytes
        if _MAX_UTF8_BYTES * len(name) > limit and len(name.encode("utf-8")) > limit:
            raise self.error("limit_name", f"name of more than {limit} bytes", at)

    def take_int(self, code: str, what: str, low: int, high: int = _SATURATED) -> int:
        """Step over an integer in low..high and return it; outside raises SchemaError with this code."""
        if self.kind != _INT:
            raise self.expected(what)
        token = self.token
        if token == "-" or len(token) > MAX_INT_CHARS:
            value = -_SATURATED if token[0] == "-" else _SATURATED
        else:
            value = int(token)
        if not low <= value <= high:
            raise self.error(code, f"{what} {token[:_SHOWN_CHARS]} out of range", self.at)
        self.advance()
        return value

    def body(self, closing: str) -> list[Parsed]:
        """Read declarations up to the closing token ("" = end of text), which is left for the caller."""
        fields: list[Parsed] = []
        while True:
            if self.token == ";":
                self.advance()
            if self.token == closing:
                return fields
            if len(fields) >= self.limits.fields:
                raise self.error("limit_fields", f"more than {self.limits.fields} declarations", self.at)
            fields.append(self.declaration())
            if self.token not in (";", closing):
                raise self.expected("';'")

    def declaration(self) -> Parsed:
        """Read one declaration."""
        entries = self._enum() if self.token in ("enum", "{") else ()
        type_at = self.at
        type_name = self.type_reference()
        name_at = self.at
        name = self.take_name("a field name")
        number_at = self.at
        count, bits, single = 1, 0, False
        if self.token == "[":
            self.advance()
            number_at = self.at
            count = self.take_int("array_size", "array size", 1)
            single = count == 1
            self.take("]")
        elif self.token == ":":
            self.advance()
            number_at = self.at
            bits = self.take_int("bit_width", "bit width", 1)
        primitive = PRIMITIVES.get(type_name)
        if primitive is not None:
            type_name = primitive.name
        if primitive is None or not primitive.is_integer:
            entries = ()
        return Parsed(Declaration(type_name, name, count, bits, entries, single), type_at, name_at, number_at)

    def type_reference(self) -> str:
        """Read the type of a declaration."""
        return self.take_name("a type name")

    def _enum(self) -> tuple[tuple[str, int], ...]:
        if self.token == "enum":
            self.advance()
        if self.token != "{":
            raise self.expected("'{'")
        entries: list[tuple[str, int]] = []
        while True:
            while (match := _ENUM_ENTRY.match(self.text, self.end)) is not None:
                name, number = match.groups()
                self._check_name(name, match.start(1))
                entries.append((name, int(number)))
                self.end = match.end()
            self.advance()
            if self.token != "}":
                name = self.take_name("an enum name or '}'")
                self.take("=")
                entries.append((name, self.take_int("enum_value", "enum value", _INT64_MIN, _INT64_MAX)))
            if self.token == "}":
                self.advance()
                return tuple(entries)
            if self.token != ",":
                raise self.expected("',' or '}'")


def check_fields(reader: Reader, type_name: str, fields: Iterable[Parsed]) -> Declarations:
    """Apply the rules beyond grammar that concern one struct alone; raise SchemaError."""
    limits = reader.limits
    declarations: list[Declaration] = []
    names: set[str] = set()
    for parsed in fields:
        declaration = parsed.declaration
        primitive = PRIMITIVES.get(declaration.type)
        if declaration.bits:
            _check_bits(reader, parsed, primitive)
        if declaration.count > limits.array and declaration.type != "char":
            raise reader.error("limit_array", f"array of more than {limits.array} elements", parsed.number_at)
        if declaration.type == type_name and primitive is None:
            raise reader.error("recursive", f"struct {type_name} contains itself", parsed.type_at)
        if declaration.name in names:
            raise reader.error("duplicate_field", f"field {declaration.name} is declared twice", parsed.name_at)
        names.add(declaration.name)
        declarations.append(declaration)
    return tuple(declarations)


def _check_bits(reader: Reader, parsed: Parsed, primitive: Primitive | None) -> None:
    declaration = parsed.declaration
    if primitive is None or not (primitive.is_integer or primitive.code == "?"):
        raise reader.error("bit_field_type", f"a {declaration.type} cannot be a bit-field", parsed.type_at)
    width = 8 * primitive.size if primitive.is_integer else 1
    if declaration.bits > width:
        raise reader.error("bit_width", f"a {declaration.type} has at most {width} bits", parsed.number_at)


def parse_schema(type_name: str, schema: str | bytes, limits: Limits = DEFAULT_LIMITS) -> Declarations:
    """Read one WPILib schema text; SchemaError for whatever can be said without knowing other types."""
    text = utf8(schema, limits.text_bytes, "limit_text", type_name).decode("utf-8")
    reader = Reader(text, type_name, limits)
    return check_fields(reader, type_name, reader.body(""))


def declaration_text(declaration: Declaration, type_text: str | None = None) -> str:
    """Return one declaration in canonical form, with another text for its type if given."""
    if declaration.enum:
        prefix = "enum {" + ", ".join([f"{name}={value}" for name, value in declaration.enum]) + "} "
    else:
        # A struct that is itself called enum can only be named after an enum specification.
        prefix = "enum {} " if declaration.type == "enum" and type_text is None else ""
    suffix = f"[{declaration.count}]" if declaration.count > 1 else f":{declaration.bits}" if declaration.bits else ""
    return f"{prefix}{type_text or declaration.type} {declaration.name}{suffix}"


def schema_text(declarations: Declarations) -> str:
    """Return the canonical WPILib text: one blank between tokens, ``;`` between declarations, nested types by name."""
    return ";".join([declaration_text(declaration) for declaration in declarations])


def first_difference(known: Declarations, other: Declarations) -> str | None:
    """Name the first field in which two structs differ, None if they mean the same."""
    if known == other:
        return None
    for ours, theirs in zip(known, other, strict=False):
        if ours != theirs:
            return ours.name
    longer = known if len(known) > len(other) else other
    return longer[min(len(known), len(other))].name
