"""The status page's server: GET and HEAD, one websocket endpoint, nothing that writes; the only user of websockets.

Who may ask is decided by ``WebRules``; what is answered comes from ``WebContent``.
"""

import asyncio
import contextlib
import hashlib
import http
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol
from urllib.parse import parse_qs, urlsplit

import msgspec
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.protocol import State

from aoabridge.adapters.web_rules import FOREIGN_PEER, READ_ONLY, Refusal, WebRules, security_headers

__all__ = ["WebContent", "WebServer", "WebSettings"]

MAX_CONNECTIONS = 16
MAX_WEBSOCKETS = 8
REQUEST_S = 10.0  # from the first byte to the end of the answer: an idle connection must not keep an honest one out
PROGRESS_S = 5.0  # a page that takes nothing for so long is closed
UPDATE_S = 0.5
CLOSE_S = 0.5  # for pages to hear that we go
MAX_INBOUND_BYTES = 4096
MAX_LOG_LINES = 200  # of one message; a page that wants more asks for them
MAX_LOGGED_STRANGERS = 256
METHODS: Final = (b"GET ", b"HEAD ")
OWN_FAULTS: Final = ("process_request failed", "connection handler failed")

log = logging.getLogger("aoabridge.adapters.web")


class WebSettings(msgspec.Struct, frozen=True):
    """Where to listen and for whom; ``names`` are the host names under which we are known."""

    port: int = 5808
    bind: str = "0.0.0.0"
    allow_from: tuple[str, ...] = ("private",)
    names: tuple[str, ...] = ()


class WebContent(Protocol):
    """What the page shows; every method is called on the event loop."""

    def page(self) -> str:
        """The whole document."""
        ...

    def body(self) -> str:
        """The part of it that changes."""
        ...

    def title(self) -> str:
        """The document's title."""
        ...

    def status(self) -> dict[str, Any]:
        """The snapshot."""
        ...

    def logs(self, count: int, level: str, since: int) -> dict[str, Any]:
        """Log lines from memory."""
        ...

    def config(self) -> dict[str, Any]:
        """The effective configuration without secrets."""
        ...

    def healthy(self) -> bool:
        """True while the watchdog is fed."""
        ...

    def asset(self, name: str) -> tuple[str, bytes] | None:
        """Content type and bytes of a static file."""
        ...


