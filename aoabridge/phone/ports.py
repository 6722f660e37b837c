"""All USB ports: which machine a device belongs to, what its phone is called, which issues are open."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from aoabridge.phone.actions import Action, PortSettings, PortState, StepResult
from aoabridge.phone.aoa import UsbDevice
from aoabridge.phone.filter import Decision, DeviceName, DeviceRules, Verdict, decide
from aoabridge.phone.port import PortMachine

__all__ = ["PORT_ISSUES", "DeviceName", "DeviceRules", "PortTable", "PortView", "UsbIssue"]

RESCAN_S: Final = 3.0  # events get lost
RESCAN_SWITCHING_S: Final = 0.1  # the driver waits for the phone; a scan costs 5 ms
BUSY_SHOWN_S: Final = 5.0  # a probe of the desktop is over by then
SILENT_SHOWN_S: Final = 5.0  # an app that has been launched has spoken by then
MEMORY_CURED_S: Final = 10.0  # of a link that got its transfers
NAME_MAX: Final = 32  # characters: a column of the status
MAX_REMEMBERED: Final = 1_024  # names and doubtful serials: a device that invents serials must not fill the memory

UsbIssue = tuple[str, str, dict[str, object]]

PORT_ISSUES: Final = frozenset(
    {
        "usb-permission",
        "usb-unlisted",
        "usb-busy",
        "usb-flapping",
        "usb-memory",
        "phone-lost",
        "phone-refused",
        "phone-switch",
        "app-silent",
        "serial-duplicate",
    }
)
"""Every code that ``PortTable.issues`` may name; other issues of USB are those of the machine."""


class PortView(msgspec.Struct, frozen=True):
    """One port as shown; ``name`` is "" for a device that is not treated as a phone, ``reconnects`` since start."""

    port_id: int
    port: str
    name: str
    state: PortState
    since: float
    reason: str
    serial: str
    model: str
    maker: str
    vendor: int
    product: int
    aoa_version: int | None
    row: int | None
    reconnects: int


class _Names:
    """Names of phones; each stays with its key, unless MAX_REMEMBERED newer ones have come and it is not there."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[str, str], str] = {}

    def of(self, device: UsbDevice, serial: str, rules: DeviceRules, present: set[str]) -> str:
        """The name of ``device``, a new one at its first sight; ``present`` are the names in use at other ports."""
        key = (device.serial, device.port)
        if key not in self._by_key:
            self._by_key[key] = self._moved(serial, present) or self._new(device, serial, rules, present)
            self._forget_oldest(present | {self._by_key[key]})
        return self._by_key[key]

    def _forget_oldest(self, kept: set[str]) -> None:
        if len(self._by_key) > MAX_REMEMBERED:
            oldest = next((key for key, name in self._by_key.items() if name not in kept), None)
            if oldest is not None:
                del self._by_key[oldest]

    def keep(self, device: UsbDevice, name: str) -> None:
        """``device`` is a known phone after its switch, whatever its key is now."""
        self._by_key.setdefault((device.serial, device.port), name)

    def _moved(self, serial: str, present: set[str]) -> str | None:
        """The name that this phone has at a port which it has left."""
        if not serial:
            return None
        return next((name for (s, _), name in self._by_key.items() if s == serial and name not in present), None)

    def _new(self, device: UsbDevice, serial: str, rules: DeviceRules, present: set[str]) -> str:
        entry = rules.listed(serial, device.port)
        wanted = entry.name if entry else _default_name(device, serial)
        taken = present if entry else present | set(self._by_key.values())
        name, number = wanted, 1
        while name in taken:
            number += 1
            name = f"{wanted}-{number}"
        return name


def _default_name(device: UsbDevice, serial: str) -> str:
    tail = serial[-4:] if serial else device.port
    model = re.sub(r"[^A-Za-z0-9_.-]+", "-", device.model).strip("-") or "phone"
    return f"{model[: NAME_MAX - 1 - len(tail)]}-{re.sub(r'[^A-Za-z0-9_.-]', '-', tail)}"


