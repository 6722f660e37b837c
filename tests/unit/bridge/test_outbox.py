"""What waits for one phone: order, bounds, and nothing stale after it reads again."""

import json
import time

import pytest

from aoabridge.bridge.core import CoreSettings
from aoabridge.bridge.settings import RelaySettings
from aoabridge.values import Announced, Unannounced, Update
from fakes.core_rig import CoreRig


def subscribe(*keys, **more):
    return {"action": "subscribe", "keys": list(keys), **more}


def values(lines):
    return [(line["key"], line["value"]) for line in lines if "key" in line]


def block(rig, link=1):
    """The app stops reading: the transfer that it would have got next comes back."""
    rig.wait(1.1)
    assert rig.core.take_bytes(link, rig.now)
    rig.core.on_bytes_accepted(link, 0, rig.now)


def test_the_last_status_is_the_one_that_a_phone_gets_when_it_reads_again():
    rig = CoreRig()
    block(rig)
    for _ in range(100):
        rig.disconnect()
        rig.connect()
    rig.disconnect()
    assert [line["status"]["server"] for line in rig.lines() if "status" in line] == ["disconnected"]


def test_a_flood_of_pings_does_not_push_the_status_out():
    rig = CoreRig()
    block(rig)
    rig.say(*[{"action": "ping", "id": n} for n in range(500)])
    rig.disconnect()
    rig.say(*[{"action": "ping", "id": n} for n in range(500)])
    lines = rig.lines()
    assert len(lines) <= 70
    assert [line for line in lines if "status" in line]


def test_nothing_follows_the_disconnect_line():
    rig = CoreRig()
    rig.say({"action": "hello"})
    rig.lines()
    rig.core.begin_stop(rig.now)
    rig.say({"action": "put", "key": "/x", "value": 1, "id": 3}, {"action": "ping", "id": 4})
    rig.wait(11)
    rig.disconnect()
    lines = rig.lines()
    assert lines[-1] == {"disconnect": True}
    assert lines.count({"disconnect": True}) == 1
    rig.wait(11)
    rig.say({"action": "ping", "id": 5})
    assert rig.raw() == b""


def test_a_disconnect_line_that_was_not_accepted_is_sent_again():
    rig = CoreRig()
    rig.core.begin_stop(rig.now)
    assert b"disconnect" in rig.core.take_bytes(1, rig.now)
    rig.core.on_bytes_accepted(1, 0, rig.now, error=True)
    assert rig.lines() == [{"disconnect": True}]


def test_slots_that_come_and_go_while_the_phone_does_not_read_are_not_kept():
    rig = CoreRig()
    rig.announce("/a", "int", 1)
    rig.say(subscribe("/a"))
    rig.lines()
    block(rig)
    for number in range(3000):
        rig.say({"action": "unsubscribe", "keys": ["/a"]}, subscribe("/a", period=number % 50))
        rig.update("/a", number)
    outbox = rig.core.links[1].outbox
    assert outbox.waiting <= 200
    assert len(outbox._ready) + len(outbox._deferred) <= 200


def test_repeated_subscriptions_with_a_period_do_not_pile_up():
    rig = CoreRig()
    rig.announce("/a", "int", 1)
    for number in range(3000):
        rig.say(subscribe("/a", period=50))
        rig.lines()
        rig.update("/a", number)
    assert len(rig.core.links[1].outbox._deferred) <= 200
    rig.wait(51)
    assert values(rig.lines()) == [("/a", 2999)]


def test_unsubscribing_inside_a_subtree_gives_the_subtrees_options():
    rig = CoreRig()
    rig.announce("/r/a", "int", 0)
    rig.say(subscribe("/r/"), subscribe("/r/a", period=60))
    rig.lines()
    rig.update("/r/a", 1)
    assert values(rig.lines()) == []
    rig.say({"action": "unsubscribe", "keys": ["/r/a"]})
    rig.update("/r/a", 2)
    rig.update("/r/a", 3)
    assert values(rig.lines()) == [("/r/a", 3)]
    rig.update("/r/a", 4)
    assert values(rig.lines()) == [("/r/a", 4)]


def test_unsubscribing_a_key_of_a_subtree_that_has_no_own_subscription_changes_nothing():
    rig = CoreRig()
    rig.announce("/r/a", "int", 0)
    rig.say(subscribe("/r/"))
    rig.lines()
    rig.say({"action": "unsubscribe", "keys": ["/r/a"]})
    assert rig.lines() == []
    rig.update("/r/a", 2)
    assert values(rig.lines()) == [("/r/a", 2)]


def test_a_subtree_that_is_subscribed_again_does_not_change_keys_of_their_own():
    rig = CoreRig()
    rig.announce("/r/a", "int", 0)
    rig.say(subscribe("/r/a", all=True), subscribe("/r/"))
    rig.lines()
    rig.update("/r/a", 1, 2, 3)
    assert values(rig.lines()) == [("/r/a", 1), ("/r/a", 2), ("/r/a", 3)]