class WebServer:
    """Serves from ``start`` to ``close``; ``start`` raises OSError if the port is taken."""

    def __init__(self, settings: WebSettings, content: WebContent) -> None:
        self.rules = WebRules(settings.allow_from, settings.names)
        self.port = settings.port
        self._bind = settings.bind
        self._content = content
        self._server: Server | None = None
        self._open: set[_Connection] = set()
        self._sockets = 0
        self._strangers: set[str] = set()
        self._routes: Mapping[str, Callable[[Mapping[str, str]], Response]] = {
            "/": lambda _query: _html(content.page()),
            "/api/status": lambda _query: _json(content.status()),
            "/api/logs": self._logs,
            "/api/config": lambda _query: _json(content.config()),
            "/healthz": self._health,
        }

    async def start(self) -> None:
        """Listen."""
        self._server = await serve(
            self._on_websocket,
            None if self._bind in ("", "*", "::") else self._bind,  # None = both families
            self.port,
            process_request=self._on_request,
            process_response=_secured,
            create_connection=type("Connection", (_Connection,), {"owner": self}),
            compression=None,
            max_size=MAX_INBOUND_BYTES,
            open_timeout=REQUEST_S,
            close_timeout=REQUEST_S,
            server_header=None,
            ping_interval=None,  # every update is confirmed by a pong
            logger=_protocol_logger(),
        )
        self.port = next(iter(self._server.sockets)).getsockname()[1]

    async def close(self) -> None:
        """Say goodbye to the pages (1001) and stop listening. Idempotent."""
        server, self._server = self._server, None
        if server is None:
            return
        for connection in list(self._open):
            if connection.state is not State.OPEN:
                connection.transport.abort()  # nobody waits there but us
        server.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(server.wait_closed(), CLOSE_S)
            return
        for connection in list(self._open):
            connection.transport.abort()
        await server.wait_closed()

    # Connections.

    def admit(self, connection: "_Connection") -> bool:
        """Count a connection from its first byte on; False if there are too many."""
        if len(self._open) >= MAX_CONNECTIONS:
            return False
        self._open.add(connection)
        return True

    def forget(self, connection: "_Connection") -> None:
        """It is gone."""
        self._open.discard(connection)

    def writing(self, connection: ServerConnection) -> bytes:
        """The raw answer to a request that is neither GET nor HEAD."""
        refusal = READ_ONLY if self.rules.allows_peer(_peer(connection)) else FOREIGN_PEER
        response = _refused(refusal)
        response.headers.update(security_headers(""))
        return response.serialize()

    # Requests.

    def _on_request(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer everything but an honest websocket, which goes on (None)."""
        peer, hosts = _peer(connection), request.headers.get_all("Host")
        refusal = self.rules.refusal(peer, request.method, hosts, self.port)
        if refusal is FOREIGN_PEER:
            self._note_stranger(peer)
        response = _refused(refusal) if refusal is not None else self._answer(request, hosts[0])
        if response is not None:
            response.headers.update(security_headers(hosts[0] if refusal is None else ""))
            if request.method == "HEAD":
                response.body = b""
        return response

    def _note_stranger(self, peer: str) -> None:
        if peer not in self._strangers and len(self._strangers) < MAX_LOGGED_STRANGERS:
            self._strangers.add(peer)
            log.warning("status page refused to %s: not in web.allow_from", peer)

    def _answer(self, request: Request, host: str) -> Response | None:
        try:
            url = urlsplit(request.path)
        except ValueError:
            return _not_found()
        if url.path == "/ws" and _has(request, "Upgrade", "websocket") and request.method == "GET":
            return self._websocket_answer(request, host)
        route = self._routes.get(url.path)
        return self._asset(url.path, request) if route is None else route(_query(url.query))

    def _websocket_answer(self, request: Request, host: str) -> Response | None:
        refusal = self.rules.websocket_refusal(request.headers.get_all("Origin"), host)
        if refusal is not None:
            return _refused(refusal)
        if self._sockets >= MAX_WEBSOCKETS:
            return _text(http.HTTPStatus.SERVICE_UNAVAILABLE, "too many pages are open\n")
        return None

    def _asset(self, path: str, request: Request) -> Response:
        asset = self._content.asset(path.removeprefix("/"))
        if asset is None:
            return _not_found()
        kind, data = asset
        tag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if _has(request, "If-None-Match", tag):
            return _response(http.HTTPStatus.NOT_MODIFIED, kind, b"", headers)
        return _response(http.HTTPStatus.OK, kind, data, headers)

    def _logs(self, query: Mapping[str, str]) -> Response:
        try:
            count, since = int(query.get("count", "200")), int(query.get("since", "0"))
        except ValueError:
            return _json({"error": "count and since are numbers"}, http.HTTPStatus.BAD_REQUEST)
        level = query.get("level") or "debug"
        if not 1 <= count <= 2000 or since < 0 or level not in ("debug", "info", "warning", "error"):
            return _json({"error": "count 1..2000, since >= 0, level debug..error"}, http.HTTPStatus.BAD_REQUEST)
        return _json(self._content.logs(count, level, since))

    def _health(self, query: Mapping[str, str]) -> Response:
        good = self._content.status()["verdict"] == "ok" if "ready" in query else self._content.healthy()
        return _text(http.HTTPStatus.OK if good else http.HTTPStatus.SERVICE_UNAVAILABLE, "ok\n" if good else "no\n")

    # The websocket.

    async def _on_websocket(self, connection: ServerConnection) -> None:
        if self._sockets >= MAX_WEBSOCKETS:  # several handshakes may have been under way at once
            await connection.close(1013)
            return
        self._sockets += 1
        reader = asyncio.ensure_future(_ignore(connection))
        try:
            await self._feed(connection)
        except (ConnectionClosed, TimeoutError):
            pass
        finally:
            reader.cancel()
            self._sockets -= 1
            if connection.close_code is None:
                connection.transport.abort()

    async def _feed(self, connection: ServerConnection) -> None:
        """The snapshot, then what changed of it; the newest only, however slow the page is."""
        shown: dict[str, Any] = {}
        sequence = 0
        logged: int = self._content.logs(1, "info", 0)["next"]
        while True:
            status = self._content.status()
            message: dict[str, Any] = {"html": self._content.body(), "title": self._content.title()}
            if sequence:
                changed = {key: value for key, value in status.items() if shown.get(key) != value}
                message |= {"type": "update", "seq": sequence, "status": changed}
            else:
                message |= {"type": "snapshot", "status": status}
            await _deliver(connection, message)
            shown, sequence = status, sequence + 1
            found = self._content.logs(MAX_LOG_LINES, "info", logged)
            logged = found["next"]
            if found["lines"]:
                await _deliver(connection, {"type": "log", "lines": found["lines"]})
            await asyncio.sleep(UPDATE_S)


class _Connection(ServerConnection):
    """A connection that counts against the limit, and may bring the body of a request that we refuse anyway."""

    owner: WebServer

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._start: bytes | None = b""  # of the request, until its method is known
        self._refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if not self.owner.admit(self):
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.owner.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Hand requests of the known methods on; the library knows no bodies and would hang up on others."""
        if self._refused:
            return
        if self._start is not None:
            self._start += data
            if any(self._start.startswith(method) for method in METHODS):
                data, self._start = self._start, None
            elif any(method.startswith(self._start) for method in METHODS):
                return
            else:
                self._refused = True  # the rest is dropped until the far end has closed or its time is over
                self.transport.write(self.owner.writing(self))
                self.transport.write_eof()
                return
        super().data_received(data)


def _protocol_logger() -> logging.Logger:
    """The library logs every request, and a traceback for a stranger's garbage; only our own faults are news."""
    logger = logging.getLogger("aoabridge.adapters.web.protocol")
    logger.setLevel(logging.ERROR)
    if not logger.filters:
        logger.addFilter(lambda record: record.getMessage() in OWN_FAULTS)
    return logger


async def _deliver(connection: ServerConnection, message: Mapping[str, Any]) -> None:
    """Send, and wait until the page has it: what waits in a slow page's buffers is never older than one message."""
    async with asyncio.timeout(PROGRESS_S):
        await connection.send(json.dumps(message))
        await (await connection.ping())


async def _ignore(connection: ServerConnection) -> None:
    """Take what a page sends and do nothing with it."""
    with contextlib.suppress(ConnectionClosed):
        async for _message in connection:
            await asyncio.sleep(0.1)


def _secured(_connection: ServerConnection, _request: Request, response: Response) -> None:
    """Give the library's own refusals of a broken websocket handshake the headers of every other answer."""
    if (
        response.status_code != http.HTTPStatus.SWITCHING_PROTOCOLS
        and "Content-Security-Policy" not in response.headers
    ):
        response.headers.update(security_headers(""))


def _peer(connection: ServerConnection) -> str:
    address = connection.remote_address
    return str(address[0]).partition("%")[0] if address else ""


def _has(request: Request, name: str, value: str) -> bool:
    return [found.lower() for found in request.headers.get_all(name)] == [value.lower()]


def _query(text: str) -> dict[str, str]:
    try:
        found = parse_qs(text, keep_blank_values=True, max_num_fields=16)
    except ValueError:
        return {}
    return {name: values[-1] for name, values in found.items()}


def _refused(refusal: Refusal) -> Response:
    response = _text(refusal.status, refusal.text + "\n")
    if refusal is READ_ONLY:
        response.headers["Allow"] = "GET, HEAD"
    return response


def _not_found() -> Response:
    return _json({"error": "not found"}, http.HTTPStatus.NOT_FOUND)


def _response(status: http.HTTPStatus, kind: str, body: bytes, more: Mapping[str, str]) -> Response:
    headers = Headers({"Content-Type": kind, "Content-Length": str(len(body)), "Connection": "close", **more})
    return Response(status.value, status.phrase, headers, body)


def _text(status: http.HTTPStatus, text: str) -> Response:
    return _response(status, "text/plain; charset=utf-8", text.encode(), {"Cache-Control": "no-store"})


def _html(text: str) -> Response:
    return _response(
        http.HTTPStatus.OK, "text/html; charset=utf-8", text.encode("utf-8", "replace"), {"Cache-Control": "no-store"}
    )


def _json(value: Mapping[str, Any], status: http.HTTPStatus = http.HTTPStatus.OK) -> Response:
    body = json.dumps(value).encode()  # ASCII: a log line may hold what UTF-8 cannot
    return _response(status, "application/json", body, {"Cache-Control": "no-store"})
