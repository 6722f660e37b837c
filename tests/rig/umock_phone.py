"""The emulated phones below the kernel interface: usbfs, sysfs and uevents by umockdev; libusb above them is real.

`umockdev-wrapper /usr/bin/python3 umock_phone.py CASE.json` with Debian's own Python. It prints one JSON line
(testbed directory, control socket, preload library), serves script items on the socket, and ends with its standard
input. The process under test is started by the caller with UMOCKDEV_DIR and LD_PRELOAD of that line.
"""

import json
import os
import shutil
import signal
import socket
import sys
import threading
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import gi

gi.require_version("UMockdev", "1.0")
from gi.repository import UMockdev  # noqa: E402 (the version must be named first)

from fakes.board import Board  # noqa: E402 (below the path)
from fakes.clock import ThreadClock  # noqa: E402
from rig.usbfs import Node  # noqa: E402

SYSFS_ORDER = (  # written one by one: a scan takes no device for complete whose first attribute comes last
    *("idProduct", "busnum", "devnum", "devpath", "serial", "manufacturer", "product", "speed"),
    *("bDeviceClass", "bDeviceSubClass", "bDeviceProtocol", "bConfigurationValue", "authorized", "idVendor"),
)


class UmockRig:
    """The testbed with its devices; the transport of the board."""

    def __init__(self, case):
        self.lock = threading.RLock()
        self.problems = []
        self.node_mode = case.get("node_mode", 0o666)
        os.umask(0)
        self.testbed = UMockdev.Testbed.new()
        self.root = Path(self.testbed.get_root_dir())
        self.root.chmod(0o777)
        self.nodes = {}
        self.all_nodes = []
        self._roots = set()
        self.clock = ThreadClock(self.lock)
        self.board = Board(case["phones"], case.get("inject", []), self.clock, self)
        self.library_calls = 0
        for entry in case.get("inject", []):
            if entry["op"] in ("open", "close"):
                self.problems.append(f"{entry['op']} cannot be forced below libusb")

    # transport of the board

    def attached(self, phone):
        bus, address = self.board.address(phone)
        node = Node(self, phone, bus, address)
        self._root_hub(bus)
        self.testbed.attach_ioctl(node.path, node.handler)
        node.make_fifo(self.root, self.node_mode)
        record = self._record(phone, bus, address)
        self.testbed.add_from_string(record)
        self._link_peer(phone, node)
        node.put_in_place()
        self.nodes[phone] = node
        self.all_nodes.append(node)

    def detached(self, phone):
        node = self.nodes.get(phone)
        if node is not None:
            node.unplug()

    def changed(self, phone, action):
        """One uevent for the device, as udev would pass it on."""
        node = self.nodes.get(phone)
        if node is None:
            return
        if action == "add":
            for path in (node.syspath, *node.interface_paths):
                self.testbed.uevent(path, "add")
            self.testbed.uevent(node.syspath, "bind")
        else:
            self.testbed.uevent(node.syspath, action)

    def removed(self, phone):
        """The rest of an unplug, at once after the remove event: a scan must not see the device any more."""
        if threading.current_thread() is self.clock.thread or threading.current_thread().name.startswith("control"):
            self._remove(phone)
        else:  # inside an ioctl of this very node
            node = self.nodes[phone]
            self.clock.call_later(0.0, lambda: self._remove(phone) if self.nodes.get(phone) is node else None)

    def _remove(self, phone):
        node = self.nodes.pop(phone)
        for path in reversed(node.interface_paths):
            self.testbed.remove_device(path)
        shutil.rmtree(self._port_directory(node), ignore_errors=True)
        self.testbed.detach_ioctl(node.path)
        self.testbed.remove_device(node.syspath)
        node.unlink()

    def _port_directory(self, node):
        return self.root / node.syspath.lstrip("/") / "port"

    def _link_peer(self, phone, node):
        """The socket's other bus, for a phone that comes back there."""
        bus, address = self.board.address(phone)
        peer = phone.view.sysfs(phone.port, bus, address, phone.configured).peer
        if peer:
            hub, _, number = peer.rpartition("." if "." in peer else "-")
            directory = self._port_directory(node)
            directory.mkdir(exist_ok=True)
            name = f"{hub}-port{number}" if "." in peer else f"usb{hub}-port{number}"
            (directory / "peer").symlink_to(f"../{name}")

    # records

    def _root_hub(self, bus):
        if bus in self._roots:
            return
        self._roots.add(bus)
        attributes = {"idVendor": "1d6b", "idProduct": "0002", "bDeviceClass": "09", "busnum": str(bus), "devnum": "1"}
        self.testbed.add_from_string(
            f"P: /devices/usb{bus}\nN: bus/usb/{bus:03}/001\nE: SUBSYSTEM=usb\nE: DEVTYPE=usb_device\n"
            f"E: DEVNAME=/dev/bus/usb/{bus:03}/001\nE: BUSNUM={bus:03}\nE: DEVNUM=001\n"
            + "".join(f"A: {key}={value}\\n\n" for key, value in attributes.items())
        )

    def _record(self, phone, bus, address):
        node_name = f"bus/usb/{bus:03}/{address:03}"
        shown = phone.view.sysfs(phone.port, bus, address, phone.configured)
        triples = [interface.triple for interface in phone.view.interfaces]
        interfaces = ":" + "".join(f"{a:02x}{b:02x}{c:02x}:" for a, b, c in dict.fromkeys(triples))
        klass = phone.view.device[4:7]
        lines = [
            f"P: /devices/usb{bus}/{phone.port}",
            f"N: {node_name}",
            *("E: SUBSYSTEM=usb", "E: DEVTYPE=usb_device", "E: DRIVER=usb", f"E: BUSNUM={bus:03}"),
            f"E: DEVNUM={address:03}",
            f"E: DEVNAME=/dev/{node_name}",
            f"E: PRODUCT={phone.view.vendor:x}/{phone.view.product:x}/504",
            f"E: TYPE={klass[0]}/{klass[1]}/{klass[2]}",
            f"E: ID_USB_INTERFACES={interfaces}",
            "A: power/control=on\\n",
            *(attribute(key, shown.attributes[key]) for key in SYSFS_ORDER if key in shown.attributes),
            f"H: descriptors={(phone.view.device + phone.view.configuration).hex().upper()}",
        ]
        record = "\n".join(lines) + "\n\n"
        for interface in shown.interfaces:
            record += (
                f"P: /devices/usb{bus}/{phone.port}/{interface.name}\nE: SUBSYSTEM=usb\nE: DEVTYPE=usb_interface\n"
            )
            record += "".join(f"A: {key}={value}\\n\n" for key, value in interface.attributes.items()) + "\n"
        return record

    # script items

    def do(self, name, **arguments):
        with self.lock:
            if name == "stats":
                return self.stats()
            if name == "progress":
                return {"busy": self.board.busy, **self._counts()}
            if name == "host_gone":
                return [node.purge(everything=True) for node in self.nodes.values()] and None
            self.board.do(name, **arguments)
            return None

    def stats(self):
        return {"phones": self.board.metrics(), "busy": self.board.busy, "problems": self.problems, **self._counts()}

    def _counts(self):
        return {"cut_hits": self.board.cut_hits, "calls": self.library_calls, "now": self.clock.now()}

    def close(self):
        with self.lock:
            for phone in list(self.nodes):
                phone.unplug()
            for phone in list(self.nodes):
                self._remove(phone)
            for node in self.all_nodes:
                node.close()
        self.clock.stop()


