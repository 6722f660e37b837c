"""Requests on the control socket of a real bridge: any bytes are answered by objects, and no handler fails."""

import json
import socket

from fuzz.living_bridge import living_bridge

QUIET_S = 10.0
STREAMS = (b"watch", b"monitor", b"follow-log")


def run(data: bytes) -> None:
    """Send the bytes as one client; every answer is an object, and the next client is served."""
    bridge = living_bridge()
    for line in _talk(data):
        assert isinstance(json.loads(line), dict)
    bridge.check()
    if len(data) % 64 == 0:
        assert json.loads(_talk(b'{"request":"status"}\n')[0])["ok"]


def _talk(data: bytes) -> list[bytes]:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(QUIET_S)
        client.connect(str(living_bridge().socket))
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        received = b""
        while chunk := client.recv(65536):
            received += chunk
            if any(word in data for word in STREAMS) and received.count(b"\n") >= 2:
                return received.splitlines()[:2]  # streams may go on for ever
    return received.splitlines()


def seeds() -> list[bytes]:
    """Every request with arguments of every kind."""
    names = ["status", "devices", "topics", "log", "retry", "record-status", "record-stop", "simulate-phone", "fly"]
    arguments = [{}, {"prefix": "/R", "level": "info", "device": "p"}, {"prefix": 5, "level": [], "device": {}}]
    texts = [json.dumps({"request": name, "arguments": given}).encode() for name in names for given in arguments]
    more = [b"[]", b'{"request":5}', b"[" * 9000, b'"\\ud800"', b'{"request":"\\ud800"}', b"\xff", b"x" * 70_000]
    more += [json.dumps({"request": "monitor", "arguments": given}).encode() for given in ({}, {"device": "none"})]
    return [text + b"\n" for text in (*texts, *more, b"\n".join(texts))]
