"""What the control socket answers: snapshots, devices, topics, live messages."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from aoabridge.adapters.control import Arguments, Handler, Query, RequestError, Stream
from aoabridge.adapters.log_ring import LogRing
from aoabridge.bridge.topics import Topic
from aoabridge.daemon.observer import Observer
from aoabridge.daemon.relay import Relay
from aoabridge.daemon.taps import Taps, shown_value
from aoabridge.status.terminal import changed

__all__ = ["Handlers", "log_handlers"]

WATCH_S = 0.2  # at most five snapshots per second
STALE_S = 2.0


class Handlers:
    """Reading requests; those that change something are added by the service."""

    def __init__(
        self,
        observer: Observer,
        relay: Relay,
        taps: Taps,
        ignored: Callable[[], list[dict[str, Any]]],
        clock: Callable[[], float],
    ) -> None:
        self._observer = observer
        self._relay = relay
        self._taps = taps
        self._ignored = ignored
        self._clock = clock

    def table(self) -> dict[str, Handler]:
        """Request name -> handler."""
        return {
            "status": Query(lambda _arguments: self._observer.snapshot(self._clock())),
            "devices": Query(self._devices),
            "topics": Query(self._topics),
            "watch": Stream(self._watch),
            "monitor": Stream(self._monitor),
        }

    def _devices(self, arguments: Arguments) -> Mapping[str, object]:
        del arguments
        return {"devices": self._observer.snapshot(self._clock())["phones"], "ignored": self._ignored()}

    def _topics(self, arguments: Arguments) -> Mapping[str, object]:
        prefix = arguments.get("prefix") or ""
        if not isinstance(prefix, str):
            raise RequestError("bad-request", "prefix must be text")
        wanted = prefix if prefix.startswith("/") or not prefix else "/" + prefix
        values = arguments.get("values") is True
        found = [topic for topic in self._relay.core.topics if topic.key.startswith(wanted)]
        return {"topics": [self._topic(topic, values) for topic in sorted(found, key=lambda topic: topic.key)]}

    def _topic(self, topic: Topic, values: bool) -> dict[str, object]:
        now = self._clock()
        core = self._relay.core
        age_s = None if topic.seen_at is None else now - topic.seen_at
        hz = self._observer.topic_hz.get(topic.name, 0.0)
        names = [link.info.name for link in core.links.values() if topic.key in link.slots]
        return {
            "name": topic.key,
            **({"value": shown_value(topic.value)} if values else {}),
            "type": topic.type,
            "hz": round(hz, 1),
            "age_s": None if age_s is None else round(age_s, 3),
            "source": self._source(topic),
            "subscribers": names,
            "stale": age_s is not None and age_s > STALE_S and topic.name in self._observer.periodic,
        }

    def _source(self, topic: Topic) -> str:
        core = self._relay.core
        owned = core.owners.find(topic.name)
        if owned is not None:
            link = core.links.get(owned.writer)
            return f"phone:{link.info.name}" if link is not None else "phone"
        if not topic.own:
            return "robot"
        root = topic.key.split("/")[1].lower()
        return root if root in ("frc", "j519", "teleop") else "bridge"

    async def _watch(self, arguments: Arguments) -> AsyncIterator[Mapping[str, object]]:
        del arguments
        shown: dict[str, Any] = {}
        while True:
            snapshot = self._observer.snapshot(self._clock())
            if changed(shown, snapshot):
                shown = snapshot
                yield snapshot
            await asyncio.sleep(WATCH_S)

    async def _monitor(self, arguments: Arguments) -> AsyncIterator[Mapping[str, object]]:
        topic, device = arguments.get("topic"), arguments.get("device")
        if isinstance(topic, str):
            source = self._taps.topic(topic)
        elif isinstance(device, str):
            if device not in {link.info.name for link in self._relay.core.links.values()}:
                raise RequestError("not-found", f"no linked phone is called {device!r}", "aoabridge devices")
            source = self._taps.device(device, raw=bool(arguments.get("hex")))
        else:
            raise RequestError("bad-request", "name a device or a topic")
        async for event in source:
            yield event


def log_handlers(ring: LogRing) -> dict[str, Handler]:
    """The lines in memory, once or as they come."""

    def wanted(arguments: Arguments) -> dict[str, Any]:
        level, device = arguments.get("level") or "debug", arguments.get("device")
        if not isinstance(level, str) or not (device is None or isinstance(device, str)):
            raise RequestError("bad-request", "level and device must be text")
        return {"level": level, "device": device}

    def lines(arguments: Arguments) -> Mapping[str, object]:
        found, following = ring.lines(**wanted(arguments))
        return {"lines": found, "next": following}

    async def follow(arguments: Arguments) -> AsyncIterator[Mapping[str, object]]:
        async for line in ring.follow(**wanted(arguments)):
            yield line

    return {"log": Query(lines), "follow-log": Stream(follow)}
