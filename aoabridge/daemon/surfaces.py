"""The snapshot's surfaces that push: NetworkTables status, alerts, pop-ups, service manager, state file."""

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aoabridge
from aoabridge.adapters.host import HostProbe
from aoabridge.adapters.notify import Notifier
from aoabridge.adapters.state_file import write_atomically
from aoabridge.adapters.update_marker import rolled_back_version
from aoabridge.config import Config
from aoabridge.daemon.observer import Observer
from aoabridge.daemon.relay import Relay
from aoabridge.status.alerts import Alerts
from aoabridge.status.popups import Popups
from aoabridge.status.topics import StatusTopics, bridge_name_topic
from aoabridge.status.views import HostView

__all__ = ["Surfaces", "instance_id"]

HOST_S = 1.0
SLOW_S = 5.0  # the state file, which is read when nothing else is left, and the marker of an update
CLOCK_STEP_S = 2.0
BRIDGES = "/AOABridge/.bridges/"

log = logging.getLogger("aoabridge.surfaces")


def instance_id(machine_id: str) -> str:
    """8 hex digits that tell two machines apart without giving the machine's id away."""
    return hashlib.sha256(b"aoabridge:" + machine_id.encode()).hexdigest()[:8]


class Surfaces:
    """Everything that is told without being asked; twice a second ``tick``, or ``beat`` while nothing happens."""

    def __init__(
        self,
        config: Config,
        relay: Relay,
        observer: Observer,
        *,
        machine_id: str,
        state_file: Path | None,
        state_dir: Path | None,
        stuck: Callable[[], list[str]],
        notifier: Notifier | None = None,
        probe: HostProbe | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.notifier = notifier or Notifier()
        self._relay = relay
        self._observer = observer
        self._identity = instance_id(machine_id)
        self._name = config.name
        built = datetime.fromtimestamp(Path(aoabridge.__file__).stat().st_mtime, UTC)
        self._topics = StatusTopics(config.name, self._identity, built.strftime("%Y-%m-%d"))
        self._alerts = Alerts(config.nt.alerts) if config.nt.alerts else None
        self._popups = Popups()
        self.state_file = state_file
        self._stuck = stuck
        self._probe = probe or HostProbe(state_dir)
        self._wall = wall
        self._host_at = float("-inf")
        self._slow_at = float("-inf")
        self._fed_at = float("-inf")
        self._shown = False
        self._stuck_told: list[str] = []
        self._writing: asyncio.Future[bool] | None = None
        self._wall_offset_s: float | None = None
        self._is_throttled = False
        self._power_dips = 0
        self._unwritten: set[str] = set()

    def tick(self, now: float) -> None:
        """Look at the machine, then tell every surface what has changed."""
        board, config = self._observer.board, self._observer.config
        self._look_at_host(now)
        slowly = now - self._slow_at >= SLOW_S
        if slowly:
            self._slow_at = now
            self._look_at_update(now)
        self._watch_clock(now)
        self._watch_names(now)
        edges = board.take_edges()
        snapshot = self._observer.snapshot(now)
        if config.nt.status:
            self._shown = True
            self._relay.publish(self._topics.on_tick(snapshot), urgent=False)
        elif self._shown:
            self._shown = False
            self._relay.publish(self._topics.withdraw_all())
        if self._alerts is not None:
            self._relay.publish(self._alerts.on_tick(board.open_issues()), urgent=False)
        if config.nt.elastic:
            self._popups.on_edges(edges, snapshot, now)
            self._relay.publish(self._popups.on_tick(snapshot, now))
        else:
            self._relay.publish(self._popups.withdraw_all())
        self.notifier.status(snapshot["sentence"], now)
        if slowly:
            self._write(snapshot)

    @property
    def is_telling(self) -> bool:
        """Whether ``tick`` has more to say although nothing else happens."""
        return self._popups.has_more

    def beat(self, now: float) -> None:
        """A tick instead of ``tick`` if nothing has happened: say that we live. No phone is linked, so none puts."""
        self._look_at_host(now)
        if not self._shown:
            return
        host, sync = self._observer.host, self._relay.clock_sync
        figures = {
            "uptimeSec": round(self._observer.uptime_s(now), 1),
            "cpuPct": host.cpu_percent,
            "rssMiB": host.rss_mib,
            "cpuTempC": None if host.temp_c is None else round(host.temp_c, 1),
            ".timesync/offset_us": sync.offset_us if sync.valid else None,
            ".timesync/rtt2_us": sync.rtt2_us if sync.valid else None,
        }
        self._relay.publish(self._topics.on_beat(figures))

    def note_write(self, what: str, done: bool) -> None:
        """Whether the last try to write a file worked."""
        if done:
            self._unwritten.discard(what)
        else:
            self._unwritten.add(what)

    def _look_at_host(self, now: float) -> None:
        if now - self._host_at < HOST_S:
            return
        self._host_at = now
        figures = self._probe.read()
        self._observer.host = HostView(
            cpu_percent=figures.cpu_percent,
            rss_mib=figures.rss_mib,
            temp_c=figures.temp_c,
            throttled=figures.throttled,
            disk_free_mib=figures.disk_free_mib,
            read_only=figures.read_only,
        )
        board = self._observer.board
        self._power_dips += bool(figures.throttled) and not self._is_throttled
        self._is_throttled = bool(figures.throttled)
        board.set("usb-power", "power", self._is_throttled, now, data={"n": self._power_dips})
        board.set("disk-read-only", "disk", bool(figures.read_only) or bool(self._unwritten), now)

    def _look_at_update(self, now: float) -> None:
        failed = rolled_back_version()
        data = {"version": failed or ""}
        self._observer.board.set("update-rolled-back", "update", failed is not None, now, data=data)

    def _watch_clock(self, now: float) -> None:
        offset_s = self._wall() - now
        step_s = 0.0 if self._wall_offset_s is None else offset_s - self._wall_offset_s
        if self._wall_offset_s is None or abs(step_s) > CLOCK_STEP_S:
            self._wall_offset_s = offset_s
        if abs(step_s) > CLOCK_STEP_S:
            log.info("wall clock stepped by %+.1f s", step_s)
            self._observer.board.happened("clock-step", "clock", now, data={"step_s": f"{step_s:+.0f}"})

    def _watch_names(self, now: float) -> None:
        own_topic = bridge_name_topic(self._identity)
        other = next(
            (
                topic.name.removeprefix(BRIDGES).partition("/")[0]
                for topic in self._relay.core.topics
                if topic.name.startswith(BRIDGES) and topic.name != own_topic and topic.value == self._name
            ),
            None,
        )
        data = {"a": self._identity, "b": other or ""}
        self._observer.board.set("name-conflict", self._name, other is not None, now, data=data)

    def feed_watchdog(self, now: float) -> None:
        """Tell the service manager that every thread lives, as often as it wants to hear it; silent if one does not."""
        stuck = self._stuck()
        if stuck != self._stuck_told:
            self._stuck_told = stuck
            if stuck:
                log.critical("no sign of life from: %s", ", ".join(stuck))
        period_s = self.notifier.watchdog_s
        if period_s is not None and not stuck and now - self._fed_at >= period_s:
            self._fed_at = now
            self.notifier.alive()

    def _write(self, snapshot: dict[str, Any]) -> None:
        if self.state_file is not None and (self._writing is None or self._writing.done()):
            data = json.dumps(snapshot, ensure_ascii=False).encode()
            loop = asyncio.get_running_loop()
            self._writing = loop.run_in_executor(None, _write_quietly, self.state_file, data)
            self._writing.add_done_callback(lambda done: self.note_write("state file", done.result()))


def _write_quietly(path: Path, data: bytes) -> bool:
    try:
        write_atomically(path, data, durable=False)
    except OSError as error:
        log.debug("state file: %s", error)
        return False
    return True
