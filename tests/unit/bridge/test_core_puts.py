"""Every row of the put tables: what is said, what is known of the topic, what is set or why not."""

import pytest

from fakes.core_rig import POSE2D, POSE2D_INLINE, CoreRig, pose

INFERRED = [
    ("true", "boolean", True),
    ("42", "int", 42),
    ("-9223372036854775808", "int", -(2**63)),
    ("42.0", "double", 42.0),
    ('"text"', "string", "text"),
    ("[true,false]", "boolean[]", [True, False]),
    ("[1,2]", "int[]", [1, 2]),
    ("[1.5,2.5]", "double[]", [1.5, 2.5]),
    ("[1,2.5]", "double[]", [1.0, 2.5]),
    ('["a","b"]', "string[]", ["a", "b"]),
    ('{"a":[1,null]}', "json", '{"a":[1,null]}'),
]


@pytest.mark.parametrize(("value", "type_", "expected"), INFERRED)
def test_an_unknown_topic_gets_the_type_of_its_value(value, type_, expected):
    rig = CoreRig()
    rig.say(f'{{"action":"put","key":"/x","value":{value}}}')
    ((topic, set_type, set_value),) = rig.sets()
    assert (topic, set_type) == ("/x", type_)
    assert set_value == expected
    assert type(set_value) is type(expected)


NOT_INFERRED = [
    ("null", "bad-value"),
    ("[]", "cannot-infer-type"),
    ("[1,true]", "cannot-infer-type"),
    ('[1,"a"]', "cannot-infer-type"),
    ("[[1],[2]]", "cannot-infer-type"),
    ('[{"x":1}]', "cannot-infer-type"),
    ("[1,null]", "bad-value"),
    ("9223372036854775808", "bad-value"),
    ("18446744073709551617", "bad-value"),
    ("1e400", "bad-value"),
    (r'"\ud800"', "bad-value"),
]


@pytest.mark.parametrize(("value", "code"), NOT_INFERRED)
def test_what_an_unknown_topic_cannot_take(value, code):
    assert CoreRig().error(f'{{"action":"put","key":"/x","value":{value}}}') == code


KNOWN = [
    ("boolean", "false", False),
    ("int", "7", 7),
    ("int", "42.0", 42),
    ("int", "-9007199254740992.0", -(2**53)),
    ("double", "1", 1.0),
    ("double", "1.5", 1.5),
    ("double", "9007199254740992", 2.0**53),
    ("float", "1.5", 1.5),
    ("float", "0.1", 0.10000000149011612),
    ("float", "16777216", 16777216.0),
    ("string", '"s"', "s"),
    ("json", '{"a":null}', '{"a":null}'),
    ("json", '[1,"x"]', '[1,"x"]'),
    ("json", '"{ \\"a\\": 1 }"', '{ "a": 1 }'),
    ("boolean[]", "[]", []),
    ("double[]", "[1,2.5]", [1.0, 2.5]),
    ("float[]", "[0.5]", [0.5]),
    ("int[]", "[1,2.0]", [1, 2]),
    ("string[]", '["a"]', ["a"]),
]


@pytest.mark.parametrize(("type_", "value", "expected"), KNOWN)
def test_a_known_topic_keeps_its_type(type_, value, expected):
    rig = CoreRig()
    rig.announce("/x", type_)
    rig.say(f'{{"action":"put","key":"/x","value":{value}}}')
    assert rig.sets() == [("/x", type_, expected)]


REFUSED = [
    ("boolean", "1", "type-mismatch"),
    ("boolean", '"true"', "type-mismatch"),
    ("boolean", "null", "bad-value"),
    ("int", "true", "type-mismatch"),
    ("int", "1.5", "type-mismatch"),
    ("int", "9007199254740994.0", "bad-value"),
    ("int", "9223372036854775808", "bad-value"),
    ("double", "true", "type-mismatch"),
    ("double", "9007199254740993", "bad-value"),
    ("double", '"1"', "type-mismatch"),
    ("float", "16777217", "bad-value"),
    ("float", "1e39", "bad-value"),
    ("float", "null", "bad-value"),
    ("string", "1", "type-mismatch"),
    ("string", r'"\udfff"', "bad-value"),
    ("json", '"{oops"', "bad-value"),
    ("json", "5", "type-mismatch"),
    ("json", "true", "type-mismatch"),
    ("double[]", "[1,true]", "type-mismatch"),
    ("double[]", "[1,null]", "bad-value"),
    ("double[]", "[[1]]", "type-mismatch"),
    ("double[]", "1.0", "type-mismatch"),
    ("int[]", "[1.5]", "type-mismatch"),
    ("raw", '"AAAA"', "type-mismatch"),
    ("msgpack", '"AAAA"', "type-mismatch"),
    ("string", '{"a":1}', "type-mismatch"),
    ("rpc", "1", "forbidden"),
]


