"""The emulated phones as a backend of pyusb: real pyusb, real adapters, real threads above it."""

import threading
from collections import Counter

from fakes.backend import FakeBackend, usb_error
from fakes.board import Board
from fakes.clock import ThreadClock

__all__ = ["FakeBackend", "FakeBus", "usb_error"]


class FakeBus:
    """The phones of one case; `speed` > 1 lets every wait and timeout pass faster."""

    def __init__(self, phones, inject=(), speed=1.0):
        self.lock = threading.RLock()
        self.changed_condition = threading.Condition(self.lock)
        self.clock = ThreadClock(self.lock, speed)
        self.board = Board(phones, inject, self.clock, self)
        self.listeners = []
        self.calls_by_thread = Counter()
        self.dead_handle_calls = 0
        self.calls_after_close = 0
        self.backend = FakeBackend(self)

    # transport of the board

    def attached(self, phone):
        """Nothing: devices are found by enumeration."""

    def detached(self, phone):
        self.changed_condition.notify_all()

    def removed(self, phone):
        """Nothing more: the device is gone already."""

    def changed(self, phone, action):
        for listener in list(self.listeners):
            listener()

    # rig

    def do(self, name, phone=None, **arguments):
        with self.lock:
            self.board.do(name, phone, **arguments)

    def scan(self):
        with self.lock:
            return self.board.scan()

    @property
    def busy(self):
        with self.lock:
            return self.board.busy

    def metrics(self):
        with self.lock:
            result = self.board.metrics()
        for values in result.values():
            values["calls_after_no_device"] = self.dead_handle_calls
            values["calls_after_close"] = self.calls_after_close
            values["async_usb_api_used"] = False  # the interface has no such call
        return result

    def kill_host(self):
        """The host process dies: its calls end, its claims are gone; a new backend is the next process."""
        with self.lock:
            self.backend.alive = False
            for handle in list(self.backend.handles):
                self.backend.drop(handle)
            self.backend = FakeBackend(self)
            self.changed_condition.notify_all()

    def close(self):
        self.clock.stop()
