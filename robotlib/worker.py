"""Where slow work runs: one job at a time beside the robot loop, or inline in tests and replays."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["InlineWorker", "JobResult", "ReplayWorker", "ThreadWorker", "Worker"]


@dataclass(frozen=True, slots=True)
class JobResult:
    """What a job returned, or the exception that ended it."""

    value: Any = None
    error: Exception | None = None


class Worker(Protocol):
    """Jobs are numbered from 1 in the order of `submit`."""

    @abstractmethod
    def submit(self, job: Callable[[], Any]) -> int:
        """Queue a job and return its number."""

    @abstractmethod
    def take_done(self) -> list[int]:
        """Remove and return the numbers of the jobs that are done."""

    @abstractmethod
    def take(self, number: int) -> JobResult:
        """Remove and return the result of a done job; KeyError if there is none."""

    def drop(self, number: int) -> None:
        """Forget a job: not begun if it still waits, its result thrown away otherwise."""

    def close(self) -> None:
        """Wait for the running job and end."""


def _run(job: Callable[[], Any]) -> JobResult:
    try:
        return JobResult(value=job())
    except Exception as error:  # noqa: BLE001  (a job runs team code and path libraries; its end is a result)
        return JobResult(error=error)


class InlineWorker:
    """Runs every job within `submit`."""

    def __init__(self) -> None:
        self._count = 0
        self._done: list[int] = []
        self._results: dict[int, JobResult] = {}

    def submit(self, job: Callable[[], Any]) -> int:
        """Run the job now."""
        self._count += 1
        self._results[self._count] = _run(job)
        self._done.append(self._count)
        return self._count

    def take_done(self) -> list[int]:
        """As in Worker."""
        done, self._done = self._done, []
        return done

    def take(self, number: int) -> JobResult:
        """As in Worker."""
        return self._results.pop(number)

    def drop(self, number: int) -> None:
        """As in Worker."""
        self._results.pop(number, None)

    def close(self) -> None:
        """Nothing to end."""


class ReplayWorker(InlineWorker):
    """For replays: results count in the loop that the recorded inputs name, not before."""

    def take_done(self) -> list[int]:
        """Nothing: the inputs know."""
        return []


class ThreadWorker:
    """One thread, started with the first job and ended when idle.

    Not a daemon thread: one inside the native math library at interpreter exit aborts the process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[tuple[int, Callable[[], Any]]] = deque()
        self._dropped: set[int] = set()
        self._running = 0
        self._done: list[int] = []
        self._results: dict[int, JobResult] = {}
        self._thread: threading.Thread | None = None
        self._count = 0
        self._closed = False

    def submit(self, job: Callable[[], Any]) -> int:
        """As in Worker; RuntimeError after `close`."""
        with self._lock:
            if self._closed:
                raise RuntimeError("the worker is closed")
            self._count += 1
            self._waiting.append((self._count, job))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="robotlib-worker")
                self._thread.start()
            return self._count

    def take_done(self) -> list[int]:
        """As in Worker."""
        if not self._done:  # the usual loop: no lock
            return []
        with self._lock:
            done, self._done = self._done, []
        return done

    def take(self, number: int) -> JobResult:
        """As in Worker."""
        with self._lock:
            return self._results.pop(number)

    def drop(self, number: int) -> None:
        """As in Worker."""
        with self._lock:
            self._waiting = deque(item for item in self._waiting if item[0] != number)
            self._results.pop(number, None)
            if self._running == number:
                self._dropped.add(number)

    def close(self) -> None:
        """As in Worker; jobs that have not begun are forgotten."""
        with self._lock:
            self._closed = True
            self._waiting.clear()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                self._running, job = self._waiting.popleft()
            result = _run(job)
            with self._lock:
                if self._running in self._dropped:
                    self._dropped.discard(self._running)
                else:
                    self._results[self._running] = result
                    self._done.append(self._running)
                self._running = 0
