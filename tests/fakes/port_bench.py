"""One port machine in virtual time, and the devices that come to it."""

from typing import Any

from aoabridge.errors import UsbError
from aoabridge.phone.actions import Action, Open, PortSettings, PortState
from aoabridge.phone.aoa import UsbDevice, UsbInterface
from aoabridge.phone.filter import DeviceRules, decide
from aoabridge.phone.port import PortMachine

__all__ = ["FITTING", "MTP", "PortBench", "accessory", "error", "native"]

MTP = (UsbInterface(0, 6, 1, 1),)
FITTING = (UsbInterface(0, 0xFF, 0xFF, 0),)


def native(devnum: int = 5, **more: Any) -> UsbDevice:
    return UsbDevice("1-1", 0x04E8, 0x6860, 1, devnum, interfaces=more.pop("interfaces", MTP), **more)


def accessory(devnum: int = 6, **more: Any) -> UsbDevice:
    return UsbDevice("1-1", 0x18D1, 0x2D00, 1, devnum, interfaces=more.pop("interfaces", FITTING), **more)


def error(kind: str, step: str = "open") -> UsbError:
    return UsbError(kind, errno=None, kind=kind, step=step, port="1-1")


class PortBench:
    """A port machine with its clock; collects what it asked for."""

    def __init__(self, rules: DeviceRules = DeviceRules(), *, reset_stuck: bool = False) -> None:  # noqa: B008 (frozen)
        self.machine = PortMachine("1-1", lambda d: decide(d, rules, d.serial), PortSettings(reset_stuck=reset_stuck))
        self.now = 100.0
        self.actions: list[Action] = []
        self.starts: list[float] = []

    @property
    def state(self) -> PortState:
        return self.machine.state

    def take(self) -> list[Action]:
        actions, self.actions = self.actions, []
        return actions

    def scan(self, device: UsbDevice | None, after: float = 0.0) -> list[Action]:
        self.wait(after)
        self.actions += self.machine.on_scan(device, self.now)
        return self.take()

    def result(self, step: str, result: Any, after: float = 0.0) -> list[Action]:
        self.now += after
        self.actions += self.machine.on_result(step, result, self.now)
        if step == "probe" and isinstance(result, int) and result:
            self.starts.append(self.now)
        return self.take()

    def wait(self, seconds: float) -> None:
        """Lets time pass, ticking at every deadline; what was asked for stays to be taken."""
        end = self.now + seconds
        while (due := self.machine.deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self.actions += self.machine.on_tick(self.now)
        self.now = end

    def link(self, *, adopted: bool = False) -> None:
        """Plugs a phone in and links it."""
        if not adopted:
            self.scan(native())
            self.result("probe", 2)
            self.scan(None, 0.02)
        assert [type(a) for a in self.scan(accessory(), 0.3)] == [Open]
        assert self.result("open", 1) == []
        assert self.state is PortState.LINKED

    def live(self) -> None:
        self.machine.on_accepted(self.now)
        self.machine.on_received()
        self.machine.on_link_status(self.now, live=True)
        assert self.state is PortState.LIVE
