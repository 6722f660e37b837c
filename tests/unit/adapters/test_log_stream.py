"""A log whose reader stands still costs lines, not time."""

import fcntl
import logging
import os
import threading
from collections.abc import Iterator

import pytest

from aoabridge.adapters.log_stream import DescriptorHandler

PIPE_BYTES = 4 * 4096
STUCK_S = 5.0


class Pipe:
    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        fcntl.fcntl(self.writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self.handler = DescriptorHandler(self.writer)

    def say(self, *texts: str) -> None:
        """In a thread of its own, which must come back."""
        thread = threading.Thread(target=lambda: [self._say(text) for text in texts], daemon=True)
        thread.start()
        thread.join(STUCK_S)
        assert not thread.is_alive(), "a log line blocks"

    def _say(self, text: str) -> None:
        record = {"name": "aoabridge.x", "levelno": logging.INFO, "levelname": "INFO", "msg": "%s", "args": (text,)}
        self.handler.handle(logging.makeLogRecord(record))

    def read(self) -> str:
        return os.read(self.reader, 1 << 20).decode()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    for descriptor in (pipe.reader, pipe.writer):
        os.close(descriptor)


def test_lines_that_fit_are_written(pipe: Pipe) -> None:
    pipe.say("one", "zwei ü")
    assert pipe.read() == "one\nzwei ü\n"
    assert pipe.handler.dropped == 0


def test_a_full_pipe_loses_lines_and_says_so_once_it_is_read(pipe: Pipe) -> None:
    pipe.say(*("x" * 999 for _ in range(30)))
    lost = pipe.handler.dropped
    assert 0 < lost < 30
    assert pipe.read().count("\n") == 30 - lost
    pipe.say("after")
    assert pipe.read() == f"log lines lost because nobody read them: {lost}\nafter\n"


def test_a_line_of_several_pages_is_cut_where_it_stops_and_ended_before_the_next(pipe: Pipe) -> None:
    pipe.say("y" * (3 * PIPE_BYTES))
    assert pipe.handler.dropped == 1
    assert pipe.read() == "y" * PIPE_BYTES
    pipe.say("after")
    assert pipe.read() == "\nlog lines lost because nobody read them: 1\nafter\n"


def test_a_reader_that_is_gone_costs_nothing(pipe: Pipe) -> None:
    os.dup2(os.open(os.devnull, os.O_RDONLY), pipe.reader)
    pipe.say("one", "two")
    assert pipe.handler.dropped == 2


def test_a_line_that_is_no_text_is_escaped(pipe: Pipe) -> None:
    pipe.say("\udc80")
    assert pipe.read() == "\\udc80\n"
