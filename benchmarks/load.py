"""What the bridge carries over the in-process phone: many topics, dear transfers, many phones, and what it costs."""

import time
from collections.abc import Mapping, Sequence
from typing import Final

from benchmarks.endtoend import ages_ms, stream, subscribe
from benchmarks.floor import FloorRelay
from benchmarks.phone import Arrival, BenchPipe
from benchmarks.robot import robot
from benchmarks.running import Row, percentile, running

SECONDS: Final = 2.5
SETTLE_S: Final = 0.3
SPAN_S: Final = 0.5  # one look of the bridge at itself falls into each
LATE_MS: Final = 20.0
GROWTH: Final = 1.15
GROWTH_RATE: Final = 5_000.0
GROWTH_ROUND_S: Final = 0.02
POSES: Final = 0.2  # a share that 10 topics can have, too
SWEEP_SECONDS: Final = 1.5
SWEEP: Final = ((1_000, 0.0), (5_000, 0.0002), (15_000, 0.0), (15_000, 0.002), (30_000, 0.0002))


def rows() -> list[Row]:
    """Measure everything once: about 90 seconds."""
    return [*unflushed_rows(), *transfer_rows(), *cpu_rows(), *sweep_rows(), *topic_growth_rows(), *phone_growth_rows()]


def unflushed_rows() -> list[Row]:
    """A robot that never flushes: 300 topics at 50 Hz reach us in bundles of five."""
    found: list[Row] = []
    with robot() as far:
        far.publish(300)
        for every_sample in (True, False):
            pipe = BenchPipe()
            with running(far.port, [pipe]):
                subscribe(pipe, 300, all=every_sample)
                pipe.clear()
                began = time.monotonic()
                far.stream(15_000, 0.02, flush="none")
                time.sleep(SECONDS)
                done = far.still()
                time.sleep(SETTLE_S)
                arrivals = [arrival for arrival in pipe.arrivals() if arrival.clock >= began]
            if every_sample:
                share = 100 * (1 - len({(a.key, a.clock) for a in arrivals}) / done["count"])
                found.append(("robot without flush, every sample: lost", share, 1.0, "%"))
            else:
                found.append(
                    ("robot without flush: topics whose newest value is wrong", wrong(arrivals, done["last"]), 0.0, "1")
                )
    return found


def transfer_rows() -> list[Row]:
    """Transfers of 0.2 ms."""
    found: list[Row] = []
    for topics, hz in ((50, 100), (300, 20)):
        with robot() as far:
            far.publish(topics)
            pipe = BenchPipe(0.0002)
            with running(far.port, [pipe]):
                subscribe(pipe, topics)
                arrivals, sent = stream(far, pipe, topics * hz, 1 / hz, SECONDS)
        name = f"{topics} x {hz} Hz at 0.2 ms a transfer"
        found += [
            (f"{name}, lost", 100 * (1 - len(arrivals) / sent), 0.0, "%"),
            (f"{name}, p99", percentile(ages_ms(arrivals), 0.99), LATE_MS, "ms"),
        ]
    return found


def cpu_rows() -> list[Row]:
    """A whole robot's dashboard to one phone."""
    with robot() as far:
        far.publish(300)
        pipe = BenchPipe()
        with running(far.port, [pipe]):
            subscribe(pipe, 300)
            far.stream(15_000, 0.02)
            time.sleep(SETTLE_S)
            pipe.clear()
            cpu = 100 * cpu_of(SECONDS)
            far.still()
            ages = ages_ms(pipe.arrivals())
    return [("300 x 50 Hz, process CPU", cpu, 30.0, "%"), ("300 x 50 Hz, p99", percentile(ages, 0.99), LATE_MS, "ms")]


