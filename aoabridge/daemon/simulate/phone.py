"""``simulate phone``: the known app on a link over the control socket of a running daemon."""

import argparse
import asyncio
import socket
import time
from typing import Any

from aoabridge.daemon.simulate import Show, conclude, every_second
from aoabridge.simulators.phone_app import KnownApp

__all__ = ["run"]

READ_BYTES = 16_384
FAULTS = ("silent", "no-read", "garbage", "restart", "unplug")


async def run(args: argparse.Namespace, show: Show, stopped: asyncio.Event) -> bool:
    """Talk until stopped or the daemon ends the link; ``args.link`` is (socket, bytes already read).

    True if the bridge sent any line.
    """
    phone = _Phone(args, stopped)
    try:
        await every_second(stopped, lambda: show(phone.figures("tick")))
    finally:
        phone.close()
    summary = phone.figures("summary")
    return conclude(show, summary, bool(summary["rx_lines"]))


class _Phone:
    """One app on a socket; everything on the event loop."""

    def __init__(self, args: argparse.Namespace, stopped: asyncio.Event) -> None:
        self._socket: socket.socket
        self._socket, pending = args.link
        self._socket.setblocking(False)
        self._stopped = stopped
        self._loop = asyncio.get_running_loop()
        self._started = time.monotonic()
        self._faults = dict(_parse_faults(args.faults))
        self.app = KnownApp(self._started, subtrees=tuple(args.subscribe), hello=args.hello)
        self._unsent = b""
        self._timer: asyncio.TimerHandle | None = None
        if "no-read" not in self._faults:
            self._loop.add_reader(self._socket, self._read)
            if pending:
                self.app.on_bytes(pending, self._started)
        if "unplug" in self._faults:
            self._loop.call_later(self._faults["unplug"], stopped.set)
        if "restart" in self._faults:
            self._loop.call_later(self._faults["restart"], self._restart)
        if "garbage" in self._faults:
            self._unsent = b'{"half a line\n\x00\xff\n[1,2\n'
        self._write()

    def _restart(self) -> None:
        """The app is closed and opened again; the link stays."""
        self.app.reopen(time.monotonic())
        self._write()

    def _read(self) -> None:
        try:
            data = self._socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._stopped.set()
            self._loop.remove_reader(self._socket)
            return
        self.app.on_bytes(data, time.monotonic())
        self._write()

    def _write(self) -> None:
        now = time.monotonic()
        data = self.app.take_bytes(now)
        if "silent" not in self._faults:
            self._unsent += data
        self._flush()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(max(0.01, self.app.next_due() - now), self._write)

    def _flush(self) -> None:
        if not self._unsent:
            return
        try:
            self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except BlockingIOError:
            return
        except OSError:
            self._stopped.set()

    def close(self) -> None:
        """The phone is unplugged."""
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self._socket)
        self._socket.close()

    def figures(self, kind: str) -> dict[str, Any]:
        """What was sent and what came."""
        counters = self.app.counters
        return {
            "type": kind,
            "seconds": round(time.monotonic() - self._started, 1),
            **{name: counters[name] for name in ("rx_lines", "tx_lines", "values", "structs", "puts", "errors")},
            "topics": counters["topics"],
            "last_in": self.app.last_in or None,
            "last_out": self.app.last_out or None,
            "last_error": self.app.errors[-1] if self.app.errors else None,
        }


def _parse_faults(text: str) -> list[tuple[str, float]]:
    found = []
    for fault in filter(None, text.split(",")):
        name, _, at = fault.partition("@")
        if name not in FAULTS:
            raise ValueError(f"unknown fault {fault!r}: {', '.join(FAULTS)}")
        found.append((name, float(at or 0)))
    return found
