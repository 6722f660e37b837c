"""Whether another program publishes below the robot program's tables, told from what NetworkTables announces.

A table counts as free only while connected, and only once the announcements of the connection have had their time.
When we withdraw a topic that another program publishes too, ntcore reports it as gone and never again says when it
really goes: such a table stays owned until the connection is made anew.
"""

from collections.abc import Callable, Iterable, Sequence

from aoabridge.values import (
    Announced,
    Connected,
    Disconnected,
    NtEvent,
    Publication,
    Unannounced,
    Update,
    Withdrawal,
)

__all__ = ["SETTLE_S", "TableWatch"]

SETTLE_S = 1.0  # the server announces what exists right after the connection


class TableWatch:
    """Watches ``tables``; ``tell(table, owned)`` on each change: True, False, or None = nobody can tell."""

    def __init__(self, tables: Sequence[str], tell: Callable[[str, bool | None], None]) -> None:
        self._tell = tell
        self._own: set[str] = set()
        self._withdrawn: set[str] = set()  # whose end, as ntcore reports it next, is our own doing
        self._foreign: dict[str, set[str]] = {table: set() for table in tables}
        self._verdicts: dict[str, bool | None] = dict.fromkeys(tables)
        self._settled_at: float | None = None

    def on_publications(self, items: Iterable[Publication | Withdrawal]) -> None:
        """Note which topics are our own."""
        for item in items:
            if self._table_of(item.topic) is None:
                continue
            if isinstance(item, Publication):
                self._own.add(item.topic)
            elif item.topic in self._own:
                self._own.discard(item.topic)
                self._withdrawn.add(item.topic)

    def on_events(self, events: Iterable[NtEvent], now: float) -> None:
        """Take what NetworkTables says, in order; our own values are not among the updates."""
        for event in events:
            if isinstance(event, Update | Announced | Unannounced):
                self._on_topic(event)
            elif isinstance(event, Connected):
                self._forget(now + SETTLE_S)
            elif isinstance(event, Disconnected):
                self._forget(None)
        self.on_tick(now)

    def on_tick(self, now: float) -> None:
        """Say what has changed."""
        for table, foreign in self._foreign.items():
            is_settled = self._settled_at is not None and now >= self._settled_at
            verdict = True if foreign else False if is_settled else None
            if verdict != self._verdicts[table]:
                self._verdicts[table] = verdict
                self._tell(table, verdict)

    def next_deadline(self, now: float) -> float | None:
        """When a table may turn out to be free."""
        return self._settled_at if self._settled_at is not None and self._settled_at > now else None

    def _forget(self, settled_at: float | None) -> None:
        self._settled_at = settled_at
        self._withdrawn.clear()
        for foreign in self._foreign.values():
            foreign.clear()

    def _on_topic(self, event: Update | Announced | Unannounced) -> None:
        table = self._table_of(event.topic)
        if table is None:
            return
        if isinstance(event, Unannounced):
            if event.topic in self._withdrawn:
                self._withdrawn.discard(event.topic)
            else:
                self._foreign[table].discard(event.topic)
        elif isinstance(event, Update) or event.topic not in self._own:
            self._foreign[table].add(event.topic)

    def _table_of(self, topic: str) -> str | None:
        for table in self._foreign:
            if topic.startswith(table) and topic[len(table) : len(table) + 1] == "/":
                return table
        return None
