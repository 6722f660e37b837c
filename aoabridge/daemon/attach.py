"""Short-lived threads for the blocking calls that open, switch, reset and close phones."""

import asyncio
import contextlib
import functools
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from aoabridge.errors import UsbError

__all__ = ["AttachThreads"]

_log = logging.getLogger(__name__)

MAX_ATTEMPTS: Final = 4  # at once; the next ones wait, so that many dead phones cannot cost many threads

_Result = TypeVar("_Result")


class _Job(Generic[_Result]):
    """One call in a thread of its own, and what takes its result on the loop."""

    def __init__(self, port: str, call: Callable[[], _Result], done: Callable[[_Result | UsbError], None]) -> None:
        self.port = port
        self.deliver: Callable[[], None] = lambda: None
        self._call = call
        self._done = done

    def run(self) -> None:
        """In the thread: calls, and leaves in ``deliver`` what is to be done on the loop."""
        result: _Result | UsbError
        try:
            result = self._call()
        except UsbError as error:
            result = error
        except Exception as error:  # noqa: BLE001 (top of a thread: the port would wait for ever)
            _log.exception("defect in an attach thread, port %s", self.port)
            result = UsbError(str(error), errno=None, kind="DEFECT", step="attach", port=self.port)
        self.deliver = functools.partial(self._done, result)


class AttachThreads:
    """Runs each call in a thread and hands the result, or its UsbError, to the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], None]] = deque()
        self._attempts = 0
        self._threads: set[threading.Thread] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    def attempt(self, port: str, call: Callable[[], _Result], done: Callable[[_Result | UsbError], None]) -> None:
        """A call that may take seconds; at most four at once, the others queue."""
        job = _Job(port, call, done)
        self._waiting.append(lambda: self._spawn(job, limited=True))
        self._next()

    def at_once(self, port: str, call: Callable[[], _Result], done: Callable[[_Result | UsbError], None]) -> None:
        """A call that must not wait for others: the end of a link."""
        self._spawn(_Job(port, call, done), limited=False)

    def drop_waiting(self) -> None:
        """Forgets the attempts that have not begun."""
        self._waiting.clear()

    async def wait_idle(self, timeout: float) -> list[str]:
        """Waits for every thread; the names of those that still run after ``timeout`` seconds."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._idle.wait(), timeout)
        return sorted(thread.name for thread in self._threads)

    def _next(self) -> None:
        while self._waiting and self._attempts < MAX_ATTEMPTS:
            self._attempts += 1
            self._waiting.popleft()()

    def _spawn(self, job: "_Job[_Result]", *, limited: bool) -> None:
        def body() -> None:
            job.run()
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody wants the result any more
                self._loop.call_soon_threadsafe(self._finish, thread, job, limited)

        thread = threading.Thread(target=body, name=f"usb-attach:{job.port}", daemon=True)
        self._threads.add(thread)
        self._idle.clear()
        thread.start()

    def _finish(self, thread: threading.Thread, job: "_Job[_Result]", limited: bool) -> None:
        thread.join()  # it has nothing left to do
        self._threads.discard(thread)
        self._attempts -= limited
        try:
            job.deliver()
        finally:  # a defect of the taker must not hold up other ports
            self._next()
            if not self._threads:
                self._idle.set()
