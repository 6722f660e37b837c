"""The emulated Android phone: endpoint 0, the switch to accessory mode, the accessory's endpoints, the app on it.

Free of any transport: a wire plugs it in, forwards requests and transfers, and hears of attach and detach. Standard
library only; the same phone runs under pyusb's backend interface, under libusb over emulated usbfs, and in pure code.
"""

import itertools
import json

from fakes.app import App
from fakes.ep0 import ControlRequests
from fakes.pipes import InPipe, OutPipe
from fakes.profile import Profile, device_view
from fakes.recorder import Recorder
from fakes.transfers import PENDING, SHUTDOWN, STALL, Transfer

__all__ = ["PENDING", "STALL", "Function", "Phone", "Profile", "Transfer"]

START_TO_UNPLUG_S = 0.015  # Android acknowledges START, then leaves the bus
LEAVE_TO_NATIVE_S = 0.5
LAUNCH_S = 0.1  # accessory configured -> the app has it open
HALT_AFTER_USE_S = 1.0


def split_points():
    """0 to 64, then the primes up to a large transfer, over and over."""
    primes = [number for number in range(67, 1024) if all(number % factor for factor in range(2, 33))]
    return itertools.cycle([*range(65), *primes])


class Function:
    """The accessory's two endpoints during one attachment."""

    def __init__(self, profile, clock, on_accepted):
        size, path = profile.packet_size, profile.data_path
        self.out = OutPipe(size, clock, path, on_accepted)
        self.in_ = InPipe(size, clock, path, zero_packets=profile.zlp == "after_multiples")


