"""The daemon's end of the control socket: JSON lines in, JSON lines out, or a simulated phone's raw bytes.

A request is ``{"request": NAME, "arguments": {...}}``; the answer ``{"ok": true, "result": {...}}``, for streams
``{"ok": true}`` and then one object per line, or ``{"ok": false, "error": {"code", "message", "fix"}}``.
"""

import asyncio
import json
import logging
import os
import socket
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from aoabridge.adapters.socket_pipe import SocketPipe

__all__ = ["Action", "Arguments", "ControlServer", "Handler", "Link", "Query", "RequestError", "Stream"]

MAX_LINE_BYTES = 64 * 1024  # no request is longer; a client must not fill our memory
MAX_CLIENTS = 8  # an operator has a few terminals; more is a defect or an attack
REQUEST_S = 10.0  # a client that says nothing must not hold one of the few places
DISMISS_S = 1.0  # long enough to read a refusal
_CREDENTIALS = struct.Struct("3i")

Arguments: TypeAlias = dict[str, Any]
log = logging.getLogger(__name__)


class RequestError(Exception):
    """A request that is refused; ``code`` is bad-request, forbidden, not-found, unavailable or busy."""

    def __init__(self, code: str, message: str, fix: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.fix = fix


class Query(msgspec.Struct, frozen=True):
    """Answered at once, for everybody."""

    answer: Callable[[Arguments], Mapping[str, object]]


class Action(msgspec.Struct, frozen=True):
    """Changes something: only for root and the daemon's own user."""

    perform: Callable[[Arguments], Mapping[str, object]]


class Stream(msgspec.Struct, frozen=True):
    """Events until one side ends it. A slow reader is waited for, so the iterator has to drop what is old."""

    events: Callable[[Arguments], AsyncIterator[Mapping[str, object]]]


class Link(msgspec.Struct, frozen=True):
    """Turns the connection into a phone link, for root and the daemon's own user.

    ``check`` may refuse by RequestError; ``attach`` then gets the pipe, after the answer has left.
    """

    check: Callable[[Arguments], None]
    attach: Callable[[Arguments, SocketPipe], None]


Handler: TypeAlias = Query | Action | Stream | Link


class ControlServer:
    """Listens on ``path`` (mode 0666: reading is open to all) and calls the handlers on the event loop."""

    def __init__(self, path: Path, handlers: Mapping[str, Handler]) -> None:
        self.path = path
        self.handlers = handlers
        self.clients: set[_Client] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Bind; a socket left by an earlier run is replaced (the caller holds the lock). Raises OSError."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            listener.bind(str(self.path))
            self.path.chmod(0o666)
        except OSError:
            listener.close()
            raise
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: _Client(self), sock=listener)

    async def close(self) -> None:
        """End every connection and remove the socket."""
        if self._server is None:
            return
        self._server.close()
        for client in list(self.clients):
            client.close()
        self._server = None
        self.path.unlink(missing_ok=True)
        await asyncio.sleep(0)  # lets the transports say goodbye


