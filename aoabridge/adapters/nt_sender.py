"""What waits to be set: phone puts in order, the bridge's own values newest per topic; paced by the window."""

from collections import deque
from collections.abc import Callable, Iterable

from aoabridge.adapters.nt_pacing import FlushClock, SetWindow
from aoabridge.adapters.nt_publishers import PERIOD_S, Publishers, payload_bytes
from aoabridge.values import (
    MAX_VALUE_BYTES,
    SCHEMA_TYPE,
    LinkId,
    NtValue,
    Publication,
    Put,
    PutOp,
    PutResult,
    Withdrawal,
)

__all__ = ["Sender"]

LEISURELY_PERIOD_S = 0.1  # with nothing faster ntcore's thread sleeps that long: a quarter of an idle bridge's cost
REFUSED_OFFLINE = "no robot connected"


class Sender:
    """Sets what the window allows, schemas first, then phone puts, then the bridge's own values.

    Only while ``online``: otherwise own values wait (newest per topic), puts are refused, ``keep_all`` values are
    discarded, because an old event must not show up at the next connection. ``flush`` returns the time at its end: a
    long turn flushes later than it began.
    """

    def __init__(self, phone: Publishers, own: Publishers, flush: Callable[[], float]) -> None:
        self._phone = phone
        self._own = own
        self._flush = flush
        self._window = SetWindow()
        self._flush_clock = FlushClock()
        self._puts: deque[Put] = deque()
        self._ordered: deque[Publication | Withdrawal] = deque()
        self._newest: dict[str, Publication | Withdrawal] = {}
        self._newest_by = float("-inf")
        self._ordered_topics: set[str] = set()
        self._leisurely: set[str] = set()  # topics that need no short period: another flush takes their values along
        self._unflushed: list[Put] = []
        self._results: list[PutResult] = []
        self.sets = 0
        self.flushes = 0
        self.coalesced = 0
        self.discarded_offline = 0
        self.publish_refused = 0

    def offer_puts(self, puts: Iterable[Put]) -> None:
        """Queue orders of the core; nothing is coalesced or reordered. A released link's waiting sets are refused."""
        for put in puts:
            if put.op is PutOp.RELEASE:
                self._release(put.link)
            else:
                self._puts.append(put)

    def _release(self, link: LinkId) -> None:
        """A false stays: it may be what lowers a run pulse; schemas belong to no link."""
        kept: deque[Put] = deque()
        for put in self._puts:
            if put.link == link and put.op is PutOp.SET and put.value is not False and put.type != SCHEMA_TYPE:
                self._results.append(PutResult(put, "not-connected", "the link is over"))
            else:
                kept.append(put)
        self._puts = kept

    def publish(
        self, items: Iterable[Publication | Withdrawal], by: float = float("-inf"), *, steady: bool = False
    ) -> None:
        """Queue values of the bridge itself; of a topic that waits only the newest stays, unless it is ``keep_all``.

        Until ``by`` they wait for a flush of something else to go with; those without ``by`` never wait. ``steady``:
        the next ones are not far.
        """
        leisurely = steady or by > float("-inf")
        self._newest_by = min(by, self._newest_by) if self._newest else by
        for item in items:
            topic = item.topic
            if leisurely:
                self._leisurely.add(topic)
            if isinstance(item, Publication) and (item.keep_all or item.type == SCHEMA_TYPE):
                self._ordered_topics.add(topic)
            if topic in self._ordered_topics:
                self._ordered.append(item)
                continue
            self.coalesced += isinstance(self._newest.get(topic), Publication)
            self._newest[topic] = item

    def send(self, now: float, *, online: bool) -> None:
        """Do what is due at ``now``; ``online`` = connected, and the core knows of this connection."""
        if self._phone.reap(now) | self._own.reap(now):
            self._flush_clock.want()
        if not online:
            self.abandon_puts(REFUSED_OFFLINE)
        if self._send_ordered(now, online) and self._send_puts(now) and online:
            if now >= self._newest_by or self._flush_clock.due(now):
                self._send_newest(now)
        elif not online:
            self._withdraw_newest(now)
        if self._flush_clock.due(now):
            self._on_flushed(max(now, self._flush()))

    def abandon_puts(self, why: str) -> None:
        """Refuse every waiting or unflushed set and drop all publishers of phones."""
        self.refuse_puts(why)
        self._phone.drop_all()

    def refuse_puts(self, why: str) -> None:
        """Refuse every waiting or unflushed set."""
        sets = [put for put in self._puts if put.op is PutOp.SET]
        self._results.extend(PutResult(put, "not-connected", why) for put in (*self._unflushed, *sets))
        self._unflushed.clear()
        self._puts.clear()

    def take_results(self) -> list[PutResult]:
        """Remove and return what became of the puts."""
        results, self._results = self._results, []
        return results

    def next_time(self, now: float, *, online: bool) -> float | None:
        """When ``send`` has something to do; None if nothing waits."""
        times = [self._flush_clock.next_time(), self._phone.next_time(), self._own.next_time()]
        if self._puts or (online and self._ordered):
            times.append(self._window.ends)
        if online and self._newest:
            times.append(max(self._window.ends, self._newest_by))
        return min((max(time, now) for time in times if time is not None), default=None)

    def _send_ordered(self, now: float, online: bool) -> bool:
        """True if all of them are done (offline: discarded, but for withdrawals and schemas)."""
        waiting: list[Publication | Withdrawal] = []
        while self._ordered:
            item = self._ordered[0]
            if isinstance(item, Withdrawal):
                self._withdraw(item.topic, now)
                self._ordered_topics.discard(item.topic)
            elif online:
                if not self._set_own(item, now):
                    return False
            elif item.type == SCHEMA_TYPE:
                waiting.append(item)
            else:
                self.discarded_offline += 1
            self._ordered.popleft()
        self._ordered.extend(waiting)
        return True

    def _send_puts(self, now: float) -> bool:
        while self._puts:
            put = self._puts[0]
            if put.op is PutOp.UNPUBLISH:
                self._phone.drop(put.topic, now)
                self._flush_clock.want()
            elif not self._set_put(put, now):
                return False
            self._puts.popleft()
        return True

    def _set_put(self, put: Put, now: float) -> bool:
        """False if the window is full."""
        value = put.value
        if value is None:
            self._results.append(PutResult(put, "bad-value", "no value"))
            return True
        size = payload_bytes(value)
        if size > MAX_VALUE_BYTES:
            self._results.append(PutResult(put, "too-large", f"{size} bytes, at most {MAX_VALUE_BYTES}"))
            return True
        if not self._window.admit(size, now):
            return False
        code = self._phone.set(put.topic, put.type, value)
        if code is None:
            self._note_set()
            self._unflushed.append(put)
        else:
            self._results.append(PutResult(put, code, f"{put.topic} does not take this as {put.type}"))
        return True

    def _send_newest(self, now: float) -> None:
        for topic, item in list(self._newest.items()):
            if isinstance(item, Withdrawal):
                self._withdraw(topic, now)
            elif not self._set_own(item, now):
                return
            del self._newest[topic]

    def _withdraw_newest(self, now: float) -> None:
        for topic in [topic for topic, item in self._newest.items() if isinstance(item, Withdrawal)]:
            self._withdraw(topic, now)
            del self._newest[topic]

    def _set_own(self, item: Publication, now: float) -> bool:
        """False if the window is full."""
        value: NtValue = item.value
        size = payload_bytes(value)
        if size <= MAX_VALUE_BYTES:
            if not self._window.admit(size, now):
                return False
            period_s = LEISURELY_PERIOD_S if item.topic in self._leisurely else PERIOD_S
            if self._own.set(item.topic, item.type, value, item.properties, period_s) is None:
                self._note_set()
                return True
        self.publish_refused += 1
        return True

    def _withdraw(self, topic: str, now: float) -> None:
        self._own.drop(topic, now)
        self._leisurely.discard(topic)
        self._flush_clock.want()

    def _note_set(self) -> None:
        self.sets += 1
        self._flush_clock.want()

    def _on_flushed(self, now: float) -> None:
        self.flushes += 1
        self._flush_clock.done(now)
        self._phone.on_flushed(now)
        self._own.on_flushed(now)
        self._results.extend(PutResult(put) for put in self._unflushed)
        self._unflushed.clear()
