"""Phones that come, go, switch and are plugged in again."""

from typing import Any

import pytest

from aoabridge.phone.actions import Action, Close, Open, PortState, Probe, Reset
from aoabridge.phone.aoa import UsbInterface
from aoabridge.phone.filter import DeviceRules
from fakes.port_bench import PortBench, accessory, error, native


@pytest.mark.parametrize("lacking", [{"configuration": 0, "interfaces": ()}, {"interfaces": ()}])
def test_a_device_that_the_kernel_still_configures_is_opened_once_it_is_complete(lacking: dict[str, Any]) -> None:
    bench = PortBench()
    assert bench.scan(accessory(**lacking)) == []
    assert bench.machine.wants_scans
    assert bench.scan(accessory(), 0.1) == [Open(accessory(), 0, adopted=True)]
    assert not bench.machine.wants_scans


def test_a_device_that_stays_unconfigured_is_opened_after_a_moment() -> None:
    bench = PortBench()
    bare = accessory(configuration=0, interfaces=())
    assert bench.scan(bare) == []
    assert bench.scan(bare, 0.1) == []
    bench.wait(0.2)
    assert bench.take() == [Open(bare, 0, adopted=True)]


@pytest.mark.parametrize("again", [1, 2])
def test_native_appearances_during_the_switch_are_ignored(again: int) -> None:
    bench = PortBench()
    bench.scan(native())
    bench.result("probe", 2)
    for number in range(again):
        assert bench.scan(None, 0.5) == []
        assert bench.scan(native(10 + number), 0.5) == []
    bench.scan(None, 0.5)
    assert isinstance(bench.scan(accessory(20), 0.5)[0], Open)
    assert len(bench.starts) == 1


def test_a_replug_during_the_switch_starts_over_once_the_phone_stays_native() -> None:
    bench = PortBench()
    bench.scan(native())
    bench.result("probe", 2)
    bench.scan(None)
    assert bench.scan(native(7), 3.5) == []
    bench.wait(2.9)
    assert bench.take() == []
    bench.wait(0.2)
    assert bench.take() == [Probe(native(7))]
    bench.result("probe", 2)
    bench.wait(10)
    assert bench.state is PortState.COOLDOWN  # that hand is used up


def test_unplugged_during_the_switch_and_plugged_in_again_later() -> None:
    bench = PortBench()
    bench.scan(native())
    bench.result("probe", 2)
    bench.scan(None)
    bench.wait(12)
    assert bench.state is PortState.ABSENT
    assert bench.scan(native(9)) == [Probe(native(9))]


def test_a_phone_that_leaves_by_itself_waits_longer_every_time() -> None:
    bench = PortBench()
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
    bench = PortBench()
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
    bench = PortBench()
    bench.link()
    bench.scan(None, 1)
    bench.result("close", None)
    assert bench.scan(native(9), 3.0) == [Probe(native(9))]


def test_a_replug_that_was_seen_a_little_late_costs_no_wait() -> None:
    bench = PortBench()
    bench.link()
    bench.scan(None, 1)
    bench.result("close", None)
    assert bench.scan(native(9), 2.91) == [Probe(native(9))]


def test_an_absence_counts_from_when_the_thread_noticed_it() -> None:
    bench = PortBench()
    bench.link()
    bench.wait(1)
    gone_at = bench.now - 0.4  # the loop was busy
    assert bench.machine.on_result("link", error("NO_DEVICE", "read"), bench.now, gone_at) == [Close()]
    bench.result("close", None)
    assert bench.scan(native(9), 2.6) == [Probe(native(9))]


def test_the_wait_for_a_phone_that_left_counts_from_when_the_thread_noticed_it() -> None:
    bench = PortBench()
    bench.link()
    bench.wait(1)
    gone_at = bench.now - 0.4
    bench.machine.on_result("link", error("NO_DEVICE", "read"), bench.now, gone_at)
    bench.result("close", None)
    bench.scan(native(9), 0.5)
    assert bench.machine.deadline() == pytest.approx(gone_at + 5)


