"""Serves every scenario of the pit on a port of its own, until its standard input ends; prints the addresses."""

import asyncio
import json
import sys

from aoabridge.adapters.log_ring import LogRing
from aoabridge.adapters.web import WebServer, WebSettings
from aoabridge.daemon.web import PageContent
from fakes.pages import SCENARIOS, PageObserver, hostile


async def main() -> None:
    urls = {}
    servers = []
    for name, scenario in {**SCENARIOS, "hostile": hostile}.items():
        content = PageContent(PageObserver(scenario()), lambda: True, LogRing(10))
        server = WebServer(WebSettings(0, "127.0.0.1"), content)
        await server.start()
        servers.append(server)
        urls[name] = f"http://127.0.0.1:{server.port}/"
    print(json.dumps(urls), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for server in servers:
        await server.close()


if __name__ == "__main__":
    asyncio.run(main())
