"""The emulated phones on the kernel's virtual host controller: real USB core, real usbfs, only the phone is not real.

    python3 vhci_phone.py CASE.json SOCKET [PHONE...]       as root, with the module vhci-hcd, by Debian's own Python

The phones named are plugged in, and known to the kernel, when the service manager hears of readiness. A socket pair
stands for the cable; its kernel end is given to the controller, the other one speaks USB/IP.
"""

import contextlib
import json
import os
import socket
import struct
import sys
import threading
import time
import traceback
from collections import deque
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fakes.applog import AppLog
from fakes.board import Board
from fakes.clock import ThreadClock
from fakes.transfers import Transfer

CONTROLLER = Path("/sys/devices/platform/vhci_hcd.0")
HIGH_SPEED = 3
DEVICE_ID = 0x10002
PORT_FREE, PORT_USED = 4, 6
PORT_S = 10.0
SUBMIT, UNLINK, RET_SUBMIT, RET_UNLINK = 1, 2, 3, 4
IN = 1
FLAG_ZERO_PACKET = 0x40
CONNECTION_RESET = -104
SET_CONFIGURATION = (0x00, 9)


class Ear(AppLog):
    """Keeps the lines that the app heard."""

    def __init__(self, clock):
        super().__init__(clock)
        self.heard = deque(maxlen=100_000)
        self.count = 0

    def line(self, raw, first_full):
        self._keep(raw)
        return super().line(raw, first_full)

    def joined_line(self, raw):
        self._keep(raw)
        super().joined_line(raw)

    def _keep(self, raw):
        if raw.strip():
            self.heard.append((self._clock.now(), 0, raw.decode("utf-8", "replace")))
            self.count += 1


class Cable:
    """One attachment of one phone."""

    def __init__(self, rig, phone, port):
        self.rig = rig
        self.phone = phone
        self.port = port
        self.ours, self.kernels = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sending = threading.Lock()
        self.pending = {}  # sequence number -> Transfer
        self.configured = False
        self.cut = False
        threading.Thread(target=self._run, name=f"cable-{port}", daemon=True).start()

    def pull(self):
        """Unplug."""
        self.cut = True
        with contextlib.suppress(OSError):  # the kernel was first
            self.ours.shutdown(socket.SHUT_RDWR)

    def _run(self):
        try:
            wait_for_port(self.port, PORT_FREE)
            if not self.cut:
                words = f"{self.port} {self.kernels.fileno()} {DEVICE_ID} {HIGH_SPEED}"
                (CONTROLLER / "attach").write_text(words)
            self.kernels.close()
            while not self.cut:
                self._serve()
        except EOFError:
            pass  # unplugged
        except Exception:  # noqa: BLE001 - it must reach the caller's test, not end in a thread
            if not self.cut:
                self.rig.problems.append(traceback.format_exc())
                traceback.print_exc()
        finally:
            self.ours.close()

    def _receive(self, length):
        parts = bytearray()
        while len(parts) < length:
            part = self.ours.recv(length - len(parts))
            if not part:
                raise EOFError
            parts += part
        return bytes(parts)

    def _serve(self):
        header = self._receive(48)
        command, number, _, direction, endpoint = struct.unpack_from(">5I", header)
        if command == UNLINK:
            with self.rig.lock:
                self._unlink(number, struct.unpack_from(">I", header, 20)[0])
            return
        flags, length = struct.unpack_from(">Ii", header, 20)
        setup = struct.unpack_from("<BBHHH", header, 40)
        data = self._receive(length) if direction != IN and length else b""
        with self.rig.lock:
            self._submit(number, direction, endpoint, (flags, length, setup, data))

    def _submit(self, number, direction, endpoint, rest):
        flags, length, setup, data = rest
        if endpoint == 0 and setup[:2] == SET_CONFIGURATION and not self.configured:
            self.configured = (
                True  # the kernel's own, on finding the device; the phone must not take it for a program's
            )
            self._answer(number, 0, 0)
            return
        transfer = Transfer(
            endpoint | (0x80 if direction == IN and endpoint else 0),
            data=data,
            length=length,
            zero_packet=bool(flags & FLAG_ZERO_PACKET),
            on_done=lambda done: self._done(number, direction, done),
        )
        self.pending[number] = transfer
        if endpoint == 0:
            self.phone.submit_control(transfer, setup)
        else:
            self.phone.submit(transfer)

    def _done(self, number, direction, transfer):
        if self.pending.pop(number, None) is None:
            return
        content = bytes(transfer.buffer) if direction == IN else b""
        self._answer(number, transfer.status, len(content) if direction == IN else transfer.moved, content)

    def _unlink(self, number, victim):
        transfer = self.pending.pop(victim, None)
        if transfer is None:
            self._send(struct.pack(">5Ii24x", RET_UNLINK, number, 0, 0, 0, 0))
            return
        self.phone.cancel(transfer) if transfer.endpoint else self.phone.cancel_control(transfer)
        if transfer.buffer or transfer.moved:  # what had moved must not be lost
            content = bytes(transfer.buffer)
            self._answer(victim, CONNECTION_RESET, len(content) or transfer.moved, content)
            self._send(struct.pack(">5Ii24x", RET_UNLINK, number, 0, 0, 0, 0))
        else:
            self._send(struct.pack(">5Ii24x", RET_UNLINK, number, 0, 0, 0, CONNECTION_RESET))

    def _answer(self, number, status, actual, content=b""):
        self._send(struct.pack(">5I5i8x", RET_SUBMIT, number, 0, 0, 0, status, actual, 0, 0, 0) + content)

    def _send(self, data):
        with self.sending:
            try:
                self.ours.sendall(data)
            except OSError:
                self.cut = True  # unplugged


