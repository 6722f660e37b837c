"""A web server on a thread of its own with canned content, and a client that sends exactly what it is told."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

from websockets.sync.client import ClientConnection, connect

from aoabridge.adapters.web import WebContent, WebServer, WebSettings

DEADLINE_S = 20.0


class Answer(NamedTuple):
    """One HTTP answer; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Served:
    """A running server; every call is from the test's thread."""

    def __init__(self, server: WebServer) -> None:
        self.server = server
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self.run(self.server.start())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.run(self.server.close())
        finally:
            self._end()

    def _end(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(DEADLINE_S)
        self.loop.close()

    def run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(DEADLINE_S)

    @property
    def port(self) -> int:
        return self.server.port

    def open(self) -> socket.socket:
        """A connection on which nothing has been said."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE_S)

    def raw(self, request: bytes) -> bytes:
        """The whole answer to raw bytes; b"" if the server just hangs up."""
        with self.open() as connection:
            connection.sendall(request)
            return read_all(connection)

    def request(
        self,
        path: str = "/",
        method: str = "GET",
        hosts: tuple[str, ...] | None = None,
        body: bytes = b"",
        **headers: str,
    ) -> Answer:
        """One request; ``hosts`` are its Host headers, by default the right one."""
        names = (f"127.0.0.1:{self.port}",) if hosts is None else hosts
        lines = [f"{method} {path} HTTP/1.1", *(f"Host: {name}" for name in names)]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        return parsed(self.raw("\r\n".join([*lines, "", ""]).encode() + body))

    def upgrade(self, **headers: str) -> Answer:
        """The answer to a websocket handshake, for those that are refused."""
        return self.request(
            "/ws",
            Upgrade="websocket",
            Connection="Upgrade",
            Sec_WebSocket_Version="13",
            Sec_WebSocket_Key="dGhlIHNhbXBsZSBub25jZQ==",
            **headers,
        )

    def websocket(self, **options: Any) -> ClientConnection:
        """A page's websocket."""
        return connect(f"ws://127.0.0.1:{self.port}/ws", compression=None, **options)


def read_all(connection: socket.socket) -> bytes:
    data = b""
    while True:
        try:
            part = connection.recv(65536)
        except ConnectionError:
            return data
        if not part:
            return data
        data += part


def parsed(data: bytes) -> Answer:
    head, separator, body = data.partition(b"\r\n\r\n")
    assert separator, f"no answer: {data!r}"
    first, *lines = head.decode().split("\r\n")
    pairs = [line.split(": ", 1) for line in lines]
    assert len({name.lower() for name, _ in pairs}) == len(pairs), f"a header twice: {lines}"
    return Answer(int(first.split()[1]), {name.lower(): value for name, value in pairs}, body)


@contextmanager
def served(content: WebContent, **settings: Any) -> Iterator[Served]:
    """A server on a free port of 127.0.0.1."""
    with Served(WebServer(WebSettings(**{"port": 0, "bind": "127.0.0.1", **settings}), content)) as running:
        yield running
