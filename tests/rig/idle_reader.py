"""Claims the phone and reads for the given seconds with a long timeout; prints its own CPU seconds."""

import sys
import time

import usb.backend.libusb1
import usb.util

from rig.fault_script import IN, OUT, attempt, find

if __name__ == "__main__":
    device = find(usb.backend.libusb1.get_backend(find_library=lambda _name: "libusb-1.0.so.0"))
    usb.util.claim_interface(device, 0)
    device.write(OUT, b"\n", 500)
    print("reading", flush=True)
    before = time.process_time()
    errno, data, _ = attempt(lambda: device.read(IN, 16384, int(float(sys.argv[1]) * 1000)))
    print(time.process_time() - before, errno, bytes(data or b"").decode(), flush=True)
