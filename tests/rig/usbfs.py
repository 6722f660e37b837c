"""One device node of the emulated usbfs: the ioctls that libusb sends, served by an emulated phone."""

import errno
import fcntl
import os
import struct
import threading
import traceback

import gi

from fakes.transfers import Transfer

gi.require_version("UMockdev", "1.0")
from gi.repository import GLib, UMockdev  # noqa: E402 (the version must be named first)

__all__ = ["Node"]

F_SETPIPE_SZ = 1031
PAGE = 4096
URB_BYTES = 56
TYPE_CONTROL, TYPE_BULK = 2, 3
FLAG_ZERO_PACKET = 0x40
CAPABILITIES = 0x1D  # not 0x02: libusb would cut transfers in pieces and expect continuation cancelling

SUBMITURB, REAPURB, REAPURBNDELAY, DISCARDURB = 0x8038550A, 0x4008550C, 0x4008550D, 0x550B
GET_CAPABILITIES, CLAIM, RELEASE, DISCONNECT_CLAIM = 0x8004551A, 0x8004550F, 0x80045510, 0x8108551B
SETCONFIGURATION, SETINTERFACE, RESET, CLEAR_HALT, RESETEP = 0x80045505, 0x80085504, 0x5514, 0x80045515, 0x80045503
GET_SPEED = 0x551F
SPEEDS = {"full": 2, "high": 3, "super": 5}

INJECTED = {  # kind -> (errno of the submit, urb status)
    "IO": (None, -71),
    "PIPE": (None, -32),
    "OVERFLOW": (None, -75),
    "NO_DEVICE": (None, -108),
    "OTHER": (None, -71),
    "INTERRUPTED": (None, -71),
    "NO_MEM": (errno.ENOMEM, None),
    "BUSY": (errno.EBUSY, None),
    "ACCESS": (errno.EACCES, None),
    "NOT_FOUND": (errno.ENOENT, None),
    "INVALID_PARAM": (errno.EINVAL, None),
    "NOT_SUPPORTED": (errno.ENOTTY, None),
    "TIMEOUT": (None, None),  # stays pending
}
CONTROL_OPS = {51: "get_protocol", 52: "send_string", 53: "start"}


class Urb:
    """One submitted urb with everything needed to finish it."""

    __slots__ = ("address", "buffer", "client", "data", "kind", "result", "transfer")

    def __init__(self, client, address, data, buffer, kind):
        self.client = client
        self.address = address
        self.data = data
        self.buffer = buffer
        self.kind = kind
        self.transfer = None
        self.result = None  # (status, bytes for the buffer, their offset, actual length)

    def store(self):
        """Writes the result into the client's memory: only while that client is inside an ioctl."""
        status, data, offset, actual = self.result
        if data and self.buffer is not None:
            self.buffer.update(offset, data)
        self.data.update(4, struct.pack("=i", status))
        self.data.update(28, struct.pack("=i", actual))


class Handler(UMockdev.IoctlBase):
    """Hands the ioctls of one node on."""

    node = None

    def do_handle_ioctl(self, client):
        node = self.node
        return node.ioctl(client) if node is not None else False

    def do_client_connected(self, client):
        node = self.node
        if node is not None:
            node.client_connected()


