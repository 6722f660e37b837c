"""``aoabridge replay``: the values of a WPILOG file, published again in their own time."""

import argparse
import asyncio
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from aoabridge.adapters.nt import NtClient, NtSettings, NtTarget
from aoabridge.adapters.nt_server import BenchServer
from aoabridge.adapters.recorder import RecordedValue, read_log
from aoabridge.bridge.policy import compile_patterns
from aoabridge.phone.keys import key_of
from aoabridge.values import Publication

__all__ = ["run_replay"]

ENTRY_PREFIX = "NT:"
COMMAND_GLOBS = ("/RoboRoute/*", "/SmartDashboard/*")  # old commands must not move a robot
TICK_S = 1.0
CONNECT_S = 10.0
LINGER_S = 3.0  # our own server stays this long, so that readers get the last values

Show = Callable[[dict[str, Any]], None]


class _Target(Protocol):
    address: str

    async def publish(self, item: Publication) -> None: ...

    async def close(self) -> None: ...


class _OwnServer:
    """A server of our own on this machine."""

    def __init__(self, port: int) -> None:
        self._server = BenchServer()
        self.address = f"127.0.0.1:{self._server.start('127.0.0.1', port)}"

    async def publish(self, item: Publication) -> None:
        self._server.publish([item])

    async def close(self) -> None:
        self._server.stop()


class _Client:
    """A client of another server."""

    def __init__(self, server: str) -> None:
        self.address = server
        settings = NtSettings(identity="aoabridge-replay", target=NtTarget(servers=(server,)))
        self._client = NtClient(settings, wake=lambda: None)  # nothing is read: connect() polls
        self._client.open()

    async def connect(self) -> bool:
        """Wait for the server; False if it does not answer."""
        deadline = time.monotonic() + CONNECT_S
        while self._client.address is None and time.monotonic() < deadline:
            self._client.take_events()
            await asyncio.sleep(0.05)
        return self._client.address is not None

    async def publish(self, item: Publication) -> None:
        self._client.publish([item])
        while (again := self._client.turn(time.monotonic())) is not None:
            await asyncio.sleep(max(0.0, again - time.monotonic()))

    async def close(self) -> None:
        self._client.close()


class _Player:
    """One pass over the file at a time."""

    def __init__(self, args: argparse.Namespace, target: _Target, show: Show) -> None:
        self._path = Path(args.file)
        self._speed = float(args.speed)
        self._loop = bool(args.loop)
        self._target = target
        self._show = show
        self._wanted = compile_patterns(args.topics) if args.topics else None
        self._unwanted = compile_patterns(COMMAND_GLOBS) if args.server and not args.topics else None
        self._published = 0
        self._topics: set[str] = set()
        self._position_s = 0.0

    async def play(self, stopped: asyncio.Event) -> dict[str, Any]:
        """Publish until the end of the file (with ``loop``: until stopped); returns the summary."""
        told_at = time.monotonic()
        again = True
        while again and not stopped.is_set():
            began, first_us = time.monotonic(), None
            for value in self._values():
                first_us = value.time_us if first_us is None else first_us
                self._position_s = (value.time_us - first_us) / 1e6
                wait_s = began + self._position_s / self._speed - time.monotonic()
                if wait_s > 0:
                    await _wait(stopped, wait_s)
                if stopped.is_set():
                    break
                await self._publish(value)
                if time.monotonic() - told_at >= TICK_S:
                    told_at = time.monotonic()
                    self._show(self._figures("tick"))
            again = self._loop
        return self._figures("summary")

    async def _publish(self, value: RecordedValue) -> None:
        topic = value.entry.removeprefix(ENTRY_PREFIX)
        self._topics.add(topic)
        self._published += 1
        await self._target.publish(Publication(topic, value.type, value.value, keep_all=True))

    def _values(self) -> Iterator[RecordedValue]:
        for value in read_log(self._path):
            key = key_of(value.entry.removeprefix(ENTRY_PREFIX))
            if not value.entry.startswith(ENTRY_PREFIX):
                continue
            if (self._wanted is None or self._wanted.match(key)) and not (self._unwanted and self._unwanted.match(key)):
                yield value

    def _figures(self, kind: str) -> dict[str, Any]:
        return {
            "type": kind,
            "file": str(self._path),
            "address": self._target.address,
            "position_s": round(self._position_s, 1),
            "published": self._published,
            "topics": len(self._topics),
        }


async def _wait(stopped: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(stopped.wait(), seconds)
    except TimeoutError:
        return


def run_replay(args: argparse.Namespace, show: Show) -> int:
    """Play until the end or Ctrl-C; returns 0, or 1 if the server does not answer or nothing was published."""
    return asyncio.run(_main(args, show))


async def _main(args: argparse.Namespace, show: Show) -> int:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    target: _OwnServer | _Client
    if args.server is None:
        target = _OwnServer(args.listen)
    else:
        target = _Client(args.server)
        if not await target.connect():
            await target.close()
            return 1
    try:
        summary = await _Player(args, target, show).play(stopped)
        if args.server is None and not stopped.is_set():
            await _wait(stopped, LINGER_S)
    finally:
        await target.close()
    show({**summary, "ok": bool(summary["published"])})
    return 0 if summary["published"] else 1
