"""The phones on USB: scans, port machines, attach threads and pumps on the event loop; links go to a sink."""

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Iterable
from typing import Final

from aoabridge.adapters import hotplug
from aoabridge.adapters.usb import UsbHost, UsbPipe
from aoabridge.adapters.usb_pump import Accepted, Chunk, Ended, LinkPump
from aoabridge.daemon.attach import AttachThreads
from aoabridge.daemon.busy_phones import BusyPhones
from aoabridge.daemon.links import Link, LinkSink, LinkStart, Watcher
from aoabridge.daemon.phone_log import PhoneLog
from aoabridge.errors import UsbError
from aoabridge.phone.actions import Action, ClearHalts, Close, Open, Probe, Reopen, Reset, StepResult
from aoabridge.phone.aoa import Identity, UsbDevice, handshake
from aoabridge.phone.ports import DeviceRules, PortTable, PortView, UsbIssue
from aoabridge.values import LinkId

__all__ = ["LinkSink", "LinkStart", "PhoneHost", "Watcher"]

_log = logging.getLogger(__name__)

EVENT_DELAY_S: Final = 0.05  # one plug is a burst of events
FAREWELL_S: Final = 0.5
STOP_S: Final = 1.6  # an attach thread may be inside a control transfer of 1.5 s
DEFECT_PAUSE_S: Final = 1.0


