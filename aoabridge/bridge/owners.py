"""Which phone link put which topic, so that nothing a phone said outlives its link.

A reconnecting client re-sends its last values: a forgotten ``RunPose = true`` would start a robot by itself.
"""

from collections import Counter
from collections.abc import Iterable

import msgspec

from aoabridge.errors import LinkError
from aoabridge.phone.keys import key_of
from aoabridge.values import RUN_PREFIX, LinkId, NtValue

__all__ = ["MAX_PUT_TOPICS", "RELEASE_S", "Owned", "Ownership", "is_run_pulse"]

RELEASE_S = 0.02  # a value set just before its publisher goes may be lost: time for one flush
MAX_PUT_TOPICS = 2_000  # of one link, as many as it may subscribe to: a robot's server is slow with thousands


def is_run_pulse(topic: str, type_: str) -> bool:
    """True for the booleans that start a motion in robot code."""
    return type_ == "boolean" and key_of(topic).startswith(RUN_PREFIX)


class Owned(msgspec.Struct):
    """A topic published for phones: who put it, who put it last, and what.

    ``first`` is the serial of its first set, ``unanswered`` sets are under way, ``exists`` once one was accepted.
    """

    type: str
    links: set[LinkId]
    writer: LinkId
    value: NtValue
    first: int = 0
    unanswered: int = 0
    exists: bool = False


class Ownership:
    """Topics that links have put. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._owned: dict[str, Owned] = {}
        self._count: Counter[LinkId] = Counter()  # topics per link
        self._releases: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._owned)

    def find(self, topic: str) -> Owned | None:
        """The record of a topic that we publish for a phone."""
        return self._owned.get(topic)

    def types(self) -> Iterable[str]:
        """The types of all topics that we publish for phones."""
        return {owned.type for owned in self._owned.values()}

    def check_room(self, link: LinkId, topic: str) -> None:
        """Raise LinkError ``too-many`` if the link has put so many topics that this one is too much."""
        owned = self._owned.get(topic)
        if self._count[link] >= MAX_PUT_TOPICS and (owned is None or link not in owned.links):
            raise LinkError(f"more than {MAX_PUT_TOPICS} topics put by one phone", "too-many", topic=key_of(topic))

    def note(self, link: LinkId, topic: str, type_: str, value: NtValue, serial: int) -> None:
        """A link puts this value by the order ``serial``."""
        owned = self._owned.get(topic)
        if owned is not None and owned.type != type_:
            self.forget(topic)
            owned = None
        if owned is None:
            owned = self._owned[topic] = Owned(type_, set(), link, value, serial)
        if link not in owned.links:
            owned.links.add(link)
            self._count[link] += 1
        owned.unanswered += 1
        owned.writer, owned.value = link, value

    def note_result(self, topic: str, serial: int, *, accepted: bool) -> bool:
        """A noted set was answered; True if the topic came to nothing by it: we are to publish it no more."""
        owned = self._owned.get(topic)
        if owned is None or serial < owned.first:
            return False
        owned.unanswered -= 1
        owned.exists |= accepted
        return not owned.exists and not owned.unanswered and self.forget(topic)

    def lower(self, link: LinkId, topic: str, now: float) -> None:
        """``link`` sets a foreign run pulse to false; our publisher goes again after the release time."""
        self._owned.setdefault(topic, Owned("boolean", set(), link, False))
        self._releases.append((now + RELEASE_S, topic))

    def release(self, link: LinkId, now: float) -> list[str]:
        """The link ended: return the run pulses that it left high; its topics become due after the release time."""
        high: list[str] = []
        del self._count[link]
        for topic, owned in self._owned.items():
            if link not in owned.links:
                continue
            owned.links.remove(link)
            if owned.writer == link and owned.value is True and is_run_pulse(topic, owned.type):
                owned.value = False
                high.append(topic)
            if not owned.links:
                self._releases.append((now + RELEASE_S, topic))
        return high

    def take_due(self, now: float) -> list[str]:
        """Topics whose last owner is gone and whose release time is over: they are to be unpublished."""
        if not self._releases:
            return []
        due = [topic for at, topic in self._releases if at <= now]
        self._releases = [entry for entry in self._releases if entry[0] > now]
        return [topic for topic in dict.fromkeys(due) if self._drop_unowned(topic)]

    def _drop_unowned(self, topic: str) -> bool:
        owned = self._owned.get(topic)
        return owned is not None and not owned.links and self.forget(topic)

    def forget(self, topic: str) -> bool:
        """Our publisher of the topic is to go (it has another type now, say). False if we have none."""
        owned = self._owned.pop(topic, None)
        if owned is None:
            return False
        for link in owned.links:
            self._count[link] -= 1
        return True

    def take_all(self) -> list[str]:
        """The robot connection is lost: every topic of a phone is to be unpublished, none is set again."""
        topics = list(self._owned)
        self._owned.clear()
        self._count.clear()
        self._releases.clear()
        return topics

    def next_due(self) -> float | None:
        """When ``take_due`` has something to do."""
        return min((at for at, _ in self._releases), default=None)
