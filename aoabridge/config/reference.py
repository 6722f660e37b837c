"""The configuration reference as Markdown, made from the schema: default, values, and when a change applies."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from aoabridge.config.kinds import AnyOf, Bool, Choice, Float, Int, ListOf, MapOf, Optional, Text
from aoabridge.config.meanings import MEANINGS, SECTIONS
from aoabridge.config.schema import ROOT, Key, Period, Reload, Servers, Table

__all__ = ["documented_keys", "reference"]

_APPLIES: Final = {
    Reload.LIVE: "at once",
    Reload.NEXT_CONNECTION: "next connection",
    Reload.RESTART: "restart",
}
_HEAD: Final = """# Configuration

`/etc/aoabridge/aoabridge.toml`. A missing file means the defaults. Any error rejects the whole file, so that a misspelt
key never opens access by accident: `aoabridge config check` lists all errors with line and column. After
`sudo systemctl reload aoabridge` the keys marked *at once* apply without dropping a link, *next connection* for the
next phone or robot connection, *restart* after `sudo systemctl restart aoabridge`; `aoabridge status` names what waits.
"""


def documented_keys(table: Table = ROOT, prefix: str = "") -> Iterator[str]:
    """Every key's dotted name, sections in the order of the file."""
    for row in table.rows:
        if isinstance(row, Key):
            yield prefix + row.name
        else:
            yield from documented_keys(row, f"{prefix}{row.name}.")


def reference() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *_section(ROOT, "", "top level")]) + "\n"


def _section(table: Table, prefix: str, title: str) -> Iterator[str]:
    yield f"## {title}\n"
    if prefix in SECTIONS:
        yield SECTIONS[prefix] + "\n"
    yield "| key | default | values | applies | meaning |"
    yield "|---|---|---|---|---|"
    yield from _rows(table, prefix, "")
    yield ""
    for row in table.rows:
        if isinstance(row, Table) and not _is_inline(row):
            name = f"{prefix}{row.name}"
            brackets = f"`[[{name}]]`" if row.several == "only" else f"`[{name}]`"
            yield from _section(row, f"{name}.", brackets)


def _is_inline(table: Table) -> bool:
    """A small table of numbers is shown among the keys around it."""
    return table.name == "stale_ms"


def _rows(table: Table, prefix: str, shown: str) -> Iterator[str]:
    for row in table.rows:
        if isinstance(row, Key):
            name = prefix + row.name
            default = _default(table.settings, row.name)
            yield (
                f"| `{shown}{row.name}` | {default} | {_values(row.kind)} | {_APPLIES[row.reload]} | {MEANINGS[name]} |"
            )
        elif _is_inline(row):
            yield from _rows(row, f"{prefix}{row.name}.", f"{row.name}.")


def _default(settings: type[msgspec.Struct], name: str) -> str:
    for field in msgspec.structs.fields(settings):
        if field.name == name:
            if field.default is not msgspec.NODEFAULT:
                return _shown(field.default)
            if field.default_factory is not msgspec.NODEFAULT:
                return _shown(field.default_factory())
    return ""


def _shown(value: Any) -> str:
    if value is None or value == "":
        return ""
    text = msgspec.json.encode(value).decode().replace(",", ", ")
    return f"`{text}`"


def _values(kind: object) -> str:  # noqa: PLR0911  (one line per kind)
    match kind:
        case Bool():
            return "true, false"
        case Int(low=low, high=high) | Float(low=low, high=high):
            return f"{low} to {high}"
        case Choice(words=words):
            return ", ".join(words)
        case Text(form=form, max_bytes=limit):
            return f"text {form}" if form else f"text, at most {limit} bytes"
        case Optional(kind=inner):
            return _values(inner)
        case ListOf(kind=inner, limit=limit):
            return f"list of {_values(inner)}, at most {limit}"
        case MapOf(kind=inner, names=names):
            return f"table of {_values(inner)}" + (f" ({', '.join(names)})" if names else "")
        case AnyOf(form=form):
            return form
        case Period():
            return "5, or a multiple of 10 up to 1000"
        case Servers():
            return "host, IP or name, optional `:port`; or a list of up to 8"
        case _:
            return "IP address"