def test_every_sample_with_a_period_sends_one_per_period_in_order():
    rig = CoreRig()
    rig.announce("/a", "int", 0)
    rig.say(subscribe("/a", all=True, period=1))
    rig.update("/a", 1, 2, 3)
    got = []
    for _ in range(8):
        got.append(values(rig.lines()))
        rig.wait(0.5)
    assert [len(batch) for batch in got] == [1, 0, 1, 0, 1, 0, 1, 0]
    assert [value for batch in got for _, value in batch] == [0, 1, 2, 3]


def test_cached_lines_count_as_memory():
    rig = CoreRig()
    for number in range(300):
        rig.announce(f"/big/{number}", "raw", b"x" * 1_000_000)
    rig.say(subscribe("/big/"))
    rig.lines()
    held = sum(len(t.value or b"") + (len(t._line) if isinstance(t._line, bytes) else 0) for t in rig.core.topics)
    assert held <= 64 << 20
    assert held <= rig.core.budget.used <= 64 << 20


def test_small_values_push_samples_out():
    rig = CoreRig()
    rig.announce("/lane", "raw", b"")
    rig.say(subscribe("/lane", all=True))
    block(rig)
    for _ in range(900):
        rig.update("/lane", b"x" * 65_000)
    for number in range(2000):
        rig.announce(f"/s/{number}", "raw", b"x" * 10_000)
    assert rig.core.budget.used <= 64 << 20


