"""What phones are told: topic lists, values, status, errors, extensions; and the life of a link in virtual time."""

import itertools
import json
import math

import pytest

from aoabridge import __version__
from aoabridge.bridge.core import CoreSettings
from aoabridge.bridge.settings import AccessSettings, RelaySettings
from aoabridge.values import Connected, PutOp, Unannounced
from fakes.core_rig import POSE2D, POSE2D_INLINE, CoreRig, pose


def subscribe(*keys, **more):
    return {"action": "subscribe", "keys": list(keys), **more}


def values(lines):
    return [(line["key"], line["value"]) for line in lines if "key" in line]


# Link up.


def test_a_link_begins_with_a_blank_line_the_topics_and_the_status():
    rig = CoreRig(link=False)
    rig.announce("/foo", "int")
    rig.announce("bar", "int")
    rig.announce("/.schema/struct:X", "structschema")
    rig.announce("$meta", "raw")
    rig.core.on_link_up(1, _info(), rig.now)
    assert rig.raw() == (b'\n{"topics":["/bar","/foo"]}\n{"status":{"server":"connected","address":"10.22.7.2"}}\n')


def _info(**more):
    from aoabridge.bridge.link import LinkInfo

    return LinkInfo("phone", 512, **more)


def test_the_topic_list_comes_every_ten_seconds_and_on_request():
    rig = CoreRig(connected=False)
    seen = []
    for _ in range(620):
        rig.wait(0.05)
        seen += [rig.now for line in rig.lines() if "topics" in line]
    assert [round(b - a) for a, b in itertools.pairwise(seen)] == [10, 10]
    rig.say({"action": "topics"}, {"action": "topics", "types": True})
    rig.announce("/x", "double")
    rig.say({"action": "topics", "types": True})
    first, second, third = [line for line in rig.lines() if "topics" in line]
    assert first == {"topics": []}
    assert second == {"topics": [], "types": {}}
    assert third == {"topics": ["/x"], "types": {"/x": "double"}}


def test_the_topic_list_never_exceeds_the_line_limit():
    rig = CoreRig()
    for number in range(5000):
        rig.announce(f"/{number:04}" + "x" * 1000, "int")
    rig.say({"action": "topics"})
    line = rig.raw().strip()
    assert 3 << 20 < len(line) <= 4 << 20
    assert rig.core.counters["topic_list_cut"] == 1


def test_one_blank_line_per_quiet_second():
    rig = CoreRig()
    blanks = 0
    for _ in range(90):
        rig.wait(0.1)
        blanks += rig.raw() == b"\n"
    assert blanks in (8, 9)


def test_status_names_a_server_on_ipv6_without_its_port():
    rig = CoreRig()
    rig.disconnect()
    rig.lines()
    rig.core.on_connection(Connected("[fe80::1]:5810"), rig.now)
    rig.wait(0.3)
    assert rig.lines() == [{"status": {"server": "connected", "address": "fe80::1"}}]


def test_status_follows_the_robot_connection():
    rig = CoreRig()
    rig.disconnect()
    assert rig.lines() == [{"status": {"server": "disconnected", "address": "10.22.7.2"}}]
    rig.connect()
    assert rig.lines() == [{"status": {"server": "connected", "address": "10.22.7.2"}}]


# Values.

FORMS = [
    ("boolean", True, b'"value":true}'),
    ("int", -(2**63), b'"value":-9223372036854775808}'),
    ("int", 2**63 - 1, b'"value":9223372036854775807}'),
    ("double", 0.1, b'"value":0.1}'),
    ("double", math.nan, b'"value":null}'),
    ("double[]", [1.0, math.inf], b'"value":[1.0,null]}'),
    ("float", 0.10000000149011612, b'"value":0.10000000149011612}'),
    ("string", 'a"b\n', b'"value":"a\\"b\\n"}'),
    ("string[]", ["x", ""], b'"value":["x",""]}'),
    ("boolean[]", [], b'"value":[]}'),
    ("json", '{"a": 12345678901234567890123}', b'"value":{"a": 12345678901234567890123}}'),
    ("json", '{\n"a":1}', b'"value":{"a":1}}'),
    ("json", "{oops", b'"value":"{oops"}'),
    ("raw", b"\0\1\2", b'"type":"raw","value":"AAEC"}'),
    ("msgpack", b"", b'"type":"raw","value":""}'),
    ("photonstruct:X:abc", b"\xff", b'"type":"raw","value":"/w=="}'),
]


