"""Phones through libusb: handshake, open, transfers, reset. Blocking; for attach, reader and writer threads only.

The backend interface of pyusb is used directly: it opens, claims and configures nothing by itself.
"""

import array
import ctypes
import logging
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Final

import usb.backend.libusb1
import usb.core

from aoabridge.errors import UsbError
from aoabridge.phone.aoa import (
    CONTROL_TIMEOUT_MS,
    IN_READ_BYTES,
    Candidate,
    ControlRequest,
    UsbDevice,
    accessory_candidates,
    parse_protocol,
)

__all__ = ["UsbHost", "UsbPipe", "load_backend"]

_log = logging.getLogger(__name__)

_SYSTEM_LIBRARY: Final = "libusb-1.0.so.0"
_PACKET_SIZE_MASK: Final = 0x07FF  # the bits above are for high-bandwidth endpoints

_KIND_BY_CODE: Final = {
    -1: "IO",
    -2: "INVALID_PARAM",
    -3: "ACCESS",
    -4: "NO_DEVICE",
    -5: "NOT_FOUND",
    -6: "BUSY",
    -7: "TIMEOUT",
    -8: "OVERFLOW",
    -9: "PIPE",
    -10: "INTERRUPTED",
    -11: "NO_MEM",
    -12: "NOT_SUPPORTED",
}


def load_backend() -> tuple[Any, str]:
    """A started libusb and where it came from (``system`` or ``bundled``); raises UsbError without one.

    The system library comes first: the bundled one has no udev and opens device nodes before their group is set.
    """
    backend = usb.backend.libusb1.get_backend(find_library=lambda _name: _SYSTEM_LIBRARY)
    if backend is not None:
        return backend, "system"
    if _system_library_exists():
        message = "libusb does not start: the service may need AF_NETLINK in RestrictAddressFamilies"
        raise UsbError(message, errno=None, kind="NO_BACKEND", step="start", port="")
    return _bundled_backend(), "bundled"


def _system_library_exists() -> bool:
    try:
        ctypes.CDLL(_SYSTEM_LIBRARY)
    except OSError:
        return False
    return True


def _bundled_backend() -> Any:
    import libusb_package  # noqa: PLC0415 (it unpacks a library at import: only where there is no other)

    backend = libusb_package.get_libusb1_backend()
    if backend is None:
        message = "no libusb found: install the package libusb-1.0-0"
        raise UsbError(message, errno=None, kind="NO_BACKEND", step="start", port="")
    return backend


def _converted(error: Exception, step: str, port: str) -> UsbError:
    """The one conversion of what the library raises."""
    if isinstance(error, NotImplementedError):
        return UsbError(str(error), errno=38, kind="NOT_SUPPORTED", step=step, port=port)
    code = getattr(error, "backend_error_code", None)
    errno = getattr(error, "errno", None)
    kind = _KIND_BY_CODE.get(code, "OTHER") if code is not None else "OTHER"
    text = getattr(error, "strerror", None) or str(error)
    return UsbError(f"{step} on {port}: {text} ({kind})", errno=errno, kind=kind, step=step, port=port)


