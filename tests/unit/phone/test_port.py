"""The port machine on a virtual clock, driven row by row."""

from typing import Any

import pytest

from aoabridge.errors import UsbError
from aoabridge.phone.actions import (
    Action,
    ClearHalts,
    Close,
    Open,
    PortSettings,
    PortState,
    Probe,
    Reopen,
    Reset,
)
from aoabridge.phone.aoa import UsbDevice, UsbInterface
from aoabridge.phone.filter import DeviceRules, decide
from aoabridge.phone.port import PortMachine

MTP = (UsbInterface(0, 6, 1, 1),)
FITTING = (UsbInterface(0, 0xFF, 0xFF, 0),)


def native(devnum: int = 5, **more: Any) -> UsbDevice:
    return UsbDevice("1-1", 0x04E8, 0x6860, 1, devnum, interfaces=more.pop("interfaces", MTP), **more)


def accessory(devnum: int = 6, **more: Any) -> UsbDevice:
    return UsbDevice("1-1", 0x18D1, 0x2D00, 1, devnum, interfaces=more.pop("interfaces", FITTING), **more)


def error(kind: str, step: str = "open") -> UsbError:
    return UsbError(kind, errno=None, kind=kind, step=step, port="1-1")


class Bench:
    """A machine with its clock; collects what it asked for."""

    def __init__(self, rules: DeviceRules = DeviceRules(), *, reset_stuck: bool = False) -> None:  # noqa: B008 (frozen)
        self.machine = PortMachine("1-1", lambda d: decide(d, rules, d.serial), PortSettings(reset_stuck=reset_stuck))
        self.now = 100.0
        self.actions: list[Action] = []
        self.starts: list[float] = []

    @property
    def state(self) -> PortState:
        return self.machine.state

    def take(self) -> list[Action]:
        actions, self.actions = self.actions, []
        return actions

    def scan(self, device: UsbDevice | None, after: float = 0.0) -> list[Action]:
        self.wait(after)
        self.actions += self.machine.on_scan(device, self.now)
        return self.take()

    def result(self, step: str, result: Any, after: float = 0.0) -> list[Action]:
        self.now += after
        self.actions += self.machine.on_result(step, result, self.now)
        if step == "probe" and isinstance(result, int) and result:
            self.starts.append(self.now)
        return self.take()

    def wait(self, seconds: float) -> None:
        """Lets time pass, ticking at every deadline; what was asked for stays to be taken."""
        end = self.now + seconds
        while (due := self.machine.deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self.actions += self.machine.on_tick(self.now)
        self.now = end

    def link(self, *, adopted: bool = False) -> None:
        """Plugs a phone in and links it."""
        if not adopted:
            self.scan(native())
            self.result("probe", 2)
            self.scan(None, 0.02)
        assert [type(a) for a in self.scan(accessory(), 0.3)] == [Open]
        assert self.result("open", 1) == []
        assert self.state is PortState.LINKED

    def live(self) -> None:
        self.machine.on_accepted(self.now)
        self.machine.on_received()
        self.machine.on_link_status(self.now, live=True)
        assert self.state is PortState.LIVE


def test_from_plug_to_live() -> None:
    bench = Bench()
    assert bench.scan(native()) == [Probe(native())]
    assert bench.state is PortState.PROBING
    assert bench.result("probe", 2) == []
    assert (bench.state, bench.machine.aoa_version) == (PortState.SWITCHING, 2)
    assert bench.scan(None) == []
    assert bench.scan(accessory(), 1.0) == [Open(accessory(), 0, adopted=False)]
    assert bench.result("open", 1) == []
    bench.live()
    bench.machine.on_link_status(bench.now, live=True, stale=True)
    assert bench.state is PortState.STALE
    bench.machine.on_link_status(bench.now, live=True)
    assert bench.state is PortState.LIVE


def test_adoption_asks_nothing() -> None:
    bench = Bench()
    assert bench.scan(accessory()) == [Open(accessory(), 0, adopted=True)]


@pytest.mark.parametrize("lacking", [{"configuration": 0, "interfaces": ()}, {"interfaces": ()}])
def test_a_device_that_the_kernel_still_configures_is_opened_once_it_is_complete(lacking: dict[str, Any]) -> None:
    bench = Bench()
    assert bench.scan(accessory(**lacking)) == []
    assert bench.machine.wants_scans
    assert bench.scan(accessory(), 0.1) == [Open(accessory(), 0, adopted=True)]
    assert not bench.machine.wants_scans


def test_a_device_that_stays_unconfigured_is_opened_after_a_moment() -> None:
    bench = Bench()
    bare = accessory(configuration=0, interfaces=())
    assert bench.scan(bare) == []
    assert bench.scan(bare, 0.1) == []
    bench.wait(0.2)
    assert bench.take() == [Open(bare, 0, adopted=True)]


def test_scans_during_an_attempt_change_nothing() -> None:
    bench = Bench()
    bench.scan(native())
    for _ in range(5):
        assert bench.scan(native()) == []
    bench.result("probe", 1)
    assert bench.scan(native()) == []
    assert bench.starts == [100.0]


def test_the_accessory_may_be_there_before_start_returns() -> None:
    bench = Bench()
    bench.scan(native())
    bench.scan(None)
    assert bench.scan(accessory(), 1.0) == []
    assert bench.result("probe", 2, 0.5) == [Open(accessory(), 0, adopted=False)]


@pytest.mark.parametrize("again", [1, 2])
def test_native_appearances_during_the_switch_are_ignored(again: int) -> None:
    bench = Bench()
    bench.scan(native())
    bench.result("probe", 2)
    for number in range(again):
        assert bench.scan(None, 0.5) == []
        assert bench.scan(native(10 + number), 0.5) == []
    bench.scan(None, 0.5)
    assert isinstance(bench.scan(accessory(20), 0.5)[0], Open)
    assert len(bench.starts) == 1


def test_a_replug_during_the_switch_starts_over_once_the_phone_stays_native() -> None:
    bench = Bench()
    bench.scan(native())
    bench.result("probe", 2)
    bench.scan(None)
    assert bench.scan(native(7), 3.5) == []
    bench.wait(2.9)
    assert bench.take() == []
    bench.wait(0.2)
    assert bench.take() == [Probe(native(7))]


def test_a_phone_that_never_switches_is_asked_at_0_30_90_210_510() -> None:
    bench = Bench()
    assert bench.scan(native()) == [Probe(native())]
    for _ in range(4):
        bench.result("probe", 2)
        bench.wait(9.9)
        assert bench.state is PortState.SWITCHING
        bench.wait(0.2)
        assert bench.state is PortState.COOLDOWN
        while not bench.actions:
            bench.wait(1.0)
        assert bench.take() == [Probe(native())]
    bench.result("probe", 2)
    assert [t - 100 for t in bench.starts] == pytest.approx([0, 30, 90, 210, 510], abs=1.0)


def test_unplugged_during_the_switch_and_plugged_in_again_later() -> None:
    bench = Bench()
    bench.scan(native())
    bench.result("probe", 2)
    bench.scan(None)
    bench.wait(12)
    assert bench.state is PortState.ABSENT
    assert bench.scan(native(9)) == [Probe(native(9))]


@pytest.mark.parametrize("kind", ["TIMEOUT", "BUSY", "IO", "NO_MEM", "OTHER"])
def test_three_attempts_in_a_burst_then_the_ladder(kind: str) -> None:
    bench = Bench()
    bench.scan(native())
    assert bench.result("probe", error(kind, "get_protocol")) == []
    bench.wait(0.5)
    assert bench.take() == [Probe(native())]
    bench.result("probe", error(kind, "send_string:3"))
    bench.wait(1.0)
    assert bench.take() == [Probe(native())]
    bench.result("probe", error(kind, "get_protocol"))
    assert bench.state is PortState.COOLDOWN
    bench.wait(29.9)
    assert bench.take() == []
    bench.wait(0.2)
    assert bench.take() == [Probe(native())]


def test_a_stall_in_the_strings_is_a_failed_attempt_not_a_no() -> None:
    bench = Bench()
    bench.scan(native())
    bench.result("probe", error("PIPE", "send_string:2"))
    assert bench.state is PortState.PROBING


@pytest.mark.parametrize("answer", [0, error("PIPE", "get_protocol"), error("OVERFLOW", "get_protocol")])
def test_a_known_maker_that_refuses_is_asked_again(answer: Any) -> None:
    bench = Bench()
    bench.scan(native())
    for wait in (30, 60, 120, 300, 300):
        bench.result("probe", answer)
        assert bench.state is PortState.NOT_AOA
        bench.wait(wait - 0.1)
        assert bench.take() == []
        bench.wait(0.2)
        assert bench.take() == [Probe(native())]


def test_a_refusal_of_an_allowed_device_is_final_until_a_replug() -> None:
    bench = Bench(DeviceRules(allow=("04e8:*",)))
    bench.scan(native())
    bench.result("probe", error("PIPE", "get_protocol"))
    bench.wait(1000)
    assert bench.take() == []
    bench.scan(None)
    assert bench.scan(native(6), 1.0) == []
    assert bench.state is PortState.NOT_AOA
    bench.scan(None)
    assert bench.scan(native(7), 3.1) == [Probe(native(7))]


@pytest.mark.parametrize("kind", ["ACCESS", "NOT_FOUND", "IO"])
def test_open_is_retried_for_two_seconds_then_quietly(kind: str) -> None:
    bench = Bench()
    bench.scan(native())
    attempts = 0
    while bench.state is not PortState.BLOCKED:
        attempts += 1
        bench.result("probe", error(kind))
        bench.wait(0.1)
    assert 20 <= attempts <= 22
    bench.take()
    bench.wait(4.8)
    assert bench.take() == []
    bench.wait(0.2)
    assert bench.take() == [Probe(native())]
    assert bench.state is PortState.BLOCKED
    bench.result("probe", 2)
    assert bench.state is PortState.SWITCHING


def test_an_open_that_fails_a_few_times_links_all_the_same() -> None:
    bench = Bench()
    bench.scan(accessory())
    for _ in range(5):
        assert bench.result("open", error("ACCESS")) == []
        bench.wait(0.1)
        assert bench.take() == [Open(accessory(), 0, adopted=True)]
    bench.result("open", 1)
    assert bench.state is PortState.LINKED


def test_permission_problems_long_ago_do_not_block_at_once() -> None:
    bench = Bench()
    bench.scan(native())
    bench.result("probe", error("ACCESS"))
    bench.wait(0.1)
    bench.take()
    bench.result("probe", error("TIMEOUT", "get_protocol"), 10)
    bench.wait(1)
    bench.take()
    bench.result("probe", error("ACCESS"))
    assert bench.state is PortState.PROBING


def test_a_claim_held_by_another_process_backs_off() -> None:
    bench = Bench()
    bench.scan(accessory())
    for wait in (0.2, 0.5, 1.0, 2.0, 5.0, 5.0):
        bench.result("open", error("BUSY", "claim"))
        assert bench.state is PortState.OPENING
        bench.wait(wait - 0.05)
        assert bench.take() == []
        bench.wait(0.1)
        assert bench.take() == [Open(accessory(), 0, adopted=True)]
    assert bench.machine.busy_since == 100.0


def test_no_fitting_interface_is_tried_again_later() -> None:
    bench = Bench()
    bench.scan(accessory())
    bench.result("open", 0)
    assert (bench.state, bench.machine.reason) == (PortState.REOPEN, "no accessory interface")
    bench.wait(0.5)
    assert bench.take() == [Open(accessory(), 0, adopted=True)]


def test_a_link_that_fails_is_closed_before_it_is_opened_again() -> None:
    bench = Bench()
    bench.link()
    for wait in (0.5, 1.0, 2.0, 5.0, 5.0):
        assert bench.result("link", error("PIPE", "read")) == [Close()]
        assert bench.state is PortState.REOPEN
        bench.wait(wait)
        assert bench.take() == []  # the close is still under way
        opened = bench.result("close", None)
        assert opened == [Open(accessory(), 0, adopted=True)]
        bench.result("open", 1)


def test_unplug_seen_by_the_link_first() -> None:
    bench = Bench()
    bench.link()
    bench.live()
    assert bench.result("link", error("NO_DEVICE", "read")) == [Close()]
    assert bench.state is PortState.ABSENT
    assert bench.result("link", error("NO_DEVICE", "write")) == []
    bench.result("close", None)
    assert bench.scan(accessory(), 0.05) == []  # sysfs is late
    assert bench.state is PortState.ABSENT
    assert bench.scan(None, 0.1) == []


def test_unplug_seen_by_the_scan_first() -> None:
    bench = Bench()
    bench.link()
    bench.live()
    assert bench.scan(None, 10) == [Close()]
    assert bench.state is PortState.ABSENT
    assert bench.machine.was_live


def test_a_phone_that_leaves_by_itself_waits_longer_every_time() -> None:
    bench = Bench()
    bench.link()
    devnum = 10
    for wait in (5, 20, 60, 120, 300, 300, 300, 300):
        bench.live()
        bench.result("link", error("NO_DEVICE", "read"))
        bench.result("close", None)
        ended = bench.now
        assert bench.scan(native(devnum), 0.7) == []
        assert bench.state is PortState.COOLDOWN
        while not bench.actions:
            bench.wait(0.5)
        assert bench.now - ended == pytest.approx(wait, abs=0.6)
        assert bench.take() == [Probe(native(devnum))]
        bench.result("probe", 2)
        bench.scan(None, 0.1)
        bench.scan(accessory(devnum + 1), 0.3)
        bench.result("open", 1)
        devnum += 2
    bench.live()
    bench.result("link", error("NO_DEVICE", "read"))
    bench.result("close", None)
    bench.scan(native(devnum), 0.7)
    bench.wait(5000)
    assert bench.take() == []
    assert bench.machine.retry(bench.now) == [Probe(native(devnum))]


def test_a_long_good_link_forgives_the_flaps() -> None:
    bench = Bench()
    bench.link()
    bench.live()
    bench.scan(None)
    bench.result("close", None)
    bench.scan(native(9), 0.5)
    assert bench.machine.flaps.count == 1
    bench.wait(5)
    bench.take()
    bench.result("probe", 2)
    bench.scan(None, 0.1)
    bench.scan(accessory(10), 0.3)
    bench.result("open", 1)
    bench.live()
    bench.wait(61)
    bench.scan(None)
    bench.result("close", None)
    bench.scan(native(11), 0.5)
    assert bench.machine.flaps.count == 1


def test_a_replug_costs_no_wait() -> None:
    bench = Bench()
    bench.link()
    bench.scan(None, 1)
    bench.result("close", None)
    assert bench.scan(native(9), 3.0) == [Probe(native(9))]


def test_a_replug_that_was_seen_a_little_late_costs_no_wait() -> None:
    bench = Bench()
    bench.link()
    bench.scan(None, 1)
    bench.result("close", None)
    assert bench.scan(native(9), 2.91) == [Probe(native(9))]


def test_an_absence_counts_from_when_the_thread_noticed_it() -> None:
    bench = Bench()
    bench.link()
    bench.wait(1)
    gone_at = bench.now - 0.4  # the loop was busy
    assert bench.machine.on_result("link", error("NO_DEVICE", "read"), bench.now, gone_at) == [Close()]
    bench.result("close", None)
    assert bench.scan(native(9), 2.6) == [Probe(native(9))]


def test_the_wait_for_a_phone_that_left_counts_from_when_the_thread_noticed_it() -> None:
    bench = Bench()
    bench.link()
    bench.wait(1)
    gone_at = bench.now - 0.4
    bench.machine.on_result("link", error("NO_DEVICE", "read"), bench.now, gone_at)
    bench.result("close", None)
    bench.scan(native(9), 0.5)
    assert bench.machine.deadline() == pytest.approx(gone_at + 5)


@pytest.mark.parametrize(("busy_s", "asked"), [(0.3, [Probe(native(9))]), (0.0, [])])
def test_an_absence_counts_between_the_events_and_not_between_the_scans(busy_s: float, asked: list[Action]) -> None:
    bench = Bench()
    bench.link()
    bench.wait(1)
    bench.machine.on_scan(None, bench.now, bench.now - busy_s)
    bench.result("close", None)
    bench.wait(2.8)
    assert bench.machine.on_scan(native(9), bench.now, bench.now - 0.1) == asked


def test_a_phone_that_comes_back_sooner_has_left_by_itself() -> None:
    bench = Bench()
    bench.link()
    bench.scan(None, 1)
    bench.result("close", None)
    assert bench.scan(native(9), 2.8) == []
    assert bench.state is PortState.COOLDOWN


def test_another_phone_costs_no_wait() -> None:
    bench = Bench()
    bench.scan(native(serial="A"))
    bench.result("probe", error("PIPE", "get_protocol"))
    bench.scan(None)
    assert bench.scan(native(9, serial="B"), 0.5) == [Probe(native(9, serial="B"))]


def test_no_byte_accepted_clears_halts_once_then_reopens_once() -> None:
    bench = Bench()
    bench.link()
    bench.wait(2.9)
    assert bench.take() == []
    bench.wait(0.2)
    assert bench.take() == [ClearHalts()]
    bench.wait(3)
    assert bench.take() == [Reopen(accessory(), 0)]
    since = bench.machine.since
    assert bench.result("reopen", 1) == []
    assert (bench.state, bench.machine.since) == (PortState.LINKED, since)
    bench.wait(600)
    assert bench.take() == []


def test_a_link_with_an_accepted_byte_is_left_alone() -> None:
    bench = Bench()
    bench.link()
    bench.machine.on_accepted(bench.now)
    bench.wait(600)
    assert bench.take() == []


def test_a_reopening_that_fails_ends_the_link() -> None:
    bench = Bench()
    bench.link()
    bench.wait(6.1)
    bench.take()
    bench.result("reopen", error("IO", "claim"))
    assert bench.state is PortState.REOPEN
    bench.wait(0.6)
    assert bench.take() == [Open(accessory(), 0, adopted=True)]


def test_unplugged_while_the_link_is_reopened() -> None:
    bench = Bench()
    bench.link()
    bench.wait(6.1)
    bench.take()
    assert bench.scan(None) == []
    assert bench.state is PortState.ABSENT
    assert bench.result("reopen", 1) == [Close()]


def test_equal_interfaces_are_tried_in_turn() -> None:
    bench = Bench()
    bench.link()
    bench.result("link", error("IO", "read"))
    bench.wait(1)
    bench.result("close", None)
    bench.result("open", 2)
    turns = []
    for _ in range(8):
        started = bench.now
        while not any(isinstance(a, Close) for a in bench.actions):
            bench.wait(0.5)
        bench.take()
        (opened,) = bench.result("close", None)
        assert isinstance(opened, Open)
        assert opened.adopted
        turns.append((round(bench.now - started), opened.turn))
        bench.result("open", 2)
    assert turns == [(5, 1), (5, 2), (5, 3), (5, 4), (5, 5), (5, 6), (30, 7), (30, 8)]
    bench.machine.on_received()
    bench.wait(100)
    assert not any(isinstance(a, Close) for a in bench.take())


def test_a_stuck_phone_is_reset_only_if_configured_and_once_in_300_s() -> None:
    bench = Bench(reset_stuck=True)
    bench.link(adopted=True)
    bench.wait(6.1)
    bench.take()
    bench.result("reopen", 1)
    bench.wait(8.8)
    assert bench.take() == []
    bench.wait(0.2)
    assert bench.take() == [Reset()]
    bench.scan(None, 0.2)
    bench.result("reset", None)
    assert bench.scan(native(9), 0.5) == [Probe(native(9))]
    assert not bench.machine.is_flapping(bench.now)
    bench.result("probe", 2)
    bench.scan(None, 0.1)
    bench.scan(accessory(10), 0.3)
    bench.result("open", 1)
    bench.wait(6.1)
    bench.take()
    bench.result("reopen", 1)
    bench.wait(250)
    assert Reset() not in bench.take()
    bench.wait(50)
    assert Reset() in bench.take()


def test_a_phone_that_survives_its_reset_is_opened_again() -> None:
    bench = Bench()
    bench.link()
    assert bench.machine.reset(bench.now) == [Reset()]
    bench.result("reset", None)
    bench.wait(2.1)
    assert bench.take() == [Open(accessory(), 0, adopted=True)]


def test_an_open_that_comes_too_late_is_closed_again() -> None:
    bench = Bench()
    bench.scan(accessory())
    bench.scan(None)
    assert bench.result("open", 1) == [Close()]
    assert bench.state is PortState.ABSENT


def test_an_open_of_the_enumeration_before_is_not_the_link() -> None:
    bench = Bench()
    bench.scan(accessory(6))
    bench.scan(accessory(7))
    assert bench.result("open", 1) == [Close()]
    assert bench.result("close", None) == [Open(accessory(7), 0, adopted=True)]


def test_a_device_without_interfaces_is_looked_at_twice() -> None:
    bench = Bench()
    assert bench.scan(native(interfaces=())) == []
    assert bench.machine.wants_scans
    assert bench.scan(native(interfaces=(UsbInterface(0, 8, 6, 0x50),)), 0.1) == []
    bench.wait(1)
    assert bench.take() == []
    assert bench.state is PortState.IGNORED


def test_a_device_that_stays_without_interfaces_is_probed() -> None:
    bench = Bench()
    bench.scan(native(interfaces=()))
    bench.wait(0.5)
    assert bench.take() == [Probe(native(interfaces=()))]


def test_an_ignored_device_is_judged_again() -> None:
    bench = Bench()
    bench.scan(native(authorized=False))
    assert bench.state is PortState.IGNORED
    assert bench.scan(native(authorized=True), 1.0) == [Probe(native())]


def test_three_losses_in_a_minute_are_flapping_until_a_stable_link() -> None:
    bench = Bench()
    for devnum in (10, 12, 14):
        bench.scan(accessory(devnum), 3.5)
        bench.result("open", 1)
        bench.machine.on_accepted(bench.now)
        assert not bench.machine.is_flapping(bench.now)
        bench.scan(None, 1)
        bench.result("close", None)
    assert bench.machine.is_flapping(bench.now)
    bench.scan(accessory(20), 3.5)
    bench.result("open", 1)
    bench.machine.on_accepted(bench.now)
    bench.wait(59)
    assert bench.machine.is_flapping(bench.now)
    bench.wait(2)
    assert not bench.machine.is_flapping(bench.now)


def test_our_own_switch_is_no_loss() -> None:
    bench = Bench()
    bench.link()
    assert bench.machine.losses.count == 0


def test_blocked_goes_away_with_the_device() -> None:
    bench = Bench()
    bench.scan(accessory())
    while bench.state is not PortState.BLOCKED:
        bench.result("open", error("ACCESS"))
        bench.wait(0.1)
    bench.scan(None)
    assert bench.state is PortState.ABSENT


def test_out_of_memory_is_remembered() -> None:
    bench = Bench()
    bench.link()
    bench.result("link", error("NO_MEM", "read"))
    assert bench.machine.out_of_memory


def test_a_manual_retry_cannot_break_the_cap_of_twenty() -> None:
    bench = Bench()
    devnum = 10
    bench.scan(native(devnum))
    while bench.now < 390:
        if bench.state is PortState.PROBING:
            bench.result("probe", 2)
            bench.scan(None, 0.1)
            bench.scan(accessory(devnum + 1), 0.3)
            bench.result("open", 1)
            bench.scan(None, 0.1)
            bench.result("close", None)
            devnum += 2
            bench.scan(native(devnum), 0.3)
        bench.actions += bench.machine.retry(bench.now)
        bench.wait(1)
    assert len(bench.starts) == 20
    assert bench.state is PortState.COOLDOWN
