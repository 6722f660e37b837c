"""The page's server over a real connection: who is answered, with what, and that nobody can wear it out."""

import contextlib
import json
import logging
import socket
import time
from collections.abc import Iterator

import pytest
from websockets.exceptions import ConnectionClosed

from aoabridge.adapters import web
from fakes.web import Served, parsed, read_all, served
from fakes.web_content import Content

SECRET = "0123456789abcdef0123456789abcdef"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self' ws://{host}; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


@pytest.fixture
def content() -> Content:
    return Content()


@pytest.fixture
def server(content: Content) -> Iterator[Served]:
    with served(content, names=("pi", "pi.local")) as running:
        yield running


@pytest.mark.parametrize(
    ("path", "kind", "start"),
    [
        ("/", "text/html; charset=utf-8", b"<p>page \xc3\xa4 ?</p>"),
        ("/?x=1", "text/html; charset=utf-8", b"<p>page"),
        ("/app.css", "text/css; charset=utf-8", b"body{}"),
        ("/api/status", "application/json", b'{"schema": 1'),
        ("/api/logs", "application/json", b'{"lines": []'),
        ("/api/config", "application/json", b'{"effective"'),
        ("/healthz", "text/plain; charset=utf-8", b"ok\n"),
    ],
)
def test_every_endpoint_by_get_and_head(server: Served, path: str, kind: str, start: bytes) -> None:
    got, head = server.request(path), server.request(path, "HEAD")
    assert got.status == head.status == 200
    assert got.headers["content-type"] == head.headers["content-type"] == kind
    assert got.body.startswith(start)
    assert head.body == b""
    assert int(got.headers["content-length"]) == len(got.body) > 0
    assert got.headers["cache-control"] == ("no-cache" if path == "/app.css" else "no-store")


@pytest.mark.parametrize("path", ["/", "/app.css", "/nothing", "/healthz", "/ws"])
def test_security_headers_are_exact(server: Served, path: str) -> None:
    for host in (f"127.0.0.1:{server.port}", f"[::1]:{server.port}", f"PI.local:{server.port}"):
        headers = server.request(path, hosts=(host,)).headers
        assert headers["content-security-policy"] == POLICY.format(host=host.lower())
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert not {"server", "access-control-allow-origin", "set-cookie"} & set(headers)


@pytest.mark.parametrize(
    "path", ["/nothing", "/ws", "/api/", "//", "/app.css/", "/../etc/passwd", "/%2e%2e/x", "/[", "*"]
)
def test_anything_else_is_not_found_in_json(server: Served, path: str) -> None:
    answer = server.request(path)
    assert (answer.status, answer.json()) == (404, {"error": "not found"})


def test_an_asset_is_sent_once(server: Served) -> None:
    tag = server.request("/app.css").headers["etag"]
    again = server.request("/app.css", If_None_Match=tag)
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
    assert server.request("/app.css", If_None_Match='"other"').status == 200


@pytest.mark.parametrize(
    ("verdict", "health", "healthz", "ready"),
    [("ok", True, 200, 200), ("problem", True, 200, 503), ("waiting", True, 200, 503), ("ok", False, 503, 200)],
)
def test_health(content: Content, verdict: str, health: bool, healthz: int, ready: int) -> None:
    content.verdict, content.health = verdict, health
    with served(content) as server:
        assert server.request("/healthz").status == healthz
        assert server.request("/healthz?ready").status == ready


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("", (200, "debug", 0)),
        ("?count=2000&level=error&since=7", (2000, "error", 7)),
        ("?level=", (200, "debug", 0)),
        ("?count=1&count=2", (2, "debug", 0)),
        ("?count=0", None),
        ("?count=2001", None),
        ("?since=-1", None),
        ("?count=x", None),
        ("?level=loud", None),
    ],
)
def test_logs_take_only_what_they_know(
    server: Served, content: Content, query: str, asked: tuple[int, str, int] | None
) -> None:
    answer = server.request("/api/logs" + query)
    assert answer.status == (200 if asked else 400)
    assert content.asked == ([asked] if asked else [])


# Who may ask.


