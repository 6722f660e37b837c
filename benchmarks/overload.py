"""More than any phone can take: 100 000 values a second, to a slow phone and to one that does not read at all.

Nine seconds each, a minute with ``./dev bench --long``.
"""

import os
import time
from typing import Final

from aoabridge.daemon.service import Bridge
from benchmarks import LONG_VARIABLE
from benchmarks.endtoend import subscribe
from benchmarks.load import wrong
from benchmarks.phone import BenchPipe
from benchmarks.robot import robot
from benchmarks.running import Row, percentile, rss_mib, running

OFFERED: Final = 100_000.0
TOPICS: Final = 300
MISSING_PERCENT: Final = 1.0
ROUND_S: Final = 0.005
COST_S: Final = 0.002  # a slow phone: the writer is busy all the time
SHORT_S: Final = 9.0
LONG_S: Final = 60.0
WARM_S: Final = {SHORT_S: 4.0, LONG_S: 10.0}


def rows() -> list[Row]:
    """Measure everything once."""
    return [*reading_rows(), *blocked_rows()]


def seconds() -> float:
    """How long each run takes."""
    return LONG_S if os.environ.get(LONG_VARIABLE) else SHORT_S


def reading_rows() -> list[Row]:
    """A phone whose transfers take 2 ms."""
    with robot() as far:
        far.publish(TOPICS)
        pipe = BenchPipe(COST_S, keep=False)
        with running(far.port, [pipe], lags=True) as subject:
            subscribe(pipe, TOPICS)
            far.stream(OFFERED, ROUND_S)
            time.sleep(WARM_S[seconds()])
            rss, cpu_s, began = rss_mib(), time.process_time(), time.monotonic()
            subject.lags_s.clear()
            taken = relayed(subject.bridge)
            time.sleep(seconds() - WARM_S[seconds()])
            elapsed = time.monotonic() - began
            cpu = 100 * (time.process_time() - cpu_s) / elapsed
            taken = relayed(subject.bridge) - taken
            grown, lags = rss_mib() - rss, list(subject.lags_s)
            last = far.still()
            time.sleep(2.0)
            ended_wrong = wrong(pipe.arrivals(), last["last"])
    name = f"100 000/s on {TOPICS} topics"
    offered = last["count"] / last["seconds"]
    return [
        (f"{name}: the robot's own shortfall", 100 * (1 - offered / OFFERED), MISSING_PERCENT, "%"),
        (f"{name}: neither relayed nor replaced by newer", 100 * (1 - taken / elapsed / offered), MISSING_PERCENT, "%"),
        (f"{name}: process CPU", cpu, 100.0, "%"),
        (f"{name}: event loop late, p99", percentile(lags, 0.99) * 1e3, 20.0, "ms"),
        (f"{name}: memory grown", grown, 20.0, "MiB"),
        (f"{name}: topics whose last value is wrong", ended_wrong, 0.0, "1"),
    ]


def blocked_rows() -> list[Row]:
    """The phone stops reading; when it reads again it must get the newest values."""
    with robot() as far:
        far.publish(TOPICS)
        pipe = BenchPipe(keep=False)
        with running(far.port, [pipe]) as subject:
            subscribe(pipe, TOPICS)
            pipe.reading = False
            far.stream(OFFERED, ROUND_S)
            time.sleep(WARM_S[seconds()])
            rss = rss_mib()
            time.sleep(seconds() - WARM_S[seconds()])
            grown = rss_mib() - rss
            last = far.still()
            pipe.clear()
            pipe.reading = True
            time.sleep(3.0)
            ended_wrong = wrong(pipe.arrivals(), last["last"])
            assert subject.bridge.relay.core.links
    return [
        ("100 000/s, phone does not read: memory grown", grown, 20.0, "MiB"),
        ("100 000/s, phone reads again: topics whose value is wrong", ended_wrong, 0.0, "1"),
    ]


def relayed(bridge: Bridge) -> int:
    """Values taken from the robot so far: to the core, or merged into newer ones before it looked."""
    topics = sum(topic.count for topic in bridge.relay.core.topics if topic.key.startswith("/bench/"))
    return topics + bridge.nt.counters["nt_merged"]