class PhoneHost:
    """Finds phones and keeps a link to each. Every method is for the event loop; nothing blocks it.

    ``new_link`` gives ids of links, never reused; ``fatal`` hears why the process must end by ``os._exit`` (a hang).
    """

    def __init__(
        self,
        sink: LinkSink,
        rules: DeviceRules,
        identity: Identity,
        *,
        machine_id: str = "",
        usb: UsbHost | None = None,
        new_link: Callable[[], LinkId] | None = None,
        scan: Callable[[], tuple[UsbDevice, ...]] = hotplug.scan,
        open_watcher: Callable[[], Watcher | None] = hotplug.Monitor.open,
        clock: Callable[[], float] = time.monotonic,
        on_change: Callable[[], None] = lambda: None,
        fatal: Callable[[str], None] = lambda _reason: None,
    ) -> None:
        self._sink = sink
        self._identity = identity
        self._machine_id = machine_id
        self.usb = usb or UsbHost()
        self._scan = scan
        self._open_watcher = open_watcher
        self._clock = clock
        self._on_change = on_change
        self._fatal = fatal
        self._table = PortTable(rules)
        self._phone_log = PhoneLog()
        self._links: dict[LinkId, Link] = {}
        self._by_port: dict[int, Link] = {}
        self._orphans: dict[int, UsbPipe] = {}
        self._busy = BusyPhones()
        self._hanging: list[str] = []
        self._new_link = new_link or itertools.count(1).__next__
        self._last_scan = float("-inf")
        self._devices: tuple[UsbDevice, ...] = ()
        self._scan_asked: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stopping = False

    # Life.

    def start(self) -> None:
        """Listens for events, then scans: nothing that is plugged in between gets lost."""
        self._loop = asyncio.get_running_loop()
        self._attach = AttachThreads(self._loop)
        self._watcher = self._open_watcher()
        if self._watcher is not None:
            self._loop.add_reader(self._watcher.fileno(), self._watcher.drain, self.request_scan)
        self._attach.at_once("library", self.usb.prepare, self._phone_log.library)
        self._turn()

    async def stop(self) -> list[str]:
        """Ends every link in order, all in parallel, within 1.3 s; the names of threads that hang."""
        started = self._loop.time()
        self._stopping = True
        if self._timer is not None:
            self._timer.cancel()
        if self._watcher is not None:
            self._loop.remove_reader(self._watcher.fileno())
            self._watcher.close()
        self._attach.drop_waiting()
        links = list(self._links.values())
        await asyncio.gather(*(self._say_farewell(link) for link in links))
        for link in list(self._links.values()):
            self._end_link(link, "the bridge stops")
            self._end(link.port_id, "close", link.close_at_stop)
        busy = await self._attach.wait_idle(max(0.1, STOP_S - (self._loop.time() - started)))
        return [*self._hanging, *busy]

    async def _say_farewell(self, entry: Link) -> None:
        """Lets the sink send its last lines as long as the phone takes them."""

        def following() -> bytes:
            self._drain(entry.link)  # the sink must know the fate of the last transfer before it gives the next
            idle = entry.link in self._links and entry.pump.idle
            return self._sink.link_farewell(entry.link) if idle else b""

        await entry.send_all(following, FAREWELL_S)

    def set_rules(self, rules: DeviceRules, identity: Identity) -> None:
        """A new configuration: holds for the next connection of each phone."""
        self._identity = identity
        self._table.set_rules(rules)
        self.request_scan()

    def request_scan(self) -> None:
        """Something changed on the bus: scan soon."""
        if self._scan_asked is None and not self._stopping:
            self._scan_asked = self._clock() + EVENT_DELAY_S
            self._schedule()

    # The links, as the relay uses them.

    def ready(self, link: LinkId) -> bool:
        """True if ``offer`` would be taken."""
        entry = self._links.get(link)
        return entry is not None and not self._stopping and entry.pump.idle

    def offer(self, link: LinkId, data: bytes) -> bool:
        """Hands one transfer to the link's writer; answered by one Accepted."""
        return self.ready(link) and self._links[link].pump.offer(data)

    def on_link_status(self, link: LinkId, *, live: bool, stale: bool = False, valid_line: bool | None = None) -> None:
        """What the bridge core says of a link."""
        entry = self._links.get(link)
        if entry is not None:
            machine = self._table.machine(entry.port_id)
            machine.on_link_status(self._clock(), live=live, stale=stale, valid_line=valid_line)
            self._after_change()

    # Shown.

    def views(self) -> list[PortView]:
        """Every port with a device or a phone."""
        return self._table.views()

    @property
    def has_phones(self) -> bool:
        """Whether any phone is plugged in, or is expected back from its switch."""
        return self._table.has_phones

    def link_of(self, port_id: int) -> LinkId | None:
        """The open link of a port."""
        entry = self._by_port.get(port_id)
        return entry.link if entry else None

    def issues(self) -> list[UsbIssue]:
        """The open USB issues."""
        found = self._table.issues(self._clock())
        return [(code, who, {**data, **self._busy.of(str(data.get("port")))}) for code, who, data in found]

    def seen_at(self) -> float:
        """When the slowest thread of any open link last showed life; now without links."""
        return min((entry.pump.seen_at() for entry in self._links.values()), default=self._clock())

    def retry(self, name: str) -> None:
        """Tries the phone of this name or port again at once."""
        self._perform(self._table.retry(name, self._clock()))

    def reset(self, name: str) -> None:
        """Resets the phone of this name or port if it is linked."""
        self._perform(self._table.reset(name, self._clock()))

    # Time and scans.

    def _turn(self) -> None:
        """Scans if that is due, lets the machines do what is due, and sets the next alarm."""
        if self._stopping:
            return
        try:
            self._perform(self._look(self._clock()))
        except MemoryError:
            raise  # a port may be between two states: the process ends
        except Exception:  # noqa: BLE001 (top of the loop: without its next alarm no phone is seen again)
            _log.exception("defect in the turn of the USB ports")
            self._last_scan, self._scan_asked = self._clock(), None
            self._timer = self._loop.call_later(DEFECT_PAUSE_S, self._turn)

    def _look(self, now: float) -> list[tuple[int, Action]]:
        if now < self._next_scan():
            return self._table.on_tick(now)
        for link in list(self._links):
            self._drain(link)  # its threads know better than a scan when a phone left
        at = None if self._scan_asked is None else self._scan_asked - EVENT_DELAY_S
        self._last_scan, self._scan_asked = now, None
        devices = self._scan()
        if devices != self._devices:
            self._devices = devices
            self._on_change()
        return self._table.on_scan(devices, now, at)

    def _next_scan(self) -> float:
        regular = self._last_scan + self._table.scan_interval_s
        return regular if self._scan_asked is None else min(regular, self._scan_asked)

    def _schedule(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._stopping:
            return
        deadline = self._table.next_deadline()
        at = self._next_scan() if deadline is None else min(deadline, self._next_scan())
        self._timer = self._loop.call_later(max(0.0, at - self._clock()), self._turn)

    def _after_change(self) -> None:
        if self._phone_log.report(self._table.views(), self._table.machine, self._clock()):
            self._on_change()
        self._schedule()

    # Actions of the port machines.

    def _perform(self, actions: Iterable[tuple[int, Action]]) -> None:
        for port_id, action in actions:
            self._perform_one(port_id, action)
        self._after_change()

    def _perform_one(self, port_id: int, action: Action) -> None:
        link = self._by_port.get(port_id)
        if isinstance(action, Probe):
            requests = handshake(self._identity.strings(self._machine_id))
            self._try(port_id, "probe", lambda: self.usb.probe(action.device, requests))
        elif isinstance(action, Open):
            self._attempt_open(port_id, action)
        elif isinstance(action, Reopen) and link is not None:
            self._attempt_reopen(link, action)
        elif isinstance(action, Close):
            self._close(port_id, link)
        elif isinstance(action, Reset) and link is not None:
            self._end_link(link, "reset")
            self._end(port_id, "reset", link.reset)
        elif isinstance(action, ClearHalts) and link is not None:
            link.pump.clear_halts()

    def _port(self, port_id: int) -> str:
        return self._table.machine(port_id).port

    def _try(self, port_id: int, step: str, call: Callable[[], StepResult]) -> None:
        self._attach.attempt(self._port(port_id), call, lambda result: self._result(port_id, step, result))

    def _result(self, port_id: int, step: str, result: StepResult) -> None:
        if isinstance(result, UsbError):
            self._phone_log.failed(self._table.phone_name(port_id), result)
            if result.kind == "BUSY":
                self._busy.ask(self._table.machine(port_id).device, self._attach)
        if not self._stopping:
            self._perform(self._table.on_result(port_id, step, result, self._clock()))

    def _attempt_open(self, port_id: int, action: Open) -> None:
        def done(result: UsbPipe | UsbError | None) -> None:
            self._on_opened(port_id, result, adopted=action.adopted)

        self._attach.attempt(self._port(port_id), lambda: self.usb.open(action.device, action.turn), done)

    def _on_opened(self, port_id: int, result: UsbPipe | UsbError | None, *, adopted: bool) -> None:
        if not isinstance(result, UsbPipe):
            self._result(port_id, "open", result if isinstance(result, UsbError) else 0)
            return
        if self._stopping:
            self._end(port_id, "close", result.close)
            return
        self._orphans[port_id] = result
        actions = self._table.on_result(port_id, "open", result.candidates, self._clock())
        if self._table.machine(port_id).state.has_link:
            self._begin_link(port_id, self._orphans.pop(port_id), adopted=adopted)
        self._perform(actions)

    def _begin_link(self, port_id: int, pipe: UsbPipe, *, adopted: bool) -> None:
        link = self._new_link()
        machine = self._table.machine(port_id)
        device = machine.device
        name = self._table.phone_name(port_id)
        start = LinkStart(
            name=name,
            port=machine.port,
            serial=device.serial if device else "",
            model=device.model if device else "",
            packet_size=pipe.packet_size,
            adopted=adopted,
            entry=self._table.entry(port_id),
        )
        entry = Link(link, port_id, pipe, self._pump(link, pipe, name))
        self._links[link] = self._by_port[port_id] = entry
        self._phone_log.linked(name, device)
        self._sink.link_up(link, start)
        entry.pump.start()

    def _pump(self, link: LinkId, pipe: UsbPipe, name: str) -> LinkPump:
        def wake() -> None:
            try:
                self._loop.call_soon_threadsafe(self._drain, link)
            except RuntimeError:
                _log.debug("event of %s after the loop was closed", name)

        return LinkPump(pipe, name, wake, self._clock)

    def _drain(self, link: LinkId) -> None:
        """Hands the events of a link's threads on."""
        entry = self._links.get(link)
        if entry is None:
            return
        events = entry.pump.take_events()
        machine = self._table.machine(entry.port_id)
        ended: Ended | None = None
        for event in events:
            if isinstance(event, Chunk):
                machine.on_received()
            elif isinstance(event, Accepted) and event.count:
                machine.on_accepted(event.t)
            elif isinstance(event, Ended):
                ended = event
        if events:
            entry.moved.set()
            self._sink.link_events(link, events)
        if ended is not None:
            self._on_ended(entry, ended)

    def _on_ended(self, entry: Link, ended: Ended) -> None:
        self._phone_log.failed(entry.pump.name, ended.error)
        if self._stopping:
            self._end_link(entry, ended.error.kind)
            self._end(entry.port_id, "close", entry.close_at_stop)
        else:
            # The thread's time: a busy loop hears of it later, and would take the absence for a shorter one.
            self._perform(self._table.on_result(entry.port_id, "link", ended.error, self._clock(), ended.t))

    def _end_link(self, entry: Link, reason: str) -> None:
        """Tells the sink, once; what the threads still bring is dropped."""
        if self._links.pop(entry.link, None) is None:
            return
        self._by_port.pop(entry.port_id, None)
        entry.ended = True
        entry.moved.set()
        self._sink.link_down(entry.link, reason)

    def _close(self, port_id: int, link: Link | None) -> None:
        if link is not None:
            self._end_link(link, self._table.machine(port_id).reason or "unplugged")
            self._end(port_id, "close", link.close)
        else:
            orphan = self._orphans.pop(port_id, None)
            self._end(port_id, "close", orphan.close if orphan is not None else lambda: None)

    def _end(self, port_id: int, step: str, call: Callable[[], None]) -> None:
        """Runs the end of a link in a thread of its own, which waits for no other phone."""

        def done(result: UsbError | None) -> None:
            if isinstance(result, UsbError) and result.kind == "HANG":
                self._on_hang(result)
            else:
                self._result(port_id, step, result)

        self._attach.at_once(self._port(port_id), call, done)

    def _on_hang(self, error: UsbError) -> None:
        """Nothing may touch that device any more; the port stays as it is until the process ends."""
        _log.error("%s: the process has to", error.strerror)
        self._hanging.append(str(error.port))
        self._fatal(str(error.strerror))

    def _attempt_reopen(self, link: Link, action: Reopen) -> None:
        def call() -> UsbPipe | None:
            return link.reopen(self.usb, action.device, action.turn)

        self._attach.at_once(self._port(link.port_id), call, lambda result: self._on_reopened(link, result))

    def _on_reopened(self, link: Link, result: UsbPipe | UsbError | None) -> None:
        self._drain(link.link)
        if link.pump.in_flight:
            self._sink.link_events(link.link, [Accepted(0, error=False, t=self._clock())])  # never begun
        port_id = link.port_id
        if isinstance(result, UsbPipe) and self._stopping:
            self._end(port_id, "close", result.close)
        elif isinstance(result, UsbError) and result.kind == "HANG":
            self._end_link(link, "a thread hangs")
            self._on_hang(result)
        elif isinstance(result, UsbPipe):
            link.pipe, link.pump = result, self._pump(link.link, result, link.pump.name)
            actions = self._table.on_result(port_id, "reopen", result.candidates, self._clock())
            link.pump.start()
            self._perform(actions)
        else:
            self._end_link(link, "reopening failed")
            self._result(port_id, "reopen", result if isinstance(result, UsbError) else 0)