def wait_for_port(port, state):
    """A port of the controller is used once its device has an address, and free a moment after the unplug."""
    deadline = time.monotonic() + PORT_S
    while True:
        rows = [line.split() for line in (CONTROLLER / "status").read_text().splitlines()]
        if any(row[:1] == ["hs"] and int(row[1]) == port and int(row[2]) == state for row in rows):
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"port {port} of the virtual controller does not become {state}")
        time.sleep(0.01)


class VhciRig:
    """The transport of the board, and what the control socket offers."""

    def __init__(self, case):
        self.lock = threading.RLock()
        self.problems = []
        self.cables = {}
        self.clock = ThreadClock(self.lock)
        self.board = Board(case["phones"], case.get("inject", []), self.clock, self)
        self.ports = {phone: index for index, phone in enumerate(self.board.phones.values())}
        for phone in self.board.phones.values():
            phone.app.log = Ear(self.clock)

    def attached(self, phone):
        self.cables[phone] = Cable(self, phone, self.ports[phone])

    def detached(self, phone):
        cable = self.cables.pop(phone, None)
        if cable is not None:
            cable.pull()

    def changed(self, phone, action):
        """The kernel tells."""

    def removed(self, phone):
        """The kernel tells."""

    def do(self, name, phone=None, **arguments):
        with self.lock:
            target = self.board.select(phone)[0]
            if name == "say":
                target.app.write(arguments["text"].encode())
                return target.app.open
            if name == "hear":
                log = target.app.log
                return {"lines": list(log.heard)[arguments["since"] :], "next": log.count, "open": target.app.open}
            if name == "stats":
                return {"phones": self.board.metrics(), "problems": self.problems}
            return self.board.do(name, phone, **arguments)


def answer(rig, connection):
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


def tell_ready():
    """To the service manager, if one wants to know."""
    if path := os.environ.get("NOTIFY_SOCKET"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.sendto(b"READY=1", path)


def main():
    rig = VhciRig(json.loads(sys.argv[1]))
    server = socket.socket(socket.AF_UNIX)
    server.bind(sys.argv[2])
    server.listen(4)
    for name in sys.argv[3:]:
        rig.do("plug", name)
        wait_for_port(rig.ports[rig.board.phones[name]], PORT_USED)
    tell_ready()
    while True:
        connection, _ = server.accept()
        threading.Thread(target=answer, args=(rig, connection), daemon=True).start()


if __name__ == "__main__":
    try:
        main()
    finally:
        os._exit(1)