class PortTable:
    """Turns scans into inputs of the port machines. ``port_id`` is small, stable and never reused."""

    def __init__(self, rules: DeviceRules) -> None:
        self._rules = rules
        self._machines: dict[int, PortMachine] = {}
        self._names = _Names()
        self._name_of: dict[int, str] = {}
        self._ambiguous: dict[str, None] = {}  # serials that two devices have had at once, oldest first
        self._next_id = 1
        self._now = 0.0

    # Inputs.

    def set_rules(self, rules: DeviceRules) -> None:
        """Rules of a new configuration; what is linked stays linked, names stay."""
        self._rules = rules
        for machine in self._machines.values():
            machine.settings = PortSettings(reset_stuck=rules.reset_stuck)

    def on_scan(self, devices: Sequence[UsbDevice], now: float, at: float | None = None) -> list[tuple[int, Action]]:
        """Everything on the bus now; ``at`` = when the event came that asked for the scan."""
        self._now = now
        self._note_serials(devices)
        assigned = self._assign(devices)
        actions: list[tuple[int, Action]] = []
        for port_id, machine in sorted(self._machines.items(), key=lambda item: item[0] in assigned):
            device = assigned.get(port_id)
            before = machine.device, machine.state
            actions += self._tagged(port_id, machine.on_scan(device, now, at))
            self._name(port_id, *before)
        return actions

    def on_result(
        self, port_id: int, step: str, result: StepResult, now: float, at: float | None = None
    ) -> list[tuple[int, Action]]:
        """The answer to an action of ``port_id``, or its link's end, which was noticed ``at`` this time."""
        self._now = now
        return self._tagged(port_id, self._machines[port_id].on_result(step, result, now, at))

    def on_tick(self, now: float) -> list[tuple[int, Action]]:
        """Time has passed."""
        self._now = now
        return [a for port_id, machine in self._machines.items() for a in self._tagged(port_id, machine.on_tick(now))]

    def retry(self, name: str, now: float) -> list[tuple[int, Action]]:
        """Somebody asks to try this phone (by name or port) again at once."""
        self._now = now
        return [a for i in self._called(name) for a in self._tagged(i, self._machines[i].retry(now))]

    def reset(self, name: str, now: float) -> list[tuple[int, Action]]:
        """Somebody asks for a reset of this phone (by name or port)."""
        self._now = now
        return [a for i in self._called(name) for a in self._tagged(i, self._machines[i].reset(now))]

    # Views.

    def machine(self, port_id: int) -> PortMachine:
        """The machine of a port."""
        return self._machines[port_id]

    def phone_name(self, port_id: int) -> str:
        """What the phone on this port is called; the port itself if it is no phone."""
        return self._name_of.get(port_id) or self._machines[port_id].port

    def entry(self, port_id: int) -> DeviceName | None:
        """The ``[[device]]`` of the phone on this port."""
        machine = self._machines[port_id]
        device = machine.last_device
        return self._rules.listed(self._trusted(device), device.port) if device else None

    def next_deadline(self) -> float | None:
        """When ``on_tick`` has something to do."""
        deadlines = [d for d in (m.deadline() for m in self._machines.values()) if d is not None]
        return min(deadlines, default=None)

    @property
    def scan_interval_s(self) -> float:
        """How long after the last scan the next one is due without any event."""
        return RESCAN_SWITCHING_S if any(m.wants_scans for m in self._machines.values()) else RESCAN_S

    @property
    def has_phones(self) -> bool:
        """Whether the machine of any phone is at work."""
        return any(self._is_phone(m) and m.state is not PortState.ABSENT for m in self._machines.values())

    def views(self) -> list[PortView]:
        """Every port that holds a device, or held a phone."""
        return [self._view(i, m) for i, m in self._machines.items() if m.device is not None or self._is_phone(m)]

    def issues(self, now: float) -> list[UsbIssue]:
        """The open issues as (code, subject, data)."""
        found = [
            (code, self.phone_name(port_id), self._issue_data(machine))
            for port_id, machine in self._machines.items()
            for code in _issue_codes(machine, now)
        ]
        return found + self._duplicates()

    # Identity.

    def _note_serials(self, devices: Sequence[UsbDevice]) -> None:
        counts = Counter(d.serial for d in devices if d.serial)
        for serial in (serial for serial, count in counts.items() if count > 1):
            self._ambiguous.pop(serial, None)
            self._ambiguous[serial] = None
            if len(self._ambiguous) > MAX_REMEMBERED:
                del self._ambiguous[next(iter(self._ambiguous))]

    def _trusted(self, device: UsbDevice) -> str:
        """The serial of ``device``, "" if it has none or shares it with another one."""
        return "" if device.serial in self._ambiguous else device.serial

    def _assign(self, devices: Sequence[UsbDevice]) -> dict[int, UsbDevice]:
        """Gives every device its machine: the one of its port, or the one that waits for it elsewhere."""
        by_port = {machine.port: port_id for port_id, machine in self._machines.items()}
        occupied = {d.port for d in devices}
        assigned: dict[int, UsbDevice] = {}
        for device in devices:
            port_id = by_port.get(device.port)
            elsewhere = self._elsewhere(device, port_id, occupied)
            if elsewhere is not None and elsewhere not in assigned:
                if port_id is not None:
                    self._machines[port_id].port = self._machines[elsewhere].port
                    by_port[self._machines[port_id].port] = port_id
                port_id = elsewhere
            elif port_id is None:
                port_id = self._add(device.port)
            self._machines[port_id].port = device.port
            by_port[device.port] = port_id
            assigned[port_id] = device
        return assigned

    def _elsewhere(self, device: UsbDevice, own: int | None, occupied: set[str]) -> int | None:
        """The empty port that this phone has left for another one: the companion bus, or a hand."""
        own_machine = self._machines[own] if own is not None else None
        if own_machine is not None and own_machine.state is not PortState.ABSENT:
            return None
        left = [i for i, m in self._machines.items() if i != own and m.port not in occupied and self._is_of(m, device)]
        switching = [i for i in left if self._machines[i].state is PortState.SWITCHING]
        if device.is_accessory and switching:
            return switching[0]
        last = own_machine.last_device if own_machine else None
        if last is not None and last.serial == device.serial:
            return None  # back where it was
        return next((i for i in left if i not in switching), None)

    def _is_of(self, machine: PortMachine, device: UsbDevice) -> bool:
        """True if ``device`` may be the phone of ``machine`` at another port."""
        last = machine.last_device
        if last is None:
            return False
        same_socket = device.peer == machine.port or last.peer == device.port
        serial = self._trusted(device)
        return (same_socket and last.is_accessory != device.is_accessory) or (bool(serial) and last.serial == serial)

    def _add(self, port: str) -> int:
        port_id, self._next_id = self._next_id, self._next_id + 1
        settings = PortSettings(reset_stuck=self._rules.reset_stuck)
        self._machines[port_id] = PortMachine(port, lambda device: self._decide(port_id, device), settings)
        return port_id

    def _decide(self, port_id: int, device: UsbDevice) -> Verdict:
        verdict = decide(device, self._rules, self._trusted(device))
        if verdict.decision is Decision.IGNORE:
            return verdict
        others = sum(m.occupies(self._now) for i, m in self._machines.items() if i != port_id)
        if others < self._rules.max:
            return verdict
        return Verdict(Decision.IGNORE, verdict.row, f"more phones than devices.max = {self._rules.max}")

    def _name(self, port_id: int, before: UsbDevice | None, state: PortState) -> None:
        """Names the phone of a new enumeration, once it counts as one."""
        machine = self._machines[port_id]
        device = machine.device
        if device is None or not self._is_phone(machine):
            return
        known = self._name_of.get(port_id)
        if known is not None and before is not None and before.address == device.address:
            return
        if known is not None and device.is_accessory and state is not PortState.ABSENT:
            self._names.keep(device, known)  # the switch changes neither the phone nor its name
            return
        present = {name for i, name in self._name_of.items() if i != port_id and not self._is_absent(i)}
        self._name_of[port_id] = self._names.of(device, self._trusted(device), self._rules, present)

    def _is_absent(self, port_id: int) -> bool:
        return self._machines[port_id].state is PortState.ABSENT

    @staticmethod
    def _is_phone(machine: PortMachine) -> bool:
        return machine.verdict is not None and machine.verdict.decision is not Decision.IGNORE

    def _called(self, name: str) -> list[int]:
        return [i for i, m in self._machines.items() if name in (self.phone_name(i), m.port)]

    @staticmethod
    def _tagged(port_id: int, actions: Iterable[Action]) -> list[tuple[int, Action]]:
        return [(port_id, action) for action in actions]

    def _view(self, port_id: int, machine: PortMachine) -> PortView:
        device = machine.last_device
        return PortView(
            port_id=port_id,
            port=machine.port,
            name=self._name_of.get(port_id, ""),
            state=machine.state,
            since=machine.since,
            reason=machine.reason,
            serial=device.serial if device else "",
            model=device.model if device else "",
            maker=device.maker if device else "",
            vendor=device.vendor if device else 0,
            product=device.product if device else 0,
            aoa_version=machine.aoa_version,
            row=machine.verdict.row if machine.verdict else None,
            reconnects=max(0, machine.links - 1),
        )

    def _issue_data(self, machine: PortMachine) -> dict[str, object]:
        device = machine.last_device
        vendor = f"{device.vendor:04x}" if device else ""
        return {"port": machine.port, "vid": vendor, "serial": device.serial if device else ""}

    def _duplicates(self) -> list[UsbIssue]:
        ports: dict[str, list[str]] = {}
        for machine in self._machines.values():
            device = machine.last_device
            if device is not None and self._is_phone(machine) and machine.state is not PortState.ABSENT:
                ports.setdefault(device.serial, []).append(machine.port)
        return [
            ("serial-duplicate", serial, {"serial": serial, "ports": sorted(where)})
            for serial, where in sorted(ports.items())
            if serial and len(where) > 1
        ]


def _issue_codes(machine: PortMachine, now: float) -> list[str]:
    state = machine.state
    present = state is not PortState.ABSENT
    linked_s = now - machine.link.since
    conditions = {
        "usb-permission": state is PortState.BLOCKED,
        "usb-unlisted": machine.device is not None and machine.verdict is not None and machine.verdict.unlisted,
        "usb-busy": present and machine.busy_since is not None and now - machine.busy_since > BUSY_SHOWN_S,
        "usb-flapping": machine.is_flapping(now),
        "usb-memory": present and machine.out_of_memory and not (state.has_link and linked_s >= MEMORY_CURED_S),
        "phone-lost": not present and machine.was_live,
        "phone-refused": present and machine.refusals.count > 0,
        "phone-switch": present and machine.no_switches.count > 0,
        "app-silent": state is PortState.LINKED and linked_s > SILENT_SHOWN_S and not machine.link.valid_line,
    }
    return [code for code, shown in conditions.items() if shown]
