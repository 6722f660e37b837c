"""Drives one NtClient as the daemon's loop does: woken by events and by the time that ``turn`` names."""

import threading
import time
from collections.abc import Callable
from typing import Any, Self

from aoabridge.adapters.nt import NtClient, NtSettings, NtTarget
from aoabridge.values import (
    Announced,
    Connected,
    Disconnected,
    NtEvent,
    Publication,
    Put,
    PutOp,
    PutResult,
    Unannounced,
    Update,
    Withdrawal,
)

DEADLINE_S = 10.0


class NtLoop:
    """``events`` and ``results`` collect everything; ``until`` runs the loop until a condition holds."""

    def __init__(self, *servers: str, identity: str = "aoabridge-test", **settings: Any) -> None:
        self.woken = threading.Event()
        target = NtTarget(servers=servers)
        self.client = NtClient(NtSettings(identity, target, **settings), wake=self.woken.set)
        self.events: list[NtEvent] = []
        self.results: list[PutResult] = []
        self.serial = 0

    def __enter__(self) -> Self:
        self.client.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def turn(self, longest_s: float = 0.05) -> None:
        """One turn of the loop, then wait for the next reason to turn."""
        self.woken.clear()
        self.events += self.client.take_events()
        now = time.monotonic()
        again = self.client.turn(now)
        self.results += self.client.take_put_results()
        wait_s = longest_s if again is None else min(longest_s, again - time.monotonic())
        if wait_s > 0:
            self.woken.wait(wait_s)

    def until(self, condition: Callable[[], bool], seconds: float = DEADLINE_S) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"condition not met in time; last events: {self.events[-5:]}"
            self.turn(0.005)

    def run(self, seconds: float) -> None:
        """Turn for a while: only to show that something does not happen."""
        end = time.monotonic() + seconds
        self.until(lambda: time.monotonic() >= end, seconds + 1)

    def until_online(self) -> None:
        self.until(lambda: self.client.online)

    def put(self, topic: str, type_string: str, value: Any, link: int = 1) -> Put:
        self.serial += 1
        put = Put(self.serial, link, PutOp.SET, topic, type_string, value)
        self.client.offer_puts([put])
        return put

    def unpublish(self, topic: str, link: int = 1) -> None:
        self.serial += 1
        self.client.offer_puts([Put(self.serial, link, PutOp.UNPUBLISH, topic)])

    def publish(self, topic: str, type_string: str, value: Any, **options: Any) -> None:
        self.client.publish([Publication(topic, type_string, value, **options)])

    def withdraw(self, topic: str) -> None:
        self.client.publish([Withdrawal(topic)])

    def result(self, put: Put) -> PutResult:
        """Turn until it is known what became of this put."""
        self.until(lambda: any(result.put is put for result in self.results))
        return next(result for result in self.results if result.put is put)

    def code(self, topic: str, type_string: str, value: Any) -> str | None:
        return self.result(self.put(topic, type_string, value)).code

    def values(self, topic: str) -> list[Any]:
        return [event.value for event in self.events if isinstance(event, Update) and event.topic == topic]

    def updates(self, topic: str) -> list[Update]:
        return [event for event in self.events if isinstance(event, Update) and event.topic == topic]

    def types(self) -> dict[str, str]:
        """What a core would know of the server's topics."""
        types: dict[str, str] = {}
        for event in self.events:
            if isinstance(event, Announced):
                types[event.topic] = event.type
            elif isinstance(event, Unannounced):
                types.pop(event.topic, None)
            elif isinstance(event, Disconnected):
                types.clear()
        return types

    def connections(self) -> list[type[NtEvent]]:
        return [type(event) for event in self.events if isinstance(event, Connected | Disconnected)]

    def until_value(self, topic: str, value: Any, seconds: float = DEADLINE_S) -> None:
        self.until(lambda: value in self.values(topic)[-1:], seconds)

    def until_topic(self, topic: str, seconds: float = DEADLINE_S) -> None:
        self.until(lambda: topic in self.types(), seconds)
