"""A BridgeCore with virtual time, one or more links, and nothing else: lines in, lines and orders out."""

import json
import struct
from typing import Any

from aoabridge.bridge.core import BridgeCore, CoreSettings
from aoabridge.bridge.link import LinkInfo
from aoabridge.values import Announced, Connected, Disconnected, Publication, Put, PutOp, PutResult, Update

POSE2D = {
    "Pose2d": "Translation2d translation;Rotation2d rotation",
    "Translation2d": "double x;double y",
    "Rotation2d": "double value",
}
POSE2D_INLINE = (
    "struct Pose2d {struct Translation2d {double x; double y;} translation; "
    "struct Rotation2d {double value;} rotation;}"
)


def subscribe(*keys: str, **more: Any) -> dict[str, Any]:
    return {"action": "subscribe", "keys": list(keys), **more}


def values(lines: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    return [(line["key"], line["value"]) for line in lines if "key" in line]


def pose(x: float, y: float, angle: float) -> bytes:
    return struct.pack("<3d", x, y, angle)


class CoreRig:
    """Time stands still unless ``wait`` moves it; a connected robot is settled from the start."""

    def __init__(self, settings: CoreSettings | None = None, *, connected: bool = True, link: bool = True) -> None:
        self.core = BridgeCore(settings or CoreSettings(), wall_offset_s=1_000_000.0)
        self.now = 100.0
        self.time_us = 5_000_000
        if connected:
            self.connect()
        if link:
            self.link_up()

    def connect(self) -> None:
        self.core.on_connection(Connected("10.22.7.2:5810"), self.now)
        self.wait(0.3)

    def disconnect(self) -> None:
        self.core.on_connection(Disconnected(), self.now)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.core.on_tick(self.now)

    def link_up(self, ident: int = 1, **info: Any) -> None:
        self.core.on_link_up(ident, LinkInfo(**{"name": f"phone{ident}", "packet_size": 512, **info}), self.now)
        if not info.get("adopted"):
            self.lines(ident)

    def announce(self, name: str, type_: str, *values: Any) -> None:
        self.core.on_topics([Announced(name, type_)], self.now)
        self.update(name, *values)

    def update(self, name: str, *values: Any) -> None:
        self.core.on_updates([Update(name, value, self.time_us) for value in values], self.now)

    def schemas(self, **texts: str) -> None:
        for name, text in texts.items():
            self.announce(f"/.schema/struct:{name}", "structschema", text.encode())

    def publish(self, topic: str, type_: str, value: Any) -> None:
        self.core.on_publications([Publication(topic, type_, value)], self.now, self.time_us)

    def say(self, *messages: dict[str, Any] | str | bytes, link: int = 1) -> None:
        for message in messages:
            if isinstance(message, dict):
                message = json.dumps(message)  # noqa: PLW2901
            data = message.encode() if isinstance(message, str) else message
            self.core.on_link_bytes(link, data + b"\n", self.now)

    def raw(self, link: int = 1) -> bytes:
        """Everything that goes out now, as accepted by an app that reads."""
        stream = bytearray()
        while data := self.core.take_bytes(link, self.now):
            stream += data
            self.core.on_bytes_accepted(link, len(data), self.now)
            self.core.on_tick(self.now)
        return bytes(stream)

    def lines(self, link: int = 1) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.raw(link).split(b"\n") if line]

    def orders(self) -> list[Put]:
        return self.core.take_puts()

    def sets(self) -> list[tuple[str, str, Any]]:
        return [(put.topic, put.type, put.value) for put in self.orders() if put.op is PutOp.SET]

    def accept(self) -> list[tuple[str, str, Any]]:
        """NetworkTables accepts what was ordered."""
        orders = self.orders()
        results = [PutResult(put) for put in orders if put.op is PutOp.SET]
        self.core.on_put_results(results, self.now, self.time_us)
        return [(put.topic, put.type, put.value) for put in orders if put.op is PutOp.SET]

    def error(self, *messages: dict[str, Any] | str | bytes) -> str:
        """The code of the one error line that these messages are answered with; nothing reaches NetworkTables."""
        self.say(*messages)
        errors = [line["error"] for line in self.lines() if "error" in line]
        assert len(errors) == 1, errors
        assert self.orders() == []
        return str(errors[0]["code"])

    def accept_all(self) -> list[str]:
        """NetworkTables does what was ordered; returns the topics that are no longer published."""
        orders = self.orders()
        self.core.on_put_results([PutResult(put) for put in orders if put.op is PutOp.SET], self.now, self.time_us)
        return [put.topic for put in orders if put.op is PutOp.UNPUBLISH]
