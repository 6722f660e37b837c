"""The status page's server: GET and HEAD, one websocket endpoint, nothing that writes; the only user of websockets.

Who may ask is decided here (peer address, Host, Origin); what is answered comes from ``WebContent``.
"""

import asyncio
import contextlib
import hashlib
import http
import ipaddress
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol
from urllib.parse import parse_qs, urlsplit

import msgspec
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

__all__ = ["WebContent", "WebServer", "WebSettings"]

MAX_CONNECTIONS = 16
MAX_WEBSOCKETS = 8
HEADER_S = 10.0  # an idle connection must not keep an honest one out
PROGRESS_S = 5.0  # a page that takes nothing for so long is closed
UPDATE_S = 0.5
MAX_INBOUND_BYTES = 4096
PRIVATE: Final = (
    "127.0.0.0/8", "169.254.0.0/16", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",
    "::1/128", "fe80::/10", "fc00::/7",
)  # fmt: skip
MAX_LOGGED_STRANGERS = 256

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
        self._settings = settings
        self._content = content
        self._server: Server | None = None
        self._open = 0
        self._sockets = 0
        self._strangers: set[str] = set()
        self._routes: Mapping[str, Callable[[Mapping[str, str]], Response]] = {
            "/": lambda _query: _html(content.page()),
            "/api/status": lambda _query: _json(content.status()),
            "/api/logs": self._logs,
            "/api/config": lambda _query: _json(content.config()),
            "/healthz": self._health,
        }
        self.port = settings.port
        self.allow(settings.allow_from)

    def allow(self, allow_from: Sequence[str]) -> None:
        """Whose requests are answered, from now on."""
        texts = [text for entry in allow_from for text in (PRIVATE if entry == "private" else (entry,))]
        self._networks = [ipaddress.ip_network(text, strict=False) for text in texts]

    async def start(self) -> None:
        """Listen."""
        self._server = await serve(
            self._on_websocket,
            None if self._settings.bind in ("", "*") else self._settings.bind,
            self._settings.port,
            process_request=self._on_request,
            create_connection=self._connection(),
            compression=None,
            max_size=MAX_INBOUND_BYTES,
            open_timeout=HEADER_S,
            close_timeout=1.0,
            server_header=None,
            ping_interval=20.0,
            ping_timeout=20.0,
            logger=_quiet_logger(),
        )
        self.port = next(iter(self._server.sockets)).getsockname()[1]

    async def close(self) -> None:
        """Say goodbye to the pages (1001) and stop listening. Idempotent."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(server.wait_closed(), 1.0)

    def _connection(self) -> type[ServerConnection]:
        owner = self

        class Counted(ServerConnection):
            """A connection that counts against the limit from its first byte on."""

            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                self.counted = owner._open < MAX_CONNECTIONS
                super().connection_made(transport)
                if self.counted:
                    owner._open += 1
                else:
                    self.transport.abort()

            def connection_lost(self, exc: Exception | None) -> None:
                if self.counted:
                    owner._open -= 1
                super().connection_lost(exc)

        return Counted

    # Requests.

    def _on_request(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer everything but an honest websocket, which goes on (None)."""
        response = self._refusal(connection, request)
        if response is None:
            url = urlsplit(request.path)
            if url.path == "/ws" and request.headers.get("Upgrade", "").lower() == "websocket":
                return self._websocket_refusal(request)
            response = self._answer(url.path, _query(url.query), request)
        for name, value in _security_headers(request.headers.get("Host", "")).items():
            response.headers[name] = value
        if request.method == "HEAD":
            response.body = b""
        return response

    def _refusal(self, connection: ServerConnection, request: Request) -> Response | None:
        peer = connection.remote_address
        host = str(peer[0]).partition("%")[0] if peer else ""
        if not self._allowed(host):
            if host not in self._strangers and len(self._strangers) < MAX_LOGGED_STRANGERS:
                self._strangers.add(host)
                log.warning("status page refused to %s: not in web.allow_from", host)
            return _text(http.HTTPStatus.FORBIDDEN, "this address may not see the page\n")
        if request.method not in ("GET", "HEAD"):
            response = _text(http.HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD\n")
            response.headers["Allow"] = "GET, HEAD"
            return response
        hosts = request.headers.get_all("Host")
        if len(hosts) != 1:
            return _text(http.HTTPStatus.BAD_REQUEST, "exactly one Host header is needed\n")
        if not self._is_our_name(hosts[0]):
            return _text(http.HTTPStatus.MISDIRECTED_REQUEST, "not a name of this machine; see web.hosts\n")
        return None

    def _allowed(self, host: str) -> bool:
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self._networks)

    def _is_our_name(self, host: str) -> bool:
        """True for an address, localhost, or one of our names, with our port: a rebound name is none of them."""
        name, port = _split_host(host)
        if port != self.port:
            return False
        if name in ("localhost", *self._settings.names):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _websocket_refusal(self, request: Request) -> Response | None:
        origins = request.headers.get_all("Origin")
        if origins and origins != [f"http://{request.headers['Host']}"]:
            return _text(http.HTTPStatus.FORBIDDEN, "foreign page\n")
        if self._sockets >= MAX_WEBSOCKETS:
            return _text(http.HTTPStatus.SERVICE_UNAVAILABLE, "too many pages are open\n")
        return None

    def _answer(self, path: str, query: Mapping[str, str], request: Request) -> Response:
        route = self._routes.get(path)
        if route is not None:
            return route(query)
        asset = self._content.asset(path.removeprefix("/"))
        if asset is None:
            return _json({"error": "not found"}, http.HTTPStatus.NOT_FOUND)
        kind, data = asset
        tag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
        if request.headers.get("If-None-Match") == tag:
            return _response(http.HTTPStatus.NOT_MODIFIED, kind, b"", {"ETag": tag})
        return _response(http.HTTPStatus.OK, kind, data, {"ETag": tag, "Cache-Control": "no-cache"})

    def _logs(self, query: Mapping[str, str]) -> Response:
        try:
            count, since = int(query.get("count", "200")), int(query.get("since", "0"))
        except ValueError:
            return _json({"error": "count and since are numbers"}, http.HTTPStatus.BAD_REQUEST)
        level = query.get("level", "debug")
        if not 1 <= count <= 2000 or since < 0 or level not in ("debug", "info", "warning", "error", ""):
            return _json({"error": "count 1..2000, since >= 0, level debug..error"}, http.HTTPStatus.BAD_REQUEST)
        return _json(self._content.logs(count, level or "debug", since))

    def _health(self, query: Mapping[str, str]) -> Response:
        good = self._content.status()["verdict"] == "ok" if "ready" in query else self._content.healthy()
        return _text(http.HTTPStatus.OK if good else http.HTTPStatus.SERVICE_UNAVAILABLE, "ok\n" if good else "no\n")

    # The websocket.

    async def _on_websocket(self, connection: ServerConnection) -> None:
        self._sockets += 1
        reader = asyncio.ensure_future(_ignore(connection))
        try:
            await self._feed(connection)
        except (ConnectionClosed, TimeoutError):
            pass
        finally:
            reader.cancel()
            self._sockets -= 1
            if connection.transport is not None and connection.close_code is None:
                connection.transport.abort()

    async def _feed(self, connection: ServerConnection) -> None:
        """The snapshot, then what changed of it; the newest only, however slow the page is."""
        shown: dict[str, Any] = {}
        sequence = 0
        while True:
            status = self._content.status()
            changed = {key: value for key, value in status.items() if shown.get(key) != value}
            message: dict[str, Any] = {"html": self._content.body(), "title": self._content.title()}
            if sequence:
                message |= {"type": "update", "seq": sequence, "status": changed}
            else:
                message |= {"type": "snapshot", "status": status}
            text = json.dumps(message, ensure_ascii=False)
            await asyncio.wait_for(connection.send(text), PROGRESS_S)
            shown, sequence = status, sequence + 1
            await asyncio.sleep(UPDATE_S)


