"""Who put what, across ends of links, second hellos and losses of the robot: orders and answers in virtual time."""

import pytest

from aoabridge.bridge.core import CoreSettings
from aoabridge.bridge.settings import RelaySettings
from aoabridge.values import Announced, Connected, PutOp, PutResult, Withdrawal
from fakes.core_rig import CoreRig


def subscribe(*keys, **more):
    return {"action": "subscribe", "keys": list(keys), **more}


def values(lines):
    return [(line["key"], line["value"]) for line in lines if "key" in line]


def results(rig, puts, code=None):
    rig.core.on_put_results([PutResult(put, code) for put in puts if put.op is PutOp.SET], rig.now, rig.time_us)


def two_links():
    rig = CoreRig()
    rig.link_up(2)
    rig.say(subscribe("/x", "/RoboRoute/"), link=2)
    return rig


def test_a_put_answered_after_its_link_ended_is_shown_to_the_others():
    rig = two_links()
    rig.say({"key": "/x", "value": 1, "id": 1})
    orders = rig.orders()
    rig.core.on_link_down(1, rig.now)
    results(rig, orders)
    assert values(rig.lines(2)) == [("/x", 1)]


def test_a_run_pulse_that_the_bridge_lowered_is_shown_to_the_others():
    rig = two_links()
    rig.say({"key": "/RoboRoute/RunPose", "value": True})
    rig.accept()
    assert values(rig.lines(2)) == [("/RoboRoute/RunPose", True)]
    rig.core.on_link_down(1, rig.now)
    assert rig.accept() == [("/RoboRoute/RunPose", "boolean", False)]
    assert values(rig.lines(2)) == [("/RoboRoute/RunPose", False)]


def test_the_phone_for_which_a_pulse_was_lowered_sees_it_lowered():
    rig = CoreRig(link=False)
    rig.announce("/RoboRoute/RunPlan", "boolean", True)
    rig.link_up()
    rig.say(subscribe("/RoboRoute/RunPlan"))
    assert values(rig.lines()) == [("/RoboRoute/RunPlan", True)]
    rig.accept()
    assert values(rig.lines()) == [("/RoboRoute/RunPlan", False)]


def test_an_old_run_of_the_app_is_not_acknowledged_to_the_new_one():
    rig = CoreRig()
    rig.say({"action": "hello"}, {"action": "put", "key": "/x", "value": 1, "id": 1})
    orders = rig.orders()
    rig.say({"action": "hello"}, {"action": "put", "key": "/y", "value": 2, "id": 1})
    rig.lines()
    results(rig, orders)
    assert not [line for line in rig.lines() if "ack" in line]
    results(rig, rig.orders())
    assert [line for line in rig.lines() if "ack" in line] == [{"ack": 1}]


def test_a_late_refusal_of_an_old_run_is_not_told_to_the_new_one():
    rig = CoreRig()
    rig.say({"action": "hello"}, {"action": "put", "key": "/x", "value": 1, "id": 1})
    orders = rig.orders()
    rig.say({"action": "hello"})
    rig.lines()
    results(rig, orders, "type-mismatch")
    assert not [line for line in rig.lines() if "error" in line]


def test_a_late_result_does_not_bring_back_an_old_type():
    rig = two_links()
    rig.say({"key": "/x", "value": 1})
    late = rig.orders()
    rig.core.on_topics([Announced("/x", "double")], rig.now)
    rig.say({"key": "/x", "value": 1.5})
    results(rig, late)
    assert rig.core.topics.find("/x").type == "double"
    assert values(rig.lines(2)) == []
    results(rig, rig.orders())
    assert values(rig.lines(2)) == [("/x", 1.5)]


def test_a_thousand_puts_at_once_are_all_answered():
    rig = CoreRig()
    rig.say(*[{"action": "put", "key": "/x", "value": n, "id": n} for n in range(1000)])
    rig.accept()
    assert [line["ack"] for line in rig.lines()] == list(range(1000))


def test_acknowledgements_for_an_app_that_does_not_read_are_bounded():
    rig = CoreRig()
    for _ in range(60):
        rig.say(*[{"action": "put", "key": "/x", "value": n, "id": n} for n in range(500)])
        rig.accept()
        rig.wait(1)
    assert len(rig.lines()) < 3000
    assert rig.core.links[1].counters["dropped_control"] > 20_000


def test_a_put_that_ntcore_refused_leaves_its_topic_unknown():
    rig = CoreRig()
    rig.say({"key": "/x", "value": 1})
    results(rig, rig.orders(), "bad-value")
    assert [(put.op, put.topic) for put in rig.orders()] == [(PutOp.UNPUBLISH, "/x")]
    rig.say({"key": "/x", "value": "text"})
    assert rig.sets() == [("/x", "string", "text")]


