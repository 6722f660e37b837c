"""What the NetworkTables adapter costs: updates from a robot in another process, and puts.

Run as a program it prints the rows; with ``robot PORT`` it is that robot: 200 topics, a quarter of them Pose2d.
"""

import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import ntcore

from aoabridge.adapters.nt import NtClient, NtSettings, NtTarget
from aoabridge.adapters.nt_server import BenchServer
from aoabridge.values import Put, PutOp, Update

TOPICS: Final = 200
OFFERED_HZ: Final = 100_000
ROUND_S: Final = 0.005
SECONDS: Final = 3.0
PUTS: Final = 500
CORE_US: Final = 10.0  # 100 000 updates/s on one core
MISSING_PERCENT: Final = 5.0  # what the robot process itself may fall short
P50_MS: Final = 1.0
P99_MS: Final = 3.0

Row = tuple[str, float, float | None, str]


def rows() -> list[Row]:
    """Measure everything once: about 12 seconds."""
    return [*update_rows(), *put_rows()]


def update_rows() -> list[Row]:
    with robot_process() as port, client(port) as (nt, woken):
        taken = 0
        turn_until(nt, woken, time.monotonic() + 1.0)
        cpu_s, began = time.process_time(), time.monotonic()
        while time.monotonic() < began + SECONDS:
            woken.wait(0.1)
            woken.clear()
            taken += sum(isinstance(event, Update) for event in nt.take_events())
        seconds = time.monotonic() - began
        cpu_s = time.process_time() - cpu_s
        merged = nt.counters["nt_merged"]
    return [
        ("updates delivered, 100 000/s offered", taken / seconds, None, "1/s"),
        (
            "updates neither delivered nor merged",
            100.0 * (1 - (taken + merged) / seconds / OFFERED_HZ),
            MISSING_PERCENT,
            "%",
        ),
        ("process CPU per update, ntcore's threads included", cpu_s * 1e6 / (taken + merged), CORE_US, "us"),
    ]


def put_rows() -> list[Row]:
    server = BenchServer()
    port = server.start()
    try:
        with client(port) as (nt, woken):
            turn_until(nt, woken, time.monotonic() + 1.0)
            latencies_ms = sorted(put_latency_ms(nt, woken, number) for number in range(PUTS))
    finally:
        server.stop()
    return [
        ("put: offer to flush returned, p50", statistics.median(latencies_ms), P50_MS, "ms"),
        ("put: offer to flush returned, p99", latencies_ms[len(latencies_ms) * 99 // 100], P99_MS, "ms"),
    ]


def put_latency_ms(nt: NtClient, woken: threading.Event, number: int) -> float:
    """One put of a hundred a second, as the loop of the daemon makes it."""
    turn_until(nt, woken, time.monotonic() + 0.01)
    began = time.perf_counter()
    nt.offer_puts([Put(number, 1, PutOp.SET, "/bench/put", "int", number)])
    while not nt.take_put_results():
        again = nt.turn(time.monotonic())
        if again is not None:
            time.sleep(max(0.0, again - time.monotonic()))
    return (time.perf_counter() - began) * 1e3


def turn_until(nt: NtClient, woken: threading.Event, end: float) -> None:
    while (now := time.monotonic()) < end:
        nt.take_events()
        nt.turn(now)
        nt.take_put_results()
        woken.wait(end - now)
        woken.clear()


@contextmanager
def client(port: int) -> Iterator[tuple[NtClient, threading.Event]]:
    woken = threading.Event()
    nt = NtClient(NtSettings("aoabridge-bench", NtTarget(servers=("127.0.0.1",), port=port)), wake=woken.set)
    nt.open()
    try:
        deadline = time.monotonic() + 10.0
        while not nt.online:
            if time.monotonic() > deadline:
                raise TimeoutError("the bench's client found no server")
            woken.wait(0.1)
            nt.take_events()
        yield nt, woken
    finally:
        nt.close()


@contextmanager
def robot_process() -> Iterator[int]:
    robot = subprocess.Popen(
        [sys.executable, __file__, "robot"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert robot.stdin is not None
    assert robot.stdout is not None
    try:
        yield int(robot.stdout.readline())
    finally:
        robot.stdin.close()
        robot.wait()
        robot.stdout.close()


def be_robot() -> None:
    """Set all topics in turn at the offered rate until standard input ends."""
    server = BenchServer()
    print(server.start(), flush=True)
    instance = server._instance
    assert instance is not None
    options = ntcore.PubSubOptions(sendAll=True, keepDuplicates=True)
    setters = []
    for number in range(TOPICS):
        if number % 4:
            setters.append(instance.getTopic(f"/bench/d{number}").genericPublish("double", options).setDouble)
        else:
            setters.append(instance.getTopic(f"/bench/p{number}").genericPublish("struct:Pose2d", options).setRaw)
    values = [bytes(24) if number % 4 == 0 else 0.5 for number in range(TOPICS)]
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    per_round = round(OFFERED_HZ * ROUND_S)
    next_topic, next_round = 0, time.monotonic()
    while not ended.wait(max(0.0, next_round - time.monotonic())):
        for _ in range(per_round):
            setters[next_topic](values[next_topic])  # type: ignore[arg-type]  # each setter gets its own kind
            next_topic = (next_topic + 1) % TOPICS
        instance.flushLocal()
        instance.flush()
        next_round += ROUND_S
    setters.clear()
    server.stop()


def main() -> None:
    if sys.argv[1:] == ["robot"]:
        be_robot()
        return
    for name, measured, limit, unit in rows():
        print(f"{name:55} {measured:12.3f} {'' if limit is None else limit:>10} {unit}")


if __name__ == "__main__":
    main()
