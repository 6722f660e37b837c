"""ntcore's event objects to our events; runs in the poller thread, imports nothing of ntcore."""

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from aoabridge.adapters.nt_queue import Control
from aoabridge.codecs.host_port import join_host_port
from aoabridge.values import Announced, ClockSync, Connected, Disconnected, NtEvent, NtValue, Unannounced, Update

__all__ = ["Batch", "EventReader", "OwnValues", "RawEvent"]

# Bits of an event; several may be set (a topic with properties arrives as PUBLISH + PROPERTIES).
CONNECTED = 2
DISCONNECTED = 4
PUBLISH = 8
UNPUBLISH = 16
VALUE_REMOTE = 64
LOG_MESSAGE = 256
TIME_SYNC = 512

UNSTAMPED = 1  # server time of local sets (1), defaults and schemas (0)
FUTURE_US = 5_000_000  # further ahead than clocks drift; such a value freezes its topic for every reader
OLDEST_SAFE_PROTOCOL = 0x0401  # older servers do not answer pings: a pulled cable may go unnoticed
BLOCKED_TEXT = "dropping value set"
NOISE = ("resolve", "GetAddrInfo", "connect")  # the client tries all candidates every second, forever
MAX_LOG_LINES = 30  # above debug, per connection: ntcore repeats itself

_log = logging.getLogger("aoabridge.adapters.nt")


class RawEvent(Protocol):
    """What we read of an ntcore event; each access of ``data`` makes a new wrapper."""

    @property
    def flags(self) -> int:
        """Return the bits above."""
        ...

    @property
    def data(self) -> Any:
        """Return the part of the event's kind."""
        ...


class OwnValues:
    """The last value of each topic that we publish, to tell its echo from a value of another client.

    After a reconnect the server sends our own re-published values back as remote ones. A different remote value means
    that someone else has written since: from then on no value of that topic is an echo until we set it or reconnect.
    """

    def __init__(self) -> None:
        self._last: dict[str, NtValue] = {}
        self.topics = self._last.keys()  # a view: what we publish now
        self._foreign: set[str] = set()

    def note(self, topic: str, value: NtValue) -> None:
        """We have set this value."""
        self._last[topic] = value
        self._foreign.discard(topic)

    def forget(self, topic: str) -> None:
        """We no longer publish this topic."""
        self._last.pop(topic, None)
        self._foreign.discard(topic)

    def rearm(self) -> None:
        """A new connection: every value of ours may come back once more."""
        self._foreign.clear()

    def is_echo(self, topic: str, value: NtValue) -> bool:
        """True if this remote value is our own last one."""
        last = self._last.get(topic)
        if last is None or topic in self._foreign:
            return False
        if _same(last, value):
            return True
        self._foreign.add(topic)
        return False


def _same(ours: NtValue, theirs: NtValue) -> bool:
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(_same, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, float) and math.isnan(ours):
        return math.isnan(theirs)
    return ours == theirs


class Batch:
    """One drain: all events in order, and what a connection's owner must know of them at once."""

    __slots__ = ("blocked", "control", "events", "lost")

    def __init__(self) -> None:
        self.events: list[NtEvent] = []
        self.control: list[Control] = []
        self.lost = False
        self.blocked = False

    def add(self, event: Control) -> None:
        """Append an event that is not a value."""
        self.events.append(event)
        self.control.append(event)


class EventReader:
    """Translates drains; a bad event is counted and skipped, never raised.

    ``now_us`` estimates the server's clock. ``connections`` False ignores connection events (a server's clients).
    """

    def __init__(self, own: OwnValues, now_us: Callable[[], int], *, connections: bool = True) -> None:
        self._own = own
        self._now_us = now_us
        self._connections = connections
        self._future_topics: set[str] = set()
        self._log_lines = 0
        self.bad_utf8 = 0
        self.bad_events = 0
        self.own_echoes = 0
        self.future_times = 0
        self.old_server = False

    def read(self, events: Sequence[RawEvent]) -> Batch:
        """Translate one drain."""
        batch = Batch()
        self.read_into(batch, events)
        return batch

    def read_into(self, batch: Batch, events: Sequence[RawEvent]) -> None:
        """Translate events behind what the batch has."""
        append = batch.events.append
        now_us = self._now_us()
        horizon_us = now_us + FUTURE_US
        ours, is_echo = self._own.topics, self._own.is_echo
        for event in events:
            try:
                flags = event.flags
                data = event.data
                if not flags & VALUE_REMOTE:
                    self._read_other(flags, data, batch)
                    continue
                topic = data.topic.getName()
                wrapped = data.value
                time_us = wrapped.server_time()
                try:
                    value = wrapped.value()
                except UnicodeDecodeError as error:
                    value = self._replace_bad_utf8(wrapped, error)
                    if value is None:
                        continue
                if topic in ours and is_echo(topic, value):  # few topics are ours: no call for the others
                    self.own_echoes += 1
                    continue
                if time_us <= UNSTAMPED:
                    time_us = now_us
                elif time_us > horizon_us:
                    self._note_future(topic, time_us - now_us)
                append(Update(topic, value, time_us))
            except MemoryError:
                raise  # the event was good, and what it said is lost
            except Exception:  # noqa: BLE001  # one bad event must not cost the batch; what it is cannot be known
                self.bad_events += 1
                _log.debug("event of ntcore skipped", exc_info=True)

    def _replace_bad_utf8(self, wrapped: Any, error: UnicodeDecodeError) -> str | None:
        """Text with U+FFFD for what is no UTF-8; None for an array, of which only the bad element is known."""
        self.bad_utf8 += 1
        return error.object.decode("utf-8", "replace") if wrapped.isString() else None

    def _note_future(self, topic: str, ahead_us: int) -> None:
        self.future_times += 1
        if topic not in self._future_topics and len(self._future_topics) < MAX_LOG_LINES:
            self._future_topics.add(topic)
            _log.warning(
                "%s carries a time %.0f s ahead of the server: newer values will not pass", topic, ahead_us / 1e6
            )

    def _read_other(self, flags: int, data: Any, batch: Batch) -> None:
        if flags & PUBLISH:
            batch.add(Announced(data.name, data.type_str))
        elif flags & UNPUBLISH:
            batch.add(Unannounced(data.name))
        elif flags & LOG_MESSAGE:
            self._read_log(data, batch)
        elif flags & TIME_SYNC:
            batch.add(ClockSync(data.serverTimeOffset, data.rtt2, data.valid))
        elif self._connections and flags & CONNECTED:
            self._read_connected(data, batch)
        elif self._connections and flags & DISCONNECTED:
            batch.lost = True
            batch.add(Disconnected())

    def _read_connected(self, data: Any, batch: Batch) -> None:
        self._own.rearm()
        self._log_lines = 0
        self.old_server = data.protocol_version < OLDEST_SAFE_PROTOCOL
        if self.old_server:
            _log.warning("old server (protocol %#06x): a pulled cable may go unnoticed", data.protocol_version)
        batch.add(Connected(join_host_port(data.remote_ip, data.remote_port)))

    def _read_log(self, data: Any, batch: Batch) -> None:
        message = data.message
        if BLOCKED_TEXT in message:
            batch.blocked = True
        level = data.level
        quiet = level <= logging.INFO or any(word in message for word in NOISE) or self._log_lines >= MAX_LOG_LINES
        if not quiet:
            self._log_lines += 1
        _log.log(logging.DEBUG if quiet else level, "ntcore: %s", message)
