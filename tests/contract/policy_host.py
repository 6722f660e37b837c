"""The bridge's pure code as a whole host on a virtual clock: port table, core, and coroutines in place of threads."""

from collections import deque

from aoabridge.bridge.core import BridgeCore
from aoabridge.bridge.link import LinkInfo
from aoabridge.daemon.settings import core_settings, device_rules, identity
from aoabridge.errors import UsbError
from aoabridge.phone.aoa import (
    IN_BACKLOG_TIMEOUT_MS,
    IN_READ_BYTES,
    IN_TIMEOUT_MS,
    OUT_TIMEOUT_MS,
    handshake,
)
from aoabridge.phone.port import ClearHalts, Close, Open, PortState, Probe, Reopen, Reset
from aoabridge.phone.ports import PortTable
from aoabridge.values import Announced, Connected, PutOp, PutResult, Update
from contract.hostconfig import usb_device
from contract.policy_usb import KINDS, PolicyUsb
from contract.tasks import Task

__all__ = ["PolicyHost"]

COALESCE_S = 0.05
ROBOT_S = 0.1
FAREWELL_S = 0.5
BACKLOG_S = 0.5
STALLED_S = 2.0
ERROR_WINDOW_S = 1.0
TOLERATED = {"PIPE": 2, "IO": 3, "OTHER": 3, "OVERFLOW": 3}


class _Link:
    """One claimed interface: tasks of both directions and what is in flight."""

    def __init__(self, ident, phone, view, chosen, adopted):
        self.ident = ident
        self.phone = phone
        self.view = view
        self.chosen = chosen
        self.adopted = adopted
        self.in_address = chosen.bulk(inbound=True)[0][0]
        self.out_address = chosen.bulk(inbound=False)[0][0]
        self.packet_size = chosen.bulk(inbound=False)[0][2]
        self.outgoing = None
        self.tasks = []
        self.errors = {}

    def stop(self):
        for task in self.tasks:
            task.stop()
        self.tasks = []


