"""Links over pipes that are not USB: the simulated phones of ``demo`` and ``simulate phone``."""

import asyncio
from collections.abc import Callable

from aoabridge.adapters.usb_pump import Ended, LinkPump, Pipe
from aoabridge.bridge.link import LinkInfo
from aoabridge.daemon.relay import Relay
from aoabridge.values import LinkId

__all__ = ["PipeHost"]

STOP_S = 1.0  # a read or write of a pipe returns within its timeout
FAREWELL_S = 0.5


class PipeHost:
    """Runs a pump per pipe and reports its events to the relay; everything on the loop's thread."""

    def __init__(self, relay: Relay, new_link: Callable[[], LinkId]) -> None:
        self._relay = relay
        self._new_link = new_link
        self._loop = asyncio.get_running_loop()
        self._pumps: dict[LinkId, LinkPump] = {}
        self._pipes: dict[LinkId, Pipe] = {}
        self._ending: set[asyncio.Task[None]] = set()  # the loop itself keeps no reference

    def open(self, pipe: Pipe, name: str) -> LinkId:
        """Start a link over a pipe."""
        link = self._new_link()
        pump = LinkPump(pipe, name, lambda: self._wake(link))
        self._pumps[link], self._pipes[link] = pump, pipe
        self._relay.link_up(self, link, LinkInfo(name, pipe.packet_size))
        pump.start()
        return link

    def ready(self, link: LinkId) -> bool:
        """True if no transfer is under way."""
        return self._pumps[link].idle

    def offer(self, link: LinkId, data: bytes) -> bool:
        """Start one transfer."""
        return self._pumps[link].offer(data)

    def names(self) -> dict[LinkId, str]:
        """The open links."""
        return {link: pump.name for link, pump in self._pumps.items()}

    def seen_at(self) -> list[float]:
        """The last sign of life of every thread, monotonic seconds."""
        return [pump.seen_at() for pump in self._pumps.values()]

    async def stop(self) -> None:
        """End every link in an orderly way: last lines out, threads joined, pipes closed."""
        await asyncio.gather(*(self._close(link) for link in list(self._pumps)))

    async def _close(self, link: LinkId) -> None:
        pump = self._pumps.get(link)
        if pump is None:
            return
        deadline = self._loop.time() + FAREWELL_S
        while link in self._pumps and self._loop.time() < deadline:
            if pump.idle:
                self._drain(link)  # the core must know the last transfer's fate before it gives the next
                data = self._relay.link_farewell(link)
                if not data or not pump.offer(data):
                    break
            await asyncio.sleep(0.005)
        await self._end(link)

    async def _end(self, link: LinkId) -> None:
        pump, pipe = self._pumps.pop(link, None), self._pipes.pop(link, None)
        if pump is not None and pipe is not None:
            self._relay.link_down(link)
            if await asyncio.to_thread(pump.stop, STOP_S):
                pipe.close()

    def _wake(self, link: LinkId) -> None:
        self._loop.call_soon_threadsafe(self._drain, link)

    def _drain(self, link: LinkId) -> None:
        pump = self._pumps.get(link)
        if pump is None:
            return
        for event in pump.take_events():
            self._relay.link_event(link, event)
            if isinstance(event, Ended):
                task = self._loop.create_task(self._end(link))
                self._ending.add(task)
                task.add_done_callback(self._ending.discard)