@pytest.mark.parametrize("name", ["127.0.0.1", "[::1]", "10.64.58.6", "localhost", "pi", "PI.LOCAL", "LocalHost"])
def test_own_names_are_answered(server: Served, name: str) -> None:
    assert server.request(hosts=(f"{name}:{server.port}",)).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:{port}", "127.0.0.1", "127.0.0.1:80", "127.0.0.1:{port}0", "x@127.0.0.1:{port}",
        "localhost.:{port}",
        "127.0.0.1:{port}/x", "", ":{port}", "pi.local.evil.example:{port}", "127.0.0.1:{port}\t", "[::1:{port}",
        "127.0.0.1.evil.example:{port}", "0x7f.1:{port}", "pi\u00e4:{port}",
    ],
)  # fmt: skip
def test_rebound_names_are_misdirected(server: Served, host: str) -> None:
    text = host.format(port=server.port)
    answer = server.request(hosts=(text,))
    if text.strip() == f"127.0.0.1:{server.port}":  # white space around a value belongs to no value
        assert answer.status == 200
        return
    assert answer.status == 421
    assert "connect-src 'self';" in answer.headers["content-security-policy"]


def test_exactly_one_host(server: Served) -> None:
    name = f"127.0.0.1:{server.port}"
    assert server.request(hosts=()).status == 400
    assert server.request(hosts=(name, name)).status == 400
    assert server.upgrade(Host="evil.example").status == 400


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "G", "get", "GETX", "HEADER"])
@pytest.mark.parametrize("body", [b"", b"x" * 100_000])
def test_nothing_writes(server: Served, method: str, body: bytes) -> None:
    answer = server.request("/api/status", method, body=body)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_method_that_comes_in_pieces(server: Served) -> None:
    for method, status in ((b"GET", 200), (b"POST", 405)):
        with server.open() as connection:
            for byte in method:
                connection.sendall(bytes([byte]))
                time.sleep(0.01)  # a packet each, as far as loopback does that
            connection.sendall(b" / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % server.port)
            assert parsed(read_all(connection)).status == status


def test_strangers_are_refused_and_told_of_once(content: Content, caplog: pytest.LogCaptureFixture) -> None:
    with served(content, allow_from=("10.0.0.0/8", "192.168.1.0/24")) as server:
        for method in ("GET", "HEAD", "POST"):
            assert server.request("/", method).status == 403
        assert server.upgrade().status == 403
        server.server.rules.change(("private",), ())
        assert server.request("/").status == 200
        server.server.rules.change(("::1/128",), ())
        assert server.request("/").status == 403
    told = [record for record in caplog.records if "refused to 127.0.0.1" in record.getMessage()]
    assert len(told) == 1


def test_a_foreign_page_gets_no_websocket(server: Served) -> None:
    own = f"127.0.0.1:{server.port}"
    for origin in (
        "http://evil.example",
        f"https://{own}",
        f"http://localhost:{server.port}",
        "null",
        "",
        f"http://{own}/",
    ):
        assert server.upgrade(Origin=origin).status == 403
    with server.websocket(origin=f"http://{own}") as page:
        assert json.loads(page.recv(10))["type"] == "snapshot"


# Limits.


@pytest.mark.parametrize("broken", [{"Sec_WebSocket_Version": "12"}, {"Connection": "close"}])
def test_a_broken_websocket_handshake_is_refused_with_the_same_headers(server: Served, broken: dict[str, str]) -> None:
    headers = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec_WebSocket_Version": "13",
        "Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    answer = server.request("/ws", **{**headers, **broken})
    assert answer.status in (400, 426)
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")


def test_endless_headers_are_refused(server: Served) -> None:
    start = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n".encode()
    assert parsed(server.raw(start + b"X: " + b"x" * 9000 + b"\r\n\r\n")).status == 431
    assert parsed(server.raw(start + b"X: y\r\n" * 200 + b"\r\n")).status == 431
    assert parsed(server.raw(b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\n\r\n")).status == 414


@pytest.mark.parametrize(
    "garbage", [b"\r\n\r\n", b"\x00" * 50, b"GET\r\n\r\n", b"GET / HTTP/3.0\r\n\r\n", b"\x16\x03\x01\x02\x00"]
)
def test_garbage_is_no_news(server: Served, garbage: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with server.open() as connection:
        connection.sendall(garbage)
        connection.shutdown(socket.SHUT_WR)
        read_all(connection)
    assert server.request("/").status == 200
    assert not caplog.records


def test_idle_connections_do_not_keep_an_honest_one_out(content: Content, monkeypatch: pytest.MonkeyPatch) -> None:
    assert web.REQUEST_S <= 20
    monkeypatch.setattr(web, "REQUEST_S", 1.0)
    with served(content) as server:
        idle = [server.open() for _ in range(100)]
        for connection in idle[::2]:
            connection.sendall(b"GET / HTTP/1.1\r\n")
        deadline = time.monotonic() + 10
        while True:
            try:
                assert server.request("/").status == 200
                break
            except (AssertionError, OSError):
                assert time.monotonic() < deadline
                time.sleep(0.1)
        for connection in idle:
            connection.close()


def test_sixteen_connections_are_served(server: Served) -> None:
    waiting = [server.open() for _ in range(15)]
    assert server.request("/").status == 200
    for connection in waiting:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % server.port)
        assert parsed(read_all(connection)).status == 200
        connection.close()


def test_a_fault_of_ours_is_logged_and_shows_nothing(
    server: Served, content: Content, caplog: pytest.LogCaptureFixture
) -> None:
    content.fault = RuntimeError(SECRET)
    answer = server.request("/")
    assert answer.status == 500
    assert SECRET.encode() not in answer.body
    assert b"Traceback" not in answer.body
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


def test_a_taken_port_is_an_error_of_start(server: Served, content: Content) -> None:
    with pytest.raises(OSError, match="in use"), served(content, port=server.port):
        pass


def test_both_families(content: Content) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with served(content, bind="::", port=port) as server:  # whatever families this machine has
        assert server.request("/").status == 200


# The websocket.


def test_a_page_gets_the_snapshot_then_what_has_changed(server: Served, content: Content) -> None:
    with server.websocket() as page:
        first = json.loads(page.recv(10))
        assert (first["type"], first["status"]["verdict"], first["title"]) == ("snapshot", "ok", "OK")
        second = json.loads(page.recv(10))
        assert (second["type"], second["seq"], set(second["status"])) == ("update", 1, {"uptime_s"})
        content.verdict = "problem"
        third = json.loads(page.recv(10))
        assert (third["seq"], third["status"]["verdict"], third["title"]) == (2, "problem", "PROBLEM")


def test_a_page_gets_new_log_lines_only(server: Served, content: Content) -> None:
    content.lines = [{"seq": 0, "text": "old"}]
    with server.websocket() as page:
        assert json.loads(page.recv(10))["type"] == "snapshot"
        content.lines = [*content.lines, {"seq": 1, "text": "new \ud800"}]
        found = [json.loads(page.recv(10)) for _ in range(4)]
    logs = [message["lines"] for message in found if message["type"] == "log"]
    assert logs == [[{"seq": 1, "text": "new \ud800"}]]


def test_at_most_five_messages_per_second(server: Served, content: Content) -> None:
    with server.websocket() as page:
        page.recv(10)
        began, count = time.monotonic(), 0
        while time.monotonic() - began < 2:
            content.lines = [*content.lines, {"text": "x"}]
            page.recv(10)
            count += 1
    assert 4 <= count <= 10


def test_the_ninth_page_is_refused(server: Served) -> None:
    with contextlib.ExitStack() as pages:
        for _ in range(7):
            pages.enter_context(server.websocket()).recv(10)
        with server.websocket() as eighth:
            eighth.recv(10)
            assert server.upgrade().status == 503
        deadline = time.monotonic() + 10
        while server.upgrade().status != 101:
            assert time.monotonic() < deadline


def test_what_a_page_sends_is_ignored_up_to_its_limit(server: Served) -> None:
    with server.websocket() as page:
        page.send(json.dumps({"type": "action", "action": "reset-port", "token": SECRET}))
        page.send("x" * 4096)
        for _ in range(3):
            assert SECRET not in str(page.recv(10))
        page.send("x" * 4097)
        with pytest.raises(ConnectionClosed) as closed:
            for _ in range(100):
                page.recv(10)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


def test_a_page_that_takes_nothing_is_closed_and_never_sees_old_states(
    content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert web.PROGRESS_S == 5
    monkeypatch.setattr(web, "PROGRESS_S", 0.5)
    monkeypatch.setattr(web, "UPDATE_S", 0.05)
    with served(content) as server, server.open() as slow:
        slow.sendall(
            b"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n" % server.port
        )
        began = time.monotonic()
        assert b"101" in slow.recv(16)
        data = read_all(slow)
        assert time.monotonic() - began < 10
    assert data.count(b'"type": "snapshot"') == 1
    assert b'"type": "update"' not in data  # the first was never confirmed, so nothing newer was put behind it


def test_pages_are_told_when_the_bridge_goes(content: Content) -> None:
    with served(content) as server, server.websocket() as page:
        page.recv(10)
        server.run(server.server.close())
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                page.recv(10)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1001


def test_the_end_does_not_wait_for_idle_connections(content: Content, monkeypatch: pytest.MonkeyPatch) -> None:
    assert web.CLOSE_S <= 0.5
    monkeypatch.setattr(web, "CLOSE_S", 5.0)
    with contextlib.ExitStack() as idle, served(content) as server:
        for _ in range(3):
            idle.enter_context(server.open())
        assert server.request("/").status == 200
        began = time.monotonic()
        server.run(server.server.close())
        assert time.monotonic() - began < web.CLOSE_S