class UsbHost:
    """Finds a device of a scan and talks to it; ``backend`` None = libusb, loaded at the first use."""

    def __init__(self, backend: Any = None) -> None:
        self._backend = backend
        self._loading = threading.Lock()
        self._configured: dict[str, tuple[int, int]] = {}
        self.library = "given" if backend is not None else ""

    def prepare(self) -> None:
        """Loads the library now instead of at the first use; raises UsbError."""
        self._started()

    def probe(self, device: UsbDevice, requests: Sequence[ControlRequest]) -> int:
        """Runs one handshake and returns the phone's protocol version; 0 = it is none, and nothing was sent to it.

        The result of the last request (START) says nothing and is ignored. Raises UsbError of any other step.
        """
        with _Opened(self._started(), device) as handle:
            version = parse_protocol(handle.control(requests[0]))
            if version == 0:
                return 0
            for request in requests[1:-1]:
                handle.control(request)
            try:
                handle.control(requests[-1])
            except UsbError as error:
                _log.debug("START on %s: %s (ignored)", device.port, error.kind)
        return version

    def open(self, device: UsbDevice, turn: int = 0) -> "UsbPipe | None":
        """A claimed pipe to the accessory interface, None if there is no such interface; raises UsbError.

        Of several equal candidates number ``turn`` modulo their count is taken.
        """
        handle = _Opened(self._started(), device)
        try:
            return self._claim(handle, device, turn)
        except BaseException:
            handle.close()
            raise

    def _claim(self, handle: "_Opened", device: UsbDevice, turn: int) -> "UsbPipe | None":
        candidates = accessory_candidates(handle.interfaces())
        if not candidates:
            handle.close()
            return None
        if device.configuration == 0 and self._configured.get(device.port) != device.address:
            handle.configure()
            self._configured[device.port] = device.address
        chosen = candidates[turn % len(candidates)]
        handle.claim(chosen.number)
        return UsbPipe(handle, chosen, len(candidates))

    def _started(self) -> Any:
        with self._loading:
            if self._backend is None:
                self._backend, self.library = load_backend()
            return self._backend


class _Opened:
    """An open device: the handle, and every call on it with its errors converted."""

    def __init__(self, backend: Any, device: UsbDevice) -> None:
        self._backend = backend
        self._device = device
        self.port = device.port
        self._claimed: int | None = None
        self._closing = threading.Lock()  # the end of the process may come while a link is reopened
        try:
            self._library_device = self._find()
            self._handle = backend.open_device(self._library_device)
        except (usb.core.USBError, NotImplementedError) as error:
            raise _converted(error, "open", self.port) from error

    def __enter__(self) -> "_Opened":
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _find(self) -> Any:
        """The library's device at this bus and device number; a new one after every re-enumeration."""
        for candidate in self._backend.enumerate_devices():
            descriptor = self._backend.get_device_descriptor(candidate)
            if (descriptor.bus, descriptor.address) == self._device.address:
                return candidate
        # The library learns of a new device a moment after sysfs shows it.
        raise UsbError(
            f"open on {self.port}: the USB library does not list the device",
            errno=2,
            kind="NOT_FOUND",
            step="open",
            port=self.port,
        )

    def call(self, step: str, method: str, *arguments: object) -> Any:
        """Calls one backend method on the handle; raises UsbError."""
        try:
            return getattr(self._backend, method)(self._handle, *arguments)
        except (usb.core.USBError, NotImplementedError) as error:
            raise _converted(error, step, self.port) from error

    def control(self, request: ControlRequest) -> bytes:
        """One control transfer; the bytes of an IN data stage, b"" for OUT."""
        data = array.array("B", bytes(request.length) if request.is_in else request.data)
        count = self.call(
            request.step,
            "ctrl_transfer",
            request.request_type,
            request.request,
            request.value,
            request.index,
            data,
            CONTROL_TIMEOUT_MS,
        )
        if request.is_in:
            return data[:count].tobytes()
        if count != len(data):
            _log.debug("%s on %s: %d of %d bytes reported", request.step, self.port, count, len(data))
        return b""

    def interfaces(self) -> Iterator[Candidate]:
        """Every interface of the active configuration (the first, if none is active), alternate setting 0."""
        texts = {i.number: i.text for i in self._device.interfaces}
        try:
            index, configuration = self._configuration()
            for position in range(configuration.bNumInterfaces):
                yield self._candidate(index, position, texts)
        except (usb.core.USBError, NotImplementedError) as error:
            raise _converted(error, "descriptors", self.port) from error

    def _configuration(self) -> tuple[int, Any]:
        count = self._backend.get_device_descriptor(self._library_device).bNumConfigurations
        for index in range(count):
            descriptor = self._backend.get_configuration_descriptor(self._library_device, index)
            if self._device.configuration in (0, descriptor.bConfigurationValue):
                return index, descriptor
        return 0, self._backend.get_configuration_descriptor(self._library_device, 0)

    def _candidate(self, configuration: int, position: int, texts: dict[int, str]) -> Candidate:
        get_endpoint = self._backend.get_endpoint_descriptor
        interface = self._backend.get_interface_descriptor(self._library_device, position, 0, configuration)
        endpoints = []
        for number in range(interface.bNumEndpoints):
            endpoint = get_endpoint(self._library_device, number, position, 0, configuration)
            endpoints.append((endpoint.bEndpointAddress, endpoint.bmAttributes, endpoint.wMaxPacketSize))
        return Candidate(
            number=interface.bInterfaceNumber,
            klass=interface.bInterfaceClass,
            subclass=interface.bInterfaceSubClass,
            protocol=interface.bInterfaceProtocol,
            endpoints=tuple(endpoints),
            text=texts.get(interface.bInterfaceNumber, ""),
        )

    def configure(self) -> None:
        """Sets the first configuration unless one is active by now: repeating an active one resets the app."""
        if self.call("set_configuration", "get_configuration") != 0:
            return
        first = self._backend.get_configuration_descriptor(self._library_device, 0)
        self.call("set_configuration", "set_configuration", first.bConfigurationValue)

    def claim(self, interface: int) -> None:
        """Claims one interface, which ``close`` releases."""
        self.call("claim", "claim_interface", interface)
        self._claimed = interface

    def close(self) -> None:
        """Releases and closes; the device may be gone."""
        with self._closing:
            interface, self._claimed = self._claimed, None
            handle = self._handle
            if interface is not None:
                try:
                    self.call("release", "release_interface", interface)
                except UsbError as error:
                    _log.debug("release on %s: %s (ignored)", self.port, error.kind)
            self._handle = None
            if handle is not None:
                self._backend.close_device(handle)


