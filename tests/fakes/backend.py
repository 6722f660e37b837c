"""The emulated phones as pyusb sees them: descriptors, handles, transfers, and every error by its libusb code."""

import struct
import threading
from types import SimpleNamespace

import usb.backend
import usb.core

from fakes.transfers import Transfer

__all__ = ["FakeBackend", "usb_error"]

# kind -> (libusb code, errno), as pyusb maps them
ERRORS = {
    "IO": (-1, 5),
    "INVALID_PARAM": (-2, 22),
    "ACCESS": (-3, 13),
    "NO_DEVICE": (-4, 19),
    "NOT_FOUND": (-5, 2),
    "BUSY": (-6, 16),
    "TIMEOUT": (-7, 110),
    "OVERFLOW": (-8, 75),
    "PIPE": (-9, 32),
    "INTERRUPTED": (-10, 4),
    "NO_MEM": (-11, 12),
    "OTHER": (-99, None),
}
STATUS_KINDS = {-32: "PIPE", -75: "OVERFLOW", -108: "NO_DEVICE", -71: "IO", -2: "TIMEOUT"}
ERRNO_KINDS = {-16: "BUSY", -19: "NO_DEVICE", -2: "NOT_FOUND", -22: "NOT_FOUND"}
CONTROL_OPS = {51: "get_protocol", 52: "send_string", 53: "start"}
SPEEDS = {"full": 2, "high": 3, "super": 4}


def usb_error(kind):
    """The exception that pyusb's libusb backend raises."""
    if kind == "NOT_SUPPORTED":
        return NotImplementedError("Operation not supported or unimplemented on this platform")
    code, errno = ERRORS[kind]
    cls = usb.core.USBTimeoutError if kind == "TIMEOUT" else usb.core.USBError
    return cls(f"emulated {kind}", code, errno)


class _Handle:
    def __init__(self, device):
        self.device = device
        self.closed = False
        self.gone = False
        self.transfers = set()


