"""A NetworkTables client without manners: plain WebSocket frames, nothing checked, nothing subscribed."""

import json
from typing import Any, Self

import msgspec
from websockets.sync.client import connect
from websockets.typing import Subprotocol

TYPE_IDS = {"boolean": 0, "double": 1, "int": 2, "float": 3, "string": 4, "json": 4}
TYPE_IDS |= {"boolean[]": 16, "double[]": 17, "int[]": 18, "float[]": 19, "string[]": 20}
RAW = 5


class HostileClient:
    """Publishes whatever it is told under protocol 4.1."""

    def __init__(self, port: int, name: str = "hostile") -> None:
        subprotocol = Subprotocol("v4.1.networktables.first.wpi.edu")
        self.connecting = connect(f"ws://127.0.0.1:{port}/nt/{name}", subprotocols=[subprotocol])
        self.types: list[str] = []

    def __enter__(self) -> Self:
        self.socket = self.connecting.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.connecting.__exit__(*exception)

    def publish(self, topic: str, type_string: str, properties: dict[str, Any] | None = None) -> int:
        """Announce a topic; returns the id for ``send``."""
        self.types.append(type_string)
        number = len(self.types) - 1
        params = {"name": topic, "pubuid": number, "type": type_string, "properties": properties or {}}
        self.socket.send(json.dumps([{"method": "publish", "params": params}]))
        return number

    def send(self, number: int, value: Any, time_us: int, type_id: int | None = None) -> None:
        """Send a value. Strings given as bytes go out as msgpack text, well-formed or not."""
        if type_id is None:
            type_id = TYPE_IDS.get(self.types[number], RAW)
        head = b"\x94" + b"".join(map(msgspec.msgpack.encode, (number, time_us, type_id)))
        text = isinstance(value, bytes) and type_id == TYPE_IDS["string"]
        self.socket.send(head + (raw_text(value) if text else self._body(value)))

    def _body(self, value: Any) -> bytes:
        if isinstance(value, list):
            parts = [raw_text(item) if isinstance(item, bytes) else msgspec.msgpack.encode(item) for item in value]
            return bytes([0x90 | len(value)]) + b"".join(parts)
        return msgspec.msgpack.encode(value)


def raw_text(text: bytes) -> bytes:
    """A msgpack string of up to 255 bytes that need not be UTF-8."""
    return bytes([0xD9, len(text)]) + text
