"""The end of a link: a transfer that comes back late is waited for, since the process would have to end for it."""

import threading
import time

import pytest

from aoabridge.adapters.usb_pump import LinkPump
from aoabridge.daemon.links import Link
from aoabridge.errors import UsbError

LATE_S = 1.0  # twice the longest timeout of a transfer


class LatePipe:
    """Its reads come back when the test says so."""

    def __init__(self):
        self.reading, self.back = threading.Event(), threading.Event()
        self.closed = False

    def read(self, timeout_ms):
        self.reading.set()
        self.back.wait(10)

    def close(self):
        self.closed = True


@pytest.fixture
def pipe():
    pipe = LatePipe()
    yield pipe
    pipe.back.set()


def linked(pipe):
    pump = LinkPump(pipe, "p1", lambda: None)
    pump.start()
    assert pipe.reading.wait(5)
    return Link(1, 1, pipe, pump)


def test_a_transfer_that_comes_back_late_is_waited_for(pipe):
    link = linked(pipe)
    threading.Timer(LATE_S, pipe.back.set).start()
    began = time.monotonic()
    link.close()
    assert time.monotonic() - began >= LATE_S - 0.1
    assert pipe.closed


def test_one_that_never_comes_back_leaves_the_pipe_open(pipe, monkeypatch):
    monkeypatch.setattr("aoabridge.daemon.links.JOIN_S", 0.05)
    with pytest.raises(UsbError) as caught:
        linked(pipe).close()
    assert caught.value.kind == "HANG"
    assert not pipe.closed