@pytest.mark.parametrize(("type_", "value", "end"), FORMS)
def test_every_type_has_its_form(type_, value, end):
    rig = CoreRig()
    rig.time_us = 1_234_567_800
    rig.announce("/x", type_, value)
    rig.say(subscribe("/x"))
    assert rig.raw() == b'{"key":"/x","time":1234.5678,' + end + b"\n"


def test_rpc_is_skipped():
    rig = CoreRig()
    rig.announce("/x", "rpc", b"\0")
    rig.say(subscribe("/x"))
    assert rig.lines() == []


def test_a_struct_line_is_exact():
    rig = CoreRig()
    rig.schemas(**POSE2D)
    rig.time_us = 1_234_567_800
    rig.announce("/robot/pose", "struct:Pose2d", pose(1, 2.5, -0.5))
    rig.announce("/robot/poses", "struct:Pose2d[]", pose(1, 2, 3) * 2)
    rig.say(subscribe("/robot/pose", "/robot/poses"))
    first, second = rig.raw().strip().split(b"\n")
    body = b'{"translation":{"x":1.0,"y":2.5},"rotation":{"value":-0.5}}'
    schema = POSE2D_INLINE.encode()
    assert first == b'{"key":"/robot/pose","time":1234.5678,"schema":"' + schema + b'","value":' + body + b"}"
    assert len(json.loads(second)["value"]) == 2


@pytest.mark.parametrize("order", [("Pose2d", "Rotation2d", "Translation2d"), tuple(POSE2D)])
def test_a_struct_value_is_held_until_its_schemas_are_complete(order):
    rig = CoreRig()
    rig.announce("/pose", "struct:Pose2d", pose(1, 1, 1), pose(2, 2, 2))
    rig.say(subscribe("/pose"))
    for name in order:
        assert rig.lines() == []
        rig.schemas(**{name: POSE2D[name]})
    ((_, value),) = values(rig.lines())
    assert value["translation"] == {"x": 2.0, "y": 2.0}


def test_a_redefined_schema_changes_what_is_sent():
    rig = CoreRig()
    rig.schemas(A="int8 x")
    rig.announce("/a", "struct:A", b"\1")
    rig.say(subscribe("/a"))
    assert values(rig.lines()) == [("/a", {"x": 1})]
    rig.schemas(A="int8 x;int8 y")
    assert [line["error"]["code"] for line in rig.lines() + _tick(rig)] == ["bad-value"]
    rig.update("/a", b"\2\3")
    assert values(rig.lines()) == [("/a", {"x": 2, "y": 3})]


def _tick(rig):
    rig.wait(0)
    return rig.lines()


def test_a_schema_under_the_plain_root_wins():
    rig = CoreRig()
    rig.announce("/AdvantageKit/.schema/struct:A", "structschema", b"int16 x")
    rig.announce("/a", "struct:A", b"\1")
    rig.say(subscribe("/a"))
    rig.lines()
    rig.schemas(A="int8 x")
    assert values(rig.lines()) == [("/a", {"x": 1})]
    rig.update("/AdvantageKit/.schema/struct:A", b"int16 x")
    rig.update("/a", b"\2")
    assert values(rig.lines()) == [("/a", {"x": 2})]


def test_a_value_that_does_not_fit_is_told_once_in_ten_seconds():
    rig = CoreRig()
    rig.schemas(A="int16 x")
    rig.announce("/a", "struct:A")
    rig.say(subscribe("/a"))
    codes = []
    for _ in range(150):
        rig.update("/a", b"\1")
        rig.lines()
        rig.wait(0.1)
        codes += [line["error"]["code"] for line in rig.lines() if "error" in line]
    assert codes == ["bad-value", "bad-value"]


def test_a_line_over_four_mebibytes_is_not_sent():
    rig = CoreRig()
    rig.announce("/x", "string", "a" * (4 << 20))
    rig.announce("/y", "int", 1)
    rig.say(subscribe("/x", "/y"))
    lines = rig.lines() + _tick(rig)
    assert values(lines) == [("/y", 1)]
    assert [line["error"]["code"] for line in lines if "error" in line] == ["too-large"]


# Subscriptions.


