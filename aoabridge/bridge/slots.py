"""One topic that one phone gets: how it wants it, and what of it waits."""

from collections import deque
from enum import IntEnum
from typing import TYPE_CHECKING

import msgspec

from aoabridge.phone.session import Options
from aoabridge.values import NtValue

if TYPE_CHECKING:
    from aoabridge.bridge.link import Link
    from aoabridge.bridge.topics import Topic

__all__ = ["Place", "Sample", "Slot"]


class Sample(msgspec.Struct, frozen=True, gc=False):
    """One value of an every-sample topic; ``line`` once it has been built."""

    value: NtValue
    time_us: int
    held: int
    line: bytes = b""


class Place(IntEnum):
    """Where a slot waits."""

    NOWHERE = 0
    READY = 1
    DEFERRED = 2  # until its period is over


class Slot:
    """``next_at``: no value before that time (monotonic seconds); ``dead``: the phone no longer gets the topic."""

    __slots__ = ("dead", "entry", "lane", "link", "next_at", "options", "outbox", "place", "topic")

    def __init__(self, topic: "Topic", options: Options, link: "Link") -> None:
        self.topic = topic
        self.link = link
        self.outbox = link.outbox
        self.options = options
        self.lane: deque[Sample] | None = deque() if options.every_sample else None
        self.place = Place.NOWHERE
        self.dead = False
        self.next_at = 0.0
        self.entry = 0  # number of its entry among the deferred
