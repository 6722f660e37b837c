"""``aoabridge simulate``: the far ends, each on its own sockets. One table from kind to runner."""

import argparse
import asyncio
import importlib
import signal
from collections.abc import Callable, Coroutine
from typing import Any, Final

__all__ = ["Show", "conclude", "every_second", "run_simulation"]

Show = Callable[[dict[str, Any]], None]
Runner = Callable[[argparse.Namespace, Show, asyncio.Event], Coroutine[Any, Any, bool]]

KINDS: Final = ("phone", "robot", "fms", "ds", "j519", "teleop")


def run_simulation(args: argparse.Namespace, show: Show) -> int:
    """Play one far end until its time is over or Ctrl-C; ``show`` gets ticks and the summary.

    Returns 0, or 1 if nothing came back.
    """
    module = importlib.import_module(f"aoabridge.daemon.simulate.{args.kind}")
    return 0 if asyncio.run(_until_signal(module.run, args, show)) else 1


async def _until_signal(run: Runner, args: argparse.Namespace, show: Show) -> bool:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    if args.seconds is not None:
        loop.call_later(args.seconds, stopped.set)
    return await run(args, show, stopped)


async def every_second(stopped: asyncio.Event, tick: Callable[[], None]) -> None:
    """Call ``tick`` once per second until ``stopped``."""
    while not stopped.is_set():
        try:
            await asyncio.wait_for(stopped.wait(), 1.0)
        except TimeoutError:
            tick()


def conclude(show: Show, summary: dict[str, Any], ok: bool) -> bool:
    """Show the summary with its verdict; returns ``ok``."""
    show({**summary, "ok": ok})
    return ok
