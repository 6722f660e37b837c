"""The NetworkTables client: all topics and values in, puts and own values out; with ``nt_server`` the only ntcore user.

Everything but the poller thread belongs to the event loop's thread and returns at once.
"""

import atexit
import errno
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import ntcore
from wpiutil.sync import waitForObject

from aoabridge.adapters.nt_events import Batch, EventReader, OwnValues
from aoabridge.adapters.nt_pacing import FLUSH_GAP_S, Subscribe
from aoabridge.adapters.nt_poller import Poller
from aoabridge.adapters.nt_publishers import PERIOD_S, SETTERS, Publishers, SchemaSetter, Setter
from aoabridge.adapters.nt_queue import Control, EventQueue
from aoabridge.adapters.nt_sender import Sender
from aoabridge.adapters.nt_targets import DEFAULT_PORT, NtTarget, prove_port, require_free_port
from aoabridge.values import (
    RUN_PREFIX,
    SCHEMA_TYPE,
    Announced,
    Connected,
    Disconnected,
    NtEvent,
    Publication,
    Put,
    PutResult,
    Withdrawal,
)

__all__ = [
    "NtClient",
    "NtSettings",
    "NtSource",
    "NtTarget",
    "make_setter",
    "new_instance",
]

LAST_SET_S = 0.020  # what is set just before its publisher goes may be lost
RESTART_GAP_S = 10.0
OVERLOAD_PERIOD_S = 0.1

_log = logging.getLogger("aoabridge.adapters.nt")


class NtSettings(msgspec.Struct, frozen=True):
    """What of the configuration concerns NetworkTables; ``identity`` is our client name, without ``@``."""

    identity: str
    target: NtTarget = NtTarget()
    embedded: bool = False
    listen: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    period_ms: int = 10


def new_instance() -> ntcore.NetworkTableInstance:
    """Return a fresh instance; OSError if the process already has all it may have (ntcore then says nothing)."""
    instance = ntcore.NetworkTableInstance.create()
    if instance._getHandle() == 0:
        raise OSError(errno.ENFILE, "no NetworkTables instance left")
    critical = ntcore.NetworkTableInstance.LogLevel.kLogCritical
    instance.configPythonLogging(min=critical, max=critical)  # the rest arrives through our own poller
    return instance


def make_setter(
    instance: ntcore.NetworkTableInstance,
    topic: str,
    type_string: str,
    properties: Mapping[str, object] | None,
    period_s: float = PERIOD_S,
) -> Setter:
    """Publish a topic; the setter keeps the publisher alive and says False if the topic has another type."""
    options = ntcore.PubSubOptions(periodic=period_s, sendAll=True, keepDuplicates=True)
    if type_string == SCHEMA_TYPE:
        return SchemaSetter(instance.getRawTopic(topic).publishEx(SCHEMA_TYPE, {"retained": True}, options))
    any_topic = instance.getTopic(topic)
    if properties:
        publisher = any_topic.genericPublishEx(type_string, dict(properties), options)
    else:
        publisher = any_topic.genericPublish(type_string, options)
    setter: Setter = getattr(publisher, SETTERS.get(type_string, "setRaw"))
    return setter


class NtSource:
    """The poller of an instance and its one subscription to every topic (``EventSource``).

    No listener callback: an exception in one of those aborts the process.
    """

    def __init__(self, instance: ntcore.NetworkTableInstance, period_s: float) -> None:
        self._instance = instance
        self._period_s = period_s
        self._poller = ntcore.NetworkTableListenerPoller(instance)
        self._handle = self._poller.getHandle()
        self._poller.addLogger(20, 100)
        self._subscribe(Subscribe.EVERY_VALUE)
        self._poller.addConnectionListener(True)
        self._poller.addTimeSyncListener(True)

    def wait(self, timeout_s: float) -> None:
        """Return when events wait, after the timeout, or at once when ended; releases the GIL."""
        waitForObject(self._handle, timeout_s)

    def read(self) -> Sequence[ntcore.Event]:
        """Remove and return all waiting events."""
        return self._poller.readQueue()

    def resubscribe(self, how: Subscribe) -> None:
        """Replace the subscription; changing its options instead would keep the old period."""
        self._poller.removeListener(self._listener)
        self._multi_subscriber.close()
        self._subscribe(how)

    def end(self) -> None:
        """Wake the waiter for the last time."""
        self._poller.close()

    def close(self) -> None:
        """Give up the subscription."""
        self._multi_subscriber.close()

    def _subscribe(self, how: Subscribe) -> None:
        every = how is Subscribe.EVERY_VALUE
        period_s = self._period_s if every else OVERLOAD_PERIOD_S
        options = ntcore.PubSubOptions(periodic=period_s, sendAll=every, keepDuplicates=every)
        flags = ntcore.EventFlags
        mask = flags.kValueRemote | flags.kTopic | flags.kImmediate
        self._multi_subscriber = ntcore.MultiSubscriber(self._instance, [""], options)
        self._listener = self._poller.addListener(self._multi_subscriber, mask)