class _Client(asyncio.Protocol):
    """One connection: requests one after the other, until one of them takes the connection over."""

    def __init__(self, server: ControlServer) -> None:
        self._server = server
        self._pending = b""
        self._transport: asyncio.Transport | None = None
        self._stream: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._patience: asyncio.TimerHandle | None = None
        self._deaf = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if len(self._server.clients) >= MAX_CLIENTS:
            self._dismiss(RequestError("busy", f"{MAX_CLIENTS} clients are connected already"))
            return
        self._server.clients.add(self)
        self._await_request()

    def data_received(self, data: bytes) -> None:
        if self._deaf or self._stream is not None:
            return  # a stream takes no further requests
        self._pending += data
        while b"\n" in self._pending and self._stream is None and self._transport is not None:
            line, _, self._pending = self._pending.partition(b"\n")
            self._request(line)
        if len(self._pending) > MAX_LINE_BYTES and self._transport is not None:
            self._dismiss(RequestError("bad-request", f"a request is longer than {MAX_LINE_BYTES} bytes"))

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            log.debug("a client of the control socket was lost: %s", exc)
        self._server.clients.discard(self)
        self._transport = None
        self._writable.set()
        if self._stream is not None:
            self._stream.cancel()
        self._rest()

    def close(self) -> None:
        """End the connection; what was written still leaves."""
        self._server.clients.discard(self)
        self._rest()
        if self._stream is not None:
            self._stream.cancel()
        if self._transport is not None:
            self._transport.close()

    def _dismiss(self, error: RequestError) -> None:
        """Refuse, and go on reading for a moment: closing over unread bytes would destroy the answer on its way."""
        self._refuse(error)
        self._deaf, self._pending = True, b""
        self._rest()
        self._patience = asyncio.get_running_loop().call_later(DISMISS_S, self.close)

    def _await_request(self) -> None:
        self._rest()
        self._patience = asyncio.get_running_loop().call_later(REQUEST_S, self.close)

    def _rest(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _request(self, line: bytes) -> None:
        try:
            name, arguments = _parsed(line)
            self._serve(name, arguments)
        except RequestError as error:
            self._refuse(error)
        except Exception:  # the edge: a handler's defect ends one request, not the daemon
            log.exception("a request of the control socket failed")
            self._refuse(RequestError("internal", "the request failed, see aoabridge log"))

    def _serve(self, name: str, arguments: Arguments) -> None:
        handler = self._server.handlers.get(name)
        if handler is None:
            raise RequestError("not-found", f"this daemon knows no request {name!r}")
        self._rest()
        if isinstance(handler, Query):
            self._write({"ok": True, "result": handler.answer(arguments)})
            self._await_request()
        elif isinstance(handler, Stream):
            events = handler.events(arguments)
            self._write({"ok": True})
            self._stream = asyncio.get_running_loop().create_task(self._pass_on(events))
        else:
            self._demand_right()
            if isinstance(handler, Action):
                self._write({"ok": True, "result": handler.perform(arguments)})
                self._await_request()
            else:
                handler.check(arguments)
                self._hand_over(handler, arguments)

    def _demand_right(self) -> None:
        """Refuse peers that are neither root nor the daemon's own user."""
        assert self._transport is not None
        peer = self._transport.get_extra_info("socket")
        _, uid, _ = _CREDENTIALS.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        if uid not in (0, os.geteuid()):
            raise RequestError("forbidden", "only root and the daemon's own user may do this", "use sudo")

    async def _pass_on(self, events: AsyncIterator[Mapping[str, object]]) -> None:
        try:
            async for event in events:
                self._write(event)
                await self._writable.wait()
        except RequestError as error:
            self._refuse(error)
        except Exception:  # the edge: one client's stream must not end the daemon
            log.exception("a stream of the control socket failed")
        finally:
            closing = getattr(events, "aclose", None)
            if closing is not None:
                await closing()
            if self._transport is not None:
                self._transport.close()

    def _hand_over(self, handler: Link, arguments: Arguments) -> None:
        """Give the connection to a link; the transport lets go of its own descriptor only."""
        assert self._transport is not None
        self._transport.pause_reading()
        connection: socket.socket = self._transport.get_extra_info("socket").dup()
        self._write({"ok": True})
        pending, self._pending = self._pending, b""
        self._server.clients.discard(self)
        self._transport.close()
        self._transport = None
        handler.attach(arguments, SocketPipe(connection, pending))

    def _write(self, value: Mapping[str, object]) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(msgspec.json.encode(value) + b"\n")

    def _refuse(self, error: RequestError) -> None:
        shown = {"code": error.code, "message": str(error), "fix": error.fix}
        self._write({"ok": False, "error": shown})


def _parsed(line: bytes) -> tuple[str, Arguments]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise RequestError("bad-request", "a request is one JSON object per line") from None
    name = value.get("request") if isinstance(value, dict) else None
    arguments = value.get("arguments", {}) if isinstance(value, dict) else None
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise RequestError("bad-request", 'a request is {"request": NAME, "arguments": {...}}')
    return name, arguments
