"""The USB adapter over the emulated bus: what goes to endpoint 0, what is claimed, how errors come back."""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import pytest

from aoabridge.adapters import usb as adapter
from aoabridge.adapters.usb import UsbHost, UsbPipe, load_backend
from aoabridge.errors import UsbError
from aoabridge.phone.aoa import Identity, UsbDevice, handshake
from contract.hostconfig import usb_device
from fakes.bus import FakeBus, usb_error

REQUESTS = handshake(Identity().strings("machine"))


class Rig:
    def __init__(self, phone: dict[str, Any], inject: Sequence[dict[str, Any]] = ()) -> None:
        self.bus = FakeBus([phone], inject)
        self.usb = UsbHost(self.bus.backend)
        self.bus.do("plug")

    @property
    def device(self) -> UsbDevice:
        (shown,) = self.bus.scan()
        return usb_device(shown)

    def metric(self, name: str) -> Any:
        return self.bus.metrics()["p1"][name]

    def open(self, turn: int = 0) -> UsbPipe:
        pipe = self.usb.open(self.device, turn)
        assert pipe is not None
        return pipe


@pytest.fixture
def rig() -> Iterator[Callable[..., Rig]]:
    rigs: list[Rig] = []

    def make(phone: dict[str, Any] | None = None, inject: Sequence[dict[str, Any]] = ()) -> Rig:
        rigs.append(Rig(phone or {}, inject))
        return rigs[-1]

    yield make
    for one in rigs:
        one.bus.close()
        assert one.bus.calls_after_close == 0


def test_the_handshake_on_the_wire(rig: Callable[..., Rig]) -> None:
    r = rig({"needs_strings": [0, 1, 2, 3, 4, 5], "rules": "functionfs", "protocol": "0201"})
    assert r.usb.probe(r.device, REQUESTS) == 258
    assert r.metric("get_protocol") == 1
    assert r.metric("string_indices") == [0, 1, 2, 3, 4, 5]
    assert r.metric("start") == 1
    assert r.metric("stalls") == 0
    assert r.metric("claims") == 0
    assert r.metric("claims_native") == 0


@pytest.mark.parametrize("protocol", ["0000", "", "01"])
def test_no_version_no_strings(rig: Callable[..., Rig], protocol: str) -> None:
    r = rig({"protocol": protocol})
    assert r.usb.probe(r.device, REQUESTS) == 0
    assert (r.metric("send_string"), r.metric("start")) == (0, 0)


def test_a_stall_at_the_first_request(rig: Callable[..., Rig]) -> None:
    r = rig({"protocol": None})
    with pytest.raises(UsbError) as caught:
        r.usb.probe(r.device, REQUESTS)
    assert (caught.value.kind, caught.value.step, caught.value.port) == ("PIPE", "get_protocol", "1-1")
    assert caught.value.errno == 32
    assert r.metric("send_string") == 0


@pytest.mark.parametrize("kind", ["IO", "PIPE", "NO_DEVICE", "TIMEOUT"])
def test_the_result_of_start_is_ignored(rig: Callable[..., Rig], kind: str) -> None:
    r = rig({}, [{"op": "start", "error": kind}])
    assert r.usb.probe(r.device, REQUESTS) == 2


def test_a_count_of_zero_is_success(rig: Callable[..., Rig]) -> None:
    r = rig({"out_count": "zero"})
    assert r.usb.probe(r.device, REQUESTS) == 2


@pytest.mark.parametrize(
    ("kind", "errno"),
    [("ACCESS", 13), ("NO_DEVICE", 19), ("NOT_FOUND", 2), ("IO", 5), ("BUSY", 16), ("NO_MEM", 12), ("OTHER", None),
     ("NOT_SUPPORTED", 38), ("INVALID_PARAM", 22), ("INTERRUPTED", 4), ("OVERFLOW", 75)],
)  # fmt: skip
def test_errors_of_open_carry_everything(rig: Callable[..., Rig], kind: str, errno: int | None) -> None:
    r = rig({"start_as": "accessory"}, [{"op": "open", "error": kind}])
    with pytest.raises(UsbError) as caught:
        r.usb.open(r.device)
    assert (caught.value.kind, caught.value.errno, caught.value.step) == (kind, errno, "open")


