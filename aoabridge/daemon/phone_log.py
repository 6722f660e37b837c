"""What the journal is told about phones: state edges, once each."""

import logging
from collections.abc import Callable, Iterable
from typing import Final

from aoabridge.errors import UsbError
from aoabridge.phone.actions import PortState
from aoabridge.phone.aoa import UsbDevice
from aoabridge.phone.port import PortMachine
from aoabridge.phone.ports import PortView

__all__ = ["PhoneLog"]

_log = logging.getLogger(__name__)

REPEAT_S: Final = 600.0
_DEFECTS: Final = frozenset({"INVALID_PARAM", "NOT_SUPPORTED", "DEFECT"})

_LEVELS: Final = {
    PortState.ABSENT: logging.INFO,
    PortState.LINKED: logging.INFO,
    PortState.LIVE: logging.INFO,
    PortState.STALE: logging.INFO,
    PortState.SWITCHING: logging.INFO,
    PortState.REOPEN: logging.WARNING,
    PortState.COOLDOWN: logging.WARNING,
    PortState.BLOCKED: logging.ERROR,
}
_CODES: Final = {PortState.LIVE: "phone-live", PortState.BLOCKED: "usb-permission"}
_EXPECTED: Final = frozenset({"left accessory mode by itself", "reset"})


class PhoneLog:
    """Remembers the last state of every port; a warning of a state is repeated every ten minutes at most."""

    def __init__(self) -> None:
        self._states: dict[int, PortState] = {}
        self._said: dict[tuple[str, PortState, str], float] = {}
        self._defects: set[tuple[str, str]] = set()
        self._powered: set[str] = set()

    def report(self, views: Iterable[PortView], machine: Callable[[int], PortMachine], now: float) -> bool:
        """Logs what changed; True if anything did."""
        changed = False
        for view in views:
            before = self._states.get(view.port_id)
            if before is not view.state:
                changed = True
                self._states[view.port_id] = view.state
                self._say(view, machine(view.port_id), now)
        return changed

    def linked(self, name: str, device: UsbDevice | None) -> None:
        """Warns of a device that the kernel may put to sleep; phones do not resume."""
        if device is not None and device.power_control == "auto" and device.port not in self._powered:
            self._powered.add(device.port)
            _log.warning("%s on port %s may be suspended: is the udev rule installed?", name, device.port)

    def failed(self, name: str, error: UsbError) -> None:
        """A call or a link failed; a defect of ours is told with its traceback, once."""
        key = (error.kind, error.step)
        if error.kind in _DEFECTS and key not in self._defects:
            self._defects.add(key)
            _log.error("defect with %s: %s", name, error.strerror, exc_info=error)
        else:
            _log.debug("%s: %s", name, error.strerror)

    def library(self, error: UsbError | None) -> None:
        """The USB library was loaded, or there is none: no phone can be linked, all else runs."""
        if error is not None:
            _log.error("no USB: %s", error.strerror)

    def _say(self, view: PortView, machine: PortMachine, now: float) -> None:
        level = _LEVELS.get(view.state, logging.DEBUG)
        if view.reason in _EXPECTED:
            level = logging.INFO
        key = (view.port, view.state, view.reason)
        if level >= logging.WARNING:
            last = self._said.get(key)
            if last is not None and now - last < REPEAT_S:
                level = logging.DEBUG
            else:
                self._said[key] = now
        detail = f" ({view.reason})" if view.reason else ""
        fault = f": {machine.fault.strerror}" if machine.fault is not None and level >= logging.WARNING else ""
        who = view.name or f"{view.vendor:04x}:{view.product:04x}"
        extra = {"device": who, "port": view.port, "serial": view.serial or None, "code": _code(view, machine)}
        _log.log(level, "%s on port %s: %s%s%s", who, view.port, view.state.value, detail, fault, extra=extra)


def _code(view: PortView, machine: PortMachine) -> str | None:
    """The event or issue that a state stands for in the journal."""
    if view.state is PortState.ABSENT:
        return "phone-gone" if machine.was_live else None
    return _CODES.get(view.state)
