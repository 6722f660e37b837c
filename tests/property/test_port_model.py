"""Every order of a port's events up to a depth, against seven sentences about what a host may ask of a phone.

1. At most one thing that has to be answered is asked for at a time.
2. A handshake is asked only of a native phone that is on the port now, and never while an earlier one is under way.
3. An accessory that is on the port now is opened, never asked to switch.
4. Nothing is opened or asked to switch while a pipe is open: every pipe is closed first, once.
5. The state says "link" only while a pipe is open, and a pipe that no link wants is closed at once.
6. A phone that was asked to switch has ten seconds for it, three more if it was plugged in again meanwhile, no more.
7. Whatever happened, a healthy phone that is plugged in by hand is linked within seconds and by one START.
"""

import copy
import functools
import itertools

import pytest

from aoabridge.errors import UsbError
from aoabridge.phone.actions import ClearHalts, Close, Open, PortState, Probe, Reopen, Reset
from aoabridge.phone.aoa import UsbDevice, UsbInterface
from aoabridge.phone.filter import DeviceRules, decide
from aoabridge.phone.port import PortMachine

DEPTH = 5
STEPS = {Probe: "probe", Open: "open", Reopen: "reopen", Close: "close", Reset: "reset"}
MTP = (UsbInterface(0, 6, 1, 1),)
FITTING = (UsbInterface(0, 0xFF, 0xFF, 0),)
RULES = DeviceRules()
HAND_S = 3.1  # slower than a phone that comes back by itself
LINKED_WITHIN_S = 5.0
SWITCH_S = 10.0  # Android drops its own request after that
REPLUGGED_S = 3.0


@functools.cache
def fault(kind, step):
    return UsbError(kind, errno=None, kind=kind, step=step, port="1-1")


KINDS = ("TIMEOUT", "ACCESS", "NO_DEVICE")
KEPT = [fault(kind, step) for kind in KINDS for step in ("open", "claim", "get_protocol")] + [fault("IO", "read")]


def split(world):
    """A second world with the same past; errors are values and need no copy."""
    return copy.deepcopy(world, {id(error): error for error in KEPT})


