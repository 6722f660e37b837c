"""The link of a port: opened, cured, ended."""

import pytest

from aoabridge.phone.actions import ClearHalts, Close, Open, PortState, Probe, Reopen, Reset
from fakes.port_bench import PortBench, accessory, error, native


def test_no_fitting_interface_is_tried_again_later() -> None:
    bench = PortBench()
    bench.scan(accessory())
    bench.result("open", 0)
    assert (bench.state, bench.machine.reason) == (PortState.REOPEN, "no accessory interface")
    bench.wait(0.5)
    assert bench.take() == [Open(accessory(), 0, adopted=True)]


def test_a_link_that_fails_is_closed_before_it_is_opened_again() -> None:
    bench = PortBench()
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
    bench = PortBench()
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
    bench = PortBench()
    bench.link()
    bench.live()
    assert bench.scan(None, 10) == [Close()]
    assert bench.state is PortState.ABSENT
    assert bench.machine.was_live


def test_no_byte_accepted_clears_halts_once_then_reopens_once() -> None:
    bench = PortBench()
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
    bench = PortBench()
    bench.link()
    bench.machine.on_accepted(bench.now)
    bench.wait(600)
    assert bench.take() == []


def test_a_reopening_that_fails_ends_the_link() -> None:
    bench = PortBench()
    bench.link()
    bench.wait(6.1)
    bench.take()
    bench.result("reopen", error("IO", "claim"))
    assert bench.state is PortState.REOPEN
    bench.wait(0.6)
    assert bench.take() == [Open(accessory(), 0, adopted=True)]


def test_unplugged_while_the_link_is_reopened() -> None:
    bench = PortBench()
    bench.link()
    bench.wait(6.1)
    bench.take()
    assert bench.scan(None) == []
    assert bench.state is PortState.ABSENT
    assert bench.result("reopen", 1) == [Close()]


def test_equal_interfaces_are_tried_in_turn() -> None:
    bench = PortBench()
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
    bench = PortBench(reset_stuck=True)
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
    bench = PortBench()
    bench.link()
    assert bench.machine.reset(bench.now) == [Reset()]
    bench.result("reset", None)
    bench.wait(2.1)
    assert bench.take() == [Open(accessory(), 0, adopted=True)]


def test_an_open_that_comes_too_late_is_closed_again() -> None:
    bench = PortBench()
    bench.scan(accessory())
    bench.scan(None)
    assert bench.result("open", 1) == [Close()]
    assert bench.state is PortState.ABSENT


def test_an_open_of_the_enumeration_before_is_not_the_link() -> None:
    bench = PortBench()
    bench.scan(accessory(6))
    bench.scan(accessory(7))
    assert bench.result("open", 1) == [Close()]
    assert bench.result("close", None) == [Open(accessory(7), 0, adopted=True)]


def test_out_of_memory_is_remembered() -> None:
    bench = PortBench()
    bench.link()
    bench.result("link", error("NO_MEM", "read"))
    assert bench.machine.out_of_memory


@pytest.mark.parametrize(("after_s", "adopted"), [(4.7, False), (4.9, True)])
def test_a_switched_phone_that_is_claimed_late_may_have_queued_old_puts(after_s: float, adopted: bool) -> None:
    bench = PortBench()
    bench.scan(native())
    bench.result("probe", 2)
    bench.scan(None, 0.1)
    bench.scan(accessory(), 0.3)
    bench.result("open", error("BUSY", "claim"), after_s)
    bench.wait(0.2)
    assert bench.take() == [Open(accessory(), 0, adopted=adopted)]


def test_a_link_that_fails_again_and_again_waits_longer_until_one_holds() -> None:
    bench = PortBench()
    bench.link()
    for wait_s in (0.5, 1.0, 2.0, 5.0, 5.0):
        bench.result("link", error("IO", "read"), 1.0)
        bench.result("close", None)
        assert bench.machine.deadline() == pytest.approx(bench.now + wait_s)
        bench.wait(wait_s)
        assert bench.take() == [Open(accessory(), 0, adopted=True)]
        bench.result("open", 1)
    bench.machine.on_accepted(bench.now)
    bench.result("link", error("IO", "read"), 60.0)
    bench.result("close", None)
    assert bench.machine.deadline() == pytest.approx(bench.now + 0.5)


@pytest.mark.parametrize(("after_s", "opens"), [(1.9, 0), (2.0, 1)])
def test_a_phone_has_two_seconds_to_leave_after_a_reset(after_s: float, opens: int) -> None:
    bench = PortBench()
    bench.link()
    bench.machine.reset(bench.now)
    bench.result("reset", None)
    bench.wait(after_s)
    assert len(bench.take()) == opens


def test_only_a_link_can_be_reset_and_not_while_something_is_under_way() -> None:
    bench = PortBench()
    assert bench.machine.reset(bench.now) == []
    bench.scan(accessory())
    assert bench.machine.reset(bench.now) == []
    bench.result("open", 1)
    bench.wait(6.1)
    assert [type(a) for a in bench.take()] == [ClearHalts, Reopen]
    assert bench.machine.reset(bench.now) == []
    bench.result("reopen", 1)
    assert bench.machine.reset(bench.now) == [Reset()]


@pytest.mark.parametrize("live", [True, False])
def test_a_valid_line_is_a_good_link_whether_anything_was_accepted_or_not(live: bool) -> None:
    bench = PortBench()
    bench.link()
    bench.machine.on_link_status(bench.now, live=live, valid_line=True)
    assert bench.machine.link.valid_line
    assert bench.state is (PortState.LIVE if live else PortState.LINKED)
    assert bench.machine.was_live is live


def test_what_is_said_of_a_link_that_is_over_changes_nothing() -> None:
    bench = PortBench()
    bench.link()
    bench.result("link", error("IO", "read"))
    bench.machine.on_link_status(bench.now, live=True)
    assert bench.state is PortState.REOPEN
    assert not bench.machine.was_live


def test_a_stale_link_is_live_again_after_a_pong() -> None:
    bench = PortBench()
    bench.link()
    bench.live()
    bench.machine.on_link_status(bench.now, live=True, stale=True)
    assert bench.state is PortState.STALE
    bench.machine.on_link_status(bench.now, live=True)
    assert bench.state is PortState.LIVE


def test_what_failed_last_is_known_until_the_port_links() -> None:
    bench = PortBench()
    bench.scan(accessory())
    bench.result("open", error("BUSY", "claim"))
    fault = bench.machine.fault
    assert fault is not None
    assert fault.kind == "BUSY"
    assert bench.machine.busy_since == bench.now
    bench.wait(0.2)
    bench.result("open", 1)
    assert bench.machine.fault is None
    assert bench.machine.busy_since is None


def test_another_interface_is_no_other_link() -> None:
    bench = PortBench()
    bench.scan(accessory())
    bench.result("open", 2)
    bench.wait(5.1)
    bench.result("close", None)
    bench.result("open", 2)
    assert bench.machine.links == 1
    bench.result("link", error("IO", "read"), 0.1)
    bench.result("close", None)
    bench.wait(0.5)
    bench.result("open", 2)
    assert bench.machine.links == 2