class Node:
    """The node of one attachment; the FIFO behind it stays full while nothing is to be reaped."""

    def __init__(self, rig, phone, bus, address):
        self.rig = rig
        self.phone = phone
        self.view = phone.view
        self.path = f"/dev/bus/usb/{bus:03}/{address:03}"
        self.syspath = f"/sys/devices/usb{bus}/{phone.port}"
        interfaces = phone.view.interfaces if phone.configured else ()
        self.interface_paths = [f"{self.syspath}/{phone.port}:1.{item.number}" for item in interfaces]
        self.handler = Handler()
        self.handler.node = self
        self.gone = False
        self._late_calls = 0
        self.pending = {}  # urb address -> Urb
        self.finished = []
        self._lock = rig.lock
        self._reapable = threading.Condition(self._lock)

    # the file

    def make_fifo(self, root, mode):
        real = root / self.path.lstrip("/")
        real.parent.mkdir(parents=True, exist_ok=True)
        self._private = real.with_name(f".{real.name}.fifo")
        self._real = real
        os.mkfifo(self._private)
        self._private.chmod(mode)
        self._fd = os.open(self._private, os.O_RDWR | os.O_NONBLOCK)
        fcntl.fcntl(self._fd, F_SETPIPE_SZ, PAGE)
        self._full = False
        self._set_writable(False)

    def put_in_place(self):
        self._private.replace(self._real)

    def unlink(self):
        self._real.unlink(missing_ok=True)
        # The handler stays: a process that still has the node open must hear ENODEV, not lose its socket.

    def close(self):
        """The end of the rig: breaks the cycle that would keep the testbed alive."""
        os.close(self._fd)
        self.handler.node = None

    def _set_writable(self, writable):
        """POLLOUT of the node means "something to reap": a full pipe has none."""
        if writable and self._full:
            os.read(self._fd, PAGE)
            self._full = False
        elif not writable and not self._full:
            os.write(self._fd, bytes(PAGE))
            self._full = True

    # clients

    def client_connected(self):
        with self._lock:
            self.purge()

    def purge(self, everything=False):
        """Drops what belongs to a process that is gone."""
        gone = [urb for urb in self.pending.values() if everything or not urb.client.props.connected]
        for urb in gone:
            self.pending.pop(urb.address, None)
            if urb.transfer is not None:
                self._cancel(urb)
        self.finished = [urb for urb in self.finished if not everything and urb.client.props.connected]
        owners = {number: owner for number, owner in self.phone.holders.items() if self.phone.view is self.view}
        for number, owner in owners.items():
            if everything or not owner.props.connected:
                self.phone.release(number, owner)
        if not self.gone:
            self._set_writable(bool(self.finished))

    def unplug(self):
        """Called under the lock when the phone left the bus: transfers have ended with -108 already."""
        self.gone = True
        for urb in list(self.pending.values()):
            self._finish(urb, -108, b"")
        self._set_writable(True)
        self._reapable.notify_all()

    # ioctls

    def ioctl(self, client):
        try:
            with self._lock:
                self.rig.library_calls += 1
                request = client.get_request()
                # One transfer is a submit and several reaps: only what asks the device for something is a call.
                self.phone.recorder.counts["usb_calls"] += request not in (REAPURB, REAPURBNDELAY, DISCARDURB)
                result = self._dispatch(client, request)
                self._complete(client, result)
        except GLib.GError:
            pass  # the client was killed inside this call: its socket is reset, and nobody waits for the answer
        except Exception:  # noqa: BLE001 (an exception would be lost in the GLib thread)
            self.rig.problems.append(traceback.format_exc())
            traceback.print_exc()
            self._complete(client, -errno.EIO)
        return True

    @staticmethod
    def _complete(client, result):
        if result < 0:
            client.complete(-1, -result)
        else:
            client.complete(result, 0)

    def _dispatch(self, client, request):
        if self.gone and request not in (REAPURB, REAPURBNDELAY, DISCARDURB, RELEASE):
            self._late_calls += 1
            counts = self.phone.recorder.counts
            counts["calls_after_no_device"] = max(counts["calls_after_no_device"], self._late_calls)
            return -errno.ENODEV
        handlers = {
            SUBMITURB: self._submit,
            REAPURBNDELAY: self._reap,
            REAPURB: self._reap,
            DISCARDURB: self._discard,
            GET_CAPABILITIES: lambda client: self._answer(client, 4, struct.pack("=I", CAPABILITIES)),
            CLAIM: lambda client: self._claim(client, self._number(client)),
            DISCONNECT_CLAIM: lambda client: self._claim(client, self._number(client, 264)),
            RELEASE: self._release,
            SETCONFIGURATION: self._set_configuration,
            SETINTERFACE: lambda client: 0,
            RESET: self._reset,
            CLEAR_HALT: self._clear_halt,
            RESETEP: self._clear_halt,
            GET_SPEED: lambda client: SPEEDS[self.phone.profile.speed],
        }
        handler = handlers.get(request)
        if handler is None:
            self.rig.problems.append(f"ioctl {request:#x} must not be sent")
            return -errno.ENOTTY
        return handler(client)

    def _number(self, client, size=4):
        return struct.unpack_from("=I", bytes(client.get_arg().resolve(0, size).retrieve()))[0]

    def _answer(self, client, size, data):
        client.get_arg().resolve(0, size).update(0, data)
        return 0

    def _injected(self, op):
        entry = self.rig.board.injector.take(op)
        return 0 if entry is None else -(INJECTED[entry["error"]][0] or errno.EIO)

    def _claim(self, client, number):
        self.phone.reached("claim")
        if self.gone:
            return -errno.ENODEV
        self.purge()
        return self._injected("claim") or self.phone.claim(number, client)

    def _release(self, client):
        number = self._number(client)
        if self.gone:
            return 0 if self.phone.holders.get(number) is None else -errno.ENODEV
        return self._injected("release") or self.phone.release(number, client)

    def _set_configuration(self, client):
        error = self._injected("set_configuration")
        if not error:
            self.phone.set_configuration(self._number(client))
        return error

    def _reset(self, client):
        error = self._injected("reset")
        if not error:
            self.phone.reset()
        return error or (-errno.ENODEV if self.gone else 0)

    def _clear_halt(self, client):
        error = self._injected("clear_halt")
        if not error:
            self.phone.clear_halt(self._number(client))
        return error

    # urbs

    def _submit(self, client):
        argument = client.get_arg()
        address = struct.unpack("=Q", bytes(argument.retrieve())[:8])[0]
        data = argument.resolve(0, URB_BYTES)
        raw = bytes(data.retrieve())
        kind, endpoint = raw[0], raw[1]
        flags, length = struct.unpack_from("=I", raw, 8)[0], struct.unpack_from("=i", raw, 24)[0]
        buffer = data.resolve(16, length) if length else None
        urb = Urb(client, address, data, buffer, kind)
        content = (
            bytes(buffer.retrieve()) if buffer is not None and (kind == TYPE_CONTROL or not endpoint & 0x80) else b""
        )
        if kind == TYPE_CONTROL:
            return self._submit_control(urb, content)
        if kind != TYPE_BULK:
            self.rig.problems.append(f"urb type {kind}")
            return -errno.EINVAL
        return self._submit_bulk(urb, endpoint, content, length, bool(flags & FLAG_ZERO_PACKET))

    def _submit_control(self, urb, content):
        setup = struct.unpack_from("<BBHHH", content)
        entry = self.rig.board.injector.take(CONTROL_OPS.get(setup[1], ""))
        self.pending[urb.address] = urb
        if entry is not None:
            self.phone.recorder.vendor_request(setup[1], setup[3], content[8:])
            return self._force(urb, entry)
        urb.transfer = Transfer(0, data=content[8:], length=setup[4], on_done=lambda transfer: self._control_done(urb))
        self.phone.submit_control(urb.transfer, setup)
        return 0

    def _control_done(self, urb):
        if urb.address in self.pending:
            transfer = urb.transfer
            self._finish(urb, transfer.status, bytes(transfer.buffer), offset=8, actual=transfer.moved)

    def _submit_bulk(self, urb, endpoint, content, length, zero_packet):
        op = "read" if endpoint & 0x80 else "write"
        self._need_claim(endpoint)
        pipe = self.phone.pipe(endpoint)
        entry = self.rig.board.injector.take(op, has_data=pipe is not None and not getattr(pipe, "idle", False))
        self.pending[urb.address] = urb
        if entry is not None:
            return self._force(urb, entry, pipe, content)
        urb.transfer = Transfer(
            endpoint,
            data=content,
            length=length,
            zero_packet=zero_packet,
            on_done=lambda transfer: self._bulk_done(urb),
        )
        self.phone.submit(urb.transfer)
        return 0

    def _need_claim(self, endpoint):
        """The kernel would claim by itself and complain in its log; a host must not rely on that."""
        for interface in self.view.interfaces:
            addresses = {item.address for item in interface.endpoints}
            if endpoint in addresses and interface.number not in self.phone.holders:
                self.rig.problems.append(f"transfer on endpoint {endpoint:#x} without a claim")

    def _bulk_done(self, urb):
        if urb.address in self.pending:
            transfer = urb.transfer
            data = bytes(transfer.buffer)
            self._finish(urb, transfer.status, data, actual=len(data) if transfer.endpoint & 0x80 else transfer.moved)

    def _force(self, urb, entry, pipe=None, content=b""):
        """A result that the case demands."""
        code, status = INJECTED[entry["error"]]
        if code is not None:
            self.pending.pop(urb.address, None)
            return -code
        moved = entry.get("moved", 0)
        data = pipe.take(moved) if moved and pipe is not None and hasattr(pipe, "take") else b""
        if content and moved and pipe is not None:
            part = Transfer(0, data=content[:moved])
            pipe.submit(part)
            pipe.cancel(part)
            moved = part.moved
        if status is None:  # pending until the library gives up
            urb.transfer = Transfer(0)
            urb.transfer.buffer += data
            urb.transfer.moved = moved
            return 0
        self._finish(urb, status, data, actual=len(data) or moved)
        return 0

    def _finish(self, urb, status, data, offset=0, actual=None):
        """Makes the urb ready to be reaped."""
        self.pending.pop(urb.address, None)
        if not urb.client.props.connected:
            return
        urb.result = (status, data, offset, len(data) if actual is None else actual)
        self.finished.append(urb)
        self._set_writable(True)
        self._reapable.notify_all()

    def _cancel(self, urb):
        transfer = urb.transfer
        if urb.kind == TYPE_CONTROL:
            self.phone.cancel_control(transfer)
        else:
            self.phone.cancel(transfer)

    def _discard(self, client):
        address = struct.unpack("=Q", bytes(client.get_arg().retrieve())[:8])[0]
        urb = self.pending.get(address)
        if urb is None:
            return -errno.EINVAL
        if urb.transfer is not None:
            self._cancel(urb)  # its end comes back through the done callback
        if address in self.pending:
            transfer = urb.transfer
            self._finish(urb, -2, bytes(transfer.buffer), actual=len(transfer.buffer) or transfer.moved)
        return 0

    def _reap(self, client):
        self.finished = [urb for urb in self.finished if urb.client.props.connected]
        if not self.finished:
            return -errno.ENODEV if self.gone else -errno.EAGAIN
        urb = self.finished.pop(0)
        urb.store()
        client.get_arg().resolve(0, 8).set_ptr(0, urb.data)
        if not self.finished and not self.gone:
            self._set_writable(False)
        return 0