def test_a_device_that_the_library_does_not_list_yet(rig: Callable[..., Rig]) -> None:
    r = rig()
    device = r.device
    r.bus.do("unplug")
    with pytest.raises(UsbError) as caught:
        r.usb.probe(device, REQUESTS)
    assert (caught.value.kind, caught.value.step) == ("NOT_FOUND", "open")


def test_the_accessory_interface_is_claimed_and_nothing_else(rig: Callable[..., Rig]) -> None:
    r = rig({"start_as": "accessory", "accessory_pid": "2d05", "interfaces": ["audio", "adb", "accessory"]})
    pipe = r.open()
    assert pipe.candidates == 1
    assert r.metric("claims") == 1
    assert r.metric("vendor_requests") == 0
    assert r.metric("set_configuration") == 0
    assert r.metric("string_descriptor_requests") == 0
    pipe.close()


@pytest.mark.parametrize(("speed", "size"), [("full", 64), ("high", 512), ("super", 1024)])
def test_the_packet_size_comes_from_the_descriptor(rig: Callable[..., Rig], speed: str, size: int) -> None:
    r = rig({"start_as": "accessory", "speed": speed, "endpoints": ["0x0f", "0x81"]})
    pipe = r.open()
    assert pipe.packet_size == size
    pipe.close()


def test_the_interface_called_control_is_never_taken(rig: Callable[..., Rig]) -> None:
    r = rig({"start_as": "accessory", "interfaces": ["control", "accessory"]})
    pipe = r.open()
    assert (pipe.candidates, pipe._interface) == (1, 1)
    pipe.close()


def test_nameless_interfaces_take_turns(rig: Callable[..., Rig]) -> None:
    r = rig({"start_as": "accessory", "interfaces": ["control", "accessory"], "interface_strings": False})
    chosen = []
    for turn in range(3):
        pipe = r.open(turn)
        chosen.append((pipe.candidates, pipe._interface))
        pipe.close()
    assert chosen == [(2, 0), (2, 1), (2, 0)]


def test_no_accessory_interface_claims_nothing(rig: Callable[..., Rig]) -> None:
    r = rig({"start_as": "accessory", "interfaces": ["adb"], "accessory_pid": "2d01"})
    assert r.usb.open(r.device) is None
    assert r.metric("claims") == 0


def test_an_unconfigured_device_is_configured_once(rig: Callable[..., Rig]) -> None:
    r = rig({"start_as": "accessory", "configured": False}, [{"op": "claim", "error": "BUSY", "times": 2}])
    device = r.device
    assert device.configuration == 0
    for _ in range(2):
        with pytest.raises(UsbError) as caught:
            r.usb.open(device)
        assert (caught.value.kind, caught.value.step) == ("BUSY", "claim")
    pipe = r.usb.open(device)
    assert pipe is not None
    assert r.metric("set_configuration") == 1
    pipe.close()


def test_a_device_that_got_its_configuration_meanwhile_is_left_alone(rig: Callable[..., Rig]) -> None:
    r = rig({"start_as": "accessory"})
    outdated = msgspec.structs.replace(r.device, configuration=0)
    pipe = r.usb.open(outdated)
    assert pipe is not None
    assert r.metric("set_configuration") == 0
    pipe.close()


def test_bytes_go_both_ways(rig: Callable[..., Rig]) -> None:
    r = rig({"start_as": "accessory", "app": "known"})
    pipe = r.open()
    assert pipe.read(50) is None
    assert pipe.write(b'{"disconnect":true}\n', 1000) == 20
    received = b""
    while b"\n" not in received:
        received += pipe.read(3000) or b""
    assert b"subscribe" in received
    assert r.metric("in_read_bytes") == [16384]
    pipe.close()
    pipe.close()


