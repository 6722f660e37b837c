"""``aoabridge run``: one process from lock to exit status."""

import asyncio
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from aoabridge import __version__
from aoabridge.adapters.lock import InstanceLock
from aoabridge.adapters.logs import Logs
from aoabridge.adapters.state_file import remove_leftovers, write_atomically
from aoabridge.config import LoadResult, RunOptions, Startup, changes, load_config, rendered, with_flags
from aoabridge.config.show import origins
from aoabridge.daemon.service import Bridge
from aoabridge.daemon.simulated import SimulatedPhone
from aoabridge.errors import ConfigError
from aoabridge.exits import Exit
from aoabridge.simulators.phone_app import KnownApp
from aoabridge.status.views import ConfigView

__all__ = ["run_daemon", "watch_defects"]

SYSTEM_RUNTIME = Path("/run/aoabridge")
LOCK_WAIT_S = 10.0  # an instance that is ending needs two seconds
STOP_S = 2.0
SUM_UP_S = 5.0  # a summary of repeated lines is due after a minute: nobody waits for it to the second
GOOD_AFTER_S = 30.0  # a configuration that has run this long did not break the start

log = logging.getLogger("aoabridge.daemon")


def run_daemon(options: RunOptions, start: Startup) -> int:
    """Run until SIGTERM or SIGINT; returns the exit status."""
    settings = start.config.log
    logs = Logs(form="json" if options.json else settings.format, ring_lines=settings.ring)
    logs.install(_level(settings.level, options), settings.levels)
    socket = options.socket or _socket_path()
    lock = InstanceLock(socket.with_name(socket.name + ".lock"))
    try:
        if not lock.acquire(LOCK_WAIT_S):
            log.error("another instance holds %s: stop it, or give another --socket", lock.path)
            return Exit.LOCKED
    except OSError as error:
        log.error("cannot make %s: %s", lock.path, error)
        return Exit.CANNOT_CREATE
    try:
        return asyncio.run(_Process(options, start, socket, logs).run())
    finally:
        lock.release()
        logs.remove()