@pytest.mark.parametrize("message", [subscribe("/a"), {"subscribe": ["/a"]}, subscribe("a"), subscribe(" //a ")])
def test_the_current_value_comes_at_once_and_again_when_asked_again(message):
    rig = CoreRig()
    rig.announce("/a", "int", 1)
    for _ in range(3):
        rig.say(message)
        assert values(rig.lines()) == [("/a", 1)]


def test_a_topic_may_come_later_go_and_return():
    rig = CoreRig()
    rig.say(subscribe("/a"))
    assert rig.lines() == []
    rig.announce("/a", "int", 1)
    assert values(rig.lines()) == [("/a", 1)]
    rig.core.on_topics([Unannounced("/a")], rig.now)
    rig.announce("/a", "string", "x")
    assert values(rig.lines()) == [("/a", "x")]


def test_subscribing_adds():
    rig = CoreRig()
    rig.say(subscribe("/a"), subscribe("/b"))
    rig.announce("/a", "int", 1)
    rig.announce("/b", "int", 2)
    assert values(rig.lines()) == [("/a", 1), ("/b", 2)]


def test_bare_names_are_spelt_with_a_slash():
    rig = CoreRig()
    rig.say(subscribe("FMSInfo/x"))
    rig.announce("FMSInfo/x", "int", 1)
    assert values(rig.lines()) == [("/FMSInfo/x", 1)]
    rig.announce("/FMSInfo/x", "int", 2)
    assert values(rig.lines()) == [("/FMSInfo/x", 2)]
    rig.update("FMSInfo/x", 3)
    assert rig.lines() == []
    rig.core.on_topics([Unannounced("/FMSInfo/x")], rig.now)
    assert values(rig.lines()) == [("/FMSInfo/x", 3)]


@pytest.mark.parametrize("message", [subscribe("/robot/"), subscribe("/robot", prefix=True)])
def test_a_subtree(message):
    rig = CoreRig()
    rig.announce("/robot/a", "int", 1)
    rig.announce("/robotics", "int", 9)
    rig.announce("/robot/.schema/struct:X", "structschema", b"int8 a")
    rig.say(message)
    assert values(rig.lines()) == [("/robot/a", 1)]
    rig.announce("/robot/b/c", "int", 2)
    assert values(rig.lines()) == [("/robot/b/c", 2)]
    rig.say({"action": "unsubscribe", "keys": ["/robot/"]})
    rig.update("/robot/a", 3)
    assert rig.lines() == []


def test_everything_but_the_reserved():
    rig = CoreRig(CoreSettings(access=AccessSettings(subscribe_deny=("/secret/*",))))
    rig.announce("/a", "int", 1)
    rig.announce("/secret/b", "int", 2)
    rig.announce("/.schema/struct:A", "structschema", b"int8 x")
    rig.say(subscribe("/"))
    assert values(rig.lines()) == [("/a", 1)]


def test_unsubscribing():
    rig = CoreRig()
    rig.announce("/a", "int", 1)
    rig.say(subscribe("/a"), {"action": "unsubscribe", "keys": ["/a", "/unknown", ""]})
    rig.update("/a", 2)
    assert rig.lines() == []


def test_at_most_one_value_per_period():
    rig = CoreRig()
    rig.announce("/a", "int", 0)
    rig.say(subscribe("/a", period=0.1))
    got = []
    for number in range(1, 100):
        rig.update("/a", number)
        got += values(rig.lines())
        rig.wait(0.01)
    assert 10 <= len(got) <= 11
    rig.wait(0.1)
    got += values(rig.lines())
    assert got[-1] == ("/a", 99)


def test_every_sample_in_order_and_the_lost_ones_are_told():
    rig = CoreRig(CoreSettings(relay=RelaySettings(sample_lane=10)))
    rig.announce("/a", "int", 0)
    rig.say(subscribe("/a", all=True))
    rig.update("/a", 1, 2, 3)
    assert values(rig.lines()) == [("/a", 0), ("/a", 1), ("/a", 2), ("/a", 3)]
    rig.update("/a", *range(100, 115))
    rig.wait(0)
    lines = rig.lines()
    assert values(lines) == [("/a", number) for number in range(105, 115)]
    assert [line["error"]["code"] for line in lines if "error" in line] == ["too-many"]


