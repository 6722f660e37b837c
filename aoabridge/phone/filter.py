"""Which USB devices may be asked whether they are phones: a table of rows, the first that matches decides."""

from collections.abc import Callable
from enum import Enum
from fnmatch import fnmatchcase
from typing import Final

import msgspec

from aoabridge.phone.aoa import UsbDevice

__all__ = ["KNOWN_MAKERS", "UNAUTHORIZED_ROW", "Decision", "DeviceName", "DeviceRules", "Verdict", "decide"]

# The same list stands in the udev rule; a test holds them equal.
KNOWN_MAKERS: Final = frozenset(
    {
        0x04E8, 0x0502, 0x0B05, 0x0BB4, 0x0E8D, 0x0FCE, 0x1004, 0x12D1,
        0x17EF, 0x18D1, 0x1949, 0x19D2, 0x1BBB, 0x22B8, 0x22D9, 0x2717,
        0x2A70, 0x2AE5, 0x2D95, 0x2E04, 0x0489, 0x1782, 0x2833, 0x2A45,
        0x339B,
    }
)  # fmt: skip
_MIXED_MAKERS: Final = frozenset({0x0502, 0x0B05, 0x17EF})  # also make docks, adapters and boards

UNAUTHORIZED_ROW: Final = 0  # decided by the kernel, before any row of ours

_APPLE: Final = 0x05AC
_ROOT_HUB: Final = 0x1D6B
_HUB_CLASS: Final = 0x09
_AUDIO_CLASS: Final = 0x01
_MIDI: Final = (0x01, 0x03)
_ADB: Final = (0xFF, 0x42, 0x01)
_PTP: Final = (0x06, 0x01, 0x01)
_FOREIGN_CLASSES: Final = {0x03: "HID", 0x07: "printer", 0x08: "storage", 0x0B: "smart card", 0x0E: "video"}
_MODEM_DRIVERS: Final = frozenset({"option", "qcserial", "qmi_wwan", "cdc_mbim", "sierra", "usbserial"})


class DeviceName(msgspec.Struct, frozen=True):
    """One ``[[device]]``: a phone known by serial, by port, or by both (then both must match)."""

    name: str
    serial: str = ""
    port: str = ""
    put_allow: tuple[str, ...] = ()
    put_deny: tuple[str, ...] = ()
    subscribe_allow: tuple[str, ...] = ()
    subscribe_deny: tuple[str, ...] = ()

    def matches(self, serial: str, port: str) -> bool:
        """True for this phone; ``serial`` is "" if the phone has none that can be trusted."""
        if not self.serial and not self.port:
            return False
        return (not self.serial or self.serial == serial) and (not self.port or self.port == port)


class DeviceRules(msgspec.Struct, frozen=True):
    """``[devices]`` and every ``[[device]]``; ``accept`` is ``known-makers``, ``listed`` or ``any``."""

    max: int = 4
    accept: str = "known-makers"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    reset_stuck: bool = False
    devices: tuple[DeviceName, ...] = ()

    def listed(self, serial: str, port: str) -> DeviceName | None:
        """The ``[[device]]`` of this phone, the most specific one first."""
        hits = [d for d in self.devices if d.matches(serial, port)]
        return max(hits, key=lambda d: bool(d.serial) + bool(d.port), default=None)


class Decision(Enum):
    """What may be done with a device."""

    IGNORE = "ignore"
    ADOPT = "adopt"
    PROBE = "probe"


class Verdict(msgspec.Struct, frozen=True):
    """The deciding ``row`` (UNAUTHORIZED_ROW = the kernel refused the device), and why.

    ``retry`` = a stall may be a locked phone, not the end; ``unlisted`` = looks like a phone of an unknown maker.
    """

    decision: Decision
    row: int
    reason: str
    retry: bool = False
    unlisted: bool = False


def _matches(device: UsbDevice, patterns: tuple[str, ...]) -> bool:
    """True if one of the patterns ``vid:pid``, ``serial:…``, ``port:…`` names the device; ``*`` stands for any run."""
    return any(_matches_one(device, pattern) for pattern in patterns)


def _matches_one(device: UsbDevice, pattern: str) -> bool:
    kind, _, rest = pattern.partition(":")
    if kind == "serial":
        return bool(device.serial) and fnmatchcase(device.serial, rest)
    if kind == "port":
        return fnmatchcase(device.port, rest)
    return fnmatchcase(f"{device.vendor:04x}:{device.product:04x}", pattern.lower())


def _never(device: UsbDevice, rules: DeviceRules, _serial: str) -> Verdict | None:
    reason = ""
    if _matches(device, rules.deny):
        reason = "denied by devices.deny"
    elif device.vendor == _APPLE:
        reason = "an Apple device"
    elif device.vendor == _ROOT_HUB or device.klass == _HUB_CLASS:
        reason = "a hub"
    return Verdict(Decision.IGNORE, 1, reason) if reason else None


