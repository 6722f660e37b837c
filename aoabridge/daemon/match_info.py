"""Mode and match from the robot program's ``/FMSInfo`` table. Source: WPILib's control word and match fields."""

from typing import Final

from aoabridge.bridge.topics import TopicTable
from aoabridge.values import NtValue

__all__ = ["MatchInfo", "event_name", "match_info"]

ENABLED, AUTONOMOUS, TEST, E_STOP = 1, 2, 4, 8
_TYPES: Final = {1: "P", 2: "Q", 3: "E"}  # practice, qualification, elimination


class MatchInfo:
    """What ``/FMSInfo`` says; None = not published."""

    def __init__(self, enabled: bool | None, mode: str | None, match: str | None) -> None:
        self.enabled = enabled
        self.mode = mode
        self.match = match


def match_info(topics: TopicTable) -> MatchInfo:
    """Read the control word, match type and number."""
    word = _number(topics, "FMSControlData")
    number, kind = _number(topics, "MatchNumber"), _number(topics, "MatchType")
    match = f"{_TYPES.get(kind or 0, '')}{number}" if number else None
    if word is None:
        return MatchInfo(None, None, match)
    mode = "e-stop" if word & E_STOP else "auto" if word & AUTONOMOUS else "test" if word & TEST else "teleop"
    return MatchInfo(bool(word & ENABLED), mode, match)


def event_name(topics: TopicTable) -> str:
    """The event's name in characters that every file system takes; "" if it is not known."""
    topic = topics.by_key("/FMSInfo/EventName")
    value = "" if topic is None or not isinstance(topic.value, str) else topic.value
    return "".join(char for char in value if char.isascii() and (char.isalnum() or char in "-."))[:32]


def _number(topics: TopicTable, name: str) -> int | None:
    topic = topics.by_key(f"/FMSInfo/{name}")
    value: NtValue | None = None if topic is None else topic.value
    return value if isinstance(value, int) and not isinstance(value, bool) else None