class PolicyHost:
    """One run of the daemon; `rig` gives board, clock and the record of what happens."""

    def __init__(self, rig, config):
        self.usb = PolicyUsb(rig.board, self)
        self.rig = rig
        self.clock = rig.clock
        self.alive = True
        self.table = PortTable(device_rules(config))
        self.core = BridgeCore(core_settings(config))
        self._requests = handshake(identity(config).strings("bench"))
        self._links = {}  # port id -> _Link
        self._next_link = 1
        self._jobs = []
        self._scan_timer = self._tick_timer = self._turn_timer = None
        self.errors_logged = 0
        self.stop_s = None
        self._stop_began = None
        self._blocked = set()
        self.clock.call_later(ROBOT_S, self._connect)
        self._scan()

    def _now(self):
        return self.clock.now()

    # robot

    def _connect(self):
        if self.alive:
            self.core.on_connection(Connected("127.0.0.1:5810"), self._now())
            for topic, (value, time_us) in self.rig.robot_values.items():
                self.on_value(topic, value, time_us)
            self._turn()

    def on_value(self, topic, value, time_us):
        """The robot published."""
        now = self._now()
        if topic not in self.rig.announced_to(self):
            self.rig.announced_to(self).add(topic)
            self.core.on_topics([Announced(topic, "string")], now)
        self.core.on_updates([Update(topic, value, time_us)], now)
        self._turn()

    # scans and time

    def changed(self):
        """A hot-plug event."""
        self._schedule_scan(COALESCE_S)

    def _schedule_scan(self, delay):
        due = self._now() + delay
        if self._scan_timer is not None and self._scan_timer.active:
            if self._scan_timer.when <= due:
                return
            self._scan_timer.cancel()
        self._scan_timer = self.clock.call_later(delay, self._scan)

    def _scan(self):
        if not self.alive:
            return
        devices = [usb_device(shown) for shown in self.rig.board.scan()]
        self._perform(self.table.on_scan(devices, self._now()))
        self._schedule_scan(self.table.scan_interval_s)
        self._turn()

    def _tick(self):
        if self.alive:
            self._perform(self.table.on_tick(self._now()))
            self._turn()

    def _turn(self):
        """One turn of the loop."""
        if not self.alive:
            return
        core, now = self.core, self._now()
        core.on_tick(now)
        core.on_publications(core.take_publications(), now, int(now * 1e6))
        results = []
        for put in core.take_puts():
            if put.op is PutOp.SET:
                self.rig.on_put(put.topic, put.value)
                results.append(PutResult(put))
        if results:
            core.on_put_results(results, now, int(now * 1e6))
        for port_id, link in list(self._links.items()):
            self._offer(link)
            self._tell_status(port_id, link)
        self._observe()
        self._plan()

    def _offer(self, link):
        if link.outgoing is None:
            data = self.core.take_bytes(link.ident, self._now())
            if data:
                link.outgoing = data
                link.tasks = [task for task in link.tasks if not task.ended]
                link.tasks.append(Task(self.clock, self._write(link, data)))

    def _tell_status(self, port_id, link):
        state, now = self.core.links.get(link.ident), self._now()
        if state is not None:
            self.rig.pending_values = max(self.rig.pending_values, state.outbox.waiting)
            self.rig.coalesced = max(self.rig.coalesced, state.counters["coalesced"])
            self.table.machine(port_id).on_link_status(
                now, live=state.live, stale=state.stale(now), valid_line=state.valid_line
            )

    def _plan(self):
        now = self._now()
        for name, due, callback in (
            ("_tick_timer", self.table.next_deadline(), self._tick),
            ("_turn_timer", self.core.next_deadline(now), self._turn),
        ):
            timer = getattr(self, name)
            if timer is not None:
                timer.cancel()
            setattr(self, name, None if due is None else self.clock.call_at(max(due, now + 0.001), callback))
        self._schedule_scan(self.table.scan_interval_s)

    def _observe(self):
        now, seen = self._now(), self.rig.seen
        by_port = {view.port: view for view in self.table.views()}
        for name, phone in self.rig.board.phones.items():
            view = by_port.get(phone.profile.at) or by_port.get(phone.profile.accessory_at)
            state = view.state if view else PortState.ABSENT
            seen.state(name, state.name, now)
            if view:
                seen.name(name, view.name)
                seen.aoa_versions[name] = view.aoa_version
                self._count_blocked(view)
        codes = [code for code, _, _ in self.table.issues(now)]
        for link in self.core.links.values():
            if link.stale(now) or (link.blocked_since is not None and now - link.blocked_since > STALLED_S):
                codes.append("app-stalled")
        seen.open_issues(codes)

    def _count_blocked(self, view):
        """The daemon logs one error when a port becomes blocked."""
        if view.state is PortState.BLOCKED and view.port not in self._blocked:
            self._blocked.add(view.port)
            self.errors_logged += 1
        elif view.state is not PortState.BLOCKED:
            self._blocked.discard(view.port)

    # actions

    def _perform(self, actions):
        queue = deque(actions)
        while queue:
            port_id, action = queue.popleft()
            queue.extend(self._act(port_id, action) or ())

    def _act(self, port_id, action):
        if isinstance(action, Probe):
            self._start_job(self._probe(port_id, action.device))
        elif isinstance(action, Open):
            self._start_job(self._open(port_id, action, None))
        elif isinstance(action, Reopen):
            self._start_job(self._open(port_id, action, self._links.get(port_id)))
        elif isinstance(action, ClearHalts):
            link = self._links[port_id]
            for address in (link.in_address, link.out_address):
                if self.rig.board.injector.take("clear_halt") is None:
                    link.phone.clear_halt(address)
        elif isinstance(action, Close):
            self._end_link(port_id)
            return self.table.on_result(port_id, "close", None, self._now())
        elif isinstance(action, Reset):
            phone = self._links[port_id].phone
            device = self.table.machine(port_id).device
            self._end_link(port_id)
            result = None
            try:
                self.usb.inject("reset", "reset", device)
                phone.reset()
            except UsbError as error:
                result = error
            return self.table.on_result(port_id, "reset", result, self._now())
        return None

    def _start_job(self, generator):
        self._jobs = [job for job in self._jobs if not job.ended]
        self._jobs.append(Task(self.clock, generator))

    def _answer(self, port_id, step, result):
        if self.alive:
            self._perform(self.table.on_result(port_id, step, result, self._now()))
            self._turn()

    def _probe(self, port_id, device):
        """The handshake; a generator for Task."""
        yield 0.002
        try:
            result = yield from self.usb.handshake(device, self._requests)
        except UsbError as error:
            result = error
        self._answer(port_id, "probe", result)

    def _open(self, port_id, action, again):
        yield 0.001
        step = "open" if again is None else "reopen"
        if again is not None:
            again.stop()
            self._take_back(again)
            again.phone.release(again.chosen.number, self)
        try:
            phone, chosen, count = self.usb.claimed(action)
        except UsbError as error:
            if again is not None:
                self._end_link(port_id)
            self._answer(port_id, step, error)
            return
        if chosen is not None:
            self._begin_link(port_id, phone, chosen, action, again)
        self._answer(port_id, step, count)

    def _take_back(self, link):
        if link.outgoing is not None:
            link.outgoing = None
            self.core.on_bytes_accepted(link.ident, 0, self._now(), error=True)

    def _begin_link(self, port_id, phone, chosen, action, again):
        now = self._now()
        if again is None:
            ident, self._next_link = self._next_link, self._next_link + 1
            link = _Link(ident, phone, phone.view, chosen, action.adopted)
            self._links[port_id] = link
            known = self.table.phone_name(port_id)
            name = getattr(known, "name", known)
            self.core.on_link_up(ident, LinkInfo(name, link.packet_size, link.adopted), now)
        else:
            link = again
        link.tasks.append(Task(self.clock, self._read(port_id, link)))

    def _end_link(self, port_id):
        link = self._links.pop(port_id, None)
        if link is not None:
            link.stop()
            link.phone.release(link.chosen.number, self)
            if link.ident in self.core.links:
                self.core.on_link_down(link.ident, self._now())

    # transfers

    def _read(self, port_id, link):
        """The reader thread."""
        backlog_ends = self._now() + BACKLOG_S
        backlog = True
        phone = link.phone
        while True:
            timeout_ms = IN_BACKLOG_TIMEOUT_MS if backlog else IN_TIMEOUT_MS
            transfer = yield from self.usb.bulk(phone, link.in_address, timeout_ms, length=IN_READ_BYTES)
            data = bytes(transfer.buffer)
            if transfer.status in (0, -2):
                if data:
                    self.table.machine(port_id).on_received()
                    self.core.on_link_bytes(link.ident, data, self._now())
                elif transfer.status == -2 and backlog:
                    self.core.on_link_idle(link.ident, self._now())
                backlog = backlog and (bool(data) or transfer.status == 0) and self._now() < backlog_ends
                self._turn()
            elif self._ends(link, transfer.status):
                self._lose(port_id, link, transfer.status, "read")
                return
            else:
                if transfer.status == -32:
                    phone.clear_halt(link.in_address)
                self.core.on_link_resync(link.ident, self._now())

    def _write(self, link, data):
        """One transfer of the writer thread."""
        transfer = yield from self.usb.bulk(link.phone, link.out_address, OUT_TIMEOUT_MS, data=data)
        link.outgoing = None
        port_id = next((port_id for port_id, other in self._links.items() if other is link), None)
        if port_id is None or link.ident not in self.core.links:
            return
        if transfer.status in (0, -2):
            if transfer.moved:
                self.table.machine(port_id).on_accepted(self._now())
            self.core.on_bytes_accepted(link.ident, transfer.moved, self._now())
        elif self._ends(link, transfer.status):
            self.core.on_bytes_accepted(link.ident, 0, self._now(), error=True)
            self._lose(port_id, link, transfer.status, "write")
            return
        else:
            if transfer.status == -32:
                link.phone.clear_halt(link.out_address)
            self.core.on_bytes_accepted(link.ident, 0, self._now(), error=True)
        self._turn()

    def _ends(self, link, status):
        """Whether an error of a transfer ends the link."""
        kind, now = KINDS[status], self._now()
        times = [time for time in link.errors.get(kind, []) if now - time <= ERROR_WINDOW_S] + [now]
        link.errors[kind] = times
        return len(times) >= TOLERATED.get(kind, 1)

    def _lose(self, port_id, link, status, step):
        self.clock.call_later(0.0, lambda: self._lost(port_id, link, status, step))

    def _lost(self, port_id, link, status, step):
        if self.alive and self._links.get(port_id) is link:
            device = self.table.machine(port_id).device or self.table.machine(port_id).last_device
            self._answer(port_id, "link", self.usb.error(KINDS[status], step, device))

    # the end

    def stop(self):
        """An orderly stop: the phones are told, then everything is released."""
        self._stop_began = self._now()
        self.core.begin_stop(self._now())
        self.alive = bool(self._links)
        for link in self._links.values():
            link.stop()
            self._take_back(link)
            self._start_job(self._farewell(link))

    def _farewell(self, link):
        deadline = self._now() + FAREWELL_S
        while self._now() < deadline and self.core.links[link.ident].blocked_since is None:
            data = self.core.take_bytes(link.ident, self._now())
            if not data:
                break
            transfer = yield from self.usb.bulk(link.phone, link.out_address, OUT_TIMEOUT_MS, data=data)
            self.core.on_bytes_accepted(link.ident, transfer.moved, self._now(), error=transfer.status not in (0, -2))
            if transfer.status not in (0, -2):
                break
        yield 0.01
        link.phone.release(link.chosen.number, self)
        self.alive = any(other.phone.recorder.linked for other in self._links.values())
        self.stop_s = self._now() - self._stop_began

    def kill(self):
        """The process is gone from one moment to the next."""
        self.alive = False
        for job in self._jobs:
            job.stop()
        for link in self._links.values():
            link.stop()
            link.phone.release(link.chosen.number, self)
