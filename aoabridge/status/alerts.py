"""The open issues as a dashboard's Alerts group: three lists of short texts, newest first."""

from collections.abc import Iterable

from aoabridge.issues import Severity
from aoabridge.status.board import OpenIssue
from aoabridge.status.text import clipped
from aoabridge.values import Publication

__all__ = ["Alerts", "alert_text"]

MAX_ENTRIES = 10
MAX_TEXT = 80  # long texts have overflowed dashboards' queues

_LISTS = {Severity.PROBLEM: "errors", Severity.WARN: "warnings", Severity.INFO: "infos"}


def alert_text(issue: OpenIssue) -> str:
    """Sentence and cure on one short line."""
    fix = issue.fix[:1].lower() + issue.fix[1:] if issue.fix[1:2].islower() else issue.fix
    return clipped(f"{issue.sentence} - {fix}", MAX_TEXT)


class Alerts:
    """Publishes the group ``/SmartDashboard/<group>``; all three lists always exist."""

    def __init__(self, group: str) -> None:
        self._root = f"/SmartDashboard/{group}/"
        self._shown: dict[str, list[str]] = {}

    def on_tick(self, issues: Iterable[OpenIssue]) -> list[Publication]:
        """The lists that have changed."""
        out: list[Publication] = []
        if not self._shown:
            properties: dict[str, object] = {"SmartDashboard": "Alerts"}
            out.append(Publication(f"{self._root}.type", "string", "Alerts", properties))
        newest = sorted(issues, key=lambda issue: -issue.since)
        for severity, name in _LISTS.items():
            texts = [alert_text(issue) for issue in newest if issue.severity is severity][:MAX_ENTRIES]
            if self._shown.get(name) != texts:
                self._shown[name] = texts
                out.append(Publication(self._root + name, "string[]", texts))
        return out