def test_a_phone_that_does_not_read_takes_nothing(rig: Callable[..., Rig]) -> None:
    r = rig({"start_as": "accessory", "app": "closed"})
    pipe = r.open()
    assert pipe.write(b"\n", 50) == 0
    pipe.close()


def test_bytes_of_a_read_that_timed_out_are_kept(rig: Callable[..., Rig]) -> None:
    r = rig({"start_as": "accessory"}, [{"op": "read", "error": "TIMEOUT", "moved": 30}])
    pipe = r.open()
    r.bus.do("app_lines", count=5, bytes=70)
    data = b""
    while data.count(b"\n") < 5:
        data += pipe.read(1000) or b""
    assert len(data) == 5 * 70
    pipe.close()


@pytest.mark.parametrize("kind", ["PIPE", "IO", "OVERFLOW", "NO_DEVICE", "NO_MEM"])
def test_errors_of_transfers(rig: Callable[..., Rig], kind: str) -> None:
    inject = [{"op": "read", "error": kind}, {"op": "write", "error": kind}]
    pipe = rig({"start_as": "accessory"}, inject).open()
    with pytest.raises(UsbError) as read:
        pipe.read(50)
    with pytest.raises(UsbError) as written:
        pipe.write(b"\n", 50)
    assert (read.value.kind, read.value.step) == (kind, "read")
    assert (written.value.kind, written.value.step) == (kind, "write")
    pipe.close()


def test_closing_a_device_that_is_gone(rig: Callable[..., Rig]) -> None:
    r = rig({"start_as": "accessory"})
    pipe = r.open()
    r.bus.do("unplug")
    pipe.close()
    assert r.metric("calls_after_no_device") <= 2


def test_a_reset_is_a_reset(rig: Callable[..., Rig]) -> None:
    r = rig({"start_as": "accessory"})
    pipe = r.open()
    pipe.reset()
    pipe.close()
    assert r.metric("reset") == 1


def test_the_backend_is_loaded_at_the_first_use_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    bus = FakeBus([{}])
    loads: list[int] = []

    def load() -> tuple[object, str]:
        loads.append(threading.get_ident())
        return bus.backend, "system"

    monkeypatch.setattr(adapter, "load_backend", load)
    host = UsbHost()
    assert (loads, host.library) == ([], "")
    bus.do("plug")
    (shown,) = bus.scan()
    host.probe(usb_device(shown), REQUESTS)
    assert (len(loads), host.library) == (1, "system")
    bus.close()


def test_the_system_library_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def get_backend(find_library: Callable[[str], str]) -> object:
        seen.append(find_library("usb-1.0"))
        return "backend"

    monkeypatch.setattr(adapter.usb.backend.libusb1, "get_backend", get_backend)
    assert load_backend() == ("backend", "system")
    assert seen == ["libusb-1.0.so.0"]


def test_the_bundled_library_only_without_a_system_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter.usb.backend.libusb1, "get_backend", lambda find_library: None)
    monkeypatch.setattr(adapter, "_SYSTEM_LIBRARY", "no-such-library.so")
    monkeypatch.setattr(adapter, "_bundled_backend", lambda: "bundled backend")
    assert load_backend() == ("bundled backend", "bundled")


def test_a_library_that_does_not_start_names_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter.usb.backend.libusb1, "get_backend", lambda find_library: None)
    monkeypatch.setattr(adapter, "_system_library_exists", lambda: True)
    with pytest.raises(UsbError, match="AF_NETLINK") as caught:
        load_backend()
    assert caught.value.kind == "NO_BACKEND"


def test_unknown_codes_stay_visible() -> None:
    assert adapter._converted(usb_error("OTHER"), "read", "1-1").kind == "OTHER"