def test_refused_keys_do_not_stop_the_others():
    rig = CoreRig(CoreSettings(access=AccessSettings(subscribe_deny=("/no/*",))))
    rig.announce("/a", "int", 1)
    rig.say(subscribe("", "/a\x00", "/" + "k" * 1024, "$x", "/.schema/struct:A", "/no/x", "/a"))
    lines = rig.lines()
    assert values(lines) == [("/a", 1)]
    codes = [line["error"]["code"] for line in lines if "error" in line]
    assert codes == ["bad-key", "bad-key", "bad-key", "forbidden", "forbidden", "forbidden"]


def test_the_limit_of_subscriptions():
    rig = CoreRig(CoreSettings(relay=RelaySettings(max_subscriptions=2)))
    assert rig.error(subscribe("/a", "/b", "/c")) == "too-many"
    rig.say(subscribe("/a", "/b"))
    assert rig.lines() == []


def test_own_publications_and_puts_reach_the_other_phones_only():
    rig = CoreRig()
    rig.link_up(2)
    rig.publish("/FRC/x", "int", 1)
    rig.say(subscribe("/FRC/x", "/y"))
    rig.say(subscribe("/FRC/x", "/y"), link=2)
    assert values(rig.lines()) == values(rig.lines(2)) == [("/FRC/x", 1)]
    rig.say({"key": "/y", "value": 5})
    rig.accept()
    assert values(rig.lines()) == []
    assert values(rig.lines(2)) == [("/y", 5)]


# Bad lines.

