"""One script of USB faults through raw pyusb: the same right results on every tier.

As a program: `fault_script.py CONTROL_SOCKET` runs on the system's libusb and prints its results as JSON.
"""

import json
import socket
import sys
import threading
import time

import usb.backend.libusb1
import usb.core
import usb.util

__all__ = ["PHONE", "SocketControl", "run"]

PHONE = {"start_as": "accessory", "accessory_pid": "2d01", "interfaces": ["accessory", "adb"], "app": "echo"}
IN, OUT = 0x81, 0x01


class SocketControl:
    """Script items over the control socket of a rig: one line of JSON each way."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._file = self._socket.makefile("rw")

    def do(self, name, **arguments):
        self._file.write(json.dumps({"do": name, **arguments}) + "\n")
        self._file.flush()
        return json.loads(self._file.readline())


def attempt(call):
    """(errno or None, result, milliseconds)."""
    begin = time.monotonic()
    try:
        errno, result = None, call()
    except usb.core.USBError as error:
        errno, result = error.errno, None
    return errno, result, (time.monotonic() - begin) * 1000


def run(backend, do):
    """The results by name, each [errno, milliseconds] unless noted; `do(item, **arguments)` drives the phone."""
    device = find(backend)
    results = {}
    usb.util.claim_interface(device, 0)
    results["timeout"] = timed(attempt(lambda: device.read(IN, 16384, 50)))
    results["stall"] = timed(attempt(lambda: device.ctrl_transfer(0xC0, 99, 0, 0, 2, 500)))
    do("app_bytes", sizes=[512])
    results["babble"] = timed(attempt(lambda: device.read(IN, 100, 500)))
    do("hang_control", on=True)
    results["hung_control"] = timed(attempt(lambda: device.ctrl_transfer(0x80, 0, 0, 0, 2, 300)))
    do("hang_control", on=False)
    do("hold_interface", kind="adb", seconds=60)
    results["claim_held"] = timed(attempt(lambda: usb.util.claim_interface(device, 1)))
    results["whole_packets"] = whole_packets(device)
    results["round_trip"] = round_trip(device)
    results.update(unplugged(device, do))
    usb.util.dispose_resources(device)
    return results


def find(backend):
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        device = usb.core.find(idVendor=0x18D1, backend=backend)
        if device is not None:
            return device
        time.sleep(0.02)
    raise SystemExit("no phone found")


def timed(outcome):
    return [outcome[0], outcome[2]]


def whole_packets(device):
    """A 512-byte write is invisible to the app until more comes: [invisible?, bytes echoed in the end]."""
    device.write(OUT, b"w" * 512, 500)
    errno, _, _ = attempt(lambda: device.read(IN, 16384, 50))
    device.write(OUT, b"\n", 500)
    return [errno == 110, len(device.read(IN, 16384, 500))]


def round_trip(device):
    """1 MiB out and back: whether it is byte-equal."""
    sent = bytes(index * 7 % 251 for index in range(1 << 20))
    received = bytearray()

    def write():
        for at in range(0, len(sent), 16383):
            device.write(OUT, sent[at : at + 16383], 2000)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    while len(received) < len(sent):
        received += device.read(IN, 16384, 2000)
    writer.join(2)
    return bytes(received) == sent


def unplugged(device, do):
    """Unplug in a blocked read, then three calls on the dead device."""
    timer = threading.Timer(0.2, lambda: do("unplug"))
    timer.start()
    blocked = attempt(lambda: device.read(IN, 16384, 3000))
    timer.join(2)
    calls = [
        lambda: device.read(IN, 16384, 500),
        lambda: device.write(OUT, b"\n", 500),
        lambda: device.ctrl_transfer(0x80, 0, 0, 0, 2, 500),
    ]
    return {"unplug": timed(blocked), "after_unplug": [timed(attempt(call)) for call in calls]}


if __name__ == "__main__":
    library = usb.backend.libusb1.get_backend(find_library=lambda _name: "libusb-1.0.so.0")
    json.dump(run(library, SocketControl(sys.argv[1]).do), sys.stdout)