def _unauthorized(device: UsbDevice, _rules: DeviceRules, _serial: str) -> Verdict | None:
    reason = "not authorised: USBGuard or kernel policy"  # the kernel refuses every transfer
    return None if device.authorized else Verdict(Decision.IGNORE, UNAUTHORIZED_ROW, reason)


def _accessory(device: UsbDevice, _rules: DeviceRules, _serial: str) -> Verdict | None:
    return Verdict(Decision.ADOPT, 2, "in accessory mode") if device.is_accessory else None


def _audio_accessory(device: UsbDevice, _rules: DeviceRules, _serial: str) -> Verdict | None:
    reason = "audio accessory mode: unplug and plug in again"
    return Verdict(Decision.IGNORE, 3, reason) if device.is_audio_accessory else None


def _allowed(device: UsbDevice, rules: DeviceRules, _serial: str) -> Verdict | None:
    return Verdict(Decision.PROBE, 4, "allowed by devices.allow") if _matches(device, rules.allow) else None


def _not_listed(device: UsbDevice, rules: DeviceRules, serial: str) -> Verdict | None:
    if rules.accept != "listed" or rules.listed(serial, device.port):
        return None
    return Verdict(Decision.IGNORE, 5, "no [[device]] names it")


def _adb(device: UsbDevice, _rules: DeviceRules, _serial: str) -> Verdict | None:
    has_adb = any(i.triple == _ADB for i in device.interfaces)
    return Verdict(Decision.PROBE, 6, "has an ADB interface", retry=True) if has_adb else None


def _other_class(device: UsbDevice, _rules: DeviceRules, _serial: str) -> Verdict | None:
    foreign = [_FOREIGN_CLASSES[i.klass] for i in device.interfaces if i.klass in _FOREIGN_CLASSES]
    if foreign:
        return Verdict(Decision.IGNORE, 7, f"has a {foreign[0]} interface")
    sound_only = device.interfaces and all(i.klass == _AUDIO_CLASS for i in device.interfaces)
    if sound_only and not any(i.triple[:2] == _MIDI for i in device.interfaces):
        return Verdict(Decision.IGNORE, 7, "an audio device")
    return None


def _modem(device: UsbDevice, _rules: DeviceRules, _serial: str) -> Verdict | None:
    drivers = [i.driver for i in device.interfaces if i.driver in _MODEM_DRIVERS]
    return Verdict(Decision.IGNORE, 8, f"a modem (driver {drivers[0]})") if drivers else None


def _known_maker(device: UsbDevice, _rules: DeviceRules, _serial: str) -> Verdict | None:
    if device.vendor not in KNOWN_MAKERS:
        return None
    transfers_files = any(
        i.triple == _PTP or i.triple[:2] == _MIDI or "MTP" in i.text.upper() for i in device.interfaces
    )
    if device.vendor in _MIXED_MAKERS and not transfers_files:
        return Verdict(Decision.IGNORE, 9, "set its USB mode to file transfer")
    return Verdict(Decision.PROBE, 9, "known phone maker", retry=True)


def _any(_device: UsbDevice, rules: DeviceRules, _serial: str) -> Verdict | None:
    return Verdict(Decision.PROBE, 10, 'devices.accept is "any"') if rules.accept == "any" else None


# Row numbers are those of the page on the accessory protocol; the order is the rule.
_ROWS: Final[tuple[Callable[[UsbDevice, DeviceRules, str], Verdict | None], ...]] = (
    _never,
    _unauthorized,
    _accessory,
    _audio_accessory,
    _allowed,
    _not_listed,
    _adb,
    _other_class,
    _modem,
    _known_maker,
    _any,
)


def _looks_like_phone(device: UsbDevice) -> bool:
    if len(device.interfaces) > 1 and any(i.triple == _PTP for i in device.interfaces):
        return True
    texts = [i.text for i in device.interfaces] + [device.maker, device.model]
    return any("MTP" in text.upper() or "ANDROID" in text.upper() for text in texts)


def decide(device: UsbDevice, rules: DeviceRules, serial: str) -> Verdict:
    """What may be done with ``device``; ``serial`` is its serial if it can be trusted, else ""."""
    for row in _ROWS:
        verdict = row(device, rules, serial)
        if verdict is not None:
            return verdict
    if _looks_like_phone(device):
        return Verdict(Decision.IGNORE, 11, "looks like a phone of an unlisted maker", unlisted=True)
    return Verdict(Decision.IGNORE, 11, "not a known phone maker")
