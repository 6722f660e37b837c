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


class Stream:
    def __init__(self, reader: int, writer: int) -> None:
        self.reader, self.writer = reader, writer
        self.handler = DescriptorHandler(writer)

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


def closing(stream: Stream) -> Iterator[Stream]:
    yield stream
    stream.handler.close()
    for descriptor in (stream.reader, stream.writer):
        os.close(descriptor)


@pytest.fixture
def pipe() -> Iterator[Stream]:
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    yield from closing(Stream(reader, writer))


@pytest.fixture
def terminal() -> Iterator[Stream]:
    yield from closing(Stream(*os.openpty()))


def test_lines_that_fit_are_written(pipe: Stream) -> None:
    pipe.say("one", "zwei ü")
    assert pipe.read() == "one\nzwei ü\n"
    assert pipe.handler.dropped == 0


def test_a_full_pipe_loses_lines_and_says_so_once_it_is_read(pipe: Stream) -> None:
    pipe.say(*("x" * 999 for _ in range(30)))
    lost = pipe.handler.dropped
    assert 0 < lost < 30
    assert pipe.read().count("\n") == 30 - lost
    pipe.say("after")
    assert pipe.read() == f"log lines lost because nobody read them: {lost}\nafter\n"


def test_a_line_of_several_pages_is_cut_where_it_stops_and_ended_before_the_next(pipe: Stream) -> None:
    pipe.say("y" * (3 * PIPE_BYTES))
    assert pipe.handler.dropped == 1
    assert pipe.read() == "y" * PIPE_BYTES
    pipe.say("after")
    assert pipe.read() == "\nlog lines lost because nobody read them: 1\nafter\n"


def test_a_reader_that_is_gone_costs_nothing(pipe: Stream) -> None:
    os.dup2(os.open(os.devnull, os.O_RDONLY), pipe.reader)
    pipe.say("one", "two")
    assert pipe.handler.dropped == 2


def test_a_line_that_is_no_text_is_escaped(pipe: Stream) -> None:
    pipe.say("\udc80")
    assert pipe.read() == "\\udc80\n"


@pytest.mark.parametrize("length", [79, 999, 3000])
def test_a_terminal_that_nobody_reads_loses_lines_and_stays_as_it_was(terminal: Stream, length: int) -> None:
    """It says that there is room as long as there is room for a few bytes."""
    terminal.say(*("x" * length for _ in range(100_000 // length)))
    assert terminal.handler.dropped
    assert os.get_blocking(terminal.writer)


def test_nothing_is_written_to_whatever_has_the_number_of_a_closed_terminal(terminal: Stream) -> None:
    terminal.handler.close()
    terminal.say("late")
    assert terminal.handler.dropped == 1
