"""A control server with canned answers, on a thread of its own: what the command line talks to in its tests."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aoabridge.adapters.control import Action, Arguments, ControlServer, Handler, Query, RequestError, Stream

DEADLINE_S = 10.0


class FakeDaemon:
    """Answers from plain data: ``results`` by request, ``events`` by stream; notes the arguments it was sent."""

    def __init__(self, path: Path, results: Mapping[str, Any], events: Mapping[str, list[Any]], *, hold: bool) -> None:
        self.path = path
        self.asked: list[tuple[str, Arguments]] = []
        self._events = events
        self._hold = hold
        handlers: dict[str, Handler] = {name: Query(self._answer(name, value)) for name, value in results.items()}
        handlers |= {name: Action(self._answer(name, {})) for name in ("record-start", "record-stop")}
        handlers |= {name: Stream(self._streamed(name)) for name in events}
        self.server = ControlServer(path, handlers)

    def _answer(self, name: str, value: Any) -> Callable[[Arguments], Mapping[str, object]]:
        def answer(arguments: Arguments) -> Mapping[str, object]:
            self.asked.append((name, arguments))
            if isinstance(value, RequestError):
                raise value
            return dict(value)

        return answer

    def _streamed(self, name: str) -> Callable[[Arguments], AsyncIterator[Mapping[str, object]]]:
        async def events(arguments: Arguments) -> AsyncIterator[Mapping[str, object]]:
            self.asked.append((name, arguments))
            for event in self._events[name]:
                yield event
            if self._hold:
                await asyncio.Event().wait()

        return events


@contextmanager
def fake_daemon(
    path: Path,
    results: Mapping[str, Any] | None = None,
    events: Mapping[str, list[Any]] | None = None,
    *,
    hold: bool = False,
) -> Iterator[FakeDaemon]:
    """A running daemon; ``hold`` = its streams stay open after their last event."""
    daemon = FakeDaemon(path, results or {}, events or {}, hold=hold)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(daemon.server.start(), loop).result(DEADLINE_S)
        yield daemon
        asyncio.run_coroutine_threadsafe(daemon.server.close(), loop).result(DEADLINE_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(DEADLINE_S)
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