class FakeBackend(usb.backend.IBackend):
    """One process's view of the bus."""

    def __init__(self, bus):
        super().__init__()
        self.bus = bus
        self.alive = True
        self.handles = set()

    # enumeration

    def enumerate_devices(self):
        with self.bus.lock:
            self._count(None)
            board = self.bus.board
            return iter(
                [
                    SimpleNamespace(phone=phone, view=phone.view, address=board.address(phone), port=phone.port)
                    for phone in board.phones.values()
                    if phone.mode is not None
                ]
            )

    def get_parent(self, dev):
        return None

    def get_device_descriptor(self, dev):
        names = (
            "bLength bDescriptorType bcdUSB bDeviceClass bDeviceSubClass bDeviceProtocol bMaxPacketSize0 idVendor "
            "idProduct bcdDevice iManufacturer iProduct iSerialNumber bNumConfigurations"
        )
        values = struct.unpack("<BBHBBBBHHHBBBB", dev.view.device)
        ports = tuple(int(part) for part in dev.port.split("-")[1].split("."))
        return SimpleNamespace(
            **dict(zip(names.split(), values, strict=True)),
            bus=dev.address[0],
            address=dev.address[1],
            port_number=ports[-1],
            port_numbers=ports,
            speed=SPEEDS[dev.view.profile.speed],
        )

    def get_configuration_descriptor(self, dev, config):
        if config:
            raise IndexError(f"Invalid configuration index {config}")
        names = "bLength bDescriptorType wTotalLength bNumInterfaces bConfigurationValue iConfiguration bmAttributes"
        values = struct.unpack("<BBHBBBBB", dev.view.configuration[:9])
        return SimpleNamespace(
            **dict(zip([*names.split(), "bMaxPower"], values, strict=True)), extra_descriptors=b"", extra=b""
        )

    def get_interface_descriptor(self, dev, intf, alt, config):
        self.get_configuration_descriptor(dev, config)
        if intf >= len(dev.view.interfaces) or alt:
            raise IndexError(f"Invalid interface index {intf}")
        interface = dev.view.interfaces[intf]
        return SimpleNamespace(
            bLength=9,
            bDescriptorType=4,
            bInterfaceNumber=interface.number,
            bAlternateSetting=0,
            bNumEndpoints=len(interface.endpoints),
            bInterfaceClass=interface.triple[0],
            bInterfaceSubClass=interface.triple[1],
            bInterfaceProtocol=interface.triple[2],
            iInterface=4 + interface.number if interface.text else 0,
            extra_descriptors=b"",
        )

    def get_endpoint_descriptor(self, dev, ep, intf, alt, config):
        self.get_interface_descriptor(dev, intf, alt, config)
        endpoints = dev.view.interfaces[intf].endpoints
        if ep >= len(endpoints):
            raise IndexError(f"Invalid endpoint index {ep}")
        return SimpleNamespace(
            bLength=7,
            bDescriptorType=5,
            bEndpointAddress=endpoints[ep].address,
            bmAttributes=endpoints[ep].kind,
            wMaxPacketSize=endpoints[ep].packet_size,
            bInterval=0,
            bRefresh=0,
            bSynchAddress=0,
            extra_descriptors=b"",
        )

    # handles

    def open_device(self, dev):
        with self.bus.lock:
            self._count(dev.phone)
            phone = dev.phone
            if not phone.reached("open"):
                self._inject("open", phone)
            if not self._present(dev):
                raise usb_error("NO_DEVICE")
            handle = _Handle(dev)
            self.handles.add(handle)
            phone.recorder.event("open", mode=phone.mode)
            return handle

    def close_device(self, dev_handle):
        with self.bus.lock:
            if dev_handle.closed:
                self.bus.calls_after_close += 1
                return
            if dev_handle.transfers:
                self.bus.calls_after_close += 1  # a thread is inside a transfer: undefined in libusb
            self.drop(dev_handle)
            self._inject("close", dev_handle.device.phone)

    def drop(self, handle):
        """Ends a handle: transfers cancelled, claims gone."""
        phone = handle.device.phone
        for transfer in list(handle.transfers):
            phone.cancel(transfer)
        for number in [number for number, owner in phone.holders.items() if owner is handle]:
            phone.release(number, handle)
        handle.closed = True
        self.handles.discard(handle)

    def _present(self, device):
        return self.alive and device.phone.mode is not None and device.phone.view is device.view

    def _enter(self, handle, op):
        """Checks that every call on a handle begins with; returns the phone."""
        phone = handle.device.phone
        self._count(phone)
        if handle.closed and self.alive:
            self.bus.calls_after_close += 1
            raise usb_error("INVALID_PARAM")
        if handle.gone and op not in ("release", "close"):
            handle.gone += 1
            self.bus.dead_handle_calls = max(self.bus.dead_handle_calls, handle.gone - 1)
        if not self._present(handle.device):
            handle.gone = handle.gone or 1
            raise usb_error("NO_DEVICE")
        if op in ("claim", "release", "set_configuration", "clear_halt", "reset"):
            phone.reached(op)
            self._inject(op, phone)
        return phone

    def _count(self, phone):
        thread = threading.current_thread()
        self.bus.calls_by_thread[thread.ident] += 1
        if phone is not None:
            phone.recorder.counts["usb_calls"] += 1

    def _inject(self, op, phone):
        entry = self.bus.board.injector.take(op)
        if entry is not None:
            raise usb_error(entry["error"])

    def claim_interface(self, dev_handle, intf):
        with self.bus.lock:
            self._checked(self._enter(dev_handle, "claim").claim(intf, dev_handle))

    def release_interface(self, dev_handle, intf):
        with self.bus.lock:
            self._checked(self._enter(dev_handle, "release").release(intf, dev_handle))

    def _checked(self, result):
        if result < 0:
            raise usb_error(ERRNO_KINDS[result])

    def set_configuration(self, dev_handle, config_value):
        with self.bus.lock:
            self._enter(dev_handle, "set_configuration").set_configuration(config_value)

    def get_configuration(self, dev_handle):
        with self.bus.lock:
            return int(self._enter(dev_handle, "get_configuration").configured)

    def clear_halt(self, dev_handle, ep):
        with self.bus.lock:
            self._enter(dev_handle, "clear_halt").clear_halt(ep)

    def reset_device(self, dev_handle):
        with self.bus.lock:
            phone = self._enter(dev_handle, "reset")
            phone.reset()
            if not self._present(dev_handle.device):
                raise usb_error("NOT_FOUND")

    # transfers

    def ctrl_transfer(self, dev_handle, bmRequestType, bRequest, wValue, wIndex, data, timeout):  # noqa: N803, PLR0917 - pyusb's
        with self.bus.lock:
            phone = self._enter(dev_handle, "control")
            is_in = bmRequestType & 0x80
            self._inject_control(phone, bmRequestType, bRequest, wIndex, data)
            transfer = Transfer(0, data=b"" if is_in else bytes(data), length=len(data), on_done=self._wake)
            setup = (bmRequestType, bRequest, wValue, wIndex, len(data))
            dev_handle.transfers.add(transfer)
            phone.submit_control(transfer, setup)
            self._wait(dev_handle, transfer, timeout)
            if not transfer.done:
                phone.cancel_control(transfer)
            dev_handle.transfers.discard(transfer)
            if transfer.status:
                self._raise(dev_handle, transfer)
            if is_in:
                for index, byte in enumerate(transfer.buffer[: len(data)]):
                    data[index] = byte
            return transfer.moved

    def _inject_control(self, phone, request_type, request, index, data):
        """A forced result of a vendor request: the phone has seen the request all the same."""
        op = CONTROL_OPS.get(request)
        entry = self.bus.board.injector.take(op) if op else None
        if entry is not None:
            phone.recorder.vendor_request(request, index, b"" if request_type & 0x80 else bytes(data))
            raise usb_error(entry["error"])

    def bulk_write(self, dev_handle, ep, intf, data, timeout):
        with self.bus.lock:
            phone = self._enter(dev_handle, "write")
            self._need_claim(dev_handle, intf)
            content = bytes(data)
            entry = self.bus.board.injector.take("write")
            if entry is not None:
                return self._injected_write(phone, ep, content, entry)
            transfer = Transfer(ep, data=content, on_done=self._wake)
            self._run(dev_handle, transfer, timeout)
            if transfer.status and not (transfer.status == -2 and transfer.moved):
                self._raise(dev_handle, transfer)
            return transfer.moved

    def _injected_write(self, phone, ep, content, entry):
        moved = min(entry.get("moved", 0), len(content))
        if moved:
            part = Transfer(ep, data=content[:moved])
            phone.submit(part)
            phone.cancel(part)
            moved = part.moved
        if entry["error"] == "TIMEOUT" and moved:
            return moved
        raise usb_error(entry["error"])

    def bulk_read(self, dev_handle, ep, intf, buff, timeout):
        with self.bus.lock:
            phone = self._enter(dev_handle, "read")
            self._need_claim(dev_handle, intf)
            pipe = phone.pipe(ep)
            entry = self.bus.board.injector.take("read", has_data=pipe is not None and not pipe.idle)
            if entry is not None:
                return self._injected_read(pipe, buff, entry)
            transfer = Transfer(ep, length=len(buff), on_done=self._wake)
            self._run(dev_handle, transfer, timeout)
            if transfer.status and not (transfer.status == -2 and transfer.buffer):
                self._raise(dev_handle, transfer)
            return self._store(buff, transfer.buffer)

    def _injected_read(self, pipe, buff, entry):
        data = pipe.take(entry["moved"]) if entry.get("moved") else b""
        if data and entry["error"] == "TIMEOUT":
            return self._store(buff, data)
        raise usb_error(entry["error"])

    def _store(self, buff, data):
        memoryview(buff)[: len(data)] = memoryview(bytes(data))
        return len(data)

    def _need_claim(self, handle, interface):
        if handle.device.phone.holders.get(interface) is not handle:
            handle.device.phone.recorder.event("transfer without claim")
            raise usb_error("IO")

    def _run(self, handle, transfer, timeout):
        phone = handle.device.phone
        handle.transfers.add(transfer)
        phone.submit(transfer)
        self._wait(handle, transfer, timeout)
        if not transfer.done:
            phone.cancel(transfer)
        handle.transfers.discard(transfer)

    def _wake(self, transfer):
        self.bus.changed_condition.notify_all()

    def _wait(self, handle, transfer, timeout_ms):
        clock = self.bus.clock
        deadline = clock.now() + timeout_ms / 1000 if timeout_ms else float("inf")
        while not transfer.done and self.alive and (left := deadline - clock.now()) > 0:
            self.bus.changed_condition.wait(min(left / clock.speed, 60))
        if not self.alive:
            transfer.finish(-108)

    def _raise(self, handle, transfer):
        kind = STATUS_KINDS[transfer.status]
        if kind == "NO_DEVICE":
            handle.gone = handle.gone or 1
        raise usb_error(kind)
