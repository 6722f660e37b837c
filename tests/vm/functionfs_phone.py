"""A phone made of the kernel's own gadget stack: its device side, with its stalls and timeouts, is not ours.

    python3 functionfs_phone.py      as root, with the modules dummy_hcd, libcomposite and usb_f_fs

Two gadgets, native and accessory, of which one is bound at a time. The app subscribes to /to/phone and answers every
value with a put of that value plus a half on /from/gadget. Plain Python of the release.
"""

import contextlib
import json
import os
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

GADGETS = Path("/sys/kernel/config/usb_gadget")
CONTROLLERS = Path("/sys/class/udc")
NATIVE = ("native", 0x04E8, 0x6860, (0x06, 0x01, 0x01), "MTP")
ACCESSORY = ("accessory", 0x18D1, 0x2D00, (0xFF, 0xFF, 0x00), "Android Accessory Interface")
DESCRIPTORS_V2, STRINGS_V2 = 3, 2
FLAGS = 1 | 2 | 64 | 128  # full speed, high speed, every recipient, requests without a configuration
EVENT = struct.Struct("<BBHHHB3x")
ENABLE, SETUP = 2, 4
GET_PROTOCOL, SEND_STRING, START = 51, 52, 53
BOTH_STRINGS = {0, 1}  # manufacturer and model make an accessory
LEAVE_S, RETURN_S = 0.015, 0.3


def descriptors(triple):
    parts = []
    for size in (64, 512):
        interface = struct.pack("<9B", 9, 4, 0, 0, 2, *triple, 1)
        parts.append(interface + b"".join(struct.pack("<BBBBHB", 7, 5, end, 2, size, 0) for end in (0x81, 0x02)))
    body = struct.pack("<II", 3, 3) + b"".join(parts)
    return struct.pack("<III", DESCRIPTORS_V2, 12 + len(body), FLAGS) + body


def strings(text):
    body = struct.pack("<IIH", 1, 1, 0x0409) + text.encode() + b"\0"
    return struct.pack("<II", STRINGS_V2, 8 + len(body)) + body


class Gadget:
    """One identity."""

    def __init__(self, name, vendor, product, triple, text):
        self.place = GADGETS / name
        self.files = Path(f"/run/gadget-{name}")
        for path in (self.place, self.place / "strings/0x409", self.place / "configs/c.1", self.files):
            path.mkdir()
        (self.place / "functions" / f"ffs.{name}").mkdir()
        (self.place / "idVendor").write_text(f"{vendor:#06x}")
        (self.place / "idProduct").write_text(f"{product:#06x}")
        for key, value in (("serialnumber", "GADGET0001"), ("manufacturer", "Example"), ("product", "Gadget")):
            (self.place / "strings/0x409" / key).write_text(value)
        (self.place / "configs/c.1" / f"ffs.{name}").symlink_to(self.place / "functions" / f"ffs.{name}")
        subprocess.run(["mount", "-t", "functionfs", name, str(self.files)], check=True)
        # A blocking read of endpoint 0 would keep the controller from being unbound.
        self.control = os.open(self.files / "ep0", os.O_RDWR | os.O_NONBLOCK)
        os.write(self.control, descriptors(triple))
        os.write(self.control, strings(text))

    def bind(self):
        (self.place / "UDC").write_text(next(CONTROLLERS.iterdir()).name)

    def unbind(self):
        with contextlib.suppress(OSError):  # nothing was bound
            (self.place / "UDC").write_text("\n")


class Phone:
    """Serves endpoint 0 of both identities and the app of the second."""

    def __init__(self):
        self.native, self.accessory = Gadget(*NATIVE), Gadget(*ACCESSORY)
        self.received = set()

    def run(self):
        poll = select.poll()
        for gadget in (self.native, self.accessory):
            poll.register(gadget.control, select.POLLIN)
        self.native.bind()
        print("bound", flush=True)
        while True:
            for descriptor, _ in poll.poll():
                data = os.read(descriptor, EVENT.size)
                *setup, kind = EVENT.unpack(data)
                if kind == SETUP:
                    with contextlib.suppress(OSError):  # the host gave the request up
                        self._request(descriptor, *setup)
                elif kind == ENABLE and descriptor == self.accessory.control:
                    threading.Thread(target=self._app, daemon=True).start()

    def _request(self, descriptor, request_type, request, _value, index, length):
        if (request_type, request) == (0xC0, GET_PROTOCOL):
            os.write(descriptor, struct.pack("<H", 2)[:length])
        elif (request_type, request) == (0x40, SEND_STRING):
            os.read(descriptor, length)
            self.received.add(index)
        elif (request_type, request) == (0x40, START) and self.received >= BOTH_STRINGS:
            os.read(descriptor, 0)  # the acknowledgement
            threading.Thread(target=self._switch, daemon=True).start()
        else:
            self._stall(descriptor, request_type)

    def _stall(self, descriptor, request_type):
        """Input or output against the direction of the request; the system call fails, which is what is wanted."""
        if request_type & 0x80:
            os.read(descriptor, 0)
        else:
            os.write(descriptor, b"")

    def _switch(self):
        time.sleep(LEAVE_S)
        self.native.unbind()
        time.sleep(RETURN_S)
        self.accessory.bind()

    def _app(self):
        with (
            (self.accessory.files / "ep1").open("wb", buffering=0) as into,
            (self.accessory.files / "ep2").open("rb", buffering=0) as out,
        ):
            into.write(line({"action": "subscribe", "keys": ["/to/phone"]}))
            rest = b""
            while True:
                try:
                    rest += out.read(16384)
                except OSError:
                    return  # unplugged
                *whole, rest = rest.split(b"\n")
                for text in filter(None, whole):
                    message = json.loads(text)
                    if message.get("key") == "/to/phone":
                        into.write(line({"action": "put", "key": "/from/gadget", "value": message["value"] + 0.5}))


def line(message):
    return json.dumps(message).encode() + b"\n"


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    phone = Phone()
    try:
        phone.run()
    finally:
        phone.native.unbind()
        phone.accessory.unbind()


if __name__ == "__main__":
    sys.exit(main())
