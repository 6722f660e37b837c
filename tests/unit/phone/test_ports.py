"""The table of ports: identity, names, companion buses, limits, issues."""

from typing import Any

import pytest

from aoabridge.errors import UsbError
from aoabridge.phone.actions import Action, Open, PortState, Probe, Reopen, Reset
from aoabridge.phone.aoa import UsbDevice, UsbInterface
from aoabridge.phone.ports import MAX_REMEMBERED, PORT_ISSUES, DeviceName, DeviceRules, PortTable


def phone(port: str = "1-1", devnum: int = 5, serial: str = "R9PR307K2Q", **more: Any) -> UsbDevice:
    values = {"vendor": 0x04E8, "product": 0x6860, "model": "SM-T500", "interfaces": (UsbInterface(0, 6, 1, 1),)}
    return UsbDevice(port=port, busnum=int(port[0]), devnum=devnum, serial=serial, **{**values, **more})


def accessory(port: str = "1-1", devnum: int = 6, serial: str = "R9PR307K2Q", **more: Any) -> UsbDevice:
    interfaces = (UsbInterface(0, 0xFF, 0xFF, 0),)
    return phone(port, devnum, serial, **{"vendor": 0x18D1, "product": 0x2D00, "interfaces": interfaces, **more})


class Bench:
    def __init__(self, **rules: Any) -> None:
        self.table = PortTable(DeviceRules(**rules))
        self.now = 10.0

    def scan(self, *devices: UsbDevice, after: float = 0.1) -> list[tuple[int, Action]]:
        self.now += after
        return self.table.on_scan(devices, self.now)

    def result(self, port_id: int, step: str, result: Any) -> list[tuple[int, Action]]:
        return self.table.on_result(port_id, step, result, self.now)

    def link(self, port_id: int) -> None:
        self.result(port_id, "open", 1)

    def accessories(self, *devices: UsbDevice, after: float = 0.1) -> None:
        """A scan that shows these phones in accessory mode; links end and begin at once."""
        for port_id, action in self.scan(*devices, after=after):
            self.result(port_id, "open" if isinstance(action, Open) else "close", 1)

    def names(self) -> dict[str, str]:
        return {view.port: view.name for view in self.table.views()}

    def states(self) -> dict[str, PortState]:
        return {view.port: view.state for view in self.table.views()}

    def codes(self) -> list[str]:
        return [code for code, _, _ in self.table.issues(self.now)]


def test_every_phone_has_its_own_machine() -> None:
    bench = Bench()
    actions = bench.scan(phone("1-1", 5, "A1111"), phone("1-2", 6, "B2222"), phone("1-1.3", 7, "C3333"))
    assert [type(action) for _, action in actions] == [Probe, Probe, Probe]
    assert len({port_id for port_id, _ in actions}) == 3
    assert bench.names() == {"1-1": "SM-T500-1111", "1-2": "SM-T500-2222", "1-1.3": "SM-T500-3333"}


def test_a_name_survives_the_switch_and_a_replug() -> None:
    bench = Bench()
    bench.scan(phone())
    bench.result(1, "probe", 2)
    bench.scan()
    bench.scan(accessory(serial="another", model="Accessory"))
    bench.link(1)
    assert bench.names() == {"1-1": "SM-T500-7K2Q"}
    bench.scan()
    bench.result(1, "close", None)
    bench.scan(phone(devnum=9), after=4)
    assert bench.names() == {"1-1": "SM-T500-7K2Q"}


def test_a_phone_takes_its_name_to_another_port() -> None:
    bench = Bench()
    bench.accessories(accessory("1-1"))
    bench.table.machine(1).on_link_status(bench.now, live=True)
    bench.accessories(after=5)
    assert bench.codes() == ["phone-lost"]
    bench.accessories(accessory("1-2", 8), after=5)
    assert bench.names() == {"1-2": "SM-T500-7K2Q"}
    assert bench.codes() == []


def test_two_phones_that_swap_ports_keep_their_names() -> None:
    bench = Bench()
    bench.accessories(accessory("1-1", 5, "A1111"), accessory("1-2", 6, "B2222"))
    bench.accessories(after=5)
    bench.accessories(accessory("1-2", 7, "A1111"), after=1)
    bench.accessories(accessory("1-2", 7, "A1111"), accessory("1-1", 8, "B2222"), after=1)
    assert bench.names() == {"1-2": "SM-T500-1111", "1-1": "SM-T500-2222"}
    assert set(bench.states().values()) == {PortState.LINKED}


