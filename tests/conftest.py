"""For every test module: no thread of it may stay behind, the interpreter would wait for it at its end."""

import threading
import time
from collections.abc import Iterator

import pytest

GONE_S = 5.0
OF_EXECUTORS = ("asyncio_", "ThreadPoolExecutor")  # these end with the interpreter


@pytest.fixture(autouse=True, scope="module")
def _no_thread_stays() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    until = time.monotonic() + GONE_S
    while (left := _left(before)) and time.monotonic() < until:
        time.sleep(0.01)
    assert not left, f"threads left behind: {left}"


def _left(before: set[threading.Thread]) -> list[str]:
    return [
        thread.name
        for thread in set(threading.enumerate()) - before
        if not thread.daemon and not thread.name.startswith(OF_EXECUTORS)
    ]
