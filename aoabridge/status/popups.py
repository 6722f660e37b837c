"""Dashboard pop-ups on the few edges that a driver must not miss; one at a time, and taken back again."""

import json
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from aoabridge.status.board import Edge
from aoabridge.status.snapshot import Snapshot
from aoabridge.values import Publication, Withdrawal

__all__ = ["POPUP_TOPIC", "Popups"]

POPUP_TOPIC = "/Elastic/RobotNotifications"
GAP_S = 5.0
SHOWN_S = 1.0  # then unpublished: else every robot restart would show the old pop-up again
STALE_S = 15.0  # later it is history, not news
MAX_WAITING = 8
DISPLAY_MS = 4000
WIDTH = 350


class _Popup(NamedTuple):
    """One message that waits for its turn; ``key`` = what it is about."""

    key: tuple[str, str]
    level: str
    title: str
    description: str
    since: float


class Popups:
    """Edges and snapshots in, publications out; call ``on_tick`` at least every 0.5 s while ``has_more``."""

    def __init__(self) -> None:
        self._waiting: deque[_Popup] = deque(maxlen=MAX_WAITING)
        self._told_lost: set[str] = set()
        self._was_ready = False
        self._last_at: float | None = None
        self._published = False

    @property
    def has_more(self) -> bool:
        """Whether one is shown, to be taken back, or waits for its turn."""
        return self._published or bool(self._waiting)

    def on_edges(self, edges: Iterable[Edge], snapshot: Snapshot, now: float) -> None:
        """Note what was raised and cleared."""
        enabled = snapshot["robot"]["enabled"] is True
        for edge in edges:
            issue = edge.issue
            if issue.code == "phone-lost":
                self._phone(edge, enabled, now)
            elif issue.code == "config-rejected" and edge.raised:
                self._add(_Popup((issue.code, ""), "WARNING", "Configuration refused", issue.sentence, now))

    def on_tick(self, snapshot: Snapshot, now: float) -> list[Publication | Withdrawal]:
        """At most one pop-up, or the withdrawal of the last."""
        if snapshot["verdict"] == "ok" and not self._was_ready:
            self._was_ready = True
            self._add(_Popup(("ready", ""), "INFO", "Bridge ready", snapshot["sentence"], now))
        if self._published and self._last_at is not None and now - self._last_at >= SHOWN_S:
            self._published = False
            return [Withdrawal(POPUP_TOPIC)]
        while self._waiting and now - self._waiting[0].since > STALE_S:
            self._waiting.popleft()
        if not self._waiting or (self._last_at is not None and now - self._last_at < GAP_S):
            return []
        self._last_at, self._published = now, True
        return [Publication(POPUP_TOPIC, "string", _text(self._waiting.popleft()), keep_all=True)]

    def withdraw_all(self) -> list[Publication | Withdrawal]:
        """Forget what waits and take back what is shown."""
        self._waiting.clear()
        shown, self._published = self._published, False
        return [Withdrawal(POPUP_TOPIC)] if shown else []

    def _phone(self, edge: Edge, enabled: bool, now: float) -> None:
        name, key = edge.issue.subject, (edge.issue.code, edge.issue.subject)
        if edge.raised and enabled:
            self._told_lost.add(name)
            self._add(_Popup(key, "ERROR", f"{name} lost", edge.issue.fix, now))
        elif not edge.raised and name in self._told_lost:
            self._told_lost.discard(name)
            if any(popup.key == key for popup in self._waiting):
                self._waiting = deque((popup for popup in self._waiting if popup.key != key), MAX_WAITING)
            elif enabled:
                self._add(_Popup(key, "INFO", f"{name} is back", "The phone is connected again", now))

    def _add(self, popup: _Popup) -> None:
        if all(waiting.key != popup.key for waiting in self._waiting):
            self._waiting.append(popup)


def _text(popup: _Popup) -> str:
    return json.dumps(
        {
            "level": popup.level,
            "title": popup.title,
            "description": popup.description,
            "displayTime": DISPLAY_MS,
            "width": WIDTH,
            "height": -1,
        }
    )
