"""One phone's link: its bytes in both directions, what it asked for, and whether it is alive."""

from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec

from aoabridge.bridge.outbox import ControlKind, Outbox, Slot
from aoabridge.bridge.policy import AccessRules, RateWindow, TokenBucket
from aoabridge.bridge.reopening import Reopening
from aoabridge.bridge.settings import AccessSettings, RelaySettings
from aoabridge.bridge.topics import MemoryBudget
from aoabridge.errors import LinkError
from aoabridge.phone.lines import InboundLine, LineDecoder, LineKind, LinePacker, OutLine, TransferResult
from aoabridge.phone.messages import DISCONNECT_LINE, Hello, error_line, ping_line
from aoabridge.phone.session import PingSession, Subscriptions
from aoabridge.values import LinkId

__all__ = ["Link", "LinkInfo"]

KEEPALIVE_S = 1.0  # frees an app stuck in read(), and is the probe of one that does not read
PROBE_S = 0.5  # between two tries to reach an app that does not read
BACKLOG_S = 0.5  # what an adopted phone wrote before we came is read by then
# Unless it still comes without a pause, as from a queue: a machine that has no time reads it more slowly. An old press
# that is taken for a new one moves a robot; a new put that is refused is put again.
BACKLOG_GAP_S = 0.02  # the pause of an app that puts 50 times a second is none of a queue
BACKLOG_MAX_S = 2.0
POLL_S = 0.05  # to see a condition that no event announces
PING: Final = object()  # owner of a ping's line: it is not sent again, there will be a newer one
PING_ROOM = 32  # bytes kept free in a transfer for the ping that ends it
SUMMARY_S = 1.0  # between two lines that sum up errors which were not sent
FAULT_REPEAT_S = 10.0  # one error line per topic and fault in that time
MAX_FAULT_TOPICS = 4096


class LinkInfo(msgspec.Struct, frozen=True):
    """What is known of a link when it comes up; ``access`` holds the phone's own patterns beside the common ones."""

    name: str
    packet_size: int
    adopted: bool = False
    access: AccessSettings = AccessSettings(put_allow=(), subscribe_allow=())