@pytest.mark.parametrize(("busy_s", "asked"), [(0.3, [Probe(native(9))]), (0.0, [])])
def test_an_absence_counts_between_the_events_and_not_between_the_scans(busy_s: float, asked: list[Action]) -> None:
    bench = PortBench()
    bench.link()
    bench.wait(1)
    bench.machine.on_scan(None, bench.now, bench.now - busy_s)
    bench.result("close", None)
    bench.wait(2.8)
    assert bench.machine.on_scan(native(9), bench.now, bench.now - 0.1) == asked


def test_a_phone_that_comes_back_sooner_has_left_by_itself() -> None:
    bench = PortBench()
    bench.link()
    bench.scan(None, 1)
    bench.result("close", None)
    assert bench.scan(native(9), 2.8) == []
    assert bench.state is PortState.COOLDOWN


def test_another_phone_costs_no_wait() -> None:
    bench = PortBench()
    bench.scan(native(serial="A"))
    bench.result("probe", error("PIPE", "get_protocol"))
    bench.scan(None)
    assert bench.scan(native(9, serial="B"), 0.5) == [Probe(native(9, serial="B"))]


def test_a_device_without_interfaces_is_looked_at_twice() -> None:
    bench = PortBench()
    assert bench.scan(native(interfaces=())) == []
    assert bench.machine.wants_scans
    assert bench.scan(native(interfaces=(UsbInterface(0, 8, 6, 0x50),)), 0.1) == []
    bench.wait(1)
    assert bench.take() == []
    assert bench.state is PortState.IGNORED


def test_a_device_that_stays_without_interfaces_is_probed() -> None:
    bench = PortBench()
    bench.scan(native(interfaces=()))
    bench.wait(0.5)
    assert bench.take() == [Probe(native(interfaces=()))]


def test_an_ignored_device_is_judged_again() -> None:
    bench = PortBench()
    bench.scan(native(authorized=False))
    assert bench.state is PortState.IGNORED
    assert bench.scan(native(authorized=True), 1.0) == [Probe(native())]


def test_three_losses_in_a_minute_are_flapping_until_a_stable_link() -> None:
    bench = PortBench()
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
    bench = PortBench()
    bench.link()
    assert bench.machine.losses.count == 0


# Times that decide.


@pytest.mark.parametrize(("after_s", "opened"), [(0.29, []), (0.3, [Open(accessory(interfaces=()), 0, adopted=True)])])
def test_what_is_not_there_yet_gets_three_tenths_of_a_second(after_s: float, opened: list[Action]) -> None:
    bench = PortBench()
    bench.scan(accessory(interfaces=()))
    bench.wait(after_s)
    assert bench.take() == opened


def test_interfaces_of_a_device_without_a_configuration_are_not_complete() -> None:
    bench = PortBench()
    assert bench.scan(accessory(configuration=0)) == []
    assert bench.machine.wants_scans


def test_nobody_waits_for_a_device_that_has_left() -> None:
    bench = PortBench()
    bench.scan(accessory(interfaces=()))
    bench.scan(None, 0.1)
    assert not bench.machine.wants_scans


@pytest.mark.parametrize(("after_s", "gone"), [(9.9, PortState.SWITCHING), (10.0, PortState.ABSENT)])
def test_a_phone_that_is_switching_has_ten_seconds_also_while_it_is_away(after_s: float, gone: PortState) -> None:
    bench = PortBench()
    bench.scan(native())
    bench.result("probe", 2)
    bench.scan(None, 0.2)
    bench.wait(after_s - 0.2)
    assert bench.state is gone


@pytest.mark.parametrize(("after_s", "state"), [(9.9, PortState.SWITCHING), (10.0, PortState.COOLDOWN)])
def test_a_phone_that_stays_native_has_ten_seconds(after_s: float, state: PortState) -> None:
    bench = PortBench()
    bench.scan(native())
    bench.result("probe", 2)
    bench.wait(after_s)
    assert bench.state is state


def test_a_slow_switch_is_no_replug() -> None:
    bench = PortBench()
    bench.scan(native())
    bench.result("probe", 2)
    bench.scan(None, 0.1)
    assert [type(a) for a in bench.scan(accessory(), 9.5)] == [Open]