def test_equal_serials_are_no_serials_and_never_swap() -> None:
    bench = Bench()
    serial = "0123456789ABCDEF"
    bench.accessories(accessory("1-1", 5, serial), accessory("1-2", 6, serial))
    names = bench.names()
    assert names == {"1-1": "SM-T500-1-1", "1-2": "SM-T500-1-2"}
    assert bench.codes() == ["serial-duplicate"]
    for number in range(20, 60, 2):
        bench.accessories(after=4)
        assert "serial-duplicate" not in bench.codes()
        first, second = ("1-1", "1-2") if number % 3 else ("1-2", "1-1")
        bench.accessories(accessory(first, number, serial), after=4)
        bench.accessories(accessory(first, number, serial), accessory(second, number + 1, serial))
        assert bench.names() == names


def test_a_name_is_not_given_twice() -> None:
    bench = Bench()
    bench.scan(phone("1-1", 5, "AAAA7777"), phone("1-2", 6, "BBBB7777"))
    assert sorted(bench.names().values()) == ["SM-T500-7777", "SM-T500-7777-2"]


def test_odd_models_and_no_serial() -> None:
    bench = Bench()
    bench.scan(phone("1-1.3", 5, "", model="Pixel 7 / ä"), phone("1-2", 6, "", model=""))
    assert bench.names() == {"1-1.3": "Pixel-7-1-1.3", "1-2": "phone-1-2"}


def test_the_configuration_names_by_serial_port_or_both() -> None:
    bench = Bench(
        devices=(
            DeviceName("scout", serial="A1111"),
            DeviceName("left", port="1-2"),
            DeviceName("both", serial="C3333", port="1-3"),
        )
    )
    bench.scan(phone("1-1", 5, "A1111"), phone("1-2", 6, "B2222"), phone("1-3", 7, "C3333"), phone("1-4", 8, "D4444"))
    assert bench.names() == {"1-1": "scout", "1-2": "left", "1-3": "both", "1-4": "SM-T500-4444"}
    bench.scan(after=4)
    bench.scan(phone("1-2", 9, "E5555"), after=1)
    assert bench.names()["1-2"] == "left"
    entry = bench.table.entry(next(v.port_id for v in bench.table.views() if v.port == "1-2"))
    assert entry is not None
    assert entry.name == "left"


@pytest.mark.parametrize(
    ("native", "switched"),
    [
        (phone("1-1", peer="2-1"), accessory("2-1", serial="")),
        (phone("1-1"), accessory("2-1", serial="", peer="1-1")),
        (phone("1-1"), accessory("2-4")),
    ],
    ids=["peer of the native device", "peer of the accessory", "unique serial"],
)
def test_the_accessory_may_come_back_on_the_companion_bus(native: UsbDevice, switched: UsbDevice) -> None:
    bench = Bench()
    bench.scan(native)
    bench.result(1, "probe", 2)
    bench.scan()
    ((port_id, action),) = bench.scan(switched, after=0.5)
    assert port_id == 1
    assert isinstance(action, Open)
    assert not action.adopted
    assert bench.names() == {switched.port: "SM-T500-7K2Q"}
    bench.link(1)
    # It leaves by itself and is native on the first bus again: the same phone, so no new START at once.
    bench.scan(after=20)
    bench.result(1, "close", None)
    assert bench.scan(phone("1-1", 9, peer="2-1"), after=0.6) == []
    assert bench.states() == {"1-1": PortState.COOLDOWN}


def test_an_accessory_on_a_foreign_port_is_another_phone() -> None:
    bench = Bench()
    bench.scan(phone("1-1", 5, "A1111"))
    bench.result(1, "probe", 2)
    bench.scan()
    actions = bench.scan(accessory("1-2", 6, "B2222"))
    assert [(port_id, type(action)) for port_id, action in actions] == [(2, Open)]
    assert bench.states() == {"1-1": PortState.SWITCHING, "1-2": PortState.OPENING}


