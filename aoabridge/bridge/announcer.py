"""What every phone is told unasked: which topics there are, and how the robot connection stands."""

from collections import Counter
from collections.abc import Iterable

from aoabridge.bridge.link import Link
from aoabridge.bridge.outbox import ControlKind
from aoabridge.bridge.robot import RobotConnection
from aoabridge.bridge.topics import TopicTable
from aoabridge.phone.lines import MAX_LINE_OUT
from aoabridge.phone.messages import status_line, topics_line
from aoabridge.values import LinkId

__all__ = ["Announcer"]


class Announcer:
    """Sends topic lists periodically and on request, and the status. Times are monotonic seconds."""

    def __init__(self, topics: TopicTable, robot: RobotConnection, counters: Counter[str]) -> None:
        self._period_s = 10.0
        self._topics = topics
        self._robot = robot
        self._counters = counters
        self._due: dict[LinkId, float] = {}

    def set_period(self, period_s: float) -> None:
        """Send the list so often from now on; one that waits comes as if this had always been so."""
        for ident, due in self._due.items():
            self._due[ident] = due + period_s - self._period_s
        self._period_s = period_s

    def welcome(self, link: Link, now: float) -> None:
        """The first lines of a link."""
        self.send_topics(link, now)
        self.tell_status([link])

    def tell_status(self, links: Iterable[Link]) -> None:
        """How the robot connection stands."""
        line = status_line(self._robot.state, self._robot.address)
        for link in links:
            link.outbox.put_control(line, ControlKind.STATUS)

    def send_topics(self, link: Link, now: float, *, types: bool = False) -> None:
        """The list now, with the types of the topics if asked for; a list over the line limit is cut at its end."""
        self._due[link.ident] = now + self._period_s
        keys = self._topics.keys()
        line = topics_line(keys, self._types(keys) if types else None)
        while len(line) > MAX_LINE_OUT:
            self._counters["topic_list_cut"] += 1
            keys = keys[: len(keys) * (MAX_LINE_OUT - 1) // len(line)]
            line = topics_line(keys, self._types(keys) if types else None)
        link.outbox.put_control(line, ControlKind.ANSWER if types else ControlKind.TOPICS)

    def _types(self, keys: list[str]) -> dict[str, str]:
        return {key: topic.type for key in keys if (topic := self._topics.by_key(key)) is not None}

    def forget(self, link: LinkId) -> None:
        """The link is over."""
        self._due.pop(link, None)

    def tick(self, link: Link, now: float) -> None:
        """Send the list if it is time."""
        if now >= self._due[link.ident]:
            self.send_topics(link, now)

    def next_due(self) -> float | None:
        """When the next list is due."""
        return min(self._due.values(), default=None)