def test_a_phone_that_leaves_again_after_a_replug_has_the_rest_of_the_ten_seconds() -> None:
    bench = PortBench()
    bench.scan(native())
    bench.result("probe", 2)
    bench.scan(None, 0.1)
    bench.scan(native(7), 3.0)  # a hand, or its own doing: it has until 6.1 s to go on
    bench.scan(None, 1.0)
    bench.wait(3.0)
    assert bench.state is PortState.SWITCHING
    assert [type(a) for a in bench.scan(accessory(8), 0.5)] == [Open]


def test_a_native_phone_that_leaves_during_the_handshake_is_no_loss() -> None:
    bench = PortBench()
    bench.scan(native())
    assert bench.scan(None) == []
    assert bench.machine.losses.count == 0
    assert bench.state is PortState.PROBING  # its answer is still to come


def test_an_ignored_device_that_leaves_is_no_loss() -> None:
    bench = PortBench(DeviceRules(accept="listed"))
    bench.scan(native())
    assert bench.state is PortState.IGNORED
    bench.scan(None)
    assert bench.machine.losses.count == 0


@pytest.mark.parametrize(("after_s", "losses"), [(9.9, 0), (10.1, 1)])
def test_a_phone_that_leaves_soon_after_our_reset_does_so_because_of_it(after_s: float, losses: int) -> None:
    bench = PortBench()
    bench.link()
    assert bench.machine.reset(bench.now) == [Reset()]
    bench.result("reset", None)
    bench.wait(after_s)
    bench.take()
    bench.scan(None)
    assert bench.machine.losses.count == losses


def test_a_phone_that_comes_back_after_our_reset_has_not_left_by_itself() -> None:
    bench = PortBench()
    bench.link()
    bench.scan(None, 1)  # it left
    bench.result("close", None)
    bench.scan(accessory(8), 0.5)  # and came back as what it was
    bench.result("open", 1)
    bench.machine.reset(bench.now)
    bench.result("reset", None)
    bench.scan(None, 0.2)
    assert bench.scan(native(9), 0.5) == [Probe(native(9))]


# What a hand clears, and what only a new enumeration clears.


def test_a_replug_clears_every_ladder_and_what_was_known() -> None:
    bench = PortBench()
    bench.link()
    bench.live()
    machine = bench.machine
    for ladder in (machine.failed_probes, machine.refusals, machine.no_switches, machine.flaps, machine._reopens):
        ladder.climb()
    machine.out_of_memory = True
    bench.scan(None, 1)
    bench.result("close", None)
    assert machine.was_live
    assert machine.aoa_version == 2
    bench.scan(native(9), 3.0)
    ladders = (machine.failed_probes, machine.refusals, machine.no_switches, machine.flaps, machine._reopens)
    assert [ladder.count for ladder in ladders] == [0] * 5
    assert (machine.was_live, machine.out_of_memory, machine.aoa_version) == (False, False, None)


def test_a_hand_is_never_held_up_by_the_cap_of_five() -> None:
    bench = PortBench()
    for number in range(10):
        assert bench.scan(native(10 + number), 3.1) == [Probe(native(10 + number))], number
        bench.result("probe", 2)
        bench.wait(11)
        bench.scan(None)


def test_a_phone_that_switched_has_not_failed_to() -> None:
    bench = PortBench()
    bench.scan(native())
    bench.result("probe", 2)
    bench.wait(30)
    assert bench.machine.no_switches.count == 1
    assert bench.take() == [Probe(native())]
    bench.result("probe", 2)
    bench.scan(accessory(), 1)
    assert bench.machine.no_switches.count == 0


def test_a_new_enumeration_begins_with_the_first_interface_and_no_failed_attempt() -> None:
    bench = PortBench()
    bench.scan(accessory())
    bench.result("open", 2)
    bench.wait(5.1)
    bench.take()
    bench.result("close", None)
    bench.result("open", error("BUSY", "claim"))
    assert bench.machine.busy_since is not None
    assert bench.machine.link.turn == 1
    bench.scan(None)
    assert bench.scan(accessory(8), 1.0) == [Open(accessory(8), 0, adopted=True)]
    assert bench.machine.busy_since is None