BAD = [
    (b"nonsense", "bad-json"),
    (b"\xff\xfe", "bad-json"),
    (b"[1]", "not-an-object"),
    (b"{}", "missing-field"),
    (b'{"action":"dance"}', "unknown-action"),
    (b'{"action":1}', "wrong-type"),
    (b'{"action":"subscribe"}', "missing-field"),
    (b'{"action":"subscribe","keys":"/a"}', "wrong-type"),
    (b'{"action":"subscribe","keys":[1]}', "wrong-type"),
    (b'{"action":"subscribe","keys":["/a"],"period":"x"}', "wrong-type"),
    (b'{"action":"subscribe","keys":["/a"],"period":61}', "bad-value"),
    (b'{"action":"subscribe","keys":["/a"],"all":1}', "wrong-type"),
    (b'{"action":"put","value":1}', "missing-field"),
    (b'{"action":"put","key":"/x"}', "missing-field"),
    (b'{"action":"put","key":5,"value":1}', "wrong-type"),
    (b'{"action":"put","key":"","value":1}', "bad-key"),
    (b'{"action":"put","key":"/","value":1}', "bad-key"),
    (b'{"action":"put","key":"/x","value":1,"id":1.5}', "wrong-type"),
    (b'{"action":"ping"}', "missing-field"),
    (b'{"key":"/x"}', "missing-field"),
    (b"[" * 100_000, "bad-json"),
    (b'{"key":"/x","value":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "bad-json"),
    (b'{"key":"/x","value":"' + b"a" * 5_000_000 + b'"}', "too-large"),
]


@pytest.mark.parametrize(("line", "code"), BAD, ids=lambda value: str(value)[:40])
def test_a_bad_line_is_answered_and_stops_nothing(line, code):
    rig = CoreRig()
    assert rig.error(line) == code
    rig.announce("/a", "int", 1)
    rig.say(subscribe("/a"))
    assert values(rig.lines()) == [("/a", 1)]


def test_the_error_repeats_the_line_cut_short():
    rig = CoreRig()
    rig.say('{"action":"put","key":"/robot/x","value":[[]],"pad":"' + "p" * 200 + '"}')
    (line,) = rig.lines()
    assert list(line["error"]) == ["code", "topic", "message", "line"]
    assert len(line["error"]["line"]) == 120


def test_errors_are_limited_and_summed_up():
    rig = CoreRig()
    rig.say(*["oops"] * 100)
    assert len(rig.lines()) == 20
    rig.wait(1.0)
    (summary,) = [line["error"] for line in rig.lines() if "error" in line]
    assert summary["message"].startswith("80 more errors")
    assert len(rig.core.take_notices()) == 1


# Extensions.


def test_hello_and_ping():
    rig = CoreRig()
    rig.say({"action": "hello", "app": "A", "version": "2", "nonce": "n"}, {"action": "ping", "id": 3})
    hello = {"bridge": "aoabridge", "version": __version__, "protocol": 1, "nonce": "n", "server": "connected"}
    assert rig.lines() == [{"hello": hello}, {"pong": 3}]
    link = rig.core.links[1]
    assert (link.app, link.app_version) == ("A", "2")


def test_a_hello_app_is_pinged_and_has_credit():
    rig = CoreRig()
    rig.announce("/a", "int", 1)
    rig.say({"action": "hello"}, subscribe("/a"))
    assert rig.lines()[-1] == {"ping": 1}
    rig.update("/a", 2)
    rig.wait(0.2)
    assert rig.lines() == []
    rig.say({"action": "pong", "id": 1})
    assert values(rig.lines()) == [("/a", 2)]
    rig.update("/a", 3)
    rig.wait(0.26)
    assert values(rig.lines()) == [("/a", 3)]


def test_a_hello_app_that_stops_answering_is_stale_until_it_does():
    rig = CoreRig()
    rig.announce("/a", "int", 1)
    rig.say({"action": "hello"}, subscribe("/a"))
    got = []
    for number in range(60):
        rig.update("/a", number)
        rig.wait(0.1)
        got += [(rig.now, line) for line in rig.lines()]
    link = rig.core.links[1]
    assert link.stale(rig.now)
    last_value = max(at for at, line in got if "key" in line)
    assert 103 <= last_value < 103.6
    pings = [line["ping"] for at, line in got if at > 104 and "ping" in line]
    assert len(pings) == 2
    rig.say({"action": "pong", "id": pings[-1]})
    assert not link.stale(rig.now)
    assert values(rig.lines()) == [("/a", 59)]


def test_a_second_hello_starts_over():
    rig = CoreRig()
    rig.announce("/a", "int", 1)
    rig.say({"action": "hello"}, subscribe("/a"), {"key": "/RoboRoute/RunPose", "value": True})
    rig.accept()
    rig.lines()
    rig.update("/a", 2)
    rig.say({"action": "hello", "nonce": "2"})
    lines = rig.lines()
    assert [next(iter(line)) for line in lines] == ["hello", "topics", "status"]
    assert rig.sets() == [("/RoboRoute/RunPose", "boolean", False)]
    rig.wait(0.05)
    assert [(put.op, put.topic) for put in rig.orders()] == [(PutOp.UNPUBLISH, "/RoboRoute/RunPose")]
    rig.update("/a", 3)
    assert values(rig.lines()) == []


# Adoption.


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


# Not reading.


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


# Robot side effects.


def test_what_a_link_put_ends_with_it():
    rig = CoreRig()
    rig.say({"key": "/RoboRoute/RunPose", "value": True}, {"key": "/RoboRoute/RunRoute", "value": False})
    rig.say({"key": "/RoboRoute/CancelPlan", "value": True}, {"key": "/x", "value": 1})
    rig.accept()
    rig.core.on_link_down(1, rig.now)
    assert rig.sets() == [("/RoboRoute/RunPose", "boolean", False)]
    rig.wait(0.019)
    assert rig.orders() == []
    rig.wait(0.002)
    ended = [(put.op, put.topic) for put in rig.orders()]
    topics = ["/RoboRoute/RunPose", "/RoboRoute/RunRoute", "/RoboRoute/CancelPlan", "/x"]
    assert ended == [(PutOp.UNPUBLISH, topic) for topic in topics]


def test_the_last_owner_of_a_topic_ends_it():
    rig = CoreRig()
    rig.link_up(2)
    rig.say({"key": "/RoboRoute/RunPose", "value": True})
    rig.say({"key": "/RoboRoute/RunPose", "value": True}, link=2)
    rig.accept()
    assert rig.core.owners.find("/RoboRoute/RunPose").links == {1, 2}
    rig.core.on_link_down(1, rig.now)
    rig.wait(0.1)
    assert rig.orders() == []
    rig.core.on_link_down(2, rig.now)
    assert rig.sets() == [("/RoboRoute/RunPose", "boolean", False)]
    rig.wait(0.1)
    assert [put.op for put in rig.orders()] == [PutOp.UNPUBLISH]


def test_when_the_robot_goes_everything_of_phones_is_dropped_without_a_set():
    rig = CoreRig()
    rig.say({"key": "/RoboRoute/RunPose", "value": True})
    rig.accept()
    rig.disconnect()
    assert [(put.op, put.topic) for put in rig.orders()] == [(PutOp.UNPUBLISH, "/RoboRoute/RunPose")]
    rig.connect()
    rig.core.on_link_down(1, rig.now)
    assert rig.orders() == []


@pytest.mark.parametrize("late", [False, True])
def test_a_foreign_run_pulse_is_lowered_before_the_first_put(late):
    rig = CoreRig(link=False, connected=not late)
    if late:
        rig.link_up()
        rig.core.on_connection(_connected(), rig.now)
    rig.announce("/RoboRoute/RunPlan", "boolean", True)
    rig.announce("/RoboRoute/RunPose", "boolean", False)
    rig.announce("/RoboRoute/Running", "int", 1)
    rig.announce("RoboRoute/RunRoute", "boolean", True)
    if late:
        rig.wait(0.3)
    else:
        rig.link_up()
    rig.say({"key": "/x", "value": 1})
    assert rig.sets() == [
        ("/RoboRoute/RunPlan", "boolean", False),
        ("RoboRoute/RunRoute", "boolean", False),
        ("/x", "int", 1),
    ]
    rig.wait(0.03)
    assert [(put.op, put.topic) for put in rig.orders()] == [
        (PutOp.UNPUBLISH, "/RoboRoute/RunPlan"),
        (PutOp.UNPUBLISH, "RoboRoute/RunRoute"),
    ]


def _connected():

    return Connected("10.22.7.2:5810")


def test_a_run_pulse_of_another_live_link_is_not_lowered():
    rig = CoreRig()
    rig.say({"key": "/RoboRoute/RunPose", "value": True})
    rig.accept()
    rig.link_up(2)
    assert rig.orders() == []


def heartbeats(rig, seconds):
    found = []
    for _ in range(int(seconds * 20)):
        rig.wait(0.05)
        rig.lines()
        found += rig.core.take_publications()
    return found


def test_the_heartbeat_beats_only_while_a_live_phone_reads():
    rig = CoreRig()
    assert heartbeats(rig, 2) == []
    rig.say(subscribe("/a"))
    beats = heartbeats(rig, 5)
    assert len(beats) in (10, 11)
    assert all(beat.topic == "/RoboRoute/Heartbeat" and beat.type == "double" for beat in beats)
    assert beats[-1].value == pytest.approx(1_000_000 + rig.now, abs=0.6)
    data = b""
    while not data:
        rig.wait(0.1)
        data = rig.core.take_bytes(1, rig.now)
    rig.core.on_bytes_accepted(1, 0, rig.now)
    rig.core.take_publications()
    rig.wait(0.9)
    assert len(rig.core.take_publications()) == 1
    rig.wait(0.2)
    (withdrawal,) = rig.core.take_publications()
    assert type(withdrawal).__name__ == "Withdrawal"


def test_no_heartbeat_without_robot():
    rig = CoreRig()
    rig.say(subscribe("/a"))
    rig.lines()
    assert heartbeats(rig, 1)
    rig.disconnect()
    assert [type(item).__name__ for item in heartbeats(rig, 1)] == ["Withdrawal"] or heartbeats(rig, 1) == []


def test_an_orderly_stop():
    rig = CoreRig()
    rig.announce("/a", "int", 1)
    rig.say(subscribe("/a"), {"key": "/RoboRoute/RunPose", "value": True})
    rig.accept()
    rig.lines()
    rig.update("/a", 2)
    rig.core.begin_stop(rig.now)
    assert rig.sets() == [("/RoboRoute/RunPose", "boolean", False)]
    rig.say({"key": "/x", "value": 1})
    error, last = rig.lines()
    assert error["error"]["code"] == "not-connected"
    assert last == {"disconnect": True}
    rig.say({"key": "/x", "value": 1})
    assert rig.lines() == []
    assert rig.orders() == []


def test_a_type_change_drops_our_publisher():
    rig = CoreRig()
    rig.say({"key": "/x", "value": 1})
    rig.accept()
    rig.announce("/x", "string")
    assert [(put.op, put.topic) for put in rig.orders()] == [(PutOp.UNPUBLISH, "/x")]
    assert rig.error({"key": "/x", "value": 2}) == "type-mismatch"


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