def test_a_refusal_does_not_end_what_was_accepted_before():
    rig = CoreRig()
    rig.say({"key": "/x", "value": 1})
    rig.accept()
    rig.say({"key": "/x", "value": 2})
    results(rig, rig.orders(), "not-connected")
    assert rig.orders() == []
    assert len(rig.core.owners) == 1


def test_two_definitions_in_one_turn_are_a_conflict():
    rig = CoreRig()
    rig.say({"key": "/a", "schema": "struct A {int8 x;}", "value": {"x": 1}})
    rig.say({"key": "/b", "schema": "struct A {int16 x;}", "value": {"x": 1}})
    assert [line["error"]["code"] for line in rig.lines() if "error" in line] == ["schema-conflict"]
    assert [topic for topic, _, _ in rig.sets()] == ["/.schema/struct:A", "/a"]


def test_the_next_server_gets_the_schemas_of_a_phone_again():
    rig = CoreRig()
    put = {"key": "/a", "schema": "struct A {int8 x;}", "value": {"x": 1}}
    rig.say(put)
    rig.accept()
    rig.disconnect()
    rig.orders()
    rig.connect()
    rig.say(put)
    assert [topic for topic, _, _ in rig.sets()] == ["/.schema/struct:A", "/a"]


def test_a_schema_that_its_publisher_took_away_is_published_by_us():
    from aoabridge.values import Unannounced

    rig = CoreRig()
    rig.schemas(A="int8 x")
    rig.core.on_topics([Unannounced("/.schema/struct:A")], rig.now)
    rig.say({"key": "/a", "schema": "struct A {int8 x;}", "value": {"x": 1}})
    assert [topic for topic, _, _ in rig.sets()] == ["/.schema/struct:A", "/a"]


def test_the_heartbeat_is_withdrawn_with_the_robot():
    rig = CoreRig()
    rig.say(subscribe("/a"))
    rig.lines()
    rig.wait(0.1)
    assert rig.core.take_publications()
    rig.disconnect()
    assert rig.core.take_publications() == [Withdrawal("/RoboRoute/Heartbeat")]


def test_ownership_survives_nothing_that_it_should_not():
    """hello twice, robot lost between the lowering and the unpublishing, link end while unsettled."""
    rig = CoreRig()
    rig.say({"action": "hello"}, {"key": "/RoboRoute/RunPose", "value": True})
    rig.accept()
    rig.say({"action": "hello"})
    assert rig.accept() == [("/RoboRoute/RunPose", "boolean", False)]
    rig.disconnect()
    assert [(put.op, put.topic) for put in rig.orders()] == [(PutOp.UNPUBLISH, "/RoboRoute/RunPose")]
    rig.core.on_connection(Connected("10.22.7.2:5810"), rig.now)
    rig.core.on_link_down(1, rig.now)
    rig.wait(0.5)
    assert rig.orders() == []
    assert len(rig.core.owners) == 0


def test_a_reused_topic_is_not_ended_by_its_earlier_run():
    rig = CoreRig()
    rig.say({"action": "hello"}, {"key": "/RoboRoute/RunPose", "value": True})
    rig.accept()
    rig.say({"action": "hello"}, {"key": "/RoboRoute/RunPose", "value": True})
    assert [value for _, _, value in rig.accept()] == [False, True]
    rig.wait(0.1)
    assert rig.orders() == []
    rig.core.on_link_down(1, rig.now)
    assert rig.sets() == [("/RoboRoute/RunPose", "boolean", False)]


def test_one_phone_cannot_fill_the_server_with_topics():
    rig = CoreRig(CoreSettings(relay=RelaySettings(put_burst=10_000)))
    rig.say(*[{"key": f"/t/{n}", "value": n} for n in range(2000)])
    assert len(rig.accept()) == 2000
    assert rig.error({"key": "/one/more", "value": 1}) == "too-many"
    rig.say({"key": "/t/5", "value": 6})
    assert len(rig.accept()) == 1


def test_waiting_puts_are_bounded_in_bytes():
    rig = CoreRig()
    text = "a" * 900_000
    for _ in range(60):
        rig.say({"key": "/x", "value": text})
    assert {line["error"]["code"] for line in rig.lines() if "error" in line} == {"rate-limited"}
    waiting = rig.orders()
    assert len(waiting) + rig.core.links[1].counters["refused_puts"] == 60
    assert len(waiting) <= 20
    results(rig, waiting)
    rig.say({"key": "/x", "value": text})
    assert len(rig.sets()) == 1


@pytest.mark.parametrize("value", ["AB==", "AAA==", "AAAA=", "AAAA====", "=", "AA=A", "A\nA=="])
def test_base64_is_strict(value):
    rig = CoreRig()
    assert rig.error({"action": "put", "key": "/x", "type": "raw", "value": value}) == "bad-value"