def test_no_more_phones_than_configured() -> None:
    bench = Bench(max=1)
    assert len(bench.scan(phone("1-1", 5, "A1111"), phone("1-2", 6, "B2222"))) == 1
    assert bench.states() == {"1-1": PortState.PROBING, "1-2": PortState.IGNORED}
    assert "devices.max" in next(v.reason for v in bench.table.views() if v.port == "1-2")
    # The first one may be on its way back for a moment; then its place is free.
    bench.result(1, "probe", UsbError("gone", errno=19, kind="NO_DEVICE", step="get_protocol", port="1-1"))
    assert bench.scan(phone("1-2", 6, "B2222"), after=1) == []
    assert [i for i, _ in bench.scan(phone("1-2", 6, "B2222"), after=3)] == [2]


def test_ignored_devices_take_no_place() -> None:
    bench = Bench(max=1)
    actions = bench.scan(phone("1-1", 5, interfaces=(UsbInterface(0, 8, 6, 0x50),)), phone("1-2", 6, "B2222"))
    assert len(actions) == 1


def test_scans_are_frequent_only_while_a_phone_switches() -> None:
    bench = Bench()
    assert bench.table.scan_interval_s == 3.0
    bench.scan(phone())
    bench.result(1, "probe", 2)
    assert bench.table.scan_interval_s == 0.1
    bench.scan(accessory())
    bench.link(1)
    assert bench.table.scan_interval_s == 3.0


def test_the_next_deadline_is_that_of_the_first_machine() -> None:
    bench = Bench()
    assert bench.table.next_deadline() is None
    bench.scan(accessory("1-1"))
    bench.link(1)
    assert bench.table.next_deadline() == pytest.approx(bench.now + 3)


def blocked(bench: Bench) -> None:
    bench.scan(accessory())
    for _ in range(30):
        bench.result(1, "open", UsbError("no", errno=13, kind="ACCESS", step="open", port="1-1"))
        bench.now += 0.1
        bench.table.on_tick(bench.now)


def busy(bench: Bench) -> None:
    bench.scan(accessory())
    for _ in range(9):
        bench.result(1, "open", UsbError("no", errno=16, kind="BUSY", step="claim", port="1-1"))
        bench.now += 1
        bench.table.on_tick(bench.now)


def unlisted(bench: Bench) -> None:
    bench.scan(phone(vendor=0x0E79, interfaces=(UsbInterface(0, 6, 1, 1), UsbInterface(1, 255, 255, 0))))


def lost(bench: Bench) -> None:
    bench.scan(accessory())
    bench.link(1)
    bench.table.machine(1).on_link_status(bench.now, live=True)
    bench.scan()


def refused(bench: Bench) -> None:
    bench.scan(phone())
    bench.result(1, "probe", 0)


def not_switched(bench: Bench) -> None:
    bench.scan(phone())
    bench.result(1, "probe", 2)
    bench.now += 11
    bench.table.on_tick(bench.now)


def no_memory(bench: Bench) -> None:
    bench.scan(accessory())
    bench.link(1)
    bench.result(1, "link", UsbError("no", errno=12, kind="NO_MEM", step="read", port="1-1"))


def silent(bench: Bench) -> None:
    bench.scan(accessory())
    bench.link(1)
    bench.table.machine(1).on_accepted(bench.now)
    bench.now += 5.1


@pytest.mark.parametrize(
    ("story", "code"),
    [
        (blocked, "usb-permission"),
        (busy, "usb-busy"),
        (unlisted, "usb-unlisted"),
        (lost, "phone-lost"),
        (refused, "phone-refused"),
        (not_switched, "phone-switch"),
        (no_memory, "usb-memory"),
        (silent, "app-silent"),
    ],
)
def test_issues(story: Any, code: str) -> None:
    bench = Bench()
    assert bench.codes() == []
    story(bench)
    (issue,) = bench.table.issues(bench.now)
    assert issue[0] == code
    assert code in PORT_ISSUES
    assert issue[2]["port"] == "1-1"
    bench.scan(after=20)
    bench.scan(after=400)
    assert bench.codes() == (["phone-lost"] if code == "phone-lost" else [])


@pytest.mark.parametrize(("linked_s", "codes"), [(5.0, []), (5.1, ["app-silent"])])
def test_an_app_has_five_seconds_to_speak(linked_s: float, codes: list[str]) -> None:
    bench = Bench()
    bench.accessories(accessory())
    bench.now += linked_s
    assert bench.codes() == codes


