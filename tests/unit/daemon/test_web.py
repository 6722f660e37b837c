"""What the page is given: real files, a configuration without secrets, and a server that survives a taken port."""

import asyncio
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aoabridge.adapters.log_ring import LogRing
from aoabridge.config import Config, default_config
from aoabridge.config.loader import parse_config
from aoabridge.daemon import web
from aoabridge.daemon.web import PageContent, WebHost
from aoabridge.status import IssueBoard
from fakes.pages import SCENARIOS, PageObserver
from fakes.web import served

TOKEN = "f00dfacef00dfacef00dfacef00dface"
SERIAL = "2A211FDH300ABC"
FILE = f"""
[phone]
serial = "{SERIAL}"
[devices]
deny = ["serial:{SERIAL}", "port:1-1.4", "2b4c:*"]
[[device]]
name = "pixel7"
serial = "{SERIAL}"
[web]
control = true
token_file = "%s"
"""


def content(config: Config | None = None, scenario: str = "healthy", ring: LogRing | None = None) -> PageContent:
    return PageContent(PageObserver(SCENARIOS[scenario](), config), lambda: True, ring)  # type: ignore[arg-type]


def test_the_page_loads_little_and_only_from_here() -> None:
    page = content()
    assets = {name: page.asset(name) for name in ("app.js", "app.css", "icon.svg")}
    assert sum(len(asset[1]) for asset in assets.values() if asset) <= 60 * 1024
    for asset in assets.values():
        assert asset is not None
        text = asset[1].decode().replace("http://www.w3.org/2000/svg", "")
        for word in ("http:", "https:", "//cdn", "@import", "url(", "eval(", "document.write"):
            assert word not in text
    assert page.asset("../config/schema.py") is None
    assert page.asset("") is None


def test_the_page_and_its_parts_agree() -> None:
    page = content()
    assert page.body() in page.page()
    assert f"<title>{page.title()}</title>" in page.page()
    assert page.status()["verdict"] == "ok"
    assert "####" in page.body()
    assert "/pixel7/pose" in page.body()


def test_one_look_serves_all_pages_of_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(web.time, "monotonic", lambda: now[0])
    page = content()
    first = page.status()
    assert page.status() is first
    now[0] += PageContent.SHARED_S
    assert page.status() is not first


def test_the_configuration_shows_no_secret(tmp_path: Path) -> None:
    token = tmp_path / "secret.token"
    token.write_text(TOKEN)
    result = parse_config(FILE % token, "aoabridge.toml", host="pi")
    assert result.config is not None, result.errors
    ring = LogRing(10)
    with served(content(result.config, ring=ring)) as server:
        answers = [
            server.request(path) for path in ("/", "/api/status", "/api/logs", "/api/config", "/app.js", "/nothing")
        ]
        with server.websocket() as live:
            live.send(json.dumps({"type": "action", "action": "doctor", "token": TOKEN}))
            messages = [live.recv(10) for _ in range(3)]
    said = b"".join(answer.body for answer in answers) + repr(messages).encode() + repr(ring.lines()).encode()
    assert TOKEN.encode() not in said
    assert SERIAL.encode() not in said
    assert b"secret.token" not in said
    shown: dict[str, Any] = answers[3].json()
    assert shown["effective"]["device"][0]["serial"] == shown["effective"]["phone"]["serial"] == "…0ABC"
    assert shown["effective"]["devices"]["deny"] == ["serial:…0ABC", "port:1-1.4", "2b4c:*"]
    assert shown["effective"]["web"]["control"] is True


def test_the_configuration_says_where_from_and_what_is_wrong() -> None:
    shown = content(scenario="config-rejected").config()
    assert (shown["state"], shown["path"]) == ("rejected", "/etc/aoabridge/aoabridge.toml")
    assert len(shown["errors"]) == 2
    assert shown["origins"] == {"nt.team": "file"}


class Board:
    """As much of the observer as the host needs."""

    def __init__(self) -> None:
        self.board = IssueBoard()

    def codes(self) -> list[str]:
        return [issue.code for issue in self.board.open_issues()]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


def with_web(**changes: Any) -> Config:
    config = default_config("pi")
    return msgspec.structs.replace(config, web=msgspec.structs.replace(config.web, bind="127.0.0.1", **changes))


def test_a_taken_port_is_an_issue_until_it_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    assert web.RETRY_S == 10
    monkeypatch.setattr(web, "RETRY_S", 0.05)

    async def story() -> None:
        observer = Board()
        with socket.create_server(("127.0.0.1", 0)) as taken:
            host = WebHost(with_web(port=taken.getsockname()[1]), content(), observer)  # type: ignore[arg-type]
            host.start()
            await until(lambda: observer.codes() == ["web-bind-failed"])
        await until(lambda: not observer.codes())
        await host.stop()

    asyncio.run(story())


def test_a_reload_changes_who_may_ask() -> None:
    async def story() -> None:
        host = WebHost(with_web(port=0), content(), Board())  # type: ignore[arg-type]
        rules = host.server.rules
        assert rules.allows_peer("10.1.2.3")
        assert rules.refusal("127.0.0.1", "GET", ["bridge.example:5808"], 5808) is not None
        host.reload(with_web(port=0, allow_from=("127.0.0.1/32",), hosts=("Bridge.Example",)))
        assert not rules.allows_peer("10.1.2.3")
        assert rules.refusal("127.0.0.1", "GET", ["bridge.example:5808"], 5808) is None
        assert rules.refusal("127.0.0.1", "GET", [f"{socket.gethostname()}.local:5808"], 5808) is None

    asyncio.run(story())
