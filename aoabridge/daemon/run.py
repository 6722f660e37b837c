"""``aoabridge run``: one process from lock to exit status."""

import asyncio
import contextlib
import logging
import os
import signal
import time
from pathlib import Path

from aoabridge import __version__
from aoabridge.adapters.lock import InstanceLock
from aoabridge.config import RunOptions, Startup, load_config, rendered
from aoabridge.daemon.logs import LogOutput
from aoabridge.daemon.service import Bridge
from aoabridge.daemon.simulated import SimulatedPhone
from aoabridge.simulators.phone_app import KnownApp
from aoabridge.status.views import ConfigView

__all__ = ["run_daemon"]

SYSTEM_RUNTIME = Path("/run/aoabridge")
LOCK_WAIT_S = 10.0  # an instance that is ending needs two seconds
STOP_S = 2.0
EXIT_OK, EXIT_INTERNAL, EXIT_CANNOT_CREATE, EXIT_LOCKED = 0, 70, 73, 75

log = logging.getLogger("aoabridge.daemon")


def run_daemon(options: RunOptions, start: Startup) -> int:
    """Run until SIGTERM or SIGINT; returns the exit status."""
    output = LogOutput(start.config.log, json=options.json, quiet=options.quiet, verbose=options.verbose)
    output.open()
    socket = options.socket or _socket_path()
    lock = InstanceLock(socket.with_name(socket.name + ".lock"))
    try:
        if not lock.acquire(LOCK_WAIT_S):
            log.error("another instance holds %s: stop it, or give another --socket", lock.path)
            return EXIT_LOCKED
    except OSError as error:
        log.error("cannot make %s: %s", lock.path, error)
        return EXIT_CANNOT_CREATE
    try:
        return asyncio.run(_Process(options, start, socket).run())
    finally:
        lock.release()
        output.close()


class _Process:
    """Signals, reloads and the watchdog around a Bridge."""

    def __init__(self, options: RunOptions, start: Startup, socket: Path) -> None:
        self._options = options
        self._start = start
        self._socket = socket
        self._ending = asyncio.Event()
        self._reload_asked = asyncio.Event()
        self._simulated: list[SimulatedPhone] = []

    async def run(self) -> int:
        """From start to the end."""
        loop = asyncio.get_running_loop()
        start = self._start
        bridge = Bridge(start.config, self._socket, relay_allowed=start.relay_allowed, fatal=_die)
        self._show_config(bridge, start)
        where = start.loaded.source
        log.info("aoabridge %s, configuration %s, socket %s", __version__, where, self._socket)
        for fault in start.errors:
            log.error("%s", rendered(fault))
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_end)
        loop.add_signal_handler(signal.SIGHUP, self._reload_asked.set)
        reloader = loop.create_task(self._reload_on_request(bridge))
        await bridge.start()
        self._plug_in_simulated(bridge)
        log.info("ready")
        await self._ending.wait()
        log.info("stopping")
        reloader.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reloader
        for phone in self._simulated:
            phone.stop()
        return await self._stop(bridge)

    async def _stop(self, bridge: Bridge) -> int:
        try:
            await asyncio.wait_for(bridge.stop(), STOP_S)
        except (TimeoutError, RuntimeError) as error:
            _die(str(error) or "the stop took too long")
        log.info("stopped")
        return EXIT_OK

    def _on_end(self) -> None:
        if self._ending.is_set():
            os._exit(EXIT_OK)  # asked twice: at once
        self._ending.set()

    async def _reload_on_request(self, bridge: Bridge) -> None:
        while True:
            await self._reload_asked.wait()
            self._reload_asked.clear()
            loaded = await asyncio.to_thread(load_config, self._options.path)
            now = time.monotonic()
            if loaded.config is None:
                for fault in loaded.errors:
                    log.error("configuration refused: %s", rendered(fault))
                bridge.observer.board.set(
                    "config-rejected", "config", active=True, now=now, data={"error": rendered(loaded.errors[0])}
                )
                continue
            bridge.observer.board.clear("config-rejected", now)
            waiting = bridge.reload(loaded.config)
            view = bridge.observer.config_view
            bridge.observer.config_view = ConfigView(view.path, "ok", tuple(waiting))
            bridge.observer.board.set("config-restart", "config", bool(waiting), now)

    def _show_config(self, bridge: Bridge, start: Startup) -> None:
        bridge.observer.config_view = ConfigView(str(self._options.path), start.state)
        if start.errors:
            error = rendered(start.errors[0])
            now = time.monotonic()
            bridge.observer.board.set("config-rejected", "config", active=True, now=now, data={"error": error})

    def _plug_in_simulated(self, bridge: Bridge) -> None:
        for number in range(self._options.flags.simulate):
            phone = SimulatedPhone(f"simulated{number + 1}", KnownApp(time.monotonic()))
            self._simulated.append(phone)
            bridge.pipes.open(phone.pipe, phone.name)
            phone.start()


def _socket_path() -> Path:
    """The first place where a socket can be: asked for, the system's, the user's."""
    if named := os.environ.get("AOABRIDGE_SOCKET"):
        return Path(named)
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and not (os.access(SYSTEM_RUNTIME, os.W_OK) or os.access(SYSTEM_RUNTIME.parent, os.W_OK)):
        return Path(runtime) / "aoabridge" / "control.sock"
    return SYSTEM_RUNTIME / "control.sock"


def _die(reason: str) -> None:
    """A thread hangs in a library: closing what it uses would abort the process, so leave at once."""
    log.critical("ending the process: %s", reason)
    logging.shutdown()
    os._exit(EXIT_INTERNAL)
