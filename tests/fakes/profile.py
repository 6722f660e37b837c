"""What a phone is: the switches of a case, and the descriptors that follow from them."""

import struct
from dataclasses import dataclass, field, fields, replace

__all__ = ["Endpoint", "Interface", "Profile", "SysfsDevice", "SysfsInterface", "device_view"]

PACKET_SIZES = {"full": 64, "high": 512, "super": 1024}
SYSFS_SPEEDS = {"full": "12", "high": "480", "super": "5000"}
USB_VERSIONS = {"full": 0x0200, "high": 0x0200, "super": 0x0300}
ACCESSORY_INTERFACES = {
    # name in a case -> (class triple, interface string, bulk pair?) of each interface it stands for
    "accessory": (("ff/ff/00", "Android Accessory Interface", True),),
    "adb": (("ff/42/01", "ADB Interface", True),),
    "control": (("ff/ff/00", "Android Control Interface", True),),
    "audio": (("01/01/00", "", False), ("01/02/00", "", False)),
}
NATIVE_STRINGS = {"06/01/01": "MTP", "ff/42/01": "ADB Interface"}
BULK, INTERRUPT = 2, 3


@dataclass(frozen=True)
class Profile:
    """The switches of the emulated phone; names, values and defaults are those of the case format."""

    name: str = "p1"
    at: str = "1-1"
    native: str = "04e8:6860"
    device_class: str = "00/00/00"
    native_interfaces: tuple = ("06/01/01",)
    start_as: str = "native"
    serial: str | None = "unique"
    serial_string: str = "ok"
    accessory_pid: str = "2d00"
    interfaces: tuple = ("accessory",)
    interface_strings: bool = True
    endpoints: tuple = ("0x81", "0x01")
    speed: str = "high"
    configured: bool = True
    native_claimed_by: str | None = None
    protocol: str | None = "0200"
    ep0_delay_ms: float = 0
    ep0_dead_ms: float = 0
    rules: str = "kernel"
    needs_strings: tuple = (0, 1)
    out_count: str = "length"
    start_result: str = "ok"
    locked: bool = False
    switch_s: float | None = 0.3
    native_again: int = 0
    accessory_at: str | None = None
    accessory_life_s: float | None = None
    life_times: int | None = None
    then: str = "native"
    on_reset: str = "leave"
    on_set_configuration: str = "leave"
    on_app_close: str = "stay"
    leave_ms: float = 200
    on_vendor_request: str = "wipe"
    app: str = "known"
    read_buffer: int = 16384
    lines_per_s: float | None = None
    stuck_reader: bool = False
    data_path: str = "kernel"
    stale_request: bool = False
    zlp: str = "after_multiples"
    stale_in: tuple = ()
    halt: dict | None = None
    out_dead_until: str | None = None

    @classmethod
    def from_case(cls, entry, index=0):
        """The profile of one entry of `phones`; an unknown switch is an error of the case."""
        known = {item.name for item in fields(cls)}
        unknown = set(entry) - known
        if unknown:
            raise ValueError(f"unknown switches {sorted(unknown)}")
        values = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
        if index:
            values.setdefault("name", f"p{index + 1}")
            values.setdefault("at", f"1-{index + 1}")
        profile = cls(**values)
        return replace(profile, serial=f"R58N{profile.name.upper():0>8}") if profile.serial == "unique" else profile

    @property
    def packet_size(self):
        return PACKET_SIZES[self.speed]


@dataclass(frozen=True)
class Endpoint:
    address: int
    kind: int
    packet_size: int

    def descriptor(self, super_speed):
        text = struct.pack(
            "<BBBBHB", 7, 5, self.address, self.kind, self.packet_size, 8 if self.kind == INTERRUPT else 0
        )
        return text + (bytes((6, 0x30, 0, 0, 0, 0)) if super_speed else b"")


@dataclass(frozen=True)
class Interface:
    number: int
    triple: tuple
    text: str
    endpoints: tuple
    role: str = ""

    def descriptor(self, string_index, super_speed):
        head = struct.pack("<9B", 9, 4, self.number, 0, len(self.endpoints), *self.triple, string_index)
        return head + b"".join(endpoint.descriptor(super_speed) for endpoint in self.endpoints)


@dataclass(frozen=True)
class SysfsInterface:
    """One interface directory of sysfs: `name` such as 1-1:1.0, attribute texts, bound driver."""

    name: str
    attributes: dict
    driver: str | None = None


@dataclass(frozen=True)
class SysfsDevice:
    """One device directory of sysfs: `name` is the port path."""

    name: str
    attributes: dict
    interfaces: tuple = ()
    peer: str = ""