class Link:
    """State of one link; the core decides, this keeps. Times are monotonic seconds."""

    def __init__(
        self,
        ident: LinkId,
        info: LinkInfo,
        *,
        access: AccessSettings,
        settings: RelaySettings,
        budget: MemoryBudget,
        now: float,
    ) -> None:
        self.ident = ident
        self.info = info
        self.since = now
        self.configure(access, settings)
        self.decoder = LineDecoder(settings.max_line_bytes, early=info.adopted)
        self.packer = LinePacker(info.packet_size)
        self.counters: Counter[str] = Counter()
        self.outbox = Outbox(budget, settings.sample_lane, self.counters)
        self.subscriptions = Subscriptions(settings.max_subscriptions)
        self.slots: dict[str, Slot] = {}
        self.pings: PingSession | None = None
        self.app: str | None = None
        self.app_version: str | None = None
        self.in_flight = False
        self.blocked_since: float | None = None
        self.blocked_s = 0.0
        self.last_line_at: float | None = None
        self.accepted_bytes = 0
        self.valid_line = False
        self.must_lower = True
        self.refused_code = ""
        self.refused_topic = ""
        self.chunk_age_s = 0.0  # how long the chunk at hand has waited for us
        self.backlog = info.adopted
        self._backlog_since = self._chunk_at = now
        self.quiet = info.adopted
        self.closing = False
        self._half_line = info.adopted
        self.reopening = Reopening(now, adopted=info.adopted)
        self._next_probe = now
        self._last_out = now
        self._suppressed_errors = 0
        self._summary_at = now
        self._fault_at: dict[tuple[str, str], float] = {}
        self._values_in_transfer = False
        self._ping_owed = False  # values went out that no ping has followed yet
        self._outdated = False  # the transfer in flight belongs to an earlier run of the app

    def configure(self, access: AccessSettings, settings: RelaySettings) -> None:
        """Apply the common patterns with the phone's own added, and the limits that may change on a running link."""
        own = self.info.access
        self.may_put = AccessRules(access.put_allow + own.put_allow, access.put_deny + own.put_deny)
        self.may_subscribe = AccessRules(
            access.subscribe_allow + own.subscribe_allow, access.subscribe_deny + own.subscribe_deny
        )
        self.puts = TokenBucket(settings.put_rate, settings.put_burst)
        self.errors = RateWindow(settings.error_lines_per_s)

    def close(self) -> None:
        """An orderly end: what waits of control lines goes out, then the line that says so, then nothing."""
        self.closing = True
        self.outbox.put_control(DISCONNECT_LINE, ControlKind.LAST)

    @property
    def live(self) -> bool:
        """True once a valid line came in and a transfer went out."""
        return self.valid_line and self.accepted_bytes > 0

    def stale(self, now: float) -> bool:
        """True for an app that said hello and no longer answers."""
        return self.pings is not None and self.pings.stale(now)

    # Inbound.

    def on_chunk(self, now: float, pause_s: float | None) -> None:
        """A chunk comes, after a pause of the phone (None: all the time since the last); it may still be old."""
        if not self.backlog:
            return
        passed_s, self._chunk_at = now - self._chunk_at, now
        if pause_s is None:
            pause_s = passed_s
        self._backlog_since += max(0.0, passed_s - pause_s)  # nobody could read then: what is old comes only now
        window_s = BACKLOG_MAX_S if pause_s < BACKLOG_GAP_S else BACKLOG_S
        if now >= self._backlog_since + window_s:
            self.end_backlog()

    def end_backlog(self) -> None:
        """All that the phone wrote before we came has been read."""
        if self.backlog:
            self.backlog = False
            self.decoder.end_backlog()

    def on_resync(self, now: float) -> None:
        """Inbound bytes were lost: the line they belong to is dropped, and what is old comes only now."""
        self.counters["in_resync"] += 1
        self.decoder.resync()
        self._backlog_since = self._chunk_at = now
        self.reopening.on_resync(now)

    def note_line(self, line: InboundLine, now: float) -> None:
        """A line came that is a message."""
        self.last_line_at = now
        self.valid_line = True
        self._half_line = False
        if not line.early:
            self.quiet = False

    def swallow(self) -> bool:
        """True if a line that is no message is garbage of an earlier time, as an adopted phone may begin with."""
        swallowed = self._half_line or self.quiet
        self._half_line = False
        self.counters["adopt_garbage_lines"] += swallowed
        return swallowed

    # Answers.

    def refuse(self, error: LinkError, now: float, line: bytes = b"") -> None:
        """Tell the phone what was wrong, unless it has been told too much already."""
        self.counters["error_lines"] += 1
        if not self.errors.take(now):
            self._suppressed_errors += 1
            return
        text = error_line(error.code, str(error), topic=error.topic, line=line, ident=error.ident)
        self.outbox.put_control(text, ControlKind.ERROR)

    def fault(self, error: LinkError, now: float) -> None:
        """A value cannot be sent: told once per topic in ten seconds, too large once for ever."""
        topic = error.topic or ""
        last = self._fault_at.get((topic, error.code))
        if last is not None and (error.code == "too-large" or now - last < FAULT_REPEAT_S):
            return
        if len(self._fault_at) >= MAX_FAULT_TOPICS:
            self._fault_at.clear()
        self._fault_at[topic, error.code] = now
        self.refuse(error, now)

    def greet(self, hello: Hello, now: float) -> None:
        """The app named itself and will answer pings."""
        self.app, self.app_version = hello.app, hello.version
        self.pings = PingSession(now)

    def start_over(self) -> None:
        """A second hello: forget what the earlier run of the app asked for and has not got."""
        self.subscriptions.clear()
        self.outbox.drop_values()
        self.outbox.drop_control()
        self.must_lower = True
        self._ping_owed = False
        self._outdated = self.in_flight

    # Outbound.

    def take_bytes(self, now: float) -> bytes:
        """The next transfer, b"" if there is nothing to send or one is under way."""
        if self.in_flight:
            return b""
        if self.blocked_since is not None:
            data = self._probe(now) if now >= self._next_probe else b""
        else:
            data = self.packer.take(self._puller(now))
            if not data and now >= self._last_out + KEEPALIVE_S and not self.closing:
                data = self._probe(now)
        if data:
            self.in_flight = True
        return data

    def _probe(self, now: float) -> bytes:
        self._next_probe = now + PROBE_S
        self.counters["probes"] += 1
        self._values_in_transfer = False
        return self.packer.take(lambda _room, _empty: None, probe=True)

    def _values_may_go(self, now: float) -> bool:
        pings = self.pings
        return not self.closing and (pings is None or (not pings.stale(now) and pings.next_credit(now) is None))

    def _puller(self, now: float) -> Callable[[int, bool], OutLine | None]:
        values = self._values_may_go(now)
        pings = None if self.closing else self.pings
        unfinished = self.packer.unfinished
        self._values_in_transfer = unfinished is not None and unfinished.kind is not LineKind.CONTROL
        pinged = False

        def pull(room: int, empty: bool) -> OutLine | None:
            nonlocal pinged
            if pinged:
                return None
            kept = 0 if pings is None else PING_ROOM
            line = self.outbox.pull(room - kept, now, empty=empty, values=values)
            if line is None and pings is not None:
                pinged = True
                return self._ping(pings, room, now)
            if line is not None and line.kind is not LineKind.CONTROL:
                self._values_in_transfer = True
            return line

        return pull

    def _ping(self, pings: PingSession, room: int, now: float) -> OutLine | None:
        """The ping that ends a transfer with values, or is due by itself; owed if there is no room for it."""
        after_values = self._values_in_transfer or self._ping_owed
        self._ping_owed = after_values and room < PING_ROOM
        if room < PING_ROOM or not (after_values or pings.ping_due(now)):
            return None
        return OutLine(ping_line(pings.ping(now, after_values=after_values)), LineKind.CONTROL, PING)

    def accepted(self, count: int, now: float, *, error: bool) -> None:
        """Account for the transfer in flight: ``count`` bytes were accepted, or with ``error`` nobody knows."""
        self.in_flight = False
        result: TransferResult = self.packer.failed() if error else self.packer.accepted(count)
        values_sent = sum(line.kind is not LineKind.CONTROL for line in result.sent)
        self.counters["tx_lines"] += len(result.sent)
        self.counters["tx_values"] += values_sent
        if not self._outdated:
            self._give_back(result.returned, after_values=values_sent > 0)
        self._outdated = False
        if count and not error:
            self.accepted_bytes += count
            self._last_out = now
            self._unblock(now)
        elif not error:
            self.counters["out_timeouts"] += 1
            if self.blocked_since is None:
                self.blocked_since = now
                self._next_probe = now

    def _give_back(self, lines: list[OutLine], *, after_values: bool) -> None:
        self.outbox.give_back(lines)
        if self.pings is not None and any(line.owner is PING for line in lines):
            self.pings.unsent()
            self._ping_owed = after_values

    def _unblock(self, now: float) -> None:
        if self.blocked_since is not None:
            self.blocked_s += now - self.blocked_since
            self.blocked_since = None
            if self.pings is not None:
                self.pings.resume(now)

    # Time.

    def tick(self, now: float) -> None:
        """What is due by time alone."""
        if self.accepted_bytes and self.blocked_since is None and self.reopening.take(now):
            self.outbox.put_control(DISCONNECT_LINE)
        if self._suppressed_errors and now >= self._summary_at + SUMMARY_S and self.errors.take(now):
            text = f"{self._suppressed_errors} more errors were not sent"
            self._suppressed_errors = 0
            self._summary_at = now
            self.outbox.put_control(error_line("rate-limited", text), ControlKind.ERROR)
        for fault in self.outbox.take_faults():
            self.fault(fault, now)
        for key, count in self.outbox.take_dropped():
            text = f"{count} samples were dropped: the phone reads too slowly"
            self.refuse(LinkError(text, "too-many", topic=key), now)

    def next_due(self, now: float) -> float:
        """When ``tick`` or ``take_bytes`` has something to do without any other input."""
        if self.blocked_since is not None:
            return self._next_probe
        if self.closing:
            return now + KEEPALIVE_S
        due = [self._last_out + KEEPALIVE_S]
        reopen_at = self.reopening.next_due()
        if reopen_at is not None:
            due.append(max(reopen_at, now + POLL_S))
        if self._suppressed_errors:
            due.append(max(self._summary_at + SUMMARY_S, now + POLL_S))
        if self.pings is not None:
            due.append(self.pings.next_ping())
            credit = self.pings.next_credit(now)
            if credit is not None and self.outbox.waiting:
                due.append(credit)
        deferred = self.outbox.next_due()
        if deferred is not None and self._values_may_go(now):
            due.append(deferred)
        return min(due)
