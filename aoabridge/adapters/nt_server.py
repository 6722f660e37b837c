"""An NT4 server of our own, for the demo, the simulated robot and replays; never part of a robot's network."""

import atexit
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Final

import ntcore

from aoabridge.adapters.nt import NtSource, make_setter, new_instance
from aoabridge.adapters.nt_events import Batch, EventReader, OwnValues
from aoabridge.adapters.nt_poller import Poller
from aoabridge.adapters.nt_publishers import Publishers, Setter
from aoabridge.adapters.nt_targets import prove_port, require_free_port
from aoabridge.values import Announced, NtValue, Publication, Unannounced, Update, Withdrawal

__all__ = ["BenchServer"]

PERIOD_S: Final = 0.004  # 5 ms, the shortest
PORT_TRIES: Final = 5  # another program may take a port between our looking and our binding
MAX_WAITING: Final = 100_000  # updates kept for a caller that does not take them


class BenchServer:
    """A server that publishes what it is told and keeps what its clients publish.

    Not for a thread of the relay: ``start`` and ``stop`` block for some milliseconds.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._instance: ntcore.NetworkTableInstance | None = None
        self._poller: Poller | None = None
        self._own = OwnValues()
        self._publishers = Publishers(self._make_setter, self._own)
        self._types: dict[str, str] = {}
        self._values: dict[str, NtValue] = {}
        self._arrivals: list[tuple[float, Update]] = []

    def start(self, host: str = "127.0.0.1", port: int = 0) -> int:
        """Listen on ``port`` (0 = a free one) and return it; OSError if it is taken."""
        chosen = port
        for left in reversed(range(PORT_TRIES if port == 0 else 1)):
            chosen = port or _free_port(host)
            try:
                require_free_port(host, chosen)
                self._open(host, chosen)
            except OSError:
                self.stop()
                if not left:
                    raise
            else:
                break
        atexit.register(self.stop)
        return chosen

    def stop(self) -> None:
        """Drop everything and stop listening. Idempotent."""
        instance, poller, self._instance, self._poller = self._instance, self._poller, None, None
        if instance is None or poller is None:
            return
        atexit.unregister(self.stop)
        self._publishers.drop_all()
        instance.flush()
        poller.close()
        instance.stopServer()
        ntcore.NetworkTableInstance.destroy(instance)

    def publish(self, items: Iterable[Publication | Withdrawal]) -> list[str]:
        """Set all values and flush once; returns the topics whose type does not allow it."""
        if self._instance is None:
            raise ValueError("the server is not started")
        refused = []
        for item in items:
            if isinstance(item, Withdrawal):
                self._publishers.drop(item.topic, float("inf"))
            elif self._publishers.set(item.topic, item.type, item.value, item.properties) is not None:
                refused.append(item.topic)
        self._instance.flush()
        self._publishers.on_flushed(float("-inf"))
        self._publishers.reap(float("inf"))
        return refused

    def latest(self, topic: str) -> NtValue | None:
        """Return the last value that a client gave this topic; None without one."""
        with self._lock:
            return self._values.get(topic)

    def types(self) -> dict[str, str]:
        """Return the type string of every topic on the server, ours included."""
        with self._lock:
            return dict(self._types)

    def take_arrivals(self) -> list[tuple[float, Update]]:
        """Remove and return every value that clients set since the last call, in order, with its monotonic time."""
        with self._lock:
            arrivals, self._arrivals = self._arrivals, []
        return arrivals

    def now_us(self) -> int:
        """Return the server's clock."""
        now_us: int = ntcore._now()
        return now_us

    def _open(self, host: str, port: int) -> None:
        instance = self._instance = new_instance()
        reader = EventReader(self._own, self.now_us, connections=False)
        self._poller = Poller(NtSource(instance, PERIOD_S), reader, self._on_batch)
        instance.startServer("", host, 0, port)
        prove_port(host, port)
        self._poller.start()

    def _on_batch(self, batch: Batch) -> None:
        now = time.monotonic()
        with self._lock:
            for event in batch.events:
                if isinstance(event, Update):
                    self._values[event.topic] = event.value
                    if len(self._arrivals) < MAX_WAITING:
                        self._arrivals.append((now, event))
                elif isinstance(event, Announced):
                    self._types[event.topic] = event.type
                elif isinstance(event, Unannounced):
                    self._types.pop(event.topic, None)
                    self._values.pop(event.topic, None)

    def _make_setter(
        self, topic: str, type_string: str, properties: Mapping[str, object] | None, period_s: float
    ) -> Setter:
        assert self._instance is not None  # publish() has looked
        return make_setter(self._instance, topic, type_string, properties, period_s)


def _free_port(host: str) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port