def _quiet_logger() -> logging.Logger:
    """The library logs every request, and a traceback for each stranger's garbage; a log is for state edges."""
    logger = logging.getLogger("aoabridge.adapters.web.protocol")
    logger.setLevel(logging.CRITICAL)
    return logger


async def _ignore(connection: ServerConnection) -> None:
    """Take what a page sends and do nothing with it."""
    with contextlib.suppress(ConnectionClosed):
        async for _message in connection:
            await asyncio.sleep(0.1)


def _split_host(host: str) -> tuple[str, int]:
    try:
        url = urlsplit(f"http://{host}")
        return (url.hostname or "").lower(), url.port or 80
    except ValueError:
        return "", 0


def _query(text: str) -> dict[str, str]:
    try:
        found = parse_qs(text, keep_blank_values=True, max_num_fields=16)
    except ValueError:
        return {}
    return {name: values[-1] for name, values in found.items()}


def _security_headers(host: str) -> dict[str, str]:
    name, port = _split_host(host)
    shown = f"[{name}]" if ":" in name else name
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        f"connect-src 'self' ws://{shown}:{port}; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )
    return {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
    }


def _response(status: http.HTTPStatus, kind: str, body: bytes, more: Mapping[str, str] | None = None) -> Response:
    headers = Headers({"Content-Type": kind, "Content-Length": str(len(body)), "Connection": "close", **(more or {})})
    return Response(status.value, status.phrase, headers, body)


def _text(status: http.HTTPStatus, text: str) -> Response:
    return _response(status, "text/plain; charset=utf-8", text.encode(), {"Cache-Control": "no-store"})


def _html(text: str) -> Response:
    return _response(http.HTTPStatus.OK, "text/html; charset=utf-8", text.encode(), {"Cache-Control": "no-store"})


def _json(value: Mapping[str, Any], status: http.HTTPStatus = http.HTTPStatus.OK) -> Response:
    body = json.dumps(value, ensure_ascii=False).encode()
    return _response(status, "application/json", body, {"Cache-Control": "no-store"})
