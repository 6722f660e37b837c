"""Where the microseconds go: the stages of one round from the robot to a phone, and what each step costs by itself."""

import time
from collections.abc import Callable
from typing import Any, Final

import orjson

from aoabridge.adapters.nt_events import EventReader, OwnValues
from aoabridge.bridge.core import BridgeCore, CoreSettings
from aoabridge.bridge.link import LinkInfo
from aoabridge.values import Announced, Connected, Put, PutResult, Update
from benchmarks.endtoend import stream, subscribe
from benchmarks.phone import BenchPipe
from benchmarks.robot import POSE, POSE_SCHEMAS, robot
from benchmarks.running import Row, RunningBridge, percentile, running

TOPICS: Final = 200
REPEATS: Final = 7
ROUND: Final = 100
ROUNDS: Final = 300
GROWTH: Final = 1.15
SECONDS: Final = 3.0


def rows() -> list[Row]:
    """Measure everything once: about 15 seconds."""
    return [*chain_rows(), *event_rows(), *core_rows()]


def chain_rows() -> list[Row]:
    """A round of 20 values, from the robot's set to the transfer: each stage's median."""
    with robot() as far:
        far.publish(20)
        pipe = BenchPipe()
        with running(far.port, [pipe]) as subject:
            subscribe(pipe, 20)
            trace = Trace(subject)
            arrivals, _ = stream(far, pipe, 1000, 0.02, SECONDS)
    clocks: dict[float, float] = {}
    for arrival in arrivals:  # the first set of each round
        clocks[arrival.submitted] = min(arrival.clock, clocks.get(arrival.submitted, arrival.clock))
    stages: dict[str, list[float]] = {}
    for submitted, clock in clocks.items():
        before, at = "robot: set, flush, socket, ntcore", clock
        for name, moment in trace.before(submitted):
            stages.setdefault(before, []).append((moment - at) * 1e6)
            before, at = name, moment
        stages.setdefault(before, []).append((submitted - at) * 1e6)
    return [(f"stage {name}", percentile(spans, 0.5), None, "us") for name, spans in stages.items()]


class Trace:
    """The last moments of each stage of a running bridge."""

    def __init__(self, subject: RunningBridge) -> None:
        relay = subject.bridge.relay
        poller = subject.bridge.nt._poller
        assert poller is not None
        self._moments: dict[str, list[float]] = {}
        self._after(poller._source, "wait", "poller: read and translate")
        self._before(relay, "wake", "thread to loop")
        self._before(relay, "_feed", "loop: core takes the updates")
        self._after(relay, "_feed", "loop: tick, sets, flush")
        self._before(relay.core, "take_bytes", "loop: build lines, pack")
        self._after(relay.core, "take_bytes", "loop to writer thread")

    def before(self, submitted: float) -> list[tuple[str, float]]:
        """The stages of the round that ended then, with their beginnings in order."""
        found, limit = [], submitted
        for name, moments in reversed(self._moments.items()):
            limit = max((moment for moment in moments if moment <= limit), default=limit)
            found.append((name, limit))
        return found[::-1]

    def _before(self, owner: Any, method: str, name: str) -> None:
        moments = self._moments.setdefault(name, [])
        original = getattr(owner, method)

        def traced(*arguments: Any) -> Any:
            moments.append(time.monotonic())
            return original(*arguments)

        setattr(owner, method, traced)

    def _after(self, owner: Any, method: str, name: str) -> None:
        moments = self._moments.setdefault(name, [])
        original = getattr(owner, method)

        def traced(*arguments: Any) -> Any:
            result = original(*arguments)
            moments.append(time.monotonic())
            return result

        setattr(owner, method, traced)


def event_rows() -> list[Row]:
    """The poller's part: ntcore's event objects to updates."""
    with robot() as far:
        far.publish(TOPICS)
        with running(far.port, [BenchPipe()]) as subject:
            poller = subject.bridge.nt._poller
            assert poller is not None
            taken: list[Any] = []
            read = poller._source.read
            poller._source.read = lambda: taken.extend(events := read()) or events  # type: ignore[method-assign]
            far.stream(10_000, 0.02)
            time.sleep(1.0)
            far.still()
            values = [event for event in taken if event.flags & 64]
            reader = EventReader(OwnValues(), lambda: 1 << 62)
            cost = best_us(lambda: reader.read(values), len(values))
            bare = best_us(lambda: [(e.data.topic.getName(), e.data.value.value()) for e in values], len(values))
    return [
        ("event to update", cost, None, "us"),
        ("event to update, over bare ntcore access", cost / bare, 2.0, "x"),
    ]