class NtClient:
    """One NT4 client (or, ``embedded``, the server itself) for the life of the process.

    ``wake`` is called from the poller thread when events begin to wait. Puts are refused, never queued, while no server
    is connected or the loop has not yet taken the news that it went away.
    """

    def __init__(self, settings: NtSettings, *, wake: Callable[[], None]) -> None:
        self._settings = settings
        self._target = settings.target
        self._wake = wake
        self._queue = EventQueue()
        self._lock = threading.Lock()  # the publishers: the poller thread drops those of phones when the server goes
        self._own_values = OwnValues()
        self._reader = EventReader(self._own_values, self._now_us, connections=not settings.embedded)
        self._instance: ntcore.NetworkTableInstance | None = None
        self._poller: Poller | None = None
        self._phone = Publishers(self._make_setter, self._own_values)
        self._own = Publishers(self._make_setter, self._own_values)
        self._sender = Sender(self._phone, self._own, self._flush)
        self._address: str | None = None
        self._losses = 0  # counted by the poller thread
        self._losses_taken = 0
        self._blocked = False  # set by the poller thread
        self._recovering = False
        self._restarted_at = float("-inf")
        self._restarts = 0

    def open(self) -> None:
        """Start; a missing robot is normal. OSError: no instance left, or (embedded) the port is taken."""
        settings = self._settings
        if settings.embedded:
            require_free_port(settings.listen, settings.port)
        instance = self._instance = new_instance()
        # 5 must be passed as 4: ntcore rounds 5 ms up to 10.
        period_s = 0.004 if settings.period_ms <= 5 else settings.period_ms / 1000
        self._poller = Poller(NtSource(instance, period_s), self._reader, self._on_batch)
        atexit.register(self.close)  # a live poller thread at interpreter exit aborts the process
        try:
            self._start(instance)
        except OSError:
            self.close()
            raise
        self._poller.start()

    def close(self) -> None:
        """Stop in the one order that always ends well; blocks for about 30 ms. Idempotent."""
        instance, poller, self._instance, self._poller = self._instance, self._poller, None, None
        if instance is None or poller is None:
            return
        atexit.unregister(self.close)
        with self._lock:
            self._sender.refuse_puts("the bridge stops")
            # The core lowers every run pulse in its farewell; this is for an end without one (atexit).
            if self.online:
                for topic in self._phone.raised(RUN_PREFIX):
                    self._phone.set(topic, "boolean", False)
            time.sleep(FLUSH_GAP_S)  # an earlier flush of this turn would make ntcore ignore the one that counts
            instance.flush()
            time.sleep(LAST_SET_S)
            self._phone.drop_all()
            self._own.drop_all()
            instance.flush()
        poller.close()
        if self._settings.embedded:
            instance.stopServer()
        else:
            instance.stopClient()
        ntcore.NetworkTableInstance.destroy(instance)

    def take_events(self) -> list[NtEvent]:
        """Remove and return what came, in order; a slow caller gets the newest value per topic."""
        events, control = self._queue.take()
        if control:
            with self._lock:
                for event in control:
                    self._on_control(event)
        return events

    def set_every_sample(self, topics: Sequence[str]) -> None:
        """Name the topics of which a slow loop still gets (up to 1 000) single values."""
        self._queue.set_every_sample(topics)

    def offer_puts(self, puts: Sequence[Put]) -> None:
        """Queue the core's orders; they are set in order by ``turn``."""
        self._sender.offer_puts(puts)

    def publish(
        self, items: Sequence[Publication | Withdrawal], by: float = float("-inf"), *, steady: bool = False
    ) -> None:
        """Queue values of the bridge itself; set by ``turn``, newest per topic beyond the window or while offline.

        Until ``by`` they may wait for the flush of a put: one of their own would keep the next put back for 5 ms. Those
        without ``by`` never wait. ``steady``: more will come soon, with whose flush one goes that ntcore has ignored.
        """
        self._sender.publish(items, by, steady=steady)

    def turn(self, now: float) -> float | None:
        """Set what the window allows and flush if due; returns when to call again, None = nothing pending."""
        if self._instance is None or self._poller is None:
            return None
        retry_at = self._restarted_at + RESTART_GAP_S
        if self._blocked and now >= retry_at:
            self._restart(self._instance, self._poller, now)
        online = self.online
        with self._lock:
            self._sender.send(now, online=online)
            again = self._sender.next_time(now, online=online)
        if self._blocked:
            return retry_at if again is None else min(again, retry_at)
        return again

    def take_put_results(self) -> list[PutResult]:
        """Remove and return what became of each SET: None once flushed, else the refusal code."""
        return self._sender.take_results()

    def set_target(self, target: NtTarget) -> bool:
        """Move to another server at once; False if it is the present one. Without effect while embedded."""
        if target == self._target or self._settings.embedded:
            return False
        self._target = target
        self._point_at(target)
        if self._instance is not None:
            with self._lock:
                self._sender.abandon_puts("moving to another robot")  # before its server could be told
            self._instance.disconnect()  # a new target alone would keep the old connection
        return True

    def server_now_us(self) -> int | None:
        """Return the estimate of the server's clock; None without a server."""
        if self._instance is None:
            return None
        offset_us = self._instance.getServerTimeOffset()
        return None if offset_us is None else ntcore._now() + offset_us

    def poller_seen_at(self) -> float:
        """Return the monotonic time of the poller thread's last sign of life."""
        return self._poller.seen_at if self._poller is not None else time.monotonic()

    @property
    def online(self) -> bool:
        """True if puts are accepted: connected, not blocked, and no loss waits to be taken."""
        return self._address is not None and not self._lost_unseen and not self._blocked

    @property
    def address(self) -> str | None:
        """The server we are connected to."""
        return self._address

    @property
    def targets(self) -> tuple[str, ...]:
        """Every address that is tried."""
        return self._target.addresses()

    @property
    def blocked(self) -> bool:
        """True from ntcore's report of dropped sets until the restarted client is connected."""
        return self._blocked or self._recovering

    @property
    def overloaded(self) -> bool:
        """True while the subscription is reduced to the newest values."""
        return self._poller is not None and self._poller.overloaded

    @property
    def counters(self) -> dict[str, int]:
        """Totals since start, by name."""
        reader, sender, queue = self._reader, self._sender, self._queue
        return {
            "nt_bad_utf8": reader.bad_utf8,
            "nt_bad_events": reader.bad_events,
            "nt_own_echoes": reader.own_echoes,
            "nt_future_times": reader.future_times,
            "nt_coalesced": sender.coalesced,
            "nt_sets": sender.sets,
            "nt_flushes": sender.flushes,
            "nt_discarded_offline": sender.discarded_offline,
            "nt_publish_refused": sender.publish_refused,
            "nt_merged": queue.coalesced,
            "nt_lane_dropped": queue.lane_dropped,
            "nt_losses": self._losses,
            "nt_blocked": self._restarts,
        }

    @property
    def _lost_unseen(self) -> bool:
        return self._losses != self._losses_taken

    def _on_control(self, event: Control) -> None:
        if isinstance(event, Announced):
            self._phone.on_announced(event.topic, event.type)
            self._own.on_announced(event.topic, event.type)
        elif isinstance(event, Connected):
            self._address = event.address
            self._recovering = False
        elif isinstance(event, Disconnected):
            self._address = None
            self._losses_taken += 1
            self._sender.abandon_puts("robot connection lost")

    def _on_batch(self, batch: Batch) -> None:
        """In the poller thread: what cannot wait for the loop, then hand over."""
        if batch.lost:
            with self._lock:  # a kept publisher would re-send its last value to the next server
                self._losses += sum(isinstance(event, Disconnected) for event in batch.control)
                self._phone.drop_all()
        if batch.blocked and not self._settings.embedded:
            self._blocked = True
        if self._queue.put(batch.events, batch.control) or batch.blocked:
            self._wake()

    def _start(self, instance: ntcore.NetworkTableInstance) -> None:
        settings = self._settings
        if not settings.embedded:
            self._point_at(self._target)
            instance.startClient4(settings.identity)
            return
        instance.startServer("", settings.listen, 0, settings.port)
        prove_port(settings.listen, settings.port)
        connected = Connected(f"{settings.listen}:{settings.port}")
        self._queue.put([connected], [connected])
        self._wake()

    def _restart(self, instance: ntcore.NetworkTableInstance, poller: Poller, now: float) -> None:
        """The only cure for a blocked client, and the only reason ever to restart one."""
        _log.error("ntcore drops our values: restarting the client")
        self._restarted_at = now
        self._restarts += 1
        with self._lock:
            self._sender.abandon_puts("NetworkTables client restarted")
        instance.stopClient()
        poller.drain()  # what the old client reported must not count against the new one
        self._blocked, self._recovering = False, True
        instance.startClient4(self._settings.identity)

    def _point_at(self, target: NtTarget) -> None:
        if self._instance is None:
            return
        if target.team is not None:
            self._instance.setServerTeam(target.team, target.port)
        else:
            self._instance.setServer([(host, port) for host, port in target.servers_and_ports()])

    def _make_setter(
        self, topic: str, type_string: str, properties: Mapping[str, object] | None, period_s: float
    ) -> Setter:
        assert self._instance is not None  # only turn() and close() set values
        return make_setter(self._instance, topic, type_string, properties, period_s)

    def _flush(self) -> float:
        if self._instance is not None:
            self._instance.flush()
        return time.monotonic()

    def _now_us(self) -> int:
        server_us = self.server_now_us()
        now_us: Any = ntcore._now() if server_us is None else server_us
        return int(now_us)