def test_a_thousand_links_leave_nothing_behind():
    rig = CoreRig(link=False)
    rig.announce("/a", "int", 1)
    rig.announce("/b", "string", "x" * 1000)
    used = rig.core.budget.used
    for ident in range(1, 1001):
        rig.link_up(ident)
        rig.say(
            subscribe("/", all=True, period=ident % 3),
            {"action": "hello"},
            {"key": "/p", "value": "y" * 100},
            {"action": "hello"},
            subscribe("/b", all=True),
            link=ident,
        )
        rig.accept()
        rig.update("/b", "z" * 1000, "x" * 1000)
        taken = rig.core.take_bytes(ident, rig.now)
        if ident % 2:
            rig.core.on_bytes_accepted(ident, len(taken) * (ident % 3) // 3, rig.now, error=not ident % 5)
        assert rig.core.budget.used >= used
        rig.core.on_link_down(ident, rig.now)
        rig.wait(0.03)
        for put in rig.accept_all():
            rig.core.on_topics([Unannounced(put)], rig.now)
    for topic in rig.core.topics:
        topic.forget_line()
    assert rig.core.budget.used == used
    assert len(rig.core.owners) == 0
    assert not rig.core.desk._asked
    assert not rig.core.links


def test_at_most_twenty_error_lines_in_any_second():
    rig = CoreRig()
    told = []
    for _ in range(400):
        rig.say("oops")
        rig.wait(0.01)
        told += [rig.now for line in rig.lines() if "error" in line]
    for start in told:
        assert sum(start <= at < start + 0.98 for at in told) <= 20


def test_the_summary_comes_once_a_second_and_counts_all():
    rig = CoreRig()
    lines = []
    for _ in range(300):
        rig.say("oops")
        rig.wait(0.01)
        lines += rig.lines()
    rig.wait(1.1)
    lines += rig.lines()
    errors = [line["error"] for line in lines if "error" in line]
    summed = [int(error["message"].split()[0]) for error in errors if error["code"] == "rate-limited"]
    assert len(summed) <= 5
    assert sum(summed) + len(errors) - len(summed) == 300


def test_an_oversize_line_of_wide_characters_is_shown_with_120_of_them():
    rig = CoreRig(CoreSettings(relay=RelaySettings(max_line_bytes=4096)))
    rig.say("ä" * 5000)
    (line,) = rig.lines()
    assert line["error"]["line"] == "ä" * 120


# Pings.


def test_a_ping_that_was_not_accepted_is_not_unanswered():
    rig = CoreRig()
    rig.announce("/a", "int", 0)
    rig.say({"action": "hello"}, subscribe("/a"))
    for number in range(5):
        rig.update("/a", number)
        rig.wait(0.6)
        assert rig.core.take_bytes(1, rig.now)
        rig.core.on_bytes_accepted(1, 0, rig.now)
        rig.wait(0.5)
        data = rig.core.take_bytes(1, rig.now)
        rig.core.on_bytes_accepted(1, len(data), rig.now)
        rig.core.take_bytes(1, rig.now)
        rig.core.on_bytes_accepted(1, 0, rig.now)
    assert not rig.core.links[1].stale(rig.now)


def test_values_are_not_held_back_by_a_ping_that_never_left():
    rig = CoreRig()
    rig.announce("/a", "int", 0)
    rig.say({"action": "hello"}, subscribe("/a"))
    assert b"ping" in rig.core.take_bytes(1, rig.now)
    rig.core.on_bytes_accepted(1, 0, rig.now)
    probe = rig.core.take_bytes(1, rig.now)
    assert probe == b"\n"
    rig.core.on_bytes_accepted(1, 1, rig.now)
    assert values(rig.lines()) == [("/a", 0)]


@pytest.mark.parametrize("size", [100, 16_000, 16_330, 16_345, 16_383, 16_400, 40_000])
def test_every_value_is_followed_by_a_ping(size):
    rig = CoreRig()
    rig.announce("/a", "string", "x" * (size - len('{"key":"/a","time":5.0,"value":""}\n')))
    rig.say({"action": "hello"})
    rig.lines()
    rig.say(subscribe("/a"))
    stream = rig.raw()
    assert [next(iter(json.loads(line))) for line in stream.split(b"\n") if line] == ["key", "ping"]


# Time.


def test_time_alone_never_stands_still():
    """Following ``next_deadline`` makes progress: no more steps than there is something to do."""
    rig = CoreRig()
    for number in range(3):
        rig.announce(f"/{number}", "int", 0)
    rig.say(subscribe("/0", period=0.3), subscribe("/1", all=True, period=0.7), subscribe("/2"), {"action": "hello"})
    rig.link_up(2, adopted=True)
    rig.link_up(3)
    rig.core.close_link(3, rig.now)
    steps = 0
    began, end = rig.now, rig.now + 20
    while rig.now < end:
        due = rig.core.next_deadline(rig.now)
        assert due > rig.now or steps < 10_000
        rig.now = max(rig.now, due)
        steps += 1
        rig.core.on_tick(rig.now)
        if steps % 7 == 0:
            rig.core.on_updates([Update(f"/{steps % 3}", steps, 0)], rig.now)
        rig.core.take_puts()
        rig.core.take_publications()
        for link in (1, 2, 3):
            data = rig.core.take_bytes(link, rig.now)
            if data:
                blocked = link == 2 and (rig.now - began) % 7 < 3
                rig.core.on_bytes_accepted(link, 0 if blocked else len(data), rig.now)
    assert steps < 1000


def test_values_that_wait_for_credit_do_not_spin():
    rig = CoreRig()
    rig.announce("/a", "int", 0)
    rig.say({"action": "hello"}, subscribe("/a", period=0.05))
    rig.lines()
    rig.update("/a", 1)
    rig.wait(0.1)
    assert rig.lines() == []
    rig.core.take_publications()
    assert rig.core.next_deadline(rig.now) > rig.now


def test_settling_ends_when_it_should_and_not_at_the_next_poll():
    rig = CoreRig(connected=False)
    rig.lines()
    from aoabridge.values import Connected

    rig.core.on_connection(Connected("a:1"), rig.now)
    began = rig.now
    while not rig.core.settled:
        rig.now = rig.core.next_deadline(rig.now)
        rig.core.on_tick(rig.now)
        rig.lines()
    assert rig.now - began == pytest.approx(0.25, abs=1e-6)


# Costs.


def seconds(work):
    began = time.process_time()
    work()
    return time.process_time() - began


def test_five_thousand_topics_at_once_are_cheap():
    rig = CoreRig()
    keys = [f"/robot/sub{n % 50}/topic{n}" for n in range(5000)]
    rig.say(subscribe(*keys[:1990]), subscribe("/robot/", "/robot/sub1/", "/other/"))
    assert seconds(lambda: rig.core.on_topics([Announced(key, "double") for key in keys], rig.now)) < 0.25


def test_a_line_full_of_subtrees_is_cheap():
    rig = CoreRig()
    for number in range(2000):
        rig.announce(f"/robot/sub{number % 50}/t{number}", "double", 1.0)
    line = json.dumps(subscribe(*["/"] * 30_000, *[f"/robot/sub{n}/" for n in range(1900)]))
    assert seconds(lambda: rig.say(line)) < 1.5
    line = json.dumps({"action": "unsubscribe", "keys": ["/"] * 30_000})
    assert seconds(lambda: rig.say(line)) < 1.5


def test_ticks_are_cheap_with_many_waiting_topics():
    rig = CoreRig()
    for number in range(1000):
        rig.announce(f"/t{number}", "double", 1.0)
    for link in range(1, 9):
        if link > 1:
            rig.link_up(link)
        rig.say(subscribe("/", all=True), link=link)
    assert seconds(lambda: [rig.wait(0.001) for _ in range(200)]) < 0.2


def test_any_line_byte_by_byte_holds_no_more_than_itself():
    import sys

    rig = CoreRig()
    decoder = rig.core.links[1].decoder
    for _ in range(200_000):
        decoder.feed(b"ab")
    held = sum(sys.getsizeof(part) for part in vars(decoder).values())
    parts = vars(decoder).get("_parts")
    assert parts is None or len(parts) < 10
    assert held < 2_000_000


def test_one_topic_of_oversize_values_does_not_hide_the_faults_of_others():
    rig = CoreRig()
    rig.schemas(A="int16 x")
    rig.announce("/big", "string")
    rig.announce("/a", "struct:A")
    rig.say(subscribe("/big", "/a", all=True))
    rig.update("/big", *["x" * (4 << 20)] * 10)
    rig.update("/a", b"\1")
    lines = rig.lines()
    rig.wait(0)
    lines += rig.lines()
    told = sorted((line["error"]["topic"], line["error"]["code"]) for line in lines if "error" in line)
    assert told == [("/a", "bad-value"), ("/big", "too-large")]
    assert rig.core.links[1].counters["unsent_values"] == 11
