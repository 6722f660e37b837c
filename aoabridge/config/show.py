"""A configuration as TOML text, each value with its origin: file, default or command line."""

import re
from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from aoabridge.config.kinds import Fault
from aoabridge.config.locate import KeyPath
from aoabridge.config.schema import ROOT, Key, Table
from aoabridge.config.sections import Config

__all__ = ["as_toml", "origins", "toml_value"]

_ESCAPED = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def toml_value(value: object) -> str:
    """One value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + "".join(_ESCAPED.get(item, item if item.isprintable() else _code(item)) for item in value) + '"'
    if isinstance(value, dict):
        pairs = ", ".join(f"{_key(str(name))} = {toml_value(item)}" for name, item in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_value(item) for item in value)}]"
    return str(value)


def _code(character: str) -> str:
    return f"\\U{ord(character):08X}"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_value(name)


def origins(config: Config, given: Collection[KeyPath], flags: Collection[str] = ()) -> dict[str, str]:
    """Dotted key -> "file", "default" or "flag", for every key that has a value."""
    return {
        ".".join(str(part) for part in path): _origin(path, given, flags)
        for path, _ in _leaves(ROOT, config, (), given)
    }


def _origin(path: KeyPath, given: Collection[KeyPath], flags: Collection[str]) -> str:
    if ".".join(str(part) for part in path) in flags:
        return "flag"
    return "file" if path in given else "default"


def _leaves(
    table: Table, settings: msgspec.Struct, path: KeyPath, given: Collection[KeyPath]
) -> Iterator[tuple[KeyPath, Any]]:
    for row in sorted(table.rows, key=lambda row: isinstance(row, Table)):  # a key after a sub-table would be its own
        value: Any = getattr(settings, row.name)
        here: KeyPath = (*path, row.name)
        if isinstance(row, Key):
            written = list(value) if isinstance(value, tuple) else value
            if not isinstance(row.kind.check(written), Fault):  # else it is the absence of the key
                yield here, value
        elif row.several == "no":
            yield from _leaves(row, value, here, given)
        elif row.several == "also" and here not in given:
            yield from _leaves(row, value[0], here, given)
        else:
            for index, member in enumerate(value):
                yield from _leaves(row, member, (*here, index), given)


def as_toml(config: Config, given: Collection[KeyPath], flags: Collection[str] = (), *, effective: bool = True) -> str:
    """The text; without ``effective`` only what the file or a flag sets. Parsing it gives the same configuration."""
    lines: list[str] = []
    table: KeyPath = ()
    for path, value in _leaves(ROOT, config, (), given):
        origin = _origin(path, given, flags)
        if origin == "default" and not effective:
            continue
        if path[:-1] != table:
            table = path[:-1]
            lines += ["", _header(table)]
        text = f"{_key(str(path[-1]))} = {toml_value(value)}"
        lines.append(f"{text}  # {origin}" if effective else text)
    return "\n".join(lines).lstrip("\n") + "\n"


def _header(path: KeyPath) -> str:
    names = ".".join(_key(part) for part in path if isinstance(part, str))
    return f"[[{names}]]" if isinstance(path[-1], int) else f"[{names}]"
