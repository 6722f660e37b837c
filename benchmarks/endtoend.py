"""Latency from end to end over the in-process phone: robot process, bridge, pipe; the floor relay in the same run."""

import random
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from benchmarks.floor import FloorRelay
from benchmarks.phone import Arrival, BenchPipe
from benchmarks.robot import PUT_PREFIX, Robot, robot
from benchmarks.running import Row, RunningBridge, percentile, running, wait_until

SECONDS: Final = 3.0
ADDED_SECONDS: Final = 11.0  # 1 000 values a second: more than 10 000 samples
TURNS: Final = 3
SETTLE_S: Final = 0.3  # rounds before this one started the streams up
SUBSCRIPTIONS: Final = 200
LATE_MS: Final = 20.0
UNSTEADY: Final = 0.4  # of a period: at 100 Hz no two are within the 5 ms that ntcore wants between flushes


def rows() -> list[Row]:
    """Measure everything once: about a minute."""
    return [*down_rows(), *up_rows(), *added_down_rows(), *added_up_rows(), *single_key_rows(), *subscribe_rows()]


def down_rows() -> list[Row]:
    """A robot that flushes its 20 topics at 50 Hz, to a phone that only listens."""
    with robot() as far:
        far.publish(20)
        ages: list[float] = []
        floor_ages: list[float] = []
        for _ in range(TURNS):  # in turns: what else the machine does must not hit one side alone
            floor_ages += floor_down_ms(far)
            pipe = BenchPipe()
            with running(far.port, [pipe]):
                subscribe(pipe, 20)
                ages += ages_ms(stream(far, pipe, 1000, 0.02, SECONDS / TURNS)[0])
    p50, floor_p50 = percentile(ages, 0.5), percentile(floor_ages, 0.5)
    return [
        ("NT to phone, p50", p50, 2.0, "ms"),
        ("NT to phone, p99", percentile(ages, 0.99), 15.0, "ms"),
        ("NT to phone, floor relay p50", floor_p50, None, "ms"),
        ("NT to phone, floor relay p99", percentile(floor_ages, 0.99), None, "ms"),
        ("NT to phone, p50 over floor relay", p50 / floor_p50, 2.5, "x"),
    ]


def floor_down_ms(far: Robot) -> list[float]:
    """The ages of values at the floor relay's phone."""
    pipe = BenchPipe()
    relay = FloorRelay(pipe, far.port)
    relay.open()
    ages = ages_ms(stream(far, pipe, 1000, 0.02, SECONDS / TURNS)[0])
    relay.close()
    return ages


def up_rows() -> list[Row]:
    """Puts of one phone at 50 Hz until the robot's listener has them."""
    with robot() as far:
        floor = BenchPipe()
        relay = FloorRelay(floor, far.port)
        relay.open()
        floor_ages = put_ages_ms(far, floor, 50, SECONDS)
        relay.close()
        pipe = BenchPipe()
        with running(far.port, [pipe]):
            ages = put_ages_ms(far, pipe, 50, SECONDS)
    return [
        ("put to robot, p50", percentile(ages, 0.5), 1.5, "ms"),
        ("put to robot, p99", percentile(ages, 0.99), 5.0, "ms"),
        ("put to robot, floor relay p50", percentile(floor_ages, 0.5), None, "ms"),
    ]


def added_down_rows() -> list[Row]:
    """From waitForObject returning to the transfer being submitted: 1 000 values/s on 200 topics."""
    with robot() as far:
        far.publish(200)
        pipe = BenchPipe()
        with running(far.port, [pipe]) as subject:
            subscribe(pipe, 200)
            woken = watch_waits(subject)
            arrivals, _ = stream(far, pipe, 1000, 0.02, ADDED_SECONDS)
            added = added_ms(arrivals, woken)
    assert len(added) >= 10_000
    return [
        ("added latency down, p50", percentile(added, 0.5), 1.0, "ms"),
        ("added latency down, p99", percentile(added, 0.99), 3.0, "ms"),
    ]


def added_up_rows() -> list[Row]:
    """From the read that brought a put to flush() returning: 100 puts/s."""
    with robot() as far:
        pipe = BenchPipe()
        with running(far.port, [pipe]) as subject:
            flushed = watch_flushes(subject)
            put_ages_ms(far, pipe, 100, SECONDS)
            read_at = list(pipe.read_at)
    added = [(min(t for t in flushed if t >= at) - at) * 1e3 for at in read_at if at <= flushed[-1]]
    return [
        ("added latency up, p50", percentile(added, 0.5), 1.0, "ms"),
        ("added latency up, p99", percentile(added, 0.99), 3.0, "ms"),
    ]


def single_key_rows() -> list[Row]:
    """Nothing of one fast key may be lost or late, in either direction."""
    found: list[Row] = []
    with robot() as far:
        far.publish(1, poses=0)
        pipe = BenchPipe()
        with running(far.port, [pipe]):
            subscribe(pipe, 1)
            for hz in (100, 500):
                ages = put_ages_ms(far, pipe, hz, SECONDS)
                sent = int(hz * SECONDS)
                found += [
                    (f"puts of one key at {hz} Hz, lost", 100 * (1 - len(ages) / sent), 0.0, "%"),
                    (f"puts of one key at {hz} Hz, worst age", max(ages), LATE_MS, "ms"),
                ]
            arrivals, sent = stream(far, pipe, 100, 0.01, SECONDS)
    return [
        *found,
        ("one topic at 100 Hz to the phone, lost", 100 * (1 - len(arrivals) / sent), 0.0, "%"),
        ("one topic at 100 Hz to the phone, worst age", max(ages_ms(arrivals)), LATE_MS, "ms"),
    ]


