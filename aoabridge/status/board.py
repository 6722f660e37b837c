"""Which issues are open: raised, held back until they last, counted, cleared. Time is an argument."""

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from aoabridge.issues import ISSUES, MAX_FIX, MAX_SENTENCE, IssueSpec, Severity, filled
from aoabridge.status.text import clipped, printable

__all__ = ["Edge", "IssueBoard", "OpenIssue"]

MAX_OPEN = 256  # every row of the table for every phone and source of a full machine is less
MAX_REMEMBERED = 1024  # (code, subject) pairs whose count is kept after they cleared


class OpenIssue(msgspec.Struct, frozen=True):
    """One open case; ``since`` is monotonic seconds, ``count`` how often it has begun or repeated since start."""

    code: str
    severity: Severity
    subject: str
    sentence: str
    fix: str
    since: float
    count: int


class Edge(NamedTuple):
    """An issue that was ``raised`` or (False) has cleared."""

    raised: bool
    issue: OpenIssue


class _Condition:
    """What is known of one (code, subject)."""

    __slots__ = ("active_since", "data", "events", "sentence")

    def __init__(self) -> None:
        self.active_since: float | None = None
        self.events: deque[float] = deque(maxlen=64)
        self.data: dict[str, object] = {}
        self.sentence: str | None = None


class IssueBoard:
    """Conditions in, open issues and edges out.

    ``set`` says whether a condition holds now: it shows once it has held for the row's ``hold_s``. ``happened`` says
    that something occurred: it shows while it has occurred ``times`` within ``window_s``. A row with both is not used.
    """

    def __init__(self) -> None:
        self._conditions: dict[tuple[str, str], _Condition] = {}
        self._open: dict[tuple[str, str], OpenIssue] = {}
        self._counts: dict[tuple[str, str], int] = {}
        self._edges: list[Edge] = []
        self.changes = 0
        """Grows with every condition that begins or ends, every occurrence, and all that open issues say anew."""

    def set(
        self,
        code: str,
        subject: str,
        active: bool,
        now: float,
        *,
        sentence: str | None = None,
        data: Mapping[str, object] | None = None,
        hold: bool = True,
    ) -> None:
        """Note whether a condition holds; ``hold`` False = its duration was checked by the caller."""
        key = code, subject
        spec = ISSUES[code]
        if not active:
            if key in self._conditions:
                self._end(self._conditions[key])
                self._settle(key, now)
            return
        condition = self._noted(key, sentence, data)
        if condition is None:
            return
        if condition.active_since is None:
            self.changes += 1
            condition.active_since = now if hold else now - spec.hold_s
        self._settle(key, now)

    def happened(
        self,
        code: str,
        subject: str,
        now: float,
        *,
        sentence: str | None = None,
        data: Mapping[str, object] | None = None,
    ) -> None:
        """Note one occurrence."""
        key = code, subject
        condition = self._noted(key, sentence, data)
        if condition is not None:
            self.changes += 1
            condition.events.append(now)
            if key in self._open:
                self._counts[key] = self._counts.get(key, 0) + 1
            self._settle(key, now)

    def clear(self, code: str, now: float, subject: str | None = None) -> None:
        """End a condition and forget its occurrences; without ``subject`` that of every subject."""
        for key in [key for key in self._conditions if key[0] == code and subject in (None, key[1])]:
            condition = self._conditions[key]
            self._end(condition)
            condition.events.clear()
            self._settle(key, now)

    def on_tick(self, now: float) -> None:
        """Let conditions that have lasted show, and occurrences that are old go."""
        for key in list(self._conditions):
            self._settle(key, now)

    def open_issues(self) -> list[OpenIssue]:
        """What is open: worst first, then the oldest, then by code and subject."""
        return sorted(self._open.values(), key=lambda item: (item.severity.rank, item.since, item.code, item.subject))

    def take_edges(self) -> list[Edge]:
        """Remove and return what was raised and cleared, in order."""
        edges, self._edges = self._edges, []
        return edges

    def _noted(
        self, key: tuple[str, str], sentence: str | None, data: Mapping[str, object] | None
    ) -> _Condition | None:
        condition = self._conditions.get(key)
        if condition is None:
            if len(self._conditions) >= MAX_OPEN:
                return None
            condition = self._conditions[key] = _Condition()
        if data is not None:
            condition.data = dict(data)
        if sentence is not None:
            condition.sentence = sentence
        return condition

    def _end(self, condition: _Condition) -> None:
        self.changes += condition.active_since is not None
        condition.active_since = None

    def _settle(self, key: tuple[str, str], now: float) -> None:
        """Open or close the issue as its condition says."""
        condition, spec = self._conditions[key], ISSUES[key[0]]
        while condition.events and now - condition.events[0] >= spec.window_s:
            condition.events.popleft()
        lasting = condition.active_since is not None and now - condition.active_since >= spec.hold_s
        if lasting or len(condition.events) >= spec.times:
            self._show(key, condition, spec, now)
            return
        if key in self._open:
            self.changes += 1
            self._edges.append(Edge(False, self._open.pop(key)))
        if condition.active_since is None and not condition.events:
            del self._conditions[key]

    def _show(self, key: tuple[str, str], condition: _Condition, spec: IssueSpec, now: float) -> None:
        code, subject = key
        before = self._open.get(key)
        if before is None:
            self._count(key)
        texts = {name: printable(str(value)) for name, value in {"subject": subject, **condition.data}.items()}
        issue = OpenIssue(
            code,
            spec.severity,
            printable(subject, MAX_SENTENCE),
            clipped(printable(condition.sentence or filled(spec.sentence, texts, MAX_SENTENCE)), MAX_SENTENCE),
            filled(spec.fix, texts, MAX_FIX),
            now if before is None else before.since,
            self._counts.get(key, 1),
        )
        self._open[key] = issue
        self.changes += issue != before
        if before is None:
            self._edges.append(Edge(True, issue))

    def _count(self, key: tuple[str, str]) -> None:
        if len(self._counts) >= MAX_REMEMBERED and key not in self._counts:
            self._counts.pop(next(iter(self._counts)))
        self._counts[key] = self._counts.get(key, 0) + 1