@dataclass(frozen=True)
class DeviceView:
    """What the host can learn of an attached phone in one of its two identities."""

    device: bytes
    configuration: bytes
    strings: dict
    interfaces: tuple
    vendor: int
    product: int
    serial_in_sysfs: str | None
    profile: Profile
    texts: dict = field(default_factory=dict)

    def sysfs(self, port, bus, address, configured):
        """The attributes that the kernel shows for it."""
        profile = self.profile
        triple = self.device[4:7]
        attributes = {
            "idVendor": f"{self.vendor:04x}",
            "idProduct": f"{self.product:04x}",
            "busnum": str(bus),
            "devnum": str(address),
            "devpath": port.split("-", 1)[1],
            "speed": SYSFS_SPEEDS[profile.speed],
            "bDeviceClass": f"{triple[0]:02x}",
            "bDeviceSubClass": f"{triple[1]:02x}",
            "bDeviceProtocol": f"{triple[2]:02x}",
            "bConfigurationValue": "1" if configured else "",
            "authorized": "1",
            "power/control": "on",
            "manufacturer": self.texts["manufacturer"],
            "product": self.texts["product"],
        }
        if self.serial_in_sysfs:
            attributes["serial"] = self.serial_in_sysfs
        peer = {profile.at: profile.accessory_at or "", profile.accessory_at: profile.at}[port]
        return SysfsDevice(port, attributes, tuple(self._interfaces(port)) if configured else (), peer)

    def _interfaces(self, port):
        for interface in self.interfaces:
            attributes = {
                "bInterfaceNumber": f"{interface.number:02x}",
                "bAlternateSetting": " 0",
                "bNumEndpoints": f"{len(interface.endpoints):02x}",
                "bInterfaceClass": f"{interface.triple[0]:02x}",
                "bInterfaceSubClass": f"{interface.triple[1]:02x}",
                "bInterfaceProtocol": f"{interface.triple[2]:02x}",
            }
            if interface.text:
                attributes["interface"] = interface.text
            yield SysfsInterface(f"{port}:1.{interface.number}", attributes)


def device_view(profile, mode):
    """The descriptors of the phone in `mode` (native or accessory)."""
    if mode == "accessory":
        vendor, product = 0x18D1, int(profile.accessory_pid, 16)
        interfaces, triple = tuple(_accessory_interfaces(profile)), (0, 0, 0)
    else:
        vendor, product = (int(part, 16) for part in profile.native.split(":"))
        interfaces, triple = tuple(_native_interfaces(profile)), _triple(profile.device_class)
    texts = {"manufacturer": "Example", "product": f"Phone {profile.name}"}
    strings = {1: texts["manufacturer"], 2: texts["product"]}
    if profile.serial is not None:
        strings[3] = None if profile.serial_string == "stall" else profile.serial
    super_speed = profile.speed == "super"
    body = b""
    for interface in interfaces:
        index = 0
        if interface.text:
            index = 4 + interface.number
            strings[index] = interface.text
        body += interface.descriptor(index, super_speed)
    device = struct.pack(
        "<BBHBBBBHHHBBBB",
        *(18, 1, USB_VERSIONS[profile.speed], *triple, 9 if super_speed else 64),
        *(vendor, product, 0x0504, 1, 2, 3 if profile.serial is not None else 0, 1),
    )
    configuration = struct.pack("<BBHBBBBB", 9, 2, 9 + len(body), len(interfaces), 1, 0, 0x80, 250) + body
    return DeviceView(device, configuration, strings, interfaces, vendor, product, strings.get(3), profile, texts)


def _triple(text):
    return tuple(int(part, 16) for part in text.split("/"))


def _addresses(taken):
    """Pairs of free endpoint addresses, IN and OUT."""
    for number in range(1, 16):
        pair = (0x80 | number, number)
        if not taken & set(pair):
            yield pair


def _accessory_interfaces(profile):
    own = [int(text, 16) for text in profile.endpoints]
    free = _addresses(set(own) | {address ^ 0x80 for address in own})
    number = 0
    for role in profile.interfaces:
        for triple, text, bulk in ACCESSORY_INTERFACES[role]:
            pair = own if role == "accessory" else next(free) if bulk else ()
            endpoints = tuple(Endpoint(address, BULK, profile.packet_size) for address in pair)
            yield Interface(number, _triple(triple), text if profile.interface_strings else "", endpoints, role)
            number += 1


def _native_interfaces(profile):
    free = _addresses(set())
    for number, text in enumerate(profile.native_interfaces):
        pair = next(free)
        endpoints = tuple(Endpoint(address, BULK, profile.packet_size) for address in pair)
        yield Interface(number, _triple(text), NATIVE_STRINGS.get(text, ""), endpoints, "native")
