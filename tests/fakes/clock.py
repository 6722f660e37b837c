"""Time for the emulated phone: virtual for pure code, real for threads; both run callbacks one at a time."""

import heapq
import itertools
import threading
import time

__all__ = ["ThreadClock", "Timer", "VirtualClock"]


class Timer:
    """A callback that is due at `when`; `cancel()` makes it a no-op."""

    __slots__ = ("_callback", "when")

    def __init__(self, when, callback):
        self.when = when
        self._callback = callback

    def cancel(self):
        self._callback = None

    @property
    def active(self):
        return self._callback is not None

    def fire(self):
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()


class VirtualClock:
    """Seconds that pass only when `run_until` is called."""

    def __init__(self, start=1000.0):
        self._now = start
        self._heap = []
        self._order = itertools.count()

    def now(self):
        return self._now

    def call_later(self, delay, callback):
        return self.call_at(self._now + delay, callback)

    def call_at(self, when, callback):
        timer = Timer(max(when, self._now), callback)
        heapq.heappush(self._heap, (timer.when, next(self._order), timer))
        return timer

    def next_deadline(self):
        """When the next active timer is due, None without one."""
        while self._heap and not self._heap[0][2].active:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def run_until(self, when):
        """Fires everything due up to `when`, in order, and leaves the clock there."""
        while (due := self.next_deadline()) is not None and due <= when:
            timer = heapq.heappop(self._heap)[2]
            self._now = max(self._now, due)
            timer.fire()
        self._now = max(self._now, when)


class ThreadClock:
    """Monotonic seconds times `speed`; callbacks run on an own thread under `lock`."""

    def __init__(self, lock, speed=1.0):
        self.speed = speed
        self._lock = lock
        self._heap = []
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._stopped = False
        self._origin = time.monotonic()
        self.thread = threading.Thread(target=self._run, name="phone-clock", daemon=True)
        self.thread.start()

    def now(self):
        if self.speed == 1.0:
            return time.monotonic()
        return self._origin + (time.monotonic() - self._origin) * self.speed

    def call_later(self, delay, callback):
        return self.call_at(self.now() + delay, callback)

    def call_at(self, when, callback):
        timer = Timer(when, callback)
        with self._changed:
            heapq.heappush(self._heap, (when, next(self._order), timer))
            self._changed.notify()
        return timer

    def stop(self):
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self.thread is not threading.current_thread():
            self.thread.join(timeout=2)

    def _run(self):
        while (timer := self._next()) is not None:
            with self._lock:
                timer.fire()

    def _next(self):
        with self._changed:
            while not self._stopped:
                wait_s = (self._heap[0][0] - self.now()) / self.speed if self._heap else None
                if wait_s is not None and wait_s <= 0:
                    return heapq.heappop(self._heap)[2]
                self._changed.wait(wait_s)
            return None
