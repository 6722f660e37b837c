"""The status page's content, and its server's life: a taken port is an issue, never a failed start."""

import asyncio
import contextlib
import importlib.resources
import logging
import socket
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from aoabridge.adapters.holders import port_holder
from aoabridge.adapters.log_ring import LogRing
from aoabridge.adapters.web import WebServer, WebSettings
from aoabridge.config import Config
from aoabridge.daemon.observer import Observer
from aoabridge.status.page import body, page, title

__all__ = ["PageContent", "WebHost"]

RETRY_S = 10.0
_KINDS: Final = {
    "app.js": "text/javascript; charset=utf-8",
    "app.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_SECRET_KEYS: Final = ("token_file",)
_SERIAL = "serial:"

log = logging.getLogger("aoabridge.web")


class PageContent:
    """Renders the observer's snapshot; one rendering serves every page that asks within the same moment."""

    SHARED_S = 0.2

    def __init__(self, observer: Observer, healthy: Callable[[], bool], ring: LogRing | None) -> None:
        self._observer = observer
        self._healthy = healthy
        self._ring = ring
        self._snapshot: dict[str, Any] = {}
        self._view: dict[str, Any] = {}
        self._body = ""
        self._at = float("-inf")
        files = importlib.resources.files("aoabridge") / "web"
        self._assets = {name: (kind, (files / name).read_bytes()) for name, kind in _KINDS.items()}

    def status(self) -> dict[str, Any]:
        """The snapshot."""
        self._refresh()
        return self._snapshot

    def page(self) -> str:
        """The whole document."""
        self._refresh()
        return page(self._view)

    def body(self) -> str:
        """The part of it that changes."""
        self._refresh()
        return self._body

    def title(self) -> str:
        """The document's title."""
        return title(self.status())

    def logs(self, count: int, level: str, since: int) -> dict[str, Any]:
        """Log lines from memory."""
        if self._ring is None:
            return {"lines": [], "next": 0}
        lines, following = self._ring.lines(count=count, level=level, since=since)
        return {"lines": lines, "next": following}

    def config(self) -> dict[str, Any]:
        """The effective configuration without secrets, where each key is from, and why a file was refused."""
        observer = self._observer
        values = msgspec.to_builtins(observer.config)
        for key in _SECRET_KEYS:
            values["web"].pop(key, None)
        values["phone"]["serial"] = _hidden(values["phone"]["serial"])
        for device in values["device"]:
            device["serial"] = _hidden(device["serial"])
        values["devices"]["deny"] = [_hidden_pattern(pattern) for pattern in values["devices"]["deny"]]
        view = observer.config_view
        return {
            "state": view.state,
            "path": view.path,
            "restart_needed": list(view.restart_needed),
            "errors": list(view.errors),
            "effective": values,
            "origins": {key: origin for key, origin in observer.origins.items() if not key.endswith(_SECRET_KEYS)},
        }

    def healthy(self) -> bool:
        """True while the watchdog is fed."""
        return self._healthy()

    def asset(self, name: str) -> tuple[str, bytes] | None:
        """Content type and bytes of a static file."""
        return self._assets.get(name)

    def _refresh(self) -> None:
        now = time.monotonic()
        if now - self._at >= self.SHARED_S:
            self._at = now
            self._snapshot = self._observer.snapshot(now)
            self._view = self._with_history(self._snapshot, now)
            self._body = body(self._view)

    def _with_history(self, snapshot: dict[str, Any], now: float) -> dict[str, Any]:
        """What only the page shows: the last minute of each phone, and the topics that phones get."""
        phones = [{**phone, "flow": self._observer.flow(phone["name"])} for phone in snapshot["phones"]]
        return {**snapshot, "phones": phones, "watched": self._observer.watched(now)}


class WebHost:
    """Keeps the page's server open."""

    def __init__(self, config: Config, content: PageContent, observer: Observer) -> None:
        web = config.web
        self.server = WebServer(WebSettings(web.port, web.bind, web.allow_from, _names(config)), content)
        self._observer = observer
        self._port = config.web.port
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Open the server in the background."""
        self._task = asyncio.get_running_loop().create_task(self._keep_open())

    def reload(self, config: Config) -> None:
        """Take over who may ask and under which names."""
        self.server.rules.change(config.web.allow_from, _names(config))

    async def stop(self) -> None:
        """Close the pages and the port."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self.server.close()

    async def _keep_open(self) -> None:
        told = False
        while True:
            try:
                await self.server.start()
            except OSError as error:
                if not told:
                    told = True
                    log.warning("status page: port %d: %s", self._port, error, extra={"code": "web-bind-failed"})
                holder = await asyncio.to_thread(port_holder, self._port, "tcp") or "the other program"
                data = {"port": self._port, "process": holder}
                self._observer.board.set("web-bind-failed", "web", active=True, now=time.monotonic(), data=data)
                await asyncio.sleep(RETRY_S)
            else:
                self._observer.board.clear("web-bind-failed", time.monotonic())
                log.info("status page on port %d", self.server.port)
                return


def _names(config: Config) -> tuple[str, ...]:
    name = socket.gethostname()
    return (name, f"{name}.local", *config.web.hosts)


def _hidden(serial: str) -> str:
    return serial and "…" + serial[-4:]


def _hidden_pattern(pattern: str) -> str:
    return _SERIAL + _hidden(pattern.removeprefix(_SERIAL)) if pattern.startswith(_SERIAL) else pattern