class _Process:
    """Signals, reloads and the last good configuration around a Bridge."""

    def __init__(self, options: RunOptions, start: Startup, socket: Path, logs: Logs) -> None:
        self._options = options
        self._start = start
        self._socket = socket
        self._logs = logs
        self._ending = asyncio.Event()
        self._reload_asked = asyncio.Event()
        self._simulated: list[SimulatedPhone] = []
        self._good_timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> int:
        """From start to the end."""
        loop = asyncio.get_running_loop()
        start, last_good = self._start, self._options.last_good
        state_dir = None if last_good is None else last_good.parent
        bridge = Bridge(
            start.config,
            self._socket,
            state_dir=state_dir,
            relay_allowed=start.relay_allowed,
            fatal=_die,
            logs=self._logs,
        )
        for written in (last_good, bridge.surfaces.state_file):
            if written is not None:
                remove_leftovers(written)
        self._say_start(bridge)
        watch_defects(loop)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_end)
        loop.add_signal_handler(signal.SIGHUP, self._reload_asked.set)
        self._background(self._reload_on_request(bridge))
        self._background(self._sum_up_logs())
        try:
            await bridge.start()
        except OSError as error:
            log.error("cannot start: %s", error)
            await bridge.stop()
            return Exit.CANNOT_CREATE
        self._plug_in_simulated(bridge)
        notifier = bridge.surfaces.notifier
        notifier.ready()
        log.info("ready", extra={"code": "ready"})
        self._keep_if_good(bridge, start.loaded)
        await self._ending.wait()
        notifier.stopping()
        log.info("stopping", extra={"code": "stopping"})
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for phone in self._simulated:
            phone.stop()
        return await self._stop(bridge)

    def _background(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.add(asyncio.get_running_loop().create_task(work))

    async def _stop(self, bridge: Bridge) -> int:
        try:
            await asyncio.wait_for(bridge.stop(), STOP_S)
        except (TimeoutError, RuntimeError) as error:
            _die(str(error) or "the stop took too long")
        log.info("stopped")
        return Exit.OK

    def _on_end(self) -> None:
        if self._ending.is_set():
            os._exit(Exit.OK)  # asked twice: at once
        self._ending.set()

    def _say_start(self, bridge: Bridge) -> None:
        start = self._start
        where = start.loaded.source
        log.info(
            "aoabridge %s, configuration %s, socket %s", __version__, where, self._socket, extra={"code": "started"}
        )
        for fault in start.errors:
            log.error("%s", rendered(fault), extra={"code": "config-rejected"})
        state = "defaults" if where == "defaults" and not start.errors else start.state
        errors = tuple(rendered(error) for error in start.errors)
        bridge.observer.config_view = ConfigView(str(self._options.path), state, (), errors)
        self._note_origins(bridge, start.loaded)
        self._show_rejection(bridge, start.errors)

    def _note_origins(self, bridge: Bridge, loaded: LoadResult) -> None:
        bridge.observer.origins = origins(bridge.config, loaded.given, self._options.flags.keys())

    def _show_rejection(self, bridge: Bridge, errors: Sequence[ConfigError]) -> None:
        now = time.monotonic()
        data = {"error": rendered(errors[0])} if errors else {}
        bridge.observer.board.set("config-rejected", "config", bool(errors), now, data=data)

    async def _sum_up_logs(self) -> None:
        while True:
            await asyncio.sleep(SUM_UP_S)
            self._logs.on_tick()

    # Reload.

    async def _reload_on_request(self, bridge: Bridge) -> None:
        notifier = bridge.surfaces.notifier
        while True:
            await self._reload_asked.wait()
            self._reload_asked.clear()
            notifier.reloading(time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000)
            try:
                self._take(bridge, await asyncio.to_thread(load_config, self._options.path))
            except Exception:  # top of the loop: the next reload must still be heard
                log.exception("reload broken off")
            notifier.ready()

    def _take(self, bridge: Bridge, loaded: LoadResult) -> None:
        """Apply a file that was read again; a refused one changes nothing."""
        view = bridge.observer.config_view
        self._show_rejection(bridge, loaded.errors)
        if loaded.config is None:
            for fault in loaded.errors:
                log.error("%s", rendered(fault), extra={"code": "config-rejected"})
            errors = tuple(rendered(fault) for fault in loaded.errors)
            bridge.observer.config_view = ConfigView(view.path, view.state, view.restart_needed, errors)
            return
        if not bridge.relay_allowed:
            # The bridge started without a usable file, with the relay off: nothing of this one is applied.
            found = changes(bridge.config, with_flags(loaded.config, self._options.flags))
            waiting = [change.key for change in found] or ["schema"]  # equal to the defaults, but not running yet
        else:
            waiting = bridge.reload(with_flags(loaded.config, self._options.flags))
            settings = bridge.config.log
            self._logs.apply_levels(_level(settings.level, self._options), settings.levels)
        bridge.observer.config_view = ConfigView(view.path, "ok", tuple(waiting))
        self._note_origins(bridge, loaded)
        bridge.observer.board.set("config-restart", "config", bool(waiting), time.monotonic())
        log.info("configuration read again", extra={"code": "reloaded"})
        self._keep_if_good(bridge, loaded)

    def _keep_if_good(self, bridge: Bridge, loaded: LoadResult) -> None:
        """A valid file that has run for a while is the one to fall back on."""
        if self._good_timer is not None:
            self._good_timer.cancel()
        path = self._options.last_good
        if path is not None and loaded.text and not loaded.errors and loaded.source != str(path):
            loop = asyncio.get_running_loop()
            text = loaded.text

            def keep() -> None:
                kept = loop.run_in_executor(None, _keep, path, text)
                kept.add_done_callback(lambda done: bridge.surfaces.note_write("last good", done.result()))

            self._good_timer = loop.call_later(GOOD_AFTER_S, keep)

    def _plug_in_simulated(self, bridge: Bridge) -> None:
        for number in range(self._options.flags.simulate):
            phone = SimulatedPhone(f"simulated{number + 1}", KnownApp(time.monotonic()))
            self._simulated.append(phone)
            bridge.pipes.open(phone.pipe, phone.name)
            phone.start()


def watch_defects(loop: asyncio.AbstractEventLoop) -> None:
    """Log what nobody catches, on the loop or in a thread; end the process if it was a MemoryError."""
    loop.set_exception_handler(_on_loop_defect)
    threading.excepthook = _on_thread_defect


def _on_loop_defect(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What nobody has caught ends up in our log, not only on stderr."""
    _log_defect(str(context["message"]), context.get("exception"))


def _on_thread_defect(defect: threading.ExceptHookArgs) -> None:
    _log_defect(f"thread {defect.thread.name if defect.thread else '?'} has ended", defect.exc_value)


def _log_defect(what: str, error: BaseException | None) -> None:
    try:
        log.error("defect: %s", what, exc_info=error, extra={"repeat": "defect"})
    finally:
        if isinstance(error, MemoryError):
            # Whatever was going on is half done: values could stand still for ever, lines be joined. A new process
            # begins with a clean state within seconds.
            os._exit(Exit.INTERNAL)


def _keep(path: Path, text: str) -> bool:
    try:
        write_atomically(path, text.encode())
    except OSError as error:
        log.warning("cannot keep the configuration as last good: %s", error, extra={"code": "disk-read-only"})
        return False
    return True


def _level(configured: str, options: RunOptions) -> str:
    if options.verbose:
        return "debug"
    return "error" if options.quiet else configured


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
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        calls = traceback.StackSummary.extract(traceback.walk_stack(frame), lookup_lines=False)  # reads no file
        where = " < ".join(f"{call.name} ({Path(call.filename).name}:{call.lineno})" for call in calls)
        log.critical("thread %s: %s", names.get(ident, ident), where)
    logging.shutdown()
    os._exit(Exit.INTERNAL)
