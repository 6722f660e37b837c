"""A phone that is simulated inside the process: the known app on a pipe in memory."""

import asyncio
import time

from aoabridge.adapters.memory_pipe import MemoryPipe
from aoabridge.simulators.phone_app import KnownApp

__all__ = ["SimulatedPhone"]


class SimulatedPhone:
    """One phone with the known app, on a pipe in memory; runs on the event loop."""

    def __init__(self, name: str, app: KnownApp) -> None:
        self.name = name
        self.app = app
        self._loop = asyncio.get_running_loop()
        self.pipe = MemoryPipe(self._wake)
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """The app opens."""
        self._write()

    def stop(self) -> None:
        """The app is silent from here on."""
        if self._timer is not None:
            self._timer.cancel()

    def _wake(self) -> None:
        self._loop.call_soon_threadsafe(self._on_data)

    def _on_data(self) -> None:
        self.app.on_bytes(self.pipe.receive(), time.monotonic())
        self._write()

    def _write(self) -> None:
        now = time.monotonic()
        while data := self.app.take_bytes(now):
            self.pipe.send(data)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(max(0.0, self.app.next_due() - now), self._write)
