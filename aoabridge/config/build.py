"""TOML data to settings classes by the table of ``schema``, collecting every fault on the way."""

import difflib
from collections.abc import Iterator
from typing import Any

import msgspec

from aoabridge.config.kinds import Fault
from aoabridge.config.locate import KeyPath
from aoabridge.config.schema import ROOT, Key, Table

__all__ = ["Builder", "FaultAt", "dotted"]


class FaultAt(msgspec.Struct, frozen=True):
    """One fault: the key, where to look for it (first place known wins), and whether the key itself is the fault."""

    key: KeyPath
    message: str
    hint: str | None = None
    places: tuple[KeyPath, ...] = ()
    at_key: bool = False


def dotted(path: KeyPath) -> str:
    """A key path as it is shown: ``device[0].serial``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


class Builder:
    """Builds one tree of settings. A faulty key counts as absent, so that the rest can still be judged."""

    def __init__(self) -> None:
        self.faults: list[FaultAt] = []
        self.faulty: set[KeyPath] = set()
        self.uncertain: set[KeyPath] = set()
        """Tables with unknown keys: what seems to be missing there may only be misspelt."""
        self.given: set[KeyPath] = set()

    def table(self, table: Table, data: dict[str, Any], path: KeyPath, **extra: Any) -> msgspec.Struct:
        """The settings of one section; ``extra`` are fields that the caller fills in if the file does not."""
        rows = {row.name: row for row in table.rows}
        values = dict(extra)
        for name, value in data.items():
            row = rows.get(name)
            if row is None:
                self._unknown(name, rows, path)
            elif isinstance(row, Key):
                self._key(row, value, (*path, name), values)
            else:
                self._section(row, value, (*path, name), values)
        for field in msgspec.structs.fields(table.settings):
            if field.required and field.name not in values:
                if (*path, field.name) not in self.faulty and path not in self.uncertain:
                    self._fault(FaultAt((*path, field.name), "is missing", places=(path,)))
                values[field.name] = ""
        return table.settings(**values)

    def _key(self, row: Key, value: object, path: KeyPath, values: dict[str, Any]) -> None:
        checked = row.kind.check(value)
        if isinstance(checked, Fault):
            named = (*path, *(part for part in checked.at if isinstance(part, str)))
            self._fault(FaultAt(named, checked.message, checked.hint, ((*path, *checked.at), path)))
            self.faulty.add(path)
            return
        self.given.add(path)
        values[row.name] = checked

    def _section(self, row: Table, value: object, path: KeyPath, values: dict[str, Any]) -> None:
        if isinstance(value, list) and row.several != "no":
            if len(value) > row.limit:
                self._fault(FaultAt(path, f"{len(value)} entries, the limit is {row.limit}"))
                return
            if not value:
                return  # as if it were not there
            found = [self._one(row, element, (*path, index)) for index, element in enumerate(value)]
            values[row.name] = tuple(item for item in found if item is not None)
            self.given.add(path)
        elif isinstance(value, dict) and row.several != "only":
            built = self._one(row, value, path)
            values[row.name] = (built,) if row.several == "also" else built
        else:
            expected = f"[[{row.name}]] tables" if row.several == "only" else "a table"
            self._fault(FaultAt(path, f"is not {expected}", f"write [[{row.name}]]" if row.several == "only" else None))

    def _one(self, row: Table, value: object, path: KeyPath) -> msgspec.Struct | None:
        if isinstance(value, dict):
            return self.table(row, value, path)
        self._fault(FaultAt(path, "is not a table"))
        return None

    def _unknown(self, name: str, rows: dict[str, Any], path: KeyPath) -> None:
        self.uncertain.add(path)
        near = difflib.get_close_matches(name, rows, n=1, cutoff=0.6)
        if near:
            self.faulty.add((*path, near[0]))
            hint = f'did you mean "{near[0]}"?'
        else:
            homes = sorted(home for home in _homes(name, ROOT) if home != dotted((*path, name)))
            hint = f"there is {' and '.join(homes)}" if homes else f"known here: {', '.join(rows)}"
        self._fault(FaultAt((*path, name), "unknown key", hint, at_key=True))

    def _fault(self, fault: FaultAt) -> None:
        self.faults.append(fault)
        self.faulty.add(fault.key)


def _homes(name: str, table: Table, path: KeyPath = ()) -> Iterator[str]:
    for row in table.rows:
        here = (*path, row.name)
        if isinstance(row, Table):
            yield from _homes(name, row, here)
        elif row.name == name and path:
            yield dotted(here)