@pytest.mark.parametrize(("held_s", "codes"), [(4.9, []), (5.1, ["usb-busy"])])
def test_another_program_may_hold_a_phone_for_five_seconds(held_s: float, codes: list[str]) -> None:
    bench = Bench()
    bench.scan(accessory())
    bench.result(1, "open", UsbError("no", errno=16, kind="BUSY", step="claim", port="1-1"))
    bench.now += held_s
    assert bench.codes() == codes


@pytest.mark.parametrize(("linked_s", "codes"), [(9.9, ["usb-memory"]), (10.0, [])])
def test_memory_is_there_again_once_a_link_has_lasted_ten_seconds(linked_s: float, codes: list[str]) -> None:
    bench = Bench()
    no_memory(bench)
    bench.result(1, "close", None)
    bench.now += 1
    bench.table.on_tick(bench.now)
    bench.link(1)
    bench.table.machine(1).on_link_status(bench.now, live=True)
    bench.now += linked_s
    assert bench.codes() == codes


def test_once_live_silence_is_no_issue() -> None:
    bench = Bench()
    silent(bench)
    bench.table.machine(1).on_link_status(bench.now, live=True)
    bench.now += 60
    assert bench.codes() == []


def test_flapping_is_an_issue() -> None:
    bench = Bench()
    for devnum in (10, 12, 14):
        bench.scan(accessory(devnum=devnum), after=4)
        bench.link(1)
        bench.scan()
        bench.result(1, "close", None)
    assert bench.codes() == ["usb-flapping"]


def test_retry_and_reset_by_name_or_port() -> None:
    bench = Bench()
    refused(bench)
    assert bench.table.retry("nobody", bench.now) == []
    ((_, action),) = bench.table.retry("SM-T500-7K2Q", bench.now)
    assert isinstance(action, Probe)
    bench.result(1, "probe", 0)
    assert len(bench.table.retry("1-1", bench.now)) == 1


def test_new_rules_hold_for_the_next_connection() -> None:
    bench = Bench()
    bench.scan(accessory())
    bench.link(1)
    bench.table.set_rules(DeviceRules(deny=("18d1:*",)))
    bench.scan(accessory())
    assert bench.states() == {"1-1": PortState.LINKED}
    bench.scan()
    bench.result(1, "close", None)
    bench.scan(accessory(devnum=9), after=4)
    assert bench.states() == {"1-1": PortState.IGNORED}


def test_every_link_but_the_first_is_a_reconnect() -> None:
    bench = Bench()
    bench.accessories(accessory())
    assert [view.reconnects for view in bench.table.views()] == [0]
    bench.accessories()
    bench.accessories(accessory(devnum=9), after=5.0)
    bench.accessories()
    assert [view.reconnects for view in bench.table.views()] == [1]


def test_a_device_that_invents_serials_fills_no_memory() -> None:
    bench = Bench(accept="any")
    bench.scan(phone("1-1", 5, "A1111"))
    for number in range(MAX_REMEMBERED + 50):
        twins = [phone(port, 10 + 2 * number + place, f"{number:08}") for place, port in enumerate(("1-2", "1-3"))]
        bench.scan(phone("1-1", 5, "A1111"), *twins)
        bench.result(2, "probe", 0)
        bench.result(3, "probe", 0)
    assert len(bench.table._names._by_key) <= MAX_REMEMBERED
    assert len(bench.table._ambiguous) <= MAX_REMEMBERED
    assert bench.names()["1-1"] == "SM-T500-1111"


@pytest.mark.parametrize("later", [False, True])
def test_a_stuck_phone_may_be_reset_as_soon_as_the_rules_say_so(later: bool) -> None:
    bench = Bench()
    bench.accessories(accessory())
    assert bench.states() == {"1-1": PortState.LINKED}
    bench.table.set_rules(DeviceRules(reset_stuck=later))  # the link stays as it is
    assert bench.states() == {"1-1": PortState.LINKED}
    asked: list[Action] = []
    for _ in range(200):
        bench.now += 0.1
        for port_id, action in bench.table.on_tick(bench.now):
            asked.append(action)
            if isinstance(action, Reopen):
                bench.result(port_id, "reopen", 1)
    assert (Reset() in asked) is later
