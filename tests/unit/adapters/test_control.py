"""The control socket: one line in, lines out; rights by the peer's user; a link's raw bytes after the answer."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from aoabridge.adapters.control import (
    MAX_CLIENTS,
    Action,
    Arguments,
    ControlServer,
    Handler,
    Link,
    Query,
    RequestError,
    Stream,
)
from aoabridge.adapters.socket_pipe import SocketPipe
from aoabridge.cli.client import connect
from aoabridge.cli.exits import CommandError
from aoabridge.errors import UsbError

DEADLINE_S = 10.0
STRANGER = """
import os, socket, sys
os.setresuid(65534, 65534, 65534)
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
answers = connection.makefile()
for name in ("status", "reload"):
    connection.sendall(b'{"request": "%s"}\\n' % name.encode())
    print(answers.readline())
"""


async def counting(arguments: Arguments) -> AsyncIterator[Mapping[str, object]]:
    for number in range(int(arguments.get("count", 3))):
        yield {"n": number}


async def endless(_: Arguments) -> AsyncIterator[Mapping[str, object]]:
    while True:
        yield {"x": "y" * 1000}
        await asyncio.sleep(0)


def refused(_: Arguments) -> None:
    raise RequestError("unavailable", "simulated phones are off", "set devices.simulated = true")


class Running:
    """A server on a loop of its own thread."""

    def __init__(self, path: Path) -> None:
        self.pipes: list[SocketPipe] = []
        self.attached = threading.Event()
        handlers: dict[str, Handler] = {
            "status": Query(lambda arguments: {"echo": arguments}),
            "broken": Query(lambda arguments: {"x": arguments["missing"]}),
            "reload": Action(lambda _: {"done": True}),
            "count": Stream(counting),
            "endless": Stream(endless),
            "simulate-phone": Link(lambda _: None, self._attach),
            "closed": Link(refused, self._attach),
        }
        self.server = ControlServer(path, handlers)
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)

    def _attach(self, _: Arguments, pipe: SocketPipe) -> None:
        self.pipes.append(pipe)
        self.attached.set()

    def start(self) -> None:
        self._thread.start()
        self.do(self.server.start)

    def do(self, what: Callable[[], Any]) -> None:
        asyncio.run_coroutine_threadsafe(what(), self.loop).result(DEADLINE_S)

    def until(self, condition: Callable[[], bool]) -> None:
        async def wait() -> None:
            while not condition():
                await asyncio.sleep(0.005)

        asyncio.run_coroutine_threadsafe(asyncio.wait_for(wait(), DEADLINE_S), self.loop).result()

    def stop(self) -> None:
        self.do(self.server.close)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(DEADLINE_S)
        self.loop.close()
        for pipe in self.pipes:
            pipe.close()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    server = Running(tmp_path / "run" / "control.sock")
    server.start()
    try:
        yield server
    finally:
        server.stop()


def raw(running: Running, data: bytes) -> list[dict[str, Any]]:
    """What the server says to these bytes until it closes or has said one line per request."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(DEADLINE_S)
        client.connect(str(running.server.path))
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        received = b""
        while chunk := client.recv(65536):
            received += chunk
    return [json.loads(line) for line in received.splitlines()]


def test_a_query_is_answered_and_several_may_follow_each_other(running: Running) -> None:
    request = json.dumps({"request": "status", "arguments": {"a": 1}}).encode() + b"\n"
    assert raw(running, request * 2) == [{"ok": True, "result": {"echo": {"a": 1}}}] * 2


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"nonsense", "bad-request"),
        (b"[]", "bad-request"),
        (b'{"request": 5}', "bad-request"),
        (b'{"request": "status", "arguments": []}', "bad-request"),
        (b'{"request": "fly"}', "not-found"),
        (b"[" * 50_000, "bad-request"),
        (b"x" * 70_000, "bad-request"),
        (b'{"request": "broken"}', "internal"),
    ],
)
def test_a_bad_request_is_refused_and_the_server_goes_on(running: Running, line: bytes, code: str) -> None:
    answers = raw(running, line + b"\n")
    assert [answer["error"]["code"] for answer in answers] == [code]
    with connect(str(running.server.path)) as daemon:
        assert daemon.request("status") == {"echo": {}}


