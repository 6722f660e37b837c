"""What changed between two configurations, and what of it may take effect without a restart."""

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from aoabridge.config.schema import ROOT, Key, Reload, Table
from aoabridge.config.sections import Config

__all__ = ["Change", "changes", "effective", "flat", "log_line", "restart_needed"]

S = TypeVar("S", bound=msgspec.Struct)


class Change(msgspec.Struct, frozen=True):
    """One key whose value differs; a value of None = absent on that side."""

    key: str
    old: object
    new: object
    reload: Reload


def flat(config: Config) -> dict[str, tuple[object, Reload]]:
    """Every key with its value and reload class; the members of lists of tables are named ``device[pixel7].serial``."""
    return dict(_flat(ROOT, config, ""))


def _flat(table: Table, settings: msgspec.Struct, prefix: str) -> Iterator[tuple[str, tuple[object, Reload]]]:
    for row in table.rows:
        value: Any = getattr(settings, row.name)
        if isinstance(row, Key):
            yield prefix + row.name, (value, row.reload)
        elif row.several == "no":
            yield from _flat(row, value, f"{prefix}{row.name}.")
        else:
            for member in value:
                yield from _flat(row, member, f"{prefix}{row.name}[{member.name}].")


def changes(old: Config, new: Config) -> list[Change]:
    """Every key that differs, in the order of the file's sections."""
    before, after = flat(old), flat(new)
    keys = list(dict.fromkeys([*after, *before]))
    found: list[Change] = []
    for key in keys:
        was, reload = before.get(key, (None, None))
        now, reload_now = after.get(key, (None, None))
        if was != now and (reload_now or reload) is not None:
            found.append(Change(key, was, now, reload_now or reload or Reload.RESTART))
    return found


def restart_needed(found: list[Change]) -> list[str]:
    """The keys that a running daemon cannot take over."""
    return [change.key for change in found if change.reload is Reload.RESTART]


def log_line(found: list[Change]) -> str:
    """Every changed key, old -> new, on one line."""
    shown = [f"{item.key} {_shown(item.old)} -> {_shown(item.new)}" for item in found]
    return ", ".join(shown) or "nothing changed"


def _shown(value: object) -> str:
    if value is None:
        return "unset"
    return msgspec.json.encode(value).decode("utf-8")


def effective(running: Config, new: Config) -> Config:
    """``new``, but with the running values of every key that needs a restart."""
    return _merged(ROOT, running, new)


def _merged(table: Table, running: S, new: S) -> S:
    kept: dict[str, object] = {}
    for row in table.rows:
        was, now = getattr(running, row.name), getattr(new, row.name)
        if isinstance(row, Key):
            kept[row.name] = was if row.reload is Reload.RESTART else now
        elif row.several == "no":
            kept[row.name] = _merged(row, was, now)
        else:
            kept[row.name] = was if _needs_restart(row) else now
    return msgspec.structs.replace(new, **kept)


def _needs_restart(table: Table) -> bool:
    return all(_needs_restart(row) if isinstance(row, Table) else row.reload is Reload.RESTART for row in table.rows)