def subscribe_rows() -> list[Row]:
    """A phone that is served already subscribes to one topic more; the robot is silent."""
    with robot() as far:
        far.publish(SUBSCRIPTIONS, poses=0.5)
        pipe = BenchPipe()
        waits_ms = []
        with running(far.port, [pipe]):
            pipe.say(action="subscribe", keys=["/bench/0"])
            wait_until(pipe.arrivals)
            for number in range(1, SUBSCRIPTIONS):
                pipe.clear()
                began = time.monotonic()
                pipe.say(action="subscribe", keys=[f"/bench/{number}"])
                wait_until(lambda: pipe.transfers)
                waits_ms.append((pipe.transfers[0][1] - began) * 1e3)
                time.sleep(0.005)
    return [
        ("second subscribe to first value, p50", percentile(waits_ms, 0.5), None, "ms"),
        ("second subscribe to first value, p99", percentile(waits_ms, 0.99), 15.0, "ms"),
    ]


# The parts.


def subscribe(pipe: BenchPipe, topics: int, **options: Any) -> None:
    """Subscribe to all benchmark topics and wait for the value of each."""
    pipe.say(action="subscribe", keys=["/bench/"], **options)
    wait_until(lambda: len({arrival.key for arrival in pipe.arrivals()}) >= topics)


def stream(far: Robot, pipe: BenchPipe, rate: float, round_s: float, seconds: float) -> tuple[list[Arrival], int]:
    """Let the robot set values for a while; the values that the phone got, and how many were set."""
    far.stream(rate, round_s)
    time.sleep(SETTLE_S)
    far.still()
    time.sleep(SETTLE_S)
    pipe.clear()
    began = time.monotonic()
    far.stream(rate, round_s)
    time.sleep(seconds)
    sent = far.still()["count"]
    time.sleep(SETTLE_S)
    return [arrival for arrival in pipe.arrivals() if arrival.clock >= began], sent


def ages_ms(arrivals: Sequence[Arrival]) -> list[float]:
    """How old each value was when the phone had it."""
    return [(arrival.arrived - arrival.clock) * 1e3 for arrival in arrivals]


def put_ages_ms(far: Robot, pipe: BenchPipe, hz: float, seconds: float) -> list[float]:
    """Put one key at that rate; the age of each put when the robot had it."""
    key = f"{PUT_PREFIX}clock"
    for _ in range(5):
        pipe.say(action="put", key=key, value=time.monotonic())
        time.sleep(0.05)
    time.sleep(SETTLE_S)
    far.put_ages_ms()
    pipe.read_at.clear()
    at_rate(lambda: pipe.say(action="put", key=key, value=time.monotonic()), hz, int(hz * seconds))
    time.sleep(SETTLE_S)
    return far.put_ages_ms()


def at_rate(call: Callable[[], object], hz: float, times: int) -> None:
    """Call something that often a second, a little out of step so that nothing else is in step with it."""
    chance = random.Random(1)
    began = time.monotonic()
    for number in range(times):
        time.sleep(max(0.0, began + (number + UNSTEADY * chance.random()) / hz - time.monotonic()))
        call()


def watch_waits(subject: RunningBridge) -> list[tuple[float, Any]]:
    """Note when waitForObject returned, with the events that were read then."""
    poller = subject.bridge.nt._poller
    assert poller is not None
    source = poller._source
    wait, read = source.wait, source.read
    noted: list[tuple[float, Any]] = []
    returned = [0.0]

    def waiting(timeout_s: float) -> None:
        wait(timeout_s)
        returned[0] = time.monotonic()

    def reading() -> Any:
        events = read()
        noted.append((returned[0], events))
        return events

    source.wait, source.read = waiting, reading  # type: ignore[method-assign]
    return noted


def added_ms(arrivals: Sequence[Arrival], woken: Sequence[tuple[float, Any]]) -> list[float]:
    """The latency that is ours: from the wait that ended with a value to its transfer."""
    seen: dict[tuple[str, float], float] = {}
    for at, events in woken:
        for event in events:
            value = event.data.value.value() if event.flags & 64 else None
            if isinstance(value, bytes) and len(value) == 24:
                value = memoryview(value).cast("d")[0]
            if isinstance(value, float):
                seen[event.data.topic.getName(), value] = at
    keyed = ((arrival, seen.get((arrival.key, arrival.clock))) for arrival in arrivals)
    return [(arrival.submitted - at) * 1e3 for arrival, at in keyed if at is not None]


def watch_flushes(subject: RunningBridge) -> list[float]:
    """Note when flushes that carry puts returned."""
    sender = subject.bridge.nt._sender
    flush = sender._flush
    flushed: list[float] = []

    def flushing() -> float:
        carries_puts = bool(sender._unflushed)
        at = flush()
        if carries_puts:
            flushed.append(time.monotonic())
        return at

    sender._flush = flushing
    return flushed
