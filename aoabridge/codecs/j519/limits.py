"""Limit tables of a controller: velocity, acceleration and jerk per axis, by TCP speed and payload."""

import math
from collections.abc import Iterator

import msgspec

from aoabridge.codecs.j519.enums import ThresholdType
from aoabridge.codecs.j519.packets import TABLE_ENTRIES, Ack

__all__ = ["LimitTables", "Table", "table_keys"]

PERCENT_PER_ENTRY = 5.0


class Table(msgspec.Struct, frozen=True):
    """One pair of tables; entry i holds at (i + 1) * 5 % of ``max_cart_speed_mm_s``."""

    max_cart_speed_mm_s: int
    no_load: tuple[float, ...]
    full_load: tuple[float, ...]

    @property
    def problem(self) -> str:
        """Why the table cannot be used, empty if it can."""
        if self.max_cart_speed_mm_s <= 0:
            return "maximum Cartesian speed is 0"
        if not math.isfinite(sum(self.no_load) + sum(self.full_load)):
            return "an entry is not finite"
        return ""

    def at(self, tcp_speed_mm_s: float, payload_ratio: float) -> float:
        """Interpolated entry, clamped at both ends of speed and payload."""
        percent = min(max(100.0 * tcp_speed_mm_s / self.max_cart_speed_mm_s, PERCENT_PER_ENTRY), 100.0)
        position = percent / PERCENT_PER_ENTRY - 1.0
        index = min(int(position), TABLE_ENTRIES - 2)
        rest = position - index
        empty, full = (
            entries[index] + (entries[index + 1] - entries[index]) * rest for entries in (self.no_load, self.full_load)
        )
        return empty + (full - empty) * min(max(payload_ratio, 0.0), 1.0)

    def smallest(self, payload_ratio: float) -> float:
        """The smallest of the 20 entries at this payload: the limit while the TCP speed is unknown."""
        ratio = min(max(payload_ratio, 0.0), 1.0)
        pairs = zip(self.no_load, self.full_load, strict=True)
        return min(empty + (full - empty) * ratio for empty, full in pairs)


def table_keys(axes: int) -> Iterator[tuple[int, ThresholdType]]:
    """(axis from 1, kind) of every table of an arm, in the order in which they are asked for."""
    for axis in range(1, axes + 1):
        for kind in ThresholdType:
            yield axis, kind


class LimitTables:
    """The tables that have arrived; ``interval`` is that of the last Ack (unit not stated, probably ms)."""

    def __init__(self) -> None:
        self._tables: dict[tuple[int, int], Table] = {}
        self.max_cart_speed_mm_s = 0
        self.interval = 0

    def __len__(self) -> int:
        return len(self._tables)

    def add(self, ack: Ack) -> None:
        """Keep one answer, replacing an earlier one of its axis and kind."""
        self.max_cart_speed_mm_s = ack.max_cart_speed
        self.interval = ack.interval
        table = Table(ack.max_cart_speed, ack.threshold_no_load, ack.threshold_max_load)
        self._tables[ack.axis_no, int(ack.threshold_type)] = table

    def arrived(self, axis: int, kind: int) -> Table | None:
        """The table as it came, usable or not; None if it did not."""
        return self._tables.get((axis, int(kind)))

    def table(self, axis: int, kind: int) -> Table:
        """The usable table of an axis (from 1); ValueError if it is missing or no limit can be read from it."""
        table = self.arrived(axis, kind)
        problem = "missing" if table is None else table.problem
        if table is None or problem:
            raise ValueError(f"limit table of axis {axis}, kind {int(kind)}: {problem}")
        return table

    def problem(self, axes: int) -> str:
        """Why an arm of so many axes cannot be guarded by these tables, empty if it can."""
        try:
            for axis, kind in table_keys(axes):
                self.table(axis, kind)
        except ValueError as error:
            return str(error)
        return ""

    def limit(self, axis: int, kind: int, tcp_speed_mm_s: float | None, payload_ratio: float = 1.0) -> float:
        """deg/s, deg/s2 or deg/s3 (mm for linear axes); never extrapolated. Speed None = the smallest entry.

        ValueError for a table that is missing or unusable, and for a NaN argument.
        """
        if math.isnan(payload_ratio) or (tcp_speed_mm_s is not None and math.isnan(tcp_speed_mm_s)):
            raise ValueError("limit at a speed or payload that is not a number")
        table = self.table(axis, kind)
        if tcp_speed_mm_s is None:
            return table.smallest(payload_ratio)
        return table.at(tcp_speed_mm_s, payload_ratio)