class Phone(ControlRequests):
    """One phone. `wire` offers attached(phone), detached(phone); `clock` now() and call_later()."""

    def __init__(self, profile, clock, wire):
        self.profile = profile
        self.clock = clock
        self.wire = wire
        self.recorder = Recorder(clock)
        self.app = App(profile, clock, self)
        self.mode = None  # None = not on the bus
        self.port = profile.at
        self.view = None
        self.configured = False
        self.function = None
        self.holders = {}  # interface number -> owner token
        self.locked = profile.locked
        self.plugged = False
        self.block_s = 0.0
        self._first_plug = True
        self._lives_left = float("inf") if profile.life_times is None else profile.life_times
        self._leave_timer = None
        self._timers = []
        self._others = {}

        self._held_by_other = {}
        self._cut = None
        self._sweep = None
        super().__init__()

    # on and off the bus

    def plug(self):
        if self.plugged:
            return
        self.plugged = True
        mode = self.profile.start_as if self._first_plug else "native"
        adopted = mode == "accessory"
        self._first_plug = False
        self.recorder.event("plug")
        self._attach(mode, adopted=adopted)

    def unplug(self):
        if not self.plugged:
            return
        self.plugged = False
        self.recorder.event("unplug")
        self._cancel_timers()
        self._detach()

    def _attach(self, mode, adopted=False):
        profile = self.profile
        self.mode = mode
        self.port = profile.accessory_at if mode == "accessory" and profile.accessory_at else profile.at
        self.view = device_view(profile, mode)
        self.configured = profile.configured if mode == "accessory" else True
        self.reset_handshake()
        if mode == "accessory":
            self._enter_accessory(adopted)
        self.recorder.event("attach", mode=mode, port=self.port)
        self.wire.attached(self)

    def _enter_accessory(self, adopted):
        self.function = Function(self.profile, self.clock, self.recorder.out_accepted)
        self._prepare_halts()
        self._apply_faults()
        if self.profile.out_dead_until and not self._out_revived:
            self.function.out.dead = True
        for line in self.stale_lines():
            self.function.in_.queue(line)
        if adopted:
            self.app.attached(self.function, adopted=True)
        elif self.configured:
            self._launch_app()
        if self.profile.accessory_life_s is not None and self._lives_left > 0:
            self._lives_left -= 1
            self._later(self.profile.accessory_life_s, self._end_of_life)

    def _launch_app(self):
        function = self.function
        self._later(LAUNCH_S, lambda: self.app.attached(function, adopted=False) if function is self.function else None)

    def stale_lines(self):
        lines = [line.encode() for line in self.profile.stale_in]
        return [line + b"\n" for line in lines[:-1]] + lines[-1:]

    def _stale_puts(self):
        """(key, value) of the puts among the lines that waited for the host."""
        puts = []
        for line in self.profile.stale_in:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict) and "key" in message:
                puts.append([message["key"], message.get("value")])
        return puts

    def queue_stale(self):
        if self.function is not None:
            for line in self.stale_lines():
                self.function.in_.queue(line)

    def _detach(self):
        if self.mode is None:
            return
        mode, self.mode = self.mode, None
        function, self.function = self.function, None
        self.holders.clear()
        self._others.clear()
        self._end_link("detach")
        self.recorder.event("detach", mode=mode)
        self.shut_control()
        if function is not None:
            self.block_s = max(self.block_s, function.in_.block_s)
            self.recorder.counts["overflow"] += function.in_.babbled
            function.out.shut_down()
            function.in_.shut_down()
            self.app.detached()
        self.wire.detached(self)

    def _later(self, delay, callback):
        self._timers = [timer for timer in self._timers if timer.active]
        timer = self.clock.call_later(delay, callback)
        self._timers.append(timer)
        return timer

    def _cancel_timers(self):
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._leave_timer = None

    def leave(self, native_after=LEAVE_TO_NATIVE_S):
        """Out of accessory mode: off the bus now, native again later."""
        self._cancel_timers()
        self._detach()
        self._later(native_after, lambda: self._attach("native"))

    def _end_of_life(self):
        then = self.profile.then
        self.leave(float(then.split(":")[1]) if then.startswith("absent:") else LEAVE_TO_NATIVE_S)

    def app_closed(self):
        """The app gave up its descriptor."""
        if self.profile.on_app_close == "leave" and self.mode == "accessory" and self._leave_timer is None:
            self._leave_timer = self._later(self.profile.leave_ms / 1000, self.leave)

    def start_switch(self):
        """START was accepted: off the bus soon, the accessory (or native again) later."""
        total, again = self.profile.switch_s, self.profile.native_again
        if total is None:
            return
        self._cancel_timers()
        self._later(min(START_TO_UNPLUG_S, total / 2), self._detach)
        slot = total / (again + 1)
        for index in range(1, again + 1):
            self._later(index * slot - slot * 0.3, lambda: self._attach("native"))
            self._later(index * slot, self._detach)
        self._later(total, lambda: self._attach("accessory"))

    # requests of the host that are not control transfers

    def reset(self):
        self.recorder.counts["reset"] += 1
        self.recorder.event("reset")
        if self.function is not None:
            self.function.out.clear_halt()
            self.function.in_.clear_halt()
        self._revive_out("reset")
        if self.mode == "accessory" and self.profile.on_reset == "leave":
            self.leave()

    def set_configuration(self, value):
        self.recorder.counts["set_configuration"] += 1
        if self.mode != "accessory":
            return
        if not self.configured:
            self.configured = bool(value)
            if self.configured:
                self._launch_app()
                self.wire.configured(self)
        elif self.profile.on_set_configuration == "leave":
            self.leave()

    def claim(self, number, owner):
        """0 or a negative errno."""
        if self.mode is None:
            return -19
        interface = next((item for item in self.view.interfaces if item.number == number), None)
        if interface is None or not self.configured:
            return -2
        if self.mode == "native":
            self.recorder.counts["claims_native"] += 1
            if self.profile.native_claimed_by:
                return -16
        if self._held_by_other.get(interface.role, 0.0) > self.clock.now():
            return -16
        if self.holders.get(number, owner) is not owner:
            return -16
        self.holders[number] = owner
        if interface.role in ("accessory", "control"):
            self.recorder.counts["claims"] += 1
            self.recorder.event("claim", role=interface.role)
        if interface.role == "accessory":
            self.recorder.link_opened()
            self.app.link_opened()
        return 0

    def release(self, number, owner):
        if self.holders.get(number) is not owner:
            return -22
        del self.holders[number]
        self._end_link("release")
        return 0

    def _end_link(self, why):
        if self.recorder.linked:
            self.recorder.event("link end", why=why)
        self.recorder.link_closed()

    def hold_interface(self, kind, seconds):
        """Another process holds this interface."""
        self._held_by_other[kind] = self.clock.now() + seconds

    def release_held(self):
        self._held_by_other.clear()

    # bulk transfers

    def pipe(self, address):
        """The pipe behind an endpoint address of the accessory interface; None for any other endpoint."""
        if self.mode != "accessory":
            return None
        for interface in self.view.interfaces:
            if interface.role == "accessory" and address in {endpoint.address for endpoint in interface.endpoints}:
                return self.function.in_ if address & 0x80 else self.function.out
        return None

    def submit(self, transfer):
        """Takes a bulk transfer; it finishes now, later, or never (cancel)."""
        if self.mode is None:
            transfer.finish(SHUTDOWN)
            return
        pipe = self.pipe(transfer.endpoint)
        if pipe is None:
            self.recorder.counts["bytes_to_other_interfaces"] += len(transfer.data)
            self._others[id(transfer)] = transfer
            return
        if transfer.endpoint & 0x80:
            self.recorder.in_read_bytes.add(transfer.length)
        else:
            self.recorder.out_submitted(len(transfer.data), transfer.zero_packet, self.profile.packet_size)
        pipe.submit(transfer)

    def cancel(self, transfer):
        self._others.pop(id(transfer), None)
        if self.function is not None:
            self.function.in_.cancel(transfer)
            self.function.out.cancel(transfer)
        transfer.finish(-2)

    def clear_halt(self, address):
        self.recorder.counts["clear_halt"] += 1
        pipe = self.pipe(address)
        if pipe is None:
            return
        pipe.clear_halt()
        if not address & 0x80:
            self._revive_out("clear_halt")
        pipe.pump()

    # scripted faults of the endpoints

    _out_revived = False

    def _revive_out(self, how):
        if self.profile.out_dead_until == how:
            self._out_revived = True
            if self.function is not None:
                self.function.out.dead = False
                self.function.out.pump()

    def _prepare_halts(self):
        """The named endpoint halts a second after both were used once."""
        if self.profile.halt is None:
            return
        function = self.function
        target = function.in_ if self.profile.halt["endpoint"] == "in" else function.out
        target.halt_events(self._halts_left())

        def used():
            if function.in_.used and function.out.used:
                self._later(HALT_AFTER_USE_S, target.arm_halts)

        function.in_.on_first_use = function.out.on_first_use = used

    def _halts_left(self):
        return self.profile.halt["times"]

    def unplug_in_transfer(self, direction, after_bytes):
        """Unplugs once that many bytes of the next transfer of this direction moved."""
        self._cut = (direction, after_bytes)
        self._apply_faults()

    def _apply_faults(self):
        """Scripted faults wait for the accessory, if it is not there yet."""
        function = self.function
        if function is None:
            return
        if self._cut is not None:
            (direction, after_bytes), self._cut = self._cut, None
            pipe = function.in_ if direction == "read" else function.out
            pipe.cut = (after_bytes, self.unplug)
        if self._sweep is not None:
            function.out.split_transfers(*self._sweep)

    def accept_out_then_nak(self, count, min_length, on_reached):
        """The next OUT transfer of at least `min_length` bytes is accepted up to `count`, then NAKed for good."""
        if self.function is not None:
            self.function.out.stop_at(count, min_length, on_reached)

    def sweep_out(self, sweep, nak_s):
        """Each transfer accepts k bytes, then NAKs; k goes through every split point (primes above 64)."""
        if sweep != "every_split":
            raise ValueError(f"unknown sweep {sweep!r}")
        self._sweep = (nak_s, split_points())
        self._apply_faults()

    def resume_out(self):
        if self.function is not None:
            self.function.out.resume()

    def metrics(self):
        function = self.function
        block_s = max(self.block_s, function.in_.block_s if function else 0.0)
        babbled = function.in_.babbled if function else 0
        result = {**self.recorder.metrics(), **self.app.log.metrics()}
        result["overflow"] += babbled
        result["app_write_block_ms"] = block_s * 1000
        result["app_reopen_s"] = max(self.app.reopen_times, default=None)
        result["events"] = list(self.recorder.events)
        result["keys"] = list(self.app.keys)
        result["stale_puts"] = self._stale_puts()
        result["sent"] = {key: list(entry) for key, entry in self.app.book.sent.items()}
        return result