@pytest.mark.parametrize(("type_", "value", "code"), REFUSED)
def test_nothing_is_converted_with_loss(type_, value, code):
    rig = CoreRig()
    rig.announce("/x", type_)
    assert rig.error(f'{{"action":"put","key":"/x","value":{value}}}') == code


EXPLICIT = [
    ("double", "1", ("double", 1.0)),
    ("Double", "1", ("double", 1.0)),
    ("double[]", "[]", ("double[]", [])),
    ("json", '[{"x":1}]', ("json", '[{"x":1}]')),
    ("json", "[]", ("json", "[]")),
    ("raw", '"AAEC"', ("raw", b"\0\1\2")),
    ("proto:Foo", '"AA=="', ("proto:Foo", b"\0")),
    ("raw", '"AA"', "bad-value"),
    ("raw", '"A A A="', "bad-value"),
    ("raw", "[1]", "type-mismatch"),
    ("", "1", "bad-value"),
    ("rpc", "1", "forbidden"),
    ("structschema", '"AAAA"', "forbidden"),
    ("struct:Unknown", "{}", "bad-schema"),
    ("int", "1.5", "type-mismatch"),
]


@pytest.mark.parametrize(("type_", "value", "expected"), EXPLICIT)
def test_a_put_may_name_its_type(type_, value, expected):
    rig = CoreRig()
    message = f'{{"action":"put","key":"/x","type":"{type_}","value":{value}}}'
    if isinstance(expected, str):
        assert rig.error(message) == expected
    else:
        rig.say(message)
        assert rig.sets() == [("/x", *expected)]


def test_a_named_type_must_be_that_of_the_topic():
    rig = CoreRig()
    rig.announce("/x", "double")
    assert rig.error({"action": "put", "key": "/x", "type": "int", "value": 1}) == "type-mismatch"
    rig.announce("/raw", "raw")
    rig.say({"action": "put", "key": "/raw", "type": "raw", "value": "AAAA"})
    assert rig.sets() == [("/raw", "raw", b"\0\0\0")]


def test_the_legacy_put_has_no_action():
    rig = CoreRig()
    rig.say({"key": "/x", "value": 1})
    assert rig.sets() == [("/x", "int", 1)]


def test_a_bare_topic_is_found_under_its_key():
    rig = CoreRig()
    rig.announce("FMSInfo/x", "int")
    rig.say({"key": "/FMSInfo/x", "value": 1}, {"key": "FMSInfo/x", "value": 2})
    assert [topic for topic, _, _ in rig.sets()] == ["FMSInfo/x", "FMSInfo/x"]
    rig.announce("/FMSInfo/x", "int")
    rig.say({"key": "FMSInfo/x", "value": 3})
    assert [topic for topic, _, _ in rig.sets()] == ["/FMSInfo/x"]


def test_the_second_put_knows_the_type_of_the_first():
    rig = CoreRig()
    rig.say({"key": "/x", "value": 1})
    rig.sets()
    assert rig.error({"key": "/x", "value": 1.5}) == "type-mismatch"


def test_equal_values_are_all_sent():
    rig = CoreRig()
    rig.say(*[{"key": "/x", "value": True}] * 3)
    assert len(rig.sets()) == 3


# Structs.


def put_pose(**more):
    value = {"translation": {"x": 1, "y": 2.0}, "rotation": {"value": 0.5}}
    return {"action": "put", "key": "/RoboRoute/Pose", "schema": POSE2D_INLINE, "value": value, **more}


def test_a_struct_put_publishes_its_schemas_first():
    rig = CoreRig()
    rig.say(put_pose())
    assert rig.accept() == [
        ("/.schema/struct:Translation2d", "structschema", b"double x;double y"),
        ("/.schema/struct:Rotation2d", "structschema", b"double value"),
        ("/.schema/struct:Pose2d", "structschema", b"Translation2d translation;Rotation2d rotation"),
        ("/RoboRoute/Pose", "struct:Pose2d", pose(1, 2, 0.5)),
    ]
    rig.say(put_pose())
    assert rig.accept() == [("/RoboRoute/Pose", "struct:Pose2d", pose(1, 2, 0.5))]


def test_an_array_of_structs():
    rig = CoreRig()
    point = put_pose()["value"]
    rig.say(put_pose(key="/RoboRoute/Route", value=[point, point]))
    assert rig.accept()[-1] == ("/RoboRoute/Route", "struct:Pose2d[]", pose(1, 2, 0.5) * 2)
    rig.say(put_pose(key="/RoboRoute/Route", value=[]))
    assert rig.accept() == [("/RoboRoute/Route", "struct:Pose2d[]", b"")]


