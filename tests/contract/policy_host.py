"""The bridge's pure code as a whole host on a virtual clock: port table, core, and coroutines in place of threads."""

from collections import deque

from aoabridge.bridge.core import BridgeCore
from aoabridge.bridge.link import LinkInfo
from aoabridge.daemon.settings import core_settings, device_rules, identity
from aoabridge.errors import UsbError
from aoabridge.phone.aoa import (
    CONTROL_TIMEOUT_MS,
    IN_BACKLOG_TIMEOUT_MS,
    IN_READ_BYTES,
    IN_TIMEOUT_MS,
    OUT_TIMEOUT_MS,
    Candidate,
    accessory_candidates,
    handshake,
    parse_protocol,
)
from aoabridge.phone.port import ClearHalts, Close, Open, PortState, Probe, Reopen, Reset
from aoabridge.phone.ports import PortTable
from aoabridge.values import Announced, Connected, PutOp, PutResult, Update
from contract.hostconfig import usb_device
from contract.tasks import Call, Task

__all__ = ["PolicyHost"]

COALESCE_S = 0.05
ROBOT_S = 0.1
FAREWELL_S = 0.5
BACKLOG_S = 0.5
STALLED_S = 2.0
ERROR_WINDOW_S = 1.0
TOLERATED = {"PIPE": 2, "IO": 3, "OTHER": 3, "OVERFLOW": 3}
KINDS = {-32: "PIPE", -75: "OVERFLOW", -108: "NO_DEVICE", -71: "IO", -2: "TIMEOUT"}
CLAIM_KINDS = {-16: "BUSY", -19: "NO_DEVICE", -2: "NOT_FOUND"}


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
                self._inject("reset", "reset", device)
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

    def _error(self, kind, step, device):
        return UsbError(f"{step}: {kind}", errno=None, kind=kind, step=step, port=device.port)

    def _find(self, device, step="open"):
        """The phone behind a snapshot; UsbError if it is gone or may not be opened."""
        for phone in self.rig.board.phones.values():
            if phone.mode is not None and self.rig.board.address(phone) == device.address:
                phone.reached("open")
                self._inject("open", step, device)
                if phone.mode is not None:
                    return phone
        raise self._error("NOT_FOUND", step, device)

    def _inject(self, op, step, device):
        entry = self.rig.board.injector.take(op)
        if entry is not None:
            raise self._error(entry["error"], step, device)

    def _probe(self, port_id, device):
        """The handshake; a generator for Task."""
        yield 0.002
        try:
            result = yield from self._handshake(device)
        except UsbError as error:
            result = error
        self._answer(port_id, "probe", result)

    def _handshake(self, device):
        phone = self._find(device)
        version = 0
        for request in self._requests:
            try:
                reply = yield from self._control(phone, request, device)
            except UsbError:
                if request.step != "start":
                    raise
                continue
            if request.step == "get_protocol":
                version = parse_protocol(reply)
                if version == 0:
                    return 0
        return version

    def _control(self, phone, request, device):
        setup = (
            request.request_type,
            request.request,
            request.value,
            request.index,
            request.length or len(request.data),
        )
        entry = self.rig.board.injector.take(request.step.split(":")[0])
        if entry is not None:
            phone.recorder.vendor_request(request.request, request.index, request.data)
            raise self._error(entry["error"], request.step, device)
        transfer = yield Call(
            lambda transfer: phone.submit_control(transfer, setup),
            phone.cancel_control,
            CONTROL_TIMEOUT_MS / 1000,
            data=request.data,
            length=setup[4],
        )
        if transfer.status:
            raise self._error(KINDS[transfer.status], request.step, device)
        return bytes(transfer.buffer)

    def _open(self, port_id, action, again):
        yield 0.001
        step = "open" if again is None else "reopen"
        if again is not None:
            again.stop()
            self._take_back(again)
            again.phone.release(again.chosen.number, self)
        try:
            phone, chosen, count = self._claimed(action)
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

    def _claimed(self, action):
        phone = self._find(action.device)
        candidates = accessory_candidates(
            Candidate(
                number=item.number,
                klass=item.triple[0],
                subclass=item.triple[1],
                protocol=item.triple[2],
                endpoints=tuple((end.address, end.kind, end.packet_size) for end in item.endpoints),
                text=item.text,
            )
            for item in phone.view.interfaces
        )
        if not candidates:
            return phone, None, 0
        if action.device.configuration == 0:
            self._inject("set_configuration", "set_configuration", action.device)
            phone.set_configuration(1)
        chosen = candidates[action.turn % len(candidates)]
        phone.reached("claim")
        self._inject("claim", "claim", action.device)
        result = phone.claim(chosen.number, self)
        if result < 0:
            raise self._error(CLAIM_KINDS[result], "claim", action.device)
        return phone, chosen, len(candidates)

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
            transfer = yield from self._bulk(link, phone, link.in_address, timeout_ms, length=IN_READ_BYTES)
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
        transfer = yield from self._bulk(link, link.phone, link.out_address, OUT_TIMEOUT_MS, data=data)
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

    def _bulk(self, link, phone, endpoint, timeout_ms, **fields):
        op = "read" if endpoint & 0x80 else "write"
        pipe = phone.pipe(endpoint)
        entry = self.rig.board.injector.take(op, has_data=op == "write" or (pipe is not None and not pipe.idle))
        call = Call(phone.submit, phone.cancel, timeout_ms / 1000, endpoint=endpoint, **fields)
        if entry is None:
            return (yield call)
        transfer = call.transfer
        if op == "read" and entry.get("moved") and pipe is not None:
            transfer.buffer += pipe.take(entry["moved"])
        yield 0.001
        transfer.finish({"PIPE": -32, "OVERFLOW": -75, "NO_DEVICE": -108, "TIMEOUT": -2}.get(entry["error"], -71))
        return transfer

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
            self._answer(port_id, "link", self._error(KINDS[status], step, device))

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
            transfer = yield from self._bulk(link, link.phone, link.out_address, OUT_TIMEOUT_MS, data=data)
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