def sweep_rows() -> list[Row]:
    """Rates and costs of a transfer: what arrives, how old it is."""
    found: list[Row] = []
    with robot() as far:
        far.publish(300)
        for rate, cost_s in SWEEP:
            pipe = BenchPipe(cost_s)
            with running(far.port, [pipe]):
                subscribe(pipe, 300)
                arrivals, sent = stream(far, pipe, rate, 0.02, SWEEP_SECONDS)
            name = f"{rate}/s on 300 topics, {cost_s * 1e3:g} ms a transfer"
            found += [
                (f"{name}: newest wins over", 100 * (1 - len(arrivals) / sent), None, "%"),
                (f"{name}: p50", percentile(ages_ms(arrivals), 0.5), None, "ms"),
                (f"{name}: p99", percentile(ages_ms(arrivals), 0.99), None, "ms"),
            ]
    return found


def topic_growth_rows() -> list[Row]:
    """The same values a second on 10 and on 1 000 topics."""
    few, many = value_cost_us(10, 1), value_cost_us(1_000, 1)
    floor_growth = floor_cost_us(1_000) / floor_cost_us(10)
    return [
        ("CPU per value, 10 topics", few, None, "us"),
        ("CPU per value, 1 000 topics", many, None, "us"),
        ("CPU per value, 1 000 topics over 10", many / few, GROWTH, "x"),
        ("CPU per value, 1 000 topics over 10, floor relay", floor_growth, None, "x"),
        ("CPU per value, growth over that of the floor relay", many / few / floor_growth, GROWTH, "x"),
    ]


def phone_growth_rows() -> list[Row]:
    """The same values to 1 and to 8 phones."""
    costs = {phones: value_cost_us(100, phones) for phones in (1, 8)}
    return [
        *((f"CPU per value and phone, {phones} phones", cost, None, "us") for phones, cost in costs.items()),
        ("CPU per value and phone, 8 phones over 1", costs[8] / costs[1], GROWTH, "x"),
    ]


def value_cost_us(topics: int, phones: int) -> float:
    """Process CPU of one value at one phone, less that of doing nothing: 5 000 values a second in 50 rounds.

    Every sample counts, else values of 10 topics would be merged; a fifth are Pose2d with any number of topics. The
    smallest of some short spans: other work on the machine only adds.
    """
    with robot() as far:
        far.publish(topics, poses=POSES)
        pipes = [BenchPipe(keep=False) for _ in range(phones)]
        with running(far.port, pipes):
            for pipe in pipes:
                subscribe(pipe, topics, all=True)
            time.sleep(SETTLE_S)
            idle = min(cpu_of(SPAN_S) for _ in range(3))
            far.stream(GROWTH_RATE, GROWTH_ROUND_S)
            time.sleep(SETTLE_S)
            busy = min(cpu_of(SPAN_S) for _ in range(6))
            far.still()
    return (busy - idle) / GROWTH_RATE / phones * 1e6


def floor_cost_us(topics: int) -> float:
    """The same of the floor relay: how much of the growth is that of ntcore and of the machine's caches."""
    with robot() as far:
        far.publish(topics, poses=POSES)
        relay = FloorRelay(BenchPipe(keep=False), far.port)
        relay.open()
        time.sleep(SETTLE_S)
        idle = min(cpu_of(SPAN_S) for _ in range(3))
        far.stream(GROWTH_RATE, GROWTH_ROUND_S)
        time.sleep(SETTLE_S)
        busy = min(cpu_of(SPAN_S) for _ in range(6))
        far.still()
        relay.close()
    return (busy - idle) / GROWTH_RATE * 1e6


def cpu_of(seconds: float) -> float:
    """Seconds of process CPU per second."""
    cpu_s, began = time.process_time(), time.monotonic()
    time.sleep(seconds)
    return (time.process_time() - cpu_s) / (time.monotonic() - began)


def wrong(arrivals: Sequence[Arrival], last: Mapping[str, float]) -> float:
    """How many topics did not end with the robot's last value."""
    newest = {arrival.key: arrival.clock for arrival in arrivals}
    return float(sum(newest.get(key) != clock for key, clock in last.items()))
