"""The backend form of the emulated phone under real pyusb."""

import pytest
import usb.core

from fakes.bus import FakeBus
from rig.fault_script import PHONE, run


@pytest.fixture
def fault_results():
    bus = FakeBus([PHONE])
    bus.do("plug")
    yield run(bus.backend, bus.do)
    bus.close()


def test_fault_script_has_the_right_results(fault_results):
    assert {name: fault_results[name][0] for name in ("timeout", "stall", "babble", "hung_control", "claim_held")} == {
        "timeout": 110,
        "stall": 32,
        "babble": 75,
        "hung_control": 110,
        "claim_held": 16,
    }
    assert 49 <= fault_results["timeout"][1] < 500
    assert 299 <= fault_results["hung_control"][1] < 1000
    assert fault_results["whole_packets"] == [True, 513]
    assert fault_results["round_trip"] is True
    assert fault_results["unplug"][0] == 19
    assert [errno for errno, _ in fault_results["after_unplug"]] == [19, 19, 19]


def test_injected_results_come_at_the_named_call():
    bus = FakeBus([{"start_as": "accessory"}], [{"op": "read", "error": "OTHER", "after": 1, "times": 2}])
    bus.do("plug")
    device = usb.core.find(backend=bus.backend)
    outcomes = []
    for _ in range(4):
        try:
            device.read(0x81, 16384, 10)
        except usb.core.USBError as error:
            outcomes.append(error.backend_error_code)
    assert outcomes == [-7, -99, -99, -7]
    bus.close()


def test_killed_host_leaves_a_free_phone_to_the_next():
    bus = FakeBus([{"start_as": "accessory"}])
    bus.do("plug")
    first = usb.core.find(backend=bus.backend)
    first.write(0x01, b"\n", 100)
    bus.kill_host()
    with pytest.raises(usb.core.USBError):
        first.write(0x01, b"\n", 100)
    second = usb.core.find(backend=bus.backend)
    assert second.write(0x01, b"\n", 100) == 1
    assert bus.metrics()["p1"]["claims"] == 2
    bus.close()


def test_device_numbers_are_those_of_a_bus_however_often_a_phone_is_plugged_in():
    """A real bus has 127; libusb keeps 8 bits and takes one phone for the other beyond them."""
    bus = FakeBus([{"at": "1-1"}, {"at": "1-2", "name": "p2"}])
    bus.do("plug", phone="p2")
    seen = []
    for _ in range(300):
        bus.do("plug")
        numbers = {item.address for item in usb.core.find(find_all=True, backend=bus.backend)}
        assert len(numbers) == 2
        seen.append(numbers)
        bus.do("unplug")
    bus.close()
    assert set().union(*seen) == set(range(2, 128))
