"""The life of a link in virtual time: adoption, an app that does not read, the bounds of memory."""

import json

import pytest

from aoabridge.bridge.link import LinkInfo
from aoabridge.values import Unannounced
from fakes.core_rig import CoreRig, subscribe, values


def _info(**more):
    return LinkInfo("phone", 512, **more)


def adopt(rig):
    rig.core.on_link_up(1, _info(adopted=True), rig.now)
    rig.lines()


def test_puts_from_before_are_refused_subscribes_count():
    rig = CoreRig(link=False)
    rig.announce("/a", "int", 1)
    adopt(rig)
    rig.say(b'lf of a line"}', {"key": "/RoboRoute/RunPose", "value": True}, subscribe("/a"))
    lines = rig.lines()
    assert rig.orders() == []
    assert [line["error"]["code"] for line in lines if "error" in line] == ["not-connected"]
    assert values(lines) == [("/a", 1)]
    assert rig.core.links[1].counters["backlog_puts_refused"] == 1
    assert rig.core.links[1].counters["adopt_garbage_lines"] == 1


def test_a_put_begun_before_and_ended_after_the_window_is_refused():
    rig = CoreRig(link=False)
    adopt(rig)
    rig.core.on_link_bytes(1, b'{"x":1}\n{"key":"/x","val', rig.now)
    rig.core.on_link_idle(1, rig.now)
    rig.core.on_link_bytes(1, b'ue":1}\n{"key":"/y","value":2}\n', rig.now)
    assert rig.sets() == [("/y", "int", 2)]


def test_garbage_is_silent_until_the_first_fresh_valid_line():
    rig = CoreRig(link=False)
    adopt(rig)
    rig.say("half", "more garbage")
    rig.core.on_link_idle(1, rig.now)
    rig.say("still garbage")
    assert rig.lines() == []
    rig.say(subscribe("/a"), "now it counts")
    assert [line["error"]["code"] for line in rig.lines()] == ["bad-json"]


def test_the_window_ends_by_itself():
    rig = CoreRig(link=False)
    adopt(rig)
    rig.wait(0.5)
    rig.say({"key": "/x", "value": 1})
    assert rig.sets() == [("/x", "int", 1)]


@pytest.mark.parametrize("subscribes", [True, False])
def test_an_adopted_app_that_does_not_subscribe_is_asked_to_reopen_once(subscribes):
    rig = CoreRig(link=False)
    adopt(rig)
    if subscribes:
        rig.say(subscribe("/a"))
    lines = []
    for _ in range(100):
        rig.wait(0.1)
        lines += rig.lines()
    assert lines.count({"disconnect": True}) == (0 if subscribes else 1)


def test_a_fresh_phone_is_never_asked_to_reopen():
    rig = CoreRig()
    rig.wait(5)
    assert {"disconnect": True} not in rig.lines()


def test_a_phone_that_does_not_read_is_probed_and_then_gets_current_values():
    rig = CoreRig()
    for name in "abc":
        rig.announce(f"/{name}", "int", 0)
    rig.say(subscribe("/a", "/b", "/c"))
    rig.lines()
    rig.update("/a", 1)
    assert rig.core.take_bytes(1, rig.now)
    rig.core.on_bytes_accepted(1, 0, rig.now)
    probes = 0
    for number in range(2, 600):
        for name in "abc":
            rig.update(f"/{name}", number)
        rig.wait(0.05)
        if data := rig.core.take_bytes(1, rig.now):
            assert data == b"\n"
            probes += 1
            rig.core.on_bytes_accepted(1, 0, rig.now)
    assert 53 <= probes <= 61
    rig.say({"key": "/x", "value": 1})
    assert len(rig.sets()) == 1
    rig.wait(0.5)
    data = rig.core.take_bytes(1, rig.now)
    rig.core.on_bytes_accepted(1, len(data), rig.now)
    assert values(rig.lines()) == [("/a", 599), ("/b", 599), ("/c", 599)]


def test_memory_is_bounded_while_a_phone_does_not_read():
    rig = CoreRig()
    for number in range(300):
        rig.announce(f"/big/{number}", "raw", b"x" * 1_000_000)
    rig.say(subscribe("/big/", all=True))
    for number in range(300):
        rig.update(f"/big/{number}", b"y" * 1_000_000)
    assert rig.core.budget.used <= 64 << 20
    rig.announce("/small", "int", 7)
    rig.say(subscribe("/small"))
    rig.wait(0)
    lines = rig.lines()
    assert ("/small", 7) in values(lines)
    rig.core.on_link_down(1, rig.now)
    for topic in list(rig.core.topics):
        rig.core.on_topics([Unannounced(topic.name)], rig.now)
    assert rig.core.budget.used == 0


def test_memory_is_bounded_with_any_number_of_middling_values():
    rig = CoreRig()
    rig.say(subscribe("/", prefix=True))
    for number in range(1_300):
        rig.announce(f"/middling/{number}", "raw", b"x" * 60_000)
        assert rig.core.budget.used <= 64 << 20
    lines = rig.lines()
    refused = {line["error"]["topic"] for line in lines if line.get("error", {}).get("code") == "too-large"}
    assert rig.core.fanout.counters["too_large"] > 100
    assert refused
    assert not refused & {key for key, _ in values(lines)}
    for number in range(1_300):
        rig.core.on_topics([Unannounced(f"/middling/{number}")], rig.now)
    assert rig.core.budget.used == 0


