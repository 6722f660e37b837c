"""Android Open Accessory as data: snapshot of a USB device, identity strings, handshake, choice of the interface."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from aoabridge.errors import ConfigError

__all__ = [
    "ACCESSORY_PRODUCTS",
    "AUDIO_PRODUCTS",
    "CONTROL_TIMEOUT_MS",
    "GET_PROTOCOL",
    "GOOGLE",
    "IN_BACKLOG_TIMEOUT_MS",
    "IN_READ_BYTES",
    "IN_TIMEOUT_MS",
    "OUT_TIMEOUT_MS",
    "SEND_STRING",
    "START",
    "Candidate",
    "ControlRequest",
    "Identity",
    "UsbDevice",
    "UsbInterface",
    "accessory_candidates",
    "derived_serial",
    "handshake",
    "parse_protocol",
    "string_fault",
]

GET_PROTOCOL: Final = 51
SEND_STRING: Final = 52
START: Final = 53  # 54 to 58 (HID, audio) are never sent: newer phones stall them

GOOGLE: Final = 0x18D1
ACCESSORY_PRODUCTS: Final = frozenset({0x2D00, 0x2D01, 0x2D04, 0x2D05})
AUDIO_PRODUCTS: Final = frozenset({0x2D02, 0x2D03})  # accessory mode without an accessory interface: never a link

CONTROL_TIMEOUT_MS: Final = 1500  # 100 ms failed in the field, other hosts use 1 to 2 s
IN_READ_BYTES: Final = 16_384  # a multiple of every packet size: a shorter read could overflow
IN_TIMEOUT_MS: Final = 250  # bounds the stop of a link and the delay of a line whose sender omits the ZLP
IN_BACKLOG_TIMEOUT_MS: Final = 100  # while old bytes of the phone may still be queued
OUT_TIMEOUT_MS: Final = 500  # few cancelled transfers, yet a blocked phone is probed twice a second

STRING_MAX_BYTES: Final = 255  # Android takes 256 with the NUL
BUILT_IN_DESCRIPTION: Final = "NetworkTables bridge"
BUILT_IN_URI: Final = "https://github.com/FRC2207/RoboRoute"  # where the app is found

_VENDOR_IN: Final = 0xC0  # vendor request, device recipient: needs no claimed interface
_VENDOR_OUT: Final = 0x40


class UsbInterface(msgspec.Struct, frozen=True):
    """One interface of the active configuration as sysfs shows it; ``text`` is its string, "" without one."""

    number: int
    klass: int
    subclass: int
    protocol: int
    text: str = ""
    driver: str = ""

    @property
    def triple(self) -> tuple[int, int, int]:
        """Class, subclass and protocol."""
        return (self.klass, self.subclass, self.protocol)


class UsbDevice(msgspec.Struct, frozen=True):
    """One device on the bus as sysfs shows it, read without opening it.

    ``port`` is the sysfs name (``1-1.3``): which socket. ``busnum`` and ``devnum`` change at every re-enumeration.
    ``serial``, ``maker``, ``model`` are "" if absent. ``configuration`` 0 = not configured. ``peer`` is the port path
    of the same socket on the companion bus of a USB 3 connector, "" if unknown.
    """

    port: str
    vendor: int
    product: int
    busnum: int
    devnum: int
    serial: str = ""
    maker: str = ""
    model: str = ""
    klass: int = 0
    subclass: int = 0
    protocol: int = 0
    speed_mbps: float = 480.0
    configuration: int = 1
    authorized: bool = True
    power_control: str = "on"
    interfaces: tuple[UsbInterface, ...] = ()
    peer: str = ""

    @property
    def is_accessory(self) -> bool:
        """True in accessory mode with an accessory interface: adopt, never send it 51, 52 or 53."""
        return self.vendor == GOOGLE and self.product in ACCESSORY_PRODUCTS

    @property
    def is_audio_accessory(self) -> bool:
        """True in the audio-only accessory mode, which no link can use."""
        return self.vendor == GOOGLE and self.product in AUDIO_PRODUCTS

    @property
    def address(self) -> tuple[int, int]:
        """Bus and device number: names this one enumeration."""
        return (self.busnum, self.devnum)


def string_fault(value: str, *, required: bool) -> str | None:
    """What is wrong with ``value`` as an identity string, None if nothing."""
    if required and not value:
        return "must not be empty"
    if any(ord(c) < 0x20 or 0x7F <= ord(c) <= 0x9F for c in value):
        return "must not contain NUL or control characters"
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return "is not valid UTF-8"
    if size > STRING_MAX_BYTES:
        return f"is {size} bytes of UTF-8, at most {STRING_MAX_BYTES} are possible"
    return None


class Identity(msgspec.Struct, frozen=True):
    """What the phone is told about us, ``[phone]``; apps match manufacturer and model. "" = the built-in value.

    Raises ConfigError naming the key (``phone.model``) for a string that Android would not take.
    """

    manufacturer: str = "NTOverAOA"
    model: str = "Adapter"
    version: str = "1.2"  # never our release number: filters and remembered permissions compare it
    description: str = BUILT_IN_DESCRIPTION
    uri: str = ""
    serial: str = ""

    def __post_init__(self) -> None:
        for field in self.__struct_fields__:
            fault = string_fault(getattr(self, field), required=field in ("manufacturer", "model", "version"))
            if fault is not None:
                raise ConfigError(f"phone.{field} {fault}", key=f"phone.{field}")

    def strings(self, machine_id: str = "") -> tuple[str, ...]:
        """The six strings in index order, none empty (an empty one is stalled by newer phones)."""
        return (
            self.manufacturer,
            self.model,
            self.description or BUILT_IN_DESCRIPTION,
            self.version,
            self.uri or BUILT_IN_URI,
            self.serial or derived_serial(machine_id),
        )


def derived_serial(machine_id: str) -> str:
    """A stable serial of this machine, 16 hex digits; hashed, because a machine id is not for the outside."""
    return hashlib.sha256(b"aoabridge:" + machine_id.strip().encode()).hexdigest()[:16].upper()


class ControlRequest(msgspec.Struct, frozen=True):
    """One control transfer: ``data`` goes out, or ``length`` bytes are asked for; ``step`` names it in errors."""

    step: str
    request_type: int
    request: int
    value: int
    index: int
    data: bytes = b""
    length: int = 0

    @property
    def is_in(self) -> bool:
        """True if the phone sends the data stage."""
        return bool(self.request_type & 0x80)


def handshake(strings: Sequence[str]) -> tuple[ControlRequest, ...]:
    """The eight requests of one attempt, in order; GET_PROTOCOL clears old strings, so it is always the first."""
    return (
        ControlRequest("get_protocol", _VENDOR_IN, GET_PROTOCOL, 0, 0, length=2),
        *(
            ControlRequest(f"send_string:{index}", _VENDOR_OUT, SEND_STRING, 0, index, text.encode() + b"\0")
            for index, text in enumerate(strings)
        ),
        ControlRequest("start", _VENDOR_OUT, START, 0, 0),
    )


def parse_protocol(reply: bytes) -> int:
    """The protocol version of a GET_PROTOCOL reply; 0 = not an accessory-capable phone (also any other length)."""
    return int.from_bytes(reply, "little") if len(reply) == 2 else 0


class Candidate(msgspec.Struct, frozen=True):
    """One interface of a configuration descriptor, alternate setting 0, with its endpoints.

    ``endpoints`` are (address, attributes, wMaxPacketSize) in descriptor order.
    """

    number: int
    klass: int
    subclass: int
    protocol: int
    endpoints: tuple[tuple[int, int, int], ...]
    text: str = ""

    def bulk(self, *, inbound: bool) -> tuple[tuple[int, int, int], ...]:
        """The bulk endpoints of one direction."""
        return tuple(e for e in self.endpoints if e[1] & 3 == 2 and bool(e[0] & 0x80) == inbound)

    @property
    def fits(self) -> bool:
        """True for the accessory's shape: ff/ff/00, exactly one bulk IN and one bulk OUT endpoint."""
        shape = (self.klass, self.subclass, self.protocol) == (0xFF, 0xFF, 0x00)
        return shape and len(self.bulk(inbound=True)) == 1 and len(self.bulk(inbound=False)) == 1


def accessory_candidates(interfaces: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The interfaces to try, best first: those called "Accessory" alone; never one called "Control"."""
    fitting = sorted(
        (i for i in interfaces if i.fits and "control" not in i.text.lower()), key=lambda candidate: candidate.number
    )
    named = tuple(i for i in fitting if "accessory" in i.text.lower())
    return named or tuple(fitting)
