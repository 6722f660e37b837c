"""What phones are told: topic lists, the status, and values in every form."""

import itertools
import json
import math

import pytest

from aoabridge.bridge.link import LinkInfo
from aoabridge.values import Connected
from fakes.core_rig import POSE2D, POSE2D_INLINE, CoreRig, pose, subscribe, values


def _info(**more):
    return LinkInfo("phone", 512, **more)


def test_a_link_begins_with_a_blank_line_the_topics_and_the_status():
    rig = CoreRig(link=False)
    rig.announce("/foo", "int")
    rig.announce("bar", "int")
    rig.announce("/.schema/struct:X", "structschema")
    rig.announce("$meta", "raw")
    rig.core.on_link_up(1, _info(), rig.now)
    assert rig.raw() == (b'\n{"topics":["/bar","/foo"]}\n{"status":{"server":"connected","address":"10.22.7.2"}}\n')


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
