import asyncio
import threading
from typing import Any

import pytest

from aoabridge.daemon.attach import MAX_ATTEMPTS, AttachThreads
from aoabridge.errors import UsbError


def test_results_and_errors_come_on_the_loop() -> None:
    async def body() -> None:
        threads = AttachThreads(asyncio.get_running_loop())
        results: list[Any] = []
        where: list[int] = []

        def fail() -> int:
            raise UsbError("no", errno=13, kind="ACCESS", step="open", port="1-1")

        threads.attempt("1-1", lambda: 7, results.append)
        threads.attempt("1-1", fail, lambda result: (results.append(result), where.append(threading.get_ident())))
        assert await threads.wait_idle(5.0) == []
        assert sorted(type(r).__name__ for r in results) == ["UsbError", "int"]
        assert where == [threading.get_ident()]

    asyncio.run(body())


def test_attempts_queue_and_ends_do_not() -> None:
    async def body() -> None:
        threads = AttachThreads(asyncio.get_running_loop())
        gate = threading.Event()
        done: list[str] = []
        for number in range(MAX_ATTEMPTS + 2):
            threads.attempt(str(number), gate.wait, lambda _r, n=number: done.append(f"attempt {n}"))
        threads.at_once("end", lambda: None, lambda _r: done.append("end"))
        async with asyncio.timeout(5):
            while not done:
                await asyncio.sleep(0.005)
        assert done == ["end"]
        assert sum(t.name.startswith("usb-attach:") for t in threading.enumerate()) == MAX_ATTEMPTS
        assert len(await threads.wait_idle(0.01)) == MAX_ATTEMPTS
        gate.set()
        assert await threads.wait_idle(5.0) == []
        assert len(done) == MAX_ATTEMPTS + 3

    asyncio.run(body())


def test_waiting_attempts_can_be_dropped() -> None:
    async def body() -> None:
        threads = AttachThreads(asyncio.get_running_loop())
        gate = threading.Event()
        done: list[bool] = []
        for _ in range(MAX_ATTEMPTS + 5):
            threads.attempt("1-1", lambda: gate.wait(5), done.append)
        threads.drop_waiting()
        gate.set()
        assert await threads.wait_idle(5.0) == []
        assert len(done) == MAX_ATTEMPTS

    asyncio.run(body())


def test_a_defect_is_an_answer_too(caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        threads = AttachThreads(asyncio.get_running_loop())
        results: list[Any] = []
        threads.attempt("1-1", lambda: 1 // 0, results.append)
        assert await threads.wait_idle(5.0) == []
        assert results[0].kind == "DEFECT"

    asyncio.run(body())
    assert any(record.exc_info for record in caplog.records)


def test_a_taker_that_fails_holds_up_no_other_attempt() -> None:
    async def body() -> None:
        loop = asyncio.get_running_loop()
        faults: list[Any] = []
        loop.set_exception_handler(lambda _loop, context: faults.append(context["exception"]))
        threads = AttachThreads(loop)
        done: list[int] = []

        def fail(_result: Any) -> None:
            raise ValueError("a bug")

        for _ in range(MAX_ATTEMPTS):
            threads.attempt("1-1", lambda: 1, fail)
        threads.attempt("1-2", lambda: 2, done.append)
        async with asyncio.timeout(5):
            while not done:
                await asyncio.sleep(0.005)
        assert await threads.wait_idle(5.0) == []
        assert len(faults) == MAX_ATTEMPTS

    asyncio.run(body())