class World:
    """The machine, what is on its port, and what it is waiting for."""

    def __init__(self):
        self.machine = PortMachine("1-1", lambda device: decide(device, RULES, device.serial))
        self.now = 100.0
        self.device = None
        self.numbers = itertools.count(5)
        self.asked = self.last = None
        self.pipe_open = False
        self.starts = self.failed_switches = 0
        self.started_at = float("-inf")

    def perform(self, actions):
        for action in actions:
            if isinstance(action, ClearHalts):
                assert self.pipe_open
                continue
            assert self.asked is None, f"{action} while {self.asked}"
            self.asked = action
            if isinstance(action, Probe):
                assert action.device == self.device, "not on the port"
                assert not action.device.is_accessory
                assert self.machine.state is not PortState.SWITCHING
            if isinstance(action, Open):
                assert action.device == self.device, "not on the port"
                assert action.device.is_accessory
            assert self.pipe_open == isinstance(action, Close | Reopen | Reset), action
            if isinstance(action, Close | Reset):
                self.pipe_open = False
        if self.machine.state.has_link:
            assert self.pipe_open or isinstance(self.asked, Reopen)
        elif self.pipe_open:
            assert isinstance(self.asked, Reopen), "a pipe that nobody wants"
        self.check_switch()

    def check_switch(self):
        waited_s = self.now - self.started_at
        if self.machine.state is PortState.SWITCHING:
            assert waited_s <= SWITCH_S + REPLUGGED_S, f"switching for {waited_s} s"
        failed = self.machine.no_switches.count
        if failed > self.failed_switches:
            assert waited_s >= SWITCH_S, f"given up after {waited_s} s"
        self.failed_switches = failed

    def scan(self, mode):
        make = {"native": (0x04E8, 0x6860, MTP), "accessory": (0x18D1, 0x2D00, FITTING)}.get(mode)
        self.device = None
        if make:
            vendor, product, interfaces = make
            self.device = UsbDevice(
                "1-1", vendor, product, 1, next(self.numbers), serial="S", interfaces=interfaces, configuration=1
            )
        self.perform(self.machine.on_scan(self.device, self.now))

    def answer(self, result):
        """The answer to what was asked for; "ok", a count, or the kind of an error."""
        action, self.asked = self.asked, None
        step = STEPS[type(action)]
        if result == "ok":
            result = {"probe": 2, "open": 1, "reopen": 1}.get(step)
        elif isinstance(result, str):
            at = {"probe": "get_protocol", "open": "claim", "reopen": "claim"}.get(step, step)
            at = "open" if result == "ACCESS" else at  # the kind comes from the node's mode
            result = fault(result, at)
        if step in ("open", "reopen"):
            self.pipe_open = isinstance(result, int) and result > 0
        if step == "probe" and result == 2:
            self.starts += 1
            self.started_at = self.now
        self.perform(self.machine.on_result(step, result, self.now))

    def pass_time(self, seconds):
        end = self.now + seconds
        while (due := self.machine.deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self.perform(self.machine.on_tick(self.now))
        self.now = end
        self.perform(self.machine.on_tick(self.now))

    def end_link(self):
        self.perform(self.machine.on_result("link", fault("IO", "read"), self.now))

    def come_alive(self):
        self.machine.on_accepted(self.now)
        self.machine.on_received()
        self.machine.on_link_status(self.now, live=True)


def answers(result):
    return lambda world: world.asked is not None, lambda world: world.answer(result)


def linked(what):
    return lambda world: world.machine.state.has_link and world.asked is None, what


def always(what):
    return lambda world: True, what


EVENTS = {  # name: (possible, happen)
    "native": always(lambda world: world.scan("native")),
    "accessory": always(lambda world: world.scan("accessory")),
    "empty": (lambda world: world.device is not None, lambda world: world.scan(None)),
    "ok": answers("ok"),
    "refused": (lambda world: isinstance(world.asked, Probe | Open | Reopen), lambda world: world.answer(0)),
    "TIMEOUT": (lambda world: isinstance(world.asked, Probe | Open | Reopen), lambda world: world.answer("TIMEOUT")),
    "ACCESS": (lambda world: isinstance(world.asked, Probe | Open), lambda world: world.answer("ACCESS")),
    "NO_DEVICE": (lambda world: isinstance(world.asked, Probe | Open), lambda world: world.answer("NO_DEVICE")),
    "link fails": linked(World.end_link),
    "alive": linked(World.come_alive),
    "a moment": always(lambda world: world.pass_time(0.4)),
    "a hand": always(lambda world: world.pass_time(HAND_S)),
    "a while": always(lambda world: world.pass_time(31.0)),
}


def heal(world):
    """A hand takes the phone out and plugs it in; from now on everything works."""
    if world.device is not None:
        world.scan(None)
    while world.asked is not None:
        assert world.asked is not world.last, "asked again of an empty port"
        world.last = world.asked
        world.answer("ok" if isinstance(world.asked, Close | Reset) else "NO_DEVICE")
    world.pass_time(HAND_S)
    before, plugged = world.starts, world.now
    world.scan("native")
    while world.now < plugged + LINKED_WITHIN_S and not world.machine.state.has_link:
        probing = isinstance(world.asked, Probe)
        if world.asked is not None:
            world.answer("ok")
        if probing:
            world.scan(None)
            world.pass_time(0.3)
            world.scan("accessory")
        world.pass_time(0.1)
    assert world.machine.state.has_link, f"{world.machine.state} {world.machine.reason}"
    assert world.starts == before + 1


def explore(world, path, depth):
    """All orders of events below this one; returns how many ends were healed."""
    if not depth:
        heal(world)
        return 1
    ends = 0
    for name, (possible, happen) in EVENTS.items():
        if not possible(world):
            continue
        future = split(world)
        try:
            happen(future)
            ends += explore(future, [*path, name], depth - 1)
        except AssertionError as error:
            if str(error).startswith("order: "):
                raise
            raise AssertionError(f"order: {' -> '.join([*path, name])}: {error}") from error
    return ends


@pytest.mark.parametrize("first", ["native", "accessory", "linked", "live"])
def test_every_order_of_events_keeps_the_seven_sentences(first):
    world = World()
    start = {"linked": ["accessory", "ok"], "live": ["native", "ok", "accessory", "ok", "alive"]}.get(first, [first])
    for name in start:
        EVENTS[name][1](world)
    assert explore(world, start, DEPTH - 1) > 1000
