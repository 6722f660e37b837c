"""The port machine on a virtual clock, driven row by row."""

from typing import Any

import pytest

from aoabridge.phone.actions import Action, Open, PortState, Probe
from aoabridge.phone.filter import DeviceRules
from fakes.port_bench import PortBench, accessory, error, native


def test_from_plug_to_live() -> None:
    bench = PortBench()
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
    bench = PortBench()
    assert bench.scan(accessory()) == [Open(accessory(), 0, adopted=True)]


def test_scans_during_an_attempt_change_nothing() -> None:
    bench = PortBench()
    bench.scan(native())
    for _ in range(5):
        assert bench.scan(native()) == []
    bench.result("probe", 1)
    assert bench.scan(native()) == []
    assert bench.starts == [100.0]


def test_the_accessory_may_be_there_before_start_returns() -> None:
    bench = PortBench()
    bench.scan(native())
    bench.scan(None)
    assert bench.scan(accessory(), 1.0) == []
    assert bench.result("probe", 2, 0.5) == [Open(accessory(), 0, adopted=False)]


def test_a_phone_that_never_switches_is_asked_at_0_30_90_210_510() -> None:
    bench = PortBench()
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


@pytest.mark.parametrize("kind", ["TIMEOUT", "BUSY", "IO", "NO_MEM", "OTHER"])
def test_three_attempts_in_a_burst_then_the_ladder(kind: str) -> None:
    bench = PortBench()
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
    bench = PortBench()
    bench.scan(native())
    bench.result("probe", error("PIPE", "send_string:2"))
    assert bench.state is PortState.PROBING


@pytest.mark.parametrize("answer", [0, error("PIPE", "get_protocol"), error("OVERFLOW", "get_protocol")])
def test_a_known_maker_that_refuses_is_asked_again(answer: Any) -> None:
    bench = PortBench()
    bench.scan(native())
    for wait in (30, 60, 120, 300, 300):
        bench.result("probe", answer)
        assert bench.state is PortState.NOT_AOA
        bench.wait(wait - 0.1)
        assert bench.take() == []
        bench.wait(0.2)
        assert bench.take() == [Probe(native())]


def test_a_refusal_of_an_allowed_device_is_final_until_a_replug() -> None:
    bench = PortBench(DeviceRules(allow=("04e8:*",)))
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
    bench = PortBench()
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
    bench = PortBench()
    bench.scan(accessory())
    for _ in range(5):
        assert bench.result("open", error("ACCESS")) == []
        bench.wait(0.1)
        assert bench.take() == [Open(accessory(), 0, adopted=True)]
    bench.result("open", 1)
    assert bench.state is PortState.LINKED


def test_permission_problems_long_ago_do_not_block_at_once() -> None:
    bench = PortBench()
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
    bench = PortBench()
    bench.scan(accessory())
    for wait in (0.2, 0.5, 1.0, 2.0, 5.0, 5.0):
        bench.result("open", error("BUSY", "claim"))
        assert bench.state is PortState.OPENING
        bench.wait(wait - 0.05)
        assert bench.take() == []
        bench.wait(0.1)
        assert bench.take() == [Open(accessory(), 0, adopted=True)]
    assert bench.machine.busy_since == 100.0


def test_blocked_goes_away_with_the_device() -> None:
    bench = PortBench()
    bench.scan(accessory())
    while bench.state is not PortState.BLOCKED:
        bench.result("open", error("ACCESS"))
        bench.wait(0.1)
    bench.scan(None)
    assert bench.state is PortState.ABSENT


def test_a_manual_retry_cannot_break_the_cap_of_twenty() -> None:
    bench = PortBench()
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


def test_a_retry_by_hand_starts_every_ladder_over() -> None:
    bench = PortBench()
    bench.scan(native())
    for wait_s in (30.0, 60.0):
        bench.result("probe", 0)
        assert bench.machine.deadline() == pytest.approx(bench.now + wait_s)
        bench.wait(wait_s)
        bench.take()
    bench.result("probe", 0)
    assert bench.machine.retry(bench.now) == [Probe(native())]
    bench.result("probe", 0)
    assert bench.machine.deadline() == pytest.approx(bench.now + 30)


@pytest.mark.parametrize(("retried", "asked"), [(True, [Probe(native(9))]), (False, [])])
def test_a_retry_by_hand_holds_for_a_phone_that_is_just_away(retried: bool, asked: list[Action]) -> None:
    bench = PortBench()
    bench.scan(native())
    bench.result("probe", 0)
    bench.scan(None, 1)
    if retried:
        assert bench.machine.retry(bench.now) == []
    assert bench.scan(native(9), 1) == asked


def test_a_retry_by_hand_does_not_wait_for_a_permission() -> None:
    bench = PortBench()
    bench.scan(native())
    bench.result("probe", error("ACCESS"))
    for _ in range(25):
        bench.wait(0.1)
        if bench.take():
            bench.result("probe", error("ACCESS"))
    assert bench.state is PortState.BLOCKED
    assert bench.machine.retry(bench.now) == [Probe(native())]


def test_a_handshake_that_works_clears_what_failed_before() -> None:
    bench = PortBench()
    bench.scan(native())
    bench.result("probe", 0)
    for _ in range(3):
        bench.wait(31)
        assert bench.take() == [Probe(native())]
        bench.result("probe", error("TIMEOUT", "send_string:0"))
    assert (bench.machine.refusals.count, bench.machine.failed_probes.count) == (1, 1)
    bench.wait(31)
    bench.result("probe", 2)
    assert (bench.machine.refusals.count, bench.machine.failed_probes.count) == (0, 0)


def test_a_refusal_ends_a_burst() -> None:
    bench = PortBench()
    bench.scan(native())
    for wait_s in (0.5, 1.0):
        bench.result("probe", error("TIMEOUT", "get_protocol"))
        bench.wait(wait_s)
    bench.result("probe", 0)
    bench.wait(30)
    bench.take()
    bench.result("probe", error("TIMEOUT", "get_protocol"))
    assert bench.state is PortState.PROBING  # the first of three again