def core_rows() -> list[Row]:
    """The core's part, per value, without any IO."""
    found: list[Row] = []
    line = {"key": "/bench/100", "time": 1234.56789, "value": 1.234567891234}
    bare = min(best_us(lambda: [orjson.dumps(line) for _ in range(TOPICS)], TOPICS) for _ in range(REPEATS))
    for kind, value in (("double", 1.234567891234), ("struct:Pose2d", POSE.pack(1.0, 2.0, 0.5))):
        core = started(kind)
        batch = [Update(f"/bench/{number}", value, 1_234_567_890) for number in range(TOPICS)]
        takes: list[float] = []
        feeds: list[float] = []
        for _ in range(REPEATS * 10):
            began = time.perf_counter()
            core.on_updates(batch, 10.0)
            fed = time.perf_counter()
            size = drain(core)
            takes.append(time.perf_counter() - fed)
            feeds.append(fed - began)
            assert size > TOPICS * 20
        feed_us, take_us = (min(times) / TOPICS * 1e6 for times in (feeds, takes))
        found += [
            (f"core: take an update ({kind})", feed_us, None, "us"),
            (f"core: line of it, packed and settled ({kind})", take_us, None, "us"),
            (f"core: both, over a bare orjson line ({kind})", (feed_us + take_us) / bare, None, "x"),
        ]
    return [*found, *growth_rows(), *put_rows()]


def growth_rows() -> list[Row]:
    """Rounds of 100 values, of all topics in turn."""
    costs = {topics: round_us(topics) for topics in (100, 1_000, 5_000)}
    return [
        ("core: a value of 1 000 topics over one of 100", costs[1_000] / costs[100], GROWTH, "x"),
        ("core: a value of 5 000 topics over one of 100", costs[5_000] / costs[100], None, "x"),
    ]


def round_us(topics: int) -> float:
    """Median cost of a value in a round of ROUND."""
    core = started("double", topics)
    spans = []
    for number in range(ROUNDS):
        at = number * ROUND % topics
        batch = [Update(f"/bench/{at + offset}", float(number), 1_234_567_890) for offset in range(ROUND)]
        began = time.perf_counter()
        core.on_updates(batch, 10.0)
        drain(core)
        spans.append(time.perf_counter() - began)
    return percentile(spans, 0.5) / ROUND * 1e6


def put_rows() -> list[Row]:
    """A put line to an order, and its result back."""
    core = started("double")
    chunk = orjson.dumps({"action": "put", "key": "/put/x", "value": 1.5}) + b"\n"
    now = 100.0

    def puts() -> None:
        nonlocal now
        for _ in range(TOPICS):
            now += 0.01
            core.on_link_bytes(1, chunk, now)
            orders: list[Put] = core.take_puts()
            core.on_put_results([PutResult(order) for order in orders], now, 1_000)

    return [("core: a put line to its order and result", best_us(puts, TOPICS), None, "us")]


def started(kind: str, topics: int = TOPICS) -> BridgeCore:
    """A core with one subscribed phone and so many topics of a type."""
    core = BridgeCore(CoreSettings())
    core.on_connection(Connected("127.0.0.1:5810"), 0.0)
    schemas = {f"/.schema/struct:{name}": text.encode() for name, text in POSE_SCHEMAS.items()}
    core.on_topics([Announced(name, "structschema") for name in schemas], 0.0)
    core.on_topics([Announced(f"/bench/{number}", kind) for number in range(topics)], 0.0)
    core.on_updates([Update(name, text, 0) for name, text in schemas.items()], 0.0)
    core.on_link_up(1, LinkInfo("bench", 512), 0.0)
    core.on_tick(2.0)
    core.on_link_bytes(1, b'{"action":"subscribe","keys":["/bench/"]}\n', 2.0)
    drain(core)
    return core


def drain(core: BridgeCore) -> int:
    """Take and settle everything that waits; the bytes."""
    size = 0
    while data := core.take_bytes(1, 10.0):
        core.on_bytes_accepted(1, len(data), 10.0)
        size += len(data)
    return size


def best_us(call: Callable[[], object], items: int) -> float:
    """The shortest of several repeats, per item."""
    spans = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        call()
        spans.append(time.perf_counter() - began)
    return min(spans) / items * 1e6