def test_large_values_make_room_for_small_ones():
    rig = CoreRig()
    for number in range(67):
        rig.announce(f"/big/{number}", "raw", b"x" * 1_000_000)
    rig.say(subscribe("/", prefix=True))
    for number in range(20):
        rig.announce(f"/middling/{number}", "raw", b"x" * 60_000)
    lines = rig.lines()
    assert len([key for key, _ in values(lines) if key.startswith("/middling/")]) == 20
    refused = {line["error"]["topic"] for line in lines if "error" in line}
    assert refused == {"/big/0", "/big/1"}  # the one that came first goes first
    assert rig.core.budget.used <= 64 << 20
    rig.update("/big/0", b"small again")
    assert [key for key, _ in values(rig.lines())] == ["/big/0"]


def test_one_fast_topic_does_not_starve_the_others():
    rig = CoreRig()
    rig.announce("/fast", "string", "x" * 16000)
    rig.announce("/slow", "int", 1)
    rig.say(subscribe("/fast", "/slow"))
    got = []
    for _ in range(3):
        data = rig.core.take_bytes(1, rig.now)
        rig.core.on_bytes_accepted(1, len(data), rig.now)
        rig.update("/fast", "y" * 16000)
        got += [json.loads(line)["key"] for line in data.split(b"\n") if line]
    assert "/slow" in got[:2]


def test_a_short_write_continues_the_line_and_rebuilds_the_rest():
    rig = CoreRig()
    for name in ("a", "b"):
        rig.announce(f"/{name}", "string", name * 600)
    rig.say(subscribe("/a", "/b"))
    data = rig.core.take_bytes(1, rig.now)
    rig.core.on_bytes_accepted(1, 512, rig.now)
    rig.update("/a", "new")
    rig.update("/b", "new")
    stream = data[:512] + rig.raw()
    lines = [json.loads(line) for line in stream.split(b"\n") if line]
    assert values(lines) == [("/a", "a" * 600), ("/b", "new"), ("/a", "new")]


def test_a_failed_write_breaks_the_line_and_repeats_control_lines():
    rig = CoreRig(link=False)
    rig.core.on_link_up(1, _info(), rig.now)
    rig.core.take_bytes(1, rig.now)
    rig.core.on_bytes_accepted(1, 0, rig.now, error=True)
    assert rig.raw().startswith(b'\n{"topics":')
    assert rig.core.links[1].blocked_since is None


def test_the_backlog_is_told_by_the_time_of_the_read_not_of_the_loop():
    rig = CoreRig(link=False)
    adopt(rig)
    claimed = rig.now
    rig.wait(0.8)
    rig.core.on_link_bytes(1, b'{"key":"/RoboRoute/RunPose","value":true}\n', claimed + 0.4)
    assert rig.orders() == []
    assert rig.core.links[1].counters["backlog_puts_refused"] == 1
    rig.core.on_link_bytes(1, b'{"key":"/x","value":1}\n', claimed + 0.6)
    assert rig.sets() == [("/x", "int", 1)]


PULSE = b'{"key":"/RoboRoute/RunPose","value":true}\n'


@pytest.mark.parametrize(("gap_s", "reads"), [(0.015, 40), (0.01, 90)])
def test_what_still_comes_without_a_pause_is_old_however_long_it_takes(gap_s, reads):
    """A machine that has no time reads an old press late: it must not move a robot."""
    rig = CoreRig(link=False)
    adopt(rig)
    for number in range(reads):
        rig.core.on_link_bytes(1, PULSE, rig.now + number * gap_s)
    assert rig.orders() == []
    assert rig.core.links[1].counters["backlog_puts_refused"] == reads


@pytest.mark.parametrize("slow_s", [0.7, 5.0])
def test_what_the_phone_did_not_pause_before_is_old_however_long_the_process_stood_still(slow_s):
    rig = CoreRig(link=False)
    adopt(rig)
    start = rig.now + slow_s
    rig.core.on_link_bytes(1, PULSE, start, pause_s=0.001)
    rig.core.on_link_bytes(1, PULSE, start + 0.1, pause_s=0.001)
    rig.core.on_link_bytes(1, PULSE, start + 0.1 + slow_s, pause_s=0.0)
    assert rig.orders() == []
    rig.core.on_link_bytes(1, b'{"key":"/x","value":1}\n', start + slow_s + 0.7, pause_s=0.6)
    assert rig.sets() == [("/x", "int", 1)]


def test_an_app_that_never_pauses_is_heard_after_two_seconds():
    rig = CoreRig(link=False)
    adopt(rig)
    for number in range(240):
        rig.core.on_link_bytes(1, b'{"key":"/x","value":%d}\n' % number, rig.now + number * 0.01)
    refused = rig.core.links[1].counters["backlog_puts_refused"]
    assert refused == 200  # those of two seconds
    assert rig.sets()[-1] == ("/x", "int", 239)


def test_an_app_that_puts_fifty_times_a_second_is_heard_after_half_a_second():
    rig = CoreRig(link=False)
    adopt(rig)
    for number in range(30):
        rig.core.on_link_bytes(1, b'{"key":"/x","value":%d}\n' % number, rig.now + number * 0.0201)
    assert rig.core.links[1].counters["backlog_puts_refused"] == 25


def test_the_backlog_of_an_endpoint_that_was_halted_comes_after_the_halt():
    rig = CoreRig(link=False)
    adopt(rig)
    rig.core.on_link_resync(1, rig.now + 0.6)
    rig.core.on_link_bytes(1, b"the rest of a line\n" + PULSE, rig.now + 0.7)
    assert rig.orders() == []
    rig.core.on_link_bytes(1, b'{"key":"/x","value":1}\n', rig.now + 1.2)
    assert rig.sets() == [("/x", "int", 1)]