def test_schemas_of_the_robot_are_not_published_again():
    rig = CoreRig()
    rig.schemas(**POSE2D)
    rig.say(put_pose())
    assert rig.sets() == [("/RoboRoute/Pose", "struct:Pose2d", pose(1, 2, 0.5))]


def test_the_next_server_gets_the_schemas_that_only_the_last_one_had():
    rig = CoreRig()
    rig.schemas(**POSE2D)
    rig.disconnect()
    rig.connect()
    rig.say(put_pose())
    assert len(rig.sets()) == 4


def test_another_schema_of_the_robot_is_a_conflict():
    rig = CoreRig()
    rig.schemas(**{**POSE2D, "Rotation2d": "float value"})
    assert rig.error(put_pose()) == "schema-conflict"


def test_a_schema_that_only_phones_use_may_change():
    rig = CoreRig()
    rig.say({"key": "/a", "schema": "struct A {int8 x;}", "value": {"x": 1}})
    rig.accept()
    assert rig.error({"key": "/b", "schema": "struct A {int16 x;}", "value": {"x": 1}}) == "schema-conflict"
    rig.core.on_link_down(1, rig.now)
    rig.wait(0.1)
    rig.orders()
    rig.core.fanout.remove("/a")  # as the server says once nobody publishes it
    rig.link_up(2)
    rig.say({"key": "/b", "schema": "struct A {int16 x;}", "value": {"x": 1}}, link=2)
    assert rig.sets() == [("/.schema/struct:A", "structschema", b"int16 x"), ("/b", "struct:A", b"\1\0")]


BAD_STRUCTS = [
    ({"value": 5}, "type-mismatch"),
    ({"value": {"translation": {"x": 1, "y": 2}}}, "bad-value"),
    ({"value": {"translation": {"x": None, "y": 2}, "rotation": {"value": 0}}}, "bad-value"),
    ({"value": [{"x": 1}]}, "bad-value"),
    ({"schema": "struct Pose2d {Nope n;}"}, "bad-schema"),
    ({"schema": "nonsense"}, "bad-schema"),
    ({"schema": 5}, "wrong-type"),
]


@pytest.mark.parametrize(("change", "code"), BAD_STRUCTS)
def test_what_is_wrong_with_a_struct(change, code):
    assert CoreRig().error(put_pose(**change)) == code


def test_a_struct_topic_takes_no_other_struct():
    rig = CoreRig()
    rig.announce("/RoboRoute/Pose", "struct:Transform2d")
    assert rig.error(put_pose()) == "type-mismatch"
    rig.announce("/RoboRoute/Pose", "struct:Pose2d[]")
    assert rig.error(put_pose()) == "type-mismatch"


def test_a_known_struct_needs_no_schema():
    rig = CoreRig()
    rig.schemas(**POSE2D)
    rig.announce("/pose", "struct:Pose2d")
    rig.announce("/poses", "struct:Pose2d[]")
    value = put_pose()["value"]
    rig.say({"key": "/pose", "value": value}, {"key": "/poses", "value": [value]}, {"key": "/poses", "value": []})
    assert [put[2] for put in rig.sets()] == [pose(1, 2, 0.5), pose(1, 2, 0.5), b""]
    assert rig.error({"key": "/pose", "value": [value]}) == "type-mismatch"
    rig.announce("/other", "struct:Other")
    assert rig.error({"key": "/other", "value": {}}) == "bad-schema"


def test_text_that_is_cut_is_told():
    rig = CoreRig()
    rig.say({"key": "/c", "schema": "struct C {char name[3];}", "value": {"name": "abcd"}, "id": 9})
    assert rig.accept()[-1] == ("/c", "struct:C", b"abc")
    error, ack = rig.lines()
    assert error["error"]["code"] == "bad-value"
    assert "id" not in error["error"]
    assert ack == {"ack": 9}


def test_a_hostile_phone_does_not_use_up_the_robots_schemas():
    rig = CoreRig()
    for number in range(1100):
        rig.say({"key": "/x", "schema": f"struct T{number} {{int8 a;}}", "value": {"a": 1000}})
        if not number % 15:
            rig.wait(1)
            rig.lines()
    rig.schemas(**POSE2D)
    rig.announce("/pose", "struct:Pose2d", pose(1, 2, 3))
    rig.wait(1)
    rig.lines()
    rig.say({"action": "subscribe", "keys": ["/pose"]})
    assert [line["key"] for line in rig.lines() if "key" in line] == ["/pose"]
