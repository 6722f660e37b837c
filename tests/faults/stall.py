"""How long the machine held up the processes that are judged: a time limit of theirs grows by that much.

Every so often the kernel is asked how long the threads of each process were ready to run and had to wait for a core
(``/proc/*/task/*/schedstat``); the waits of processes add up, since a message passes through all of them.
"""

import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

__all__ = ["StallWatch"]

PERIOD_S = 0.1
MIN_SHARE = 0.02  # below that a machine is idle, and its waits are those of every wake-up


class StallWatch:
    """``told`` hears each (end, seconds) of the time in which the processes waited, from a thread of its own."""

    def __init__(self, pids: Callable[[], Iterable[int]], told: Callable[[float, float], None]) -> None:
        self._pids = pids
        self._told = told
        self._waited_ns: dict[tuple[int, str], int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        before = time.monotonic()
        while not self._ended.wait(PERIOD_S):
            now = time.monotonic()
            late_s = now - before - PERIOD_S  # our own wait
            stall_s = min(now - before, late_s + sum(self._waited_s(pid) for pid in self._pids()))
            if stall_s > MIN_SHARE * (now - before):
                self._told(now, stall_s)
            before = now

    def _waited_s(self, pid: int) -> float:
        """What the thread that waited most has waited since the last call."""
        longest_ns = 0
        for task in Path(f"/proc/{pid}/task").glob("*"):
            try:
                waited_ns = int((task / "schedstat").read_text().split()[1])
            except (OSError, IndexError):  # it has ended
                continue
            longest_ns = max(longest_ns, waited_ns - self._waited_ns.get((pid, task.name), waited_ns))
            self._waited_ns[pid, task.name] = waited_ns
        return longest_ns / 1e9