class UsbPipe:
    """The byte stream of one claimed accessory interface.

    ``read`` and ``clear_halt_in`` belong to one thread, ``write`` and ``clear_halt_out`` to one; ``close`` and
    ``reset`` only when neither is inside a call.
    """

    def __init__(self, handle: _Opened, chosen: Candidate, candidates: int) -> None:
        (self._in, _, _), (self._out, _, size) = chosen.bulk(inbound=True)[0], chosen.bulk(inbound=False)[0]
        self._handle = handle
        self._interface = chosen.number
        self._buffer = array.array("B", bytes(IN_READ_BYTES))
        self._view = memoryview(self._buffer)
        self.candidates = candidates
        self.packet_size = size & _PACKET_SIZE_MASK

    def read(self, timeout_ms: int) -> bytes | None:
        """What the phone sent (b"" = a zero-length packet), None if nothing came in time; raises UsbError."""
        try:
            count = self._handle.call("read", "bulk_read", self._in, self._interface, self._buffer, timeout_ms)
        except UsbError as error:
            if error.kind == "TIMEOUT":
                return None
            raise
        return bytes(self._view[:count])

    def write(self, data: bytes, timeout_ms: int) -> int:
        """How many bytes the phone took in time, 0 = none; raises UsbError."""
        outgoing = array.array("B", data)
        try:
            return int(self._handle.call("write", "bulk_write", self._out, self._interface, outgoing, timeout_ms))
        except UsbError as error:
            if error.kind == "TIMEOUT":
                return 0
            raise

    def clear_halt_in(self) -> None:
        """Clears the halt of the IN endpoint; raises UsbError."""
        self._handle.call("clear_halt", "clear_halt", self._in)

    def clear_halt_out(self) -> None:
        """Clears the halt of the OUT endpoint; raises UsbError."""
        self._handle.call("clear_halt", "clear_halt", self._out)

    def reset(self) -> None:
        """Resets the device, which throws the phone out of accessory mode; then only ``close`` is left."""
        try:
            self._handle.call("reset", "reset_device")
        except UsbError as error:
            if error.kind != "NOT_FOUND":  # that is how libusb says that the device has re-enumerated
                raise

    def close(self) -> None:
        """Releases the interface and closes the device."""
        self._handle.close()
