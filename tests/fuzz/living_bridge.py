"""One bridge for a whole fuzz run: real handlers and page on a thread, no phone, no robot."""

import asyncio
import atexit
import functools
import logging
import tempfile
import threading
from pathlib import Path

from aoabridge.adapters.logs import Logs
from aoabridge.config import parse_config
from aoabridge.daemon.service import Bridge
from rig.nt_process import free_port

START_S = 20.0
CONFIG = """
name = "fuzz"
[nt]
server = "127.0.0.1"
port = {robot}
[web]
enabled = true
bind = "127.0.0.1"
port = {page}
"""


class Faults(logging.Handler):
    """Keeps what the edges caught: each is a defect that a hostile request has reached."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        self.texts.append(f"{text}: {record.exc_info[1]!r}" if record.exc_info else text)


class LivingBridge:
    """``socket`` and ``port`` are its control socket and page; ``check`` fails if an edge had to catch something."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="aoabridge-fuzz-")
        self.socket = Path(self._directory.name) / "control.sock"
        self.port = free_port()
        self.faults = Faults()
        logging.getLogger("aoabridge").addHandler(self.faults)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(START_S)
        atexit.register(self.close)  # a live NetworkTables poller would abort the process at its end

    async def _start(self) -> None:
        result = parse_config(CONFIG.format(robot=free_port(), page=self.port), "fuzz.toml", host="fuzz")
        assert result.config is not None, result.errors
        self.bridge = Bridge(result.config, self.socket, phones=None, logs=Logs(form="text", ring_lines=100))
        assert self.bridge.control is not None
        # Writes files at any path its caller names, which is why only root and the daemon's user may ask.
        del self.bridge.control.handlers["record-start"]
        await self.bridge.start()
        await self._until_the_page_listens()

    async def _until_the_page_listens(self) -> None:
        """Its server opens in the background."""
        while True:
            try:
                _reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            except ConnectionRefusedError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self.bridge.stop(), self._loop).result(START_S)
        self._directory.cleanup()

    def check(self) -> None:
        assert not self.faults.texts, self.faults.texts


@functools.cache
def living_bridge() -> LivingBridge:
    """The one of this process; it ends with the process."""
    return LivingBridge()
