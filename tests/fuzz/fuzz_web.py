"""The status page of a real bridge: any bytes of any client; a broken request gets 4xx or nothing, never our fault."""

import re
import socket
import time

from fuzz.living_bridge import living_bridge

ANSWER_S = 0.05
PATIENCE_S = 5.0
KEY = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
UPGRADED = b"HTTP/1.1 101"
UNREAD = (b"http/1.1 400", b"http/1.1 414", b"http/1.1 431")  # refused by the library before there is a request


def run(data: bytes) -> None:
    """Send the bytes with the right port put in; the answer is none or one of HTTP, and the page goes on."""
    bridge = living_bridge()
    answer = _talk(data)
    if answer:
        assert re.match(rb"HTTP/1\.[01] [1-4]\d\d |HTTP/1\.1 50[35] ", answer), answer[:80]
        if not answer.startswith(UPGRADED):
            head = answer.partition(b"\r\n\r\n")[0].lower()
            assert b"x-content-type-options: nosniff" in head or head.startswith(UNREAD), head
    bridge.check()
    if len(data) % 64 == 0:
        _still_healthy()


def _talk(data: bytes) -> bytes:
    """The answer to the bytes; a request without end is given up soon, a websocket after its first frames."""
    port = living_bridge().port
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=ANSWER_S) as client:
        try:
            client.sendall(data.replace(b"PORT", b"%d" % port))
            while (chunk := client.recv(65536)) and not received.startswith(UPGRADED):
                received += chunk
        except TimeoutError:
            return received
        except ConnectionError:  # hung up on, which is an answer
            return b""
    return received


def _still_healthy() -> None:
    """Strangers that hold all places are thrown out after 10 s; ours have hung up."""
    deadline = time.monotonic() + PATIENCE_S
    while not _talk(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n").startswith(b"HTTP/1.1 200"):
        assert time.monotonic() < deadline


def seeds() -> list[bytes]:
    """Honest requests and known tricks."""
    host = b"Host: 127.0.0.1:PORT\r\n"
    paths = [b"/", b"/ws", b"/app.css", b"/api/status", b"/api/logs?count=5&since=1&level=info", b"/api/config"]
    paths += [
        b"/healthz?ready",
        b"/../../etc/passwd",
        b"/%2e%2e/x",
        b"//[",
        b"/api/logs?count=x",
        b"/\xff",
        b"http://[",
    ]
    plain = [b"GET " + path + b" HTTP/1.1\r\n" + host + b"\r\n" for path in paths]
    upgrade = b"GET /ws HTTP/1.1\r\n" + host + b"Upgrade: websocket\r\nConnection: Upgrade\r\n" + KEY
    tricks = [
        upgrade + b"\r\n",
        upgrade + b"Origin: http://evil.example\r\n\r\n",
        upgrade + b"\r\n" + b"\x81\x85\0\0\0\0hello\x88\x82\0\0\0\0\x03\xe8",
        upgrade + b"\r\n" + b"\x81\xff" + b"\xff" * 12,
        b"POST /api/config HTTP/1.1\r\n" + host + b"Content-Length: 3\r\n\r\nabc",
        b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + host + host + b"\r\n",
        b"GET / HTTP/1.1\r\n" + host + b"X: " + b"a" * 9000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET\t/\tHTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
    ]
    return plain + tricks