def attribute(key, value):
    """A line of a record; the kernel shows an attribute without value as an empty file."""
    return f"A: {key}={value}\\n" if value else f"A: {key}="


def serve(rig, path):
    """Accepts control connections until the process ends; one JSON line in, one out."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen(8)

    def accept():
        while True:
            connection, _ = server.accept()
            threading.Thread(target=answer, args=(connection,), name="control", daemon=True).start()

    def answer(connection):
        with connection, connection.makefile("rw") as stream:
            for line in stream:
                request = json.loads(line)
                try:
                    reply = {"result": rig.do(request.pop("do"), **request)}
                except Exception as error:  # noqa: BLE001 (the caller's test must see it)
                    traceback.print_exc()
                    reply = {"error": repr(error)}
                stream.write(json.dumps(reply) + "\n")
                stream.flush()

    threading.Thread(target=accept, name="control-accept", daemon=True).start()


def main():
    case = json.loads(Path(sys.argv[1]).read_text())
    rig = UmockRig(case)
    root = rig.root
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        path = root / "rig.sock"
        serve(rig, path)
        preload = os.environ.get("LD_PRELOAD", "")
        print(json.dumps({"root": str(root), "socket": str(path), "preload": preload}), flush=True)
        sys.stdin.read()
    finally:
        rig.close()
        shutil.rmtree(root, ignore_errors=True)
        os._exit(1 if rig.problems else 0)


if __name__ == "__main__":
    main()