@pytest.mark.parametrize("value", ["1e400", "-1e400", "[1.0,1e999]", '{"a":1e999,"b":"\\ud800"}', '{"a":1e999}'])
def test_numbers_beyond_a_double_are_bad_values(value):
    rig = CoreRig()
    rig.say(f'{{"action":"put","key":"/x","value":{value},"id":4}}')
    (line,) = rig.lines()
    assert (line["error"]["code"], line["error"]["id"]) == ("bad-value", 4)
    assert rig.orders() == []


def test_json_keeps_every_digit():
    rig = CoreRig()
    rig.say('{"action":"put","key":"/x","value":{"a":12345678901234567890123,"b":"ä"}}')
    assert rig.sets() == [("/x", "json", '{"a":12345678901234567890123,"b":"ä"}')]


def test_many_booleans_are_few_bytes():
    rig = CoreRig()
    rig.say({"key": "/x", "value": [True] * 150_000})
    assert len(rig.sets()) == 1


def test_ids_and_names_of_an_app_are_bounded():
    rig = CoreRig()
    long = "n" * 2000
    assert rig.error({"action": "ping", "id": long}) == "too-large"
    assert rig.error({"action": "hello", "nonce": long}) == "too-large"
    rig.say({"action": "hello", "app": long, "version": long})
    rig.lines()
    assert len(rig.core.links[1].app) <= 100


HOSTILE = [
    {"action": "hello", "app": "key", "nonce": "key"},
    {"action": "ping", "id": "key"},
    {"action": "put", "key": "/x", "value": None, "id": "key"},
    {"action": "topics", "types": True},
    b"key",
    b'"key"',
]


@pytest.mark.parametrize("message", HOSTILE, ids=str)
def test_only_value_lines_contain_the_word_key(message):
    rig = CoreRig()
    rig.announce("/x", "key")
    rig.say(message)
    raw = rig.raw()
    assert raw
    assert b'"key"' not in raw
    assert b"ey" in raw or b"missing" in raw


def test_a_refused_put_does_not_say_what_the_robots_structs_mean():
    rig = two_links()
    rig.say(subscribe("/foo"), link=2)
    rig.announce("/foo", "struct:Foo", b"\1")
    rig.say({"key": "/x", "schema": "struct Foo {int8 v;}", "value": {"v": 1000}})
    rig.say({"key": "/x", "schema": "struct Bar {struct Foo {int8 v;} f;}", "value": {}})
    assert values(rig.lines(2)) == []
    rig.schemas(Foo="uint8 w")
    assert values(rig.lines(2)) == [("/foo", {"w": 1})]
    assert rig.orders() == []


def test_a_refused_put_leaves_an_accepted_definition_alone():
    rig = CoreRig()
    put = {"key": "/a", "schema": "struct A {int8 x;}", "value": {"x": 1}}
    rig.say(put)
    rig.accept()
    rig.say({**put, "value": {"x": 1000}})
    rig.say(put)
    assert rig.sets() == [("/a", "struct:A", b"\1")]


def test_a_late_refusal_from_before_a_loss_does_not_end_a_put_from_after_it():
    rig = CoreRig()
    rig.say({"key": "/x", "value": 1})
    late = rig.orders()
    rig.disconnect()
    rig.orders()
    rig.connect()
    rig.say({"key": "/x", "value": 2})
    assert rig.sets() == [("/x", "int", 2)]
    results(rig, late, "not-connected")
    assert rig.orders() == []
    assert len(rig.core.owners) == 1


def test_a_press_that_still_waits_dies_with_its_link():
    rig = CoreRig()
    rig.say({"key": "/RoboRoute/RunPose", "value": True}, {"key": "/x", "value": 1})
    rig.core.on_link_down(1, rig.now)
    assert [put for put in rig.orders() if put.op is PutOp.SET and put.value is not False] == []


def test_a_release_that_still_waits_is_not_lost_with_its_link():
    rig = CoreRig()
    rig.say({"key": "/RoboRoute/RunPose", "value": True})
    rig.accept()
    rig.say({"key": "/RoboRoute/RunPose", "value": False})
    rig.core.on_link_down(1, rig.now)
    assert ("/RoboRoute/RunPose", "boolean", False) in rig.sets()


def test_what_was_handed_over_is_called_back():
    rig = CoreRig()
    rig.say({"key": "/x", "value": 1})
    taken = rig.orders()
    rig.core.on_link_down(1, rig.now)
    assert [put.op for put in taken] == [PutOp.SET]
    assert [(put.op, put.link) for put in rig.orders()] == [(PutOp.RELEASE, 1)]


def test_an_orderly_end_refuses_what_waits():
    rig = CoreRig()
    rig.say({"action": "put", "key": "/x", "value": 1, "id": 4})
    rig.core.begin_stop(rig.now)
    first, last = rig.lines()
    assert (first["error"]["code"], first["error"]["id"]) == ("not-connected", 4)
    assert last == {"disconnect": True}
    assert rig.sets() == []