def test_a_line_without_end_is_cut_off_at_64_kib(running: Running) -> None:
    assert [answer["error"]["code"] for answer in raw(running, b"x" * 66_000)] == ["bad-request"]


def test_a_stream_ends_with_its_events(running: Running) -> None:
    with connect(str(running.server.path)) as daemon:
        assert list(daemon.stream("count", count=3)) == [{"n": 0}, {"n": 1}, {"n": 2}]


def test_a_reader_that_leaves_or_stands_still_ends_or_halts_only_its_own_stream(running: Running) -> None:
    with connect(str(running.server.path)) as slow, connect(str(running.server.path)) as leaving:
        assert next(slow.stream("endless"))
        assert next(leaving.stream("endless"))
        with connect(str(running.server.path)) as daemon:
            assert daemon.request("status") == {"echo": {}}
    running.until(lambda: not running.server.clients)


def test_the_ninth_client_is_told_so(running: Running) -> None:
    daemons = [connect(str(running.server.path)) for _ in range(MAX_CLIENTS)]
    running.until(lambda: len(running.server.clients) == MAX_CLIENTS)
    with connect(str(running.server.path)) as extra, pytest.raises(CommandError, match="8 clients"):
        extra.request("status")
    for daemon in daemons:
        daemon.__exit__()
    running.until(lambda: not running.server.clients)
    with connect(str(running.server.path)) as daemon:
        assert daemon.request("status") == {"echo": {}}


def test_the_socket_is_open_to_all_and_goes_with_the_server(running: Running) -> None:
    path = running.server.path
    assert path.stat().st_mode & 0o777 == 0o666
    running.do(running.server.close)
    assert not path.exists()
    running.do(running.server.start)
    assert path.exists()


def test_an_action_needs_root_or_the_daemons_user(running: Running) -> None:
    with connect(str(running.server.path)) as daemon:
        assert daemon.request("reload") == {"done": True}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_stranger_may_read_but_not_act(running: Running) -> None:
    for folder in (running.server.path.parent, *running.server.path.parents):
        if not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    done = subprocess.run(
        [sys.executable, "-I", "-c", STRANGER, str(running.server.path)], capture_output=True, check=True, timeout=60
    )
    status, reload = (json.loads(line) for line in done.stdout.split(b"\n\n") if line)
    assert status["ok"] is True
    assert reload["error"]["code"] == "forbidden"


def test_an_accepted_link_carries_raw_bytes_both_ways(running: Running) -> None:
    with connect(str(running.server.path)) as daemon:
        connection, early = daemon.link("simulate-phone", name="sim")
        assert running.attached.wait(DEADLINE_S)
        pipe = running.pipes[0]
        assert pipe.read(0) is None
        connection.sendall(b'{"subscribe":[]}\n')
        assert pipe.read(5000) == b'{"subscribe":[]}\n'
        assert pipe.write(b"x" * 16383, 5000) == 16383
        received = early
        while len(received) < 16383:
            received += connection.recv(65536)
    with pytest.raises(UsbError) as caught:
        pipe.read(5000)
    assert caught.value.kind == "NO_DEVICE"
    assert not running.server.clients


def test_bytes_sent_right_behind_the_request_belong_to_the_link(running: Running) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(running.server.path))
        client.sendall(b'{"request":"simulate-phone"}\n{"ping":1}\n')
        assert running.attached.wait(DEADLINE_S)
        assert running.pipes[0].read(5000) == b'{"ping":1}\n'


def test_a_refused_link_says_why_and_what_helps(running: Running) -> None:
    with connect(str(running.server.path)) as daemon, pytest.raises(CommandError) as caught:
        daemon.link("closed")
    assert caught.value.cure == "set devices.simulated = true"


def test_a_pipe_whose_reader_stands_still_takes_what_fits(running: Running) -> None:
    with connect(str(running.server.path)) as daemon:
        daemon.link("simulate-phone")
        assert running.attached.wait(DEADLINE_S)
        pipe = running.pipes[0]
        total = 0
        while (count := pipe.write(b"y" * 16383, 20)) == 16383:
            total += count
        assert 0 <= count < 16383
        assert pipe.write(b"y", 20) in (0, 1)
    with pytest.raises(UsbError):
        pipe.write(b"y" * 16383, 20)
