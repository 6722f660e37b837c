"""What the lines of a phone do: subscriptions, bad lines, extensions."""

import pytest

from aoabridge import __version__
from aoabridge.bridge.core import CoreSettings
from aoabridge.bridge.settings import AccessSettings, RelaySettings
from aoabridge.values import PutOp, Unannounced
from fakes.core_rig import CoreRig, subscribe, values


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
