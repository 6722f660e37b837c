"""All phones of a case on one bus, whatever the transport: addresses, hot-plug events, script items, faults."""

from fakes.phone import Phone, Profile

__all__ = ["Board", "Injector"]

FIRST_ADDRESS, LAST_ADDRESS = 2, 127  # of a device on a bus; 1 is the root hub

APP_ITEMS = frozenset({"app_lines", "app_bytes", "app_chunks", "app_flood", "app_stream", "app_zlps"})


class Injector:
    """The raw results that a case forces: `take(op)` is the entry to apply to this call, or None."""

    def __init__(self, entries):
        self._entries = [
            {**entry, "skip": entry.get("after", 0), "left": self._times(entry.get("times", 1))} for entry in entries
        ]

    @staticmethod
    def _times(value):
        return float("inf") if value == "always" else value

    def take(self, op, has_data=True):
        for entry in self._entries:
            if entry["op"] != op or not entry["left"]:
                continue
            if entry["skip"]:
                entry["skip"] -= 1
                return None
            if entry.get("moved") and op == "read" and not has_data:
                return None  # nothing to move in this call
            entry["left"] -= 1
            return entry
        return None


class Board:
    """`transport` (set by the rig) offers attached(phone), detached(phone), changed(phone, action), removed(phone)."""

    def __init__(self, phones, inject, clock, transport):
        self.clock = clock
        self.transport = transport
        self.injector = Injector(inject)
        self.phones = {}
        for index, entry in enumerate(phones):
            profile = Profile.from_case(entry, index)
            self.phones[profile.name] = Phone(profile, clock, self)
        self._addresses = {}
        self._next_address = FIRST_ADDRESS
        self._events = True
        self._repeats = 1
        self.cut_hits = 0

    # the phones' wire

    def attached(self, phone):
        self._addresses[phone] = (int(phone.port.split("-")[0]), self._free_address(phone))
        self.transport.attached(phone)
        self._announce(phone, "add")

    def _free_address(self, phone):
        """The next device number, as a kernel gives them: never a recent one, but a bus has 127."""
        taken = {
            self._addresses[other][1] for other in self.phones.values() if other is not phone and other.mode is not None
        }
        while True:
            address = self._next_address
            self._next_address = FIRST_ADDRESS + (address + 1 - FIRST_ADDRESS) % (LAST_ADDRESS + 1 - FIRST_ADDRESS)
            if address not in taken:
                return address

    def detached(self, phone):
        self.transport.detached(phone)
        self._announce(phone, "remove")
        self.transport.removed(phone)

    def configured(self, phone):
        self._announce(phone, "change")

    def _announce(self, phone, action):
        if self._events:
            for _ in range(self._repeats):
                self.transport.changed(phone, action)

    def address(self, phone):
        """(bus number, device number) of the current attachment."""
        return self._addresses[phone]

    def scan(self):
        """What sysfs shows now."""
        return [
            phone.view.sysfs(phone.port, *self._addresses[phone], phone.configured)
            for phone in self.phones.values()
            if phone.mode is not None
        ]

    # script

    def select(self, name):
        """The phones that an item means: the first, one by name, or all."""
        every = list(self.phones.values())
        if name == "*":
            return every
        return [self.phones[name]] if name else every[:1]

    def do(self, name, phone=None, **arguments):
        """Runs one script item that concerns the phones; returns at once."""
        if name in ("events_off", "events_duplicate"):
            self._events = name != "events_off"
            self._repeats = arguments.get("times", 1)
            return
        for target in self.select(phone):
            self._do(target, name, arguments)

    def _do(self, phone, name, arguments):
        app = phone.app
        if name in APP_ITEMS:
            getattr(app, name)(**arguments)
            return
        items = {
            "plug": phone.plug,
            "unplug": phone.unplug,
            "unplug_at": phone.unplug_at,
            "unlock": lambda: setattr(phone, "locked", False),
            "replug": lambda gap_s: (phone.unplug(), self.clock.call_later(gap_s, phone.plug)),
            "app_close": app.close,
            "app_restart": app.restart,
            "app_stop_reading": app.stop_reading,
            "app_read": app.resume_reading,
            "app_mute": lambda: setattr(app, "muted", True),
            "app_unmute": lambda: setattr(app, "muted", False),
            "stale_again": phone.queue_stale,
            "hold_interface": phone.hold_interface,
            "accept_out": lambda sweep, nak_ms: phone.sweep_out(sweep, nak_ms / 1000),
            "cut_out": lambda count, min_length: phone.accept_out_then_nak(count, min_length, self._cut_hit),
            "resume_out": phone.resume_out,
            "hang_control": lambda on: setattr(phone, "control_hung", on),
        }
        items[name](**arguments)

    def _cut_hit(self):
        self.cut_hits += 1

    @property
    def busy(self):
        """True while scripted traffic of an app is under way."""
        return any(phone.app.busy for phone in self.phones.values())

    def metrics(self):
        """Per phone what the device and its app saw."""
        return {name: phone.metrics() for name, phone in self.phones.items()}
