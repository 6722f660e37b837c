"""The bridge as one running thing: what is started in which order, reloaded, watched and stopped."""

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from aoabridge.adapters.control import Action, Arguments, ControlServer, Handler, Link, RequestError
from aoabridge.adapters.logs import Logs
from aoabridge.adapters.nt import NtClient
from aoabridge.adapters.socket_pipe import SocketPipe
from aoabridge.bridge.core import BridgeCore
from aoabridge.config import Config, changes, effective, log_line, restart_needed
from aoabridge.daemon.calm import Calm
from aoabridge.daemon.handlers import Handlers, log_handlers
from aoabridge.daemon.health import NT_S, RECORDER_S, USB_S, LifeSign, overdue
from aoabridge.daemon.machine import MachineWatch
from aoabridge.daemon.observer import PERIOD_S, Observer, PhoneFacts
from aoabridge.daemon.phones import PhoneHost
from aoabridge.daemon.pipes import PipeHost
from aoabridge.daemon.recording import RecordHost
from aoabridge.daemon.relay import Relay
from aoabridge.daemon.settings import core_settings, device_rules, identity, nt_settings, nt_target
from aoabridge.daemon.surfaces import Surfaces
from aoabridge.daemon.taps import Taps
from aoabridge.daemon.usb_links import UsbLinks
from aoabridge.daemon.web import PageContent, WebHost
from aoabridge.phone.ports import PORT_ISSUES
from aoabridge.status.views import SourceView

if TYPE_CHECKING:
    from aoabridge.daemon.sources import SourceHost

__all__ = ["Bridge"]

MACHINE_ID = Path("/etc/machine-id")
SIMULATED_PORT = "simulated"
SETTLE_STOP_S = 0.02  # what was lowered must leave before the client goes

log = logging.getLogger("aoabridge.daemon")


def _source_hosts(config: Config, relay: Relay, clock: Callable[[], float]) -> list["SourceHost"]:
    """The hosts of the enabled sources; a bridge without any does not load their codecs."""
    if not any(settings.enabled for kind in msgspec.structs.astuple(config.sources) for settings in kind):
        return []
    from aoabridge.daemon.sources import source_hosts  # noqa: PLC0415 - 4 MiB and a tenth of the start time

    return source_hosts(config, relay, clock)


class Bridge:
    """Everything that runs, on one event loop. ``relay_allowed`` False: nothing may reach USB or NetworkTables."""

    def __init__(
        self,
        config: Config,
        socket: Path | None,
        *,
        state_dir: Path | None = None,
        relay_allowed: bool = True,
        phones: Callable[..., PhoneHost] | None = PhoneHost,
        clock: Callable[[], float] = time.monotonic,
        fatal: Callable[[str], None] = lambda _reason: None,
        logs: Logs | None = None,
    ) -> None:
        self.config = config
        self.relay_allowed = relay_allowed
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._links = itertools.count(1)
        core = BridgeCore(core_settings(config), wall_offset_s=time.time() - clock())
        self.nt = NtClient(nt_settings(config), wake=self._wake)
        self.relay = Relay(core, self.nt, clock=clock)
        self.pipes = PipeHost(self.relay, self._links.__next__)
        self.sources = _source_hosts(config, self.relay, clock) if relay_allowed else []
        self._usb_links = UsbLinks(self.relay)
        self.usb = self._usb_host(phones, fatal) if phones is not None and relay_allowed else None
        self.observer = Observer(config, self.relay, self._phone_facts, self._source_views, started=clock())
        self.taps = Taps(time.time)
        self.recording = RecordHost(config.record, state_dir, core.topics, self.relay.wake)
        self.relay.spies = [self.taps, self.recording]
        self.control = None if socket is None else ControlServer(socket, self._handlers(logs))
        wants_usb = self.usb is not None and not config.devices.simulated
        self._machine = MachineWatch(self.observer.board, wants_usb=wants_usb)
        self._observe_at: float | None = None
        self._calm = Calm()
        self._ticker: asyncio.TimerHandle | None = None
        self._recorded_issues: list[str] = []
        self.surfaces = Surfaces(
            config,
            self.relay,
            self.observer,
            machine_id=_machine_id(),
            state_file=None if socket is None else socket.with_name("status.json"),
            state_dir=state_dir,
            stuck=self.stuck,
        )
        self.web: WebHost | None = None
        if config.web.enabled:
            content = PageContent(self.observer, lambda: not self.stuck(), None if logs is None else logs.ring)
            self.web = WebHost(config, content, self.observer)

    def _usb_host(self, phones: Callable[..., PhoneHost], fatal: Callable[[str], None]) -> PhoneHost:
        host = self._usb_links.host = phones(
            self._usb_links,
            device_rules(self.config),
            identity(self.config),
            machine_id=_machine_id(),
            clock=self._clock,
            on_change=self.relay.stir,
            fatal=fatal,
            new_link=self._links.__next__,
        )
        self.relay.on_turn = self._usb_links.tell_status
        return host

    def _handlers(self, logs: Logs | None) -> dict[str, Handler]:
        table = Handlers(self.observer, self.relay, self.taps, self._ignored, self._clock).table()
        table["simulate-phone"] = Link(self._check_simulated, self._attach_simulated)
        table["retry"] = Action(self._retry)
        table |= self.recording.handlers(self._clock)
        return table if logs is None else table | log_handlers(logs.ring)

    def _wake(self) -> None:
        self.relay.wake()

    # Life.

    async def start(self) -> None:
        """Control socket, USB monitor and scan, NetworkTables, sources. A missing phone or robot is normal."""
        if self.control is not None:
            await self.control.start()
        if self.usb is not None:
            self.usb.start()
        if self.relay_allowed:
            self.nt.open()
        for source in self.sources:
            await source.start()
        if self.config.record.enabled:
            self._begin_recording()
        self._observe()
        self.relay.turn_soon()
        if self.web is not None:
            self.web.start()

    async def stop(self) -> None:
        """Sources, run pulses, phones, NetworkTables: in the order in which nothing wrong can be said any more."""
        if self._ticker is not None:
            self._ticker.cancel()
        for source in self.sources:
            await source.stop()
        self.relay.core.begin_stop(self._clock())
        self.relay.turn_now()
        waiting = [self.pipes.stop()]
        hanging: list[str] = []
        if self.usb is not None:
            hanging = (await asyncio.gather(self.usb.stop(), *waiting))[0] or []
        else:
            await asyncio.gather(*waiting)
        await asyncio.sleep(SETTLE_STOP_S)
        self.relay.close()
        self.nt.close()
        self.recording.stop(self._clock())
        if self.web is not None:
            await self.web.stop()
        if self.control is not None:
            await self.control.close()
        if hanging:
            raise RuntimeError(f"threads that did not end: {', '.join(hanging)}")

    def stuck(self) -> list[str]:
        """The threads that have shown no life for too long."""
        now = self._clock()
        signs = [LifeSign("simulated phones", seen, USB_S) for seen in self.pipes.seen_at()]
        if self.usb is not None:
            signs.append(LifeSign("usb", self.usb.seen_at(), USB_S))
        if self.relay_allowed:
            signs.append(LifeSign("nt", self.nt.poller_seen_at(), NT_S))
        recorder_seen = self.recording.seen_at()
        if recorder_seen is not None:
            signs.append(LifeSign("recorder", recorder_seen, RECORDER_S))
        return overdue(signs, now)

    def reload(self, new: Config) -> list[str]:
        """Apply a new configuration where that is possible while running; returns the keys that wait for a restart."""
        found = changes(self.config, new)
        if found:
            log.info("configuration: %s", log_line(found))
        old, self.config = self.config, effective(self.config, new)
        self.observer.config = self.config
        if old.record.enabled and not self.config.record.enabled:
            self.recording.stop(self._clock())
        self.recording.configure(self.config.record, self._clock())
        if self.config.record.enabled and not old.record.enabled:
            self._begin_recording()
        self.relay.core.configure(core_settings(self.config))
        if self.usb is not None:
            self.usb.set_rules(device_rules(self.config), identity(self.config))
        if nt_target(old.nt) != nt_target(self.config.nt):
            self.nt.set_target(nt_target(self.config.nt))
        if self.web is not None:
            self.web.reload(self.config)
        self.relay.stir()
        return restart_needed(found)

    def _observe(self) -> None:
        """The loop of everything that is shown; a defect in it must neither end it nor starve the watchdog."""
        now = self._clock()
        late_s = 0.0 if self._observe_at is None else now - self._observe_at
        pause_s = self._pause_s(now)
        self._observe_at = now + pause_s
        try:
            if self._calm.wants_look(self._signs(), now, busy=self._is_busy() or self._machine.is_late(late_s)):
                self._look(now, late_s)
            else:
                self.surfaces.beat(now)
        except Exception:  # top of the loop: the relay works without what it shows
            log.exception("look at the bridge broken off", extra={"repeat": "observe"})
        self.surfaces.feed_watchdog(now)
        self._ticker = self._loop.call_later(pause_s, self._observe)

    def _pause_s(self, now: float) -> float:
        """Half a second, once a little less or more: together with the phones' heartbeat, which has the same period,
        what is shown costs one flush instead of two."""
        beat_at = self.relay.core.next_beat
        ahead_s = 0.0 if beat_at is None else (beat_at - now) % PERIOD_S
        return ahead_s if ahead_s > PERIOD_S / 2 else ahead_s + PERIOD_S

    def _signs(self) -> Hashable:
        return self.relay.stirred, self.observer.board.changes, self.recording.view()

    def _is_busy(self) -> bool:
        """Whether something goes on that has to be looked at all the time."""
        phones = bool(self.relay.core.links) or (self.usb is not None and self.usb.has_phones)
        parts = bool(self.sources) or self.recording.active or self.observer.is_looking
        return phones or parts or self.surfaces.is_telling

    def _look(self, now: float, late_s: float) -> None:
        if self.usb is not None:
            self._watch_usb(self.usb, now)
        self._watch_sources(now)
        self._watch_recording(now)
        self._machine.note_load(late_s, self.observer.host.cpu_percent, self.nt.overloaded, now)
        self._machine.tick(now)
        self.observer.tick(now)
        self.surfaces.tick(now)

    def _begin_recording(self) -> None:
        try:
            self.recording.start(self._clock())
        except OSError as error:
            self.recording.stopped_because = str(error.strerror or error)
            log.warning("cannot record: %s", error, extra={"code": "record-stopped"})

    def _watch_recording(self, now: float) -> None:
        recording = self.recording
        recording.on_tick(now)
        self.observer.record = recording.view()
        reason = recording.stopped_because
        board = self.observer.board
        board.set("record-stopped", "recording", reason is not None, now, data={"reason": reason or ""})
        texts = [f"{issue.code}:{issue.subject}" for issue in board.open_issues()]
        if texts != self._recorded_issues:
            self._recorded_issues = texts
            recording.issues(texts, now)

    def _watch_sources(self, now: float) -> None:
        board = self.observer.board
        for host in self.sources:
            found = {issue.code: issue.sentence for issue in host.source.status(now).issues}
            for code in ("source-silent", "source-bad", "fms-info-owned"):
                board.set(code, host.name, code in found, now, sentence=found.get(code), hold=False)
            failure = next(iter(host.bind_failures.values()), None)
            sentence, holder = failure or (None, "")
            data = {"process": holder or "the other program"}
            board.set("source-bind", host.name, failure is not None, now, sentence=sentence, data=data, hold=False)

    def _watch_usb(self, usb: PhoneHost, now: float) -> None:
        board = self.observer.board
        issues = usb.issues()
        open_now = {(code, subject) for code, subject, _ in issues}
        for code, subject, data in issues:
            board.set(code, subject, active=True, now=now, data=data, hold=False)
        for shown in board.open_issues():
            if shown.code in PORT_ISSUES and (shown.code, shown.subject) not in open_now:
                board.clear(shown.code, now, shown.subject)

    # What is shown.

    def _phone_facts(self) -> list[PhoneFacts]:
        facts = [
            PhoneFacts(name, self._pipe_state(link), SIMULATED_PORT, link=link)
            for link, name in self.pipes.names().items()
        ]
        if self.usb is not None:
            facts += [
                PhoneFacts(
                    view.name,
                    view.state.value,
                    view.port,
                    link=self.usb.link_of(view.port_id),
                    serial=view.serial or None,
                    model=view.model or None,
                    aoa_version=view.aoa_version,
                    reconnects=view.reconnects,
                    since=view.since,
                )
                for view in self.usb.views()
                if view.name
            ]
        return facts

    def _pipe_state(self, ident: int) -> str:
        link = self.relay.core.links.get(ident)
        if link is None:
            return "absent"
        return "stale" if link.stale(self._clock()) else "live" if link.live else "linked"

    def _source_views(self, now: float) -> list[SourceView]:
        views = []
        for host in self.sources:
            status = host.source.status(now)
            kind, _, name = host.name.partition(":")
            figures = (status.hz, status.age_s, status.bad, status.gaps, status.relays)
            views.append(SourceView(kind, name, True, *figures))
        return views

    def _ignored(self) -> list[dict[str, Any]]:
        if self.usb is None:
            return []
        return [
            {"port": view.port, "id": f"{view.vendor:04x}:{view.product:04x}", "reason": view.reason}
            for view in self.usb.views()
            if view.state.value == "ignored"
        ]

    # Requests that change something.

    def _check_simulated(self, arguments: Arguments) -> None:
        name = arguments.get("name", "simulated")
        if not self.config.devices.simulated:
            raise RequestError("unavailable", "simulated phones are off", "set `simulated = true` in [devices]")
        if not isinstance(name, str) or name in self.pipes.names().values():
            raise RequestError("busy", f"there is a phone called {name!r}", "give another --name")
        if len(self.pipes.names()) >= self.config.devices.max:
            raise RequestError("busy", f"{self.config.devices.max} simulated phones are linked", "end one of them")

    def _attach_simulated(self, arguments: Arguments, pipe: SocketPipe) -> None:
        self.pipes.open(pipe, str(arguments.get("name", "simulated")))

    def _retry(self, arguments: Arguments) -> dict[str, object]:
        name = arguments.get("device")
        if not isinstance(name, str) or self.usb is None:
            raise RequestError("bad-request", "name a device or a port")
        self.usb.retry(name)
        return {}


def _machine_id() -> str:
    try:
        return MACHINE_ID.read_text().strip()
    except OSError:
        return ""
