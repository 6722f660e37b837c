"""Which schema a value is read by, across servers, roots and redefinitions; and what a lost connection costs."""

import struct
import time

from aoabridge.values import Announced, Connected, Disconnected, Unannounced, Update
from fakes.core_rig import POSE2D, CoreRig, pose


def subscribe(*keys, **more):
    return {"action": "subscribe", "keys": list(keys), **more}


def values(lines):
    return [(line["key"], line["value"]) for line in lines if "key" in line]


def reconnect(rig):
    """A new server, not settled yet."""
    rig.disconnect()
    rig.core.on_connection(Connected("10.22.7.2:5810"), rig.now)


def test_a_value_of_the_next_server_is_not_read_by_the_schema_of_the_last_one():
    rig = CoreRig()
    rig.schemas(V="float x;float y")
    rig.announce("/v", "struct:V", struct.pack("<2f", 1, 2))
    rig.say(subscribe("/v"))
    assert values(rig.lines()) == [("/v", {"x": 1.0, "y": 2.0})]
    reconnect(rig)
    rig.announce("/v", "struct:V", struct.pack("<2f", 4, 3))
    assert values(rig.lines()) == []
    rig.schemas(V="float y;float x")
    assert values(rig.lines()) == [("/v", {"y": 4.0, "x": 3.0})]


def test_the_same_schema_again_releases_the_value_at_once():
    rig = CoreRig()
    rig.schemas(**POSE2D)
    reconnect(rig)
    rig.say(subscribe("/p"))
    rig.announce("/p", "struct:Pose2d", pose(1, 2, 3))
    rig.schemas(Pose2d=POSE2D["Pose2d"], Translation2d=POSE2D["Translation2d"])
    assert values(rig.lines()) == []
    rig.schemas(Rotation2d=POSE2D["Rotation2d"])
    assert len(values(rig.lines())) == 1


def test_a_schema_that_the_next_server_never_names_holds_once_it_has_settled():
    rig = CoreRig()
    rig.schemas(**POSE2D)
    reconnect(rig)
    rig.say(subscribe("/p"))
    rig.announce("/p", "struct:Pose2d", pose(1, 2, 3))
    assert values(rig.lines()) == []
    rig.wait(0.3)
    assert len(values(rig.lines())) == 1


def test_a_schema_below_a_prefix_counts_for_a_server_without_a_plain_one():
    rig = CoreRig()
    rig.schemas(A="int8 x")
    reconnect(rig)
    rig.announce("/a", "struct:A", b"\1\0")
    rig.announce("/AdvantageKit/.schema/struct:A", "structschema", b"int16 x")
    rig.wait(0.3)
    rig.lines()
    rig.say(subscribe("/a"))
    assert values(rig.lines()) == [("/a", {"x": 1})]


def test_a_phones_definition_does_not_stand_against_the_robots():
    rig = CoreRig()
    rig.say({"key": "/p", "schema": "struct A {int8 x;}", "value": {"x": 1000}})  # refused, but the type was read
    rig.lines()
    rig.announce("/a", "struct:A", b"\1\0")
    rig.announce("/AdvantageKit/.schema/struct:A", "structschema", b"int16 x")
    rig.say(subscribe("/a"))
    assert values(rig.lines()) == [("/a", {"x": 1})]


def test_a_plain_schema_that_went_makes_way_for_one_below_a_prefix():
    rig = CoreRig()
    rig.schemas(A="int8 x")
    rig.core.on_topics([Unannounced("/.schema/struct:A")], rig.now)
    rig.announce("/k/.schema/struct:A", "structschema", b"int16 x")
    rig.announce("/a", "struct:A", b"\1\0")
    rig.say(subscribe("/a"))
    assert values(rig.lines()) == [("/a", {"x": 1})]


def test_no_value_is_sent_twice_because_its_twin_came_or_went():
    rig = CoreRig()
    rig.announce("/x", "int", 1)
    rig.say(subscribe("/x"))
    rig.lines()
    rig.announce("x", "int", 5)
    assert values(rig.lines()) == []
    rig.core.on_topics([Unannounced("x")], rig.now)
    assert values(rig.lines()) == []


def test_a_topic_announced_twice_begins_anew():
    rig = CoreRig()
    rig.say(subscribe("/x"))
    rig.announce("/x", "int", 1)
    rig.lines()
    rig.announce("/x", "int")
    assert values(rig.lines()) == []
    rig.say(subscribe("/x"))
    assert values(rig.lines()) == []
    rig.update("/x", 2)
    assert values(rig.lines()) == [("/x", 2)]


def seconds(work):
    began = time.process_time()
    work()
    return time.process_time() - began


def test_a_thousand_struct_types_on_a_new_server_are_cheap():
    rig = CoreRig()
    reconnect(rig)
    rig.say(subscribe("/"))
    names = [f"T{number}" for number in range(1000)]
    rig.core.on_topics([Announced(f"/t/{name}", f"struct:{name}") for name in names], rig.now)
    rig.core.on_updates([Update(f"/t/{name}", b"\1", 0) for name in names], rig.now)
    rig.core.on_topics([Announced(f"/.schema/struct:{name}", "structschema") for name in names], rig.now)
    schemas = [Update(f"/.schema/struct:{name}", b"int8 x", 0) for name in names]
    assert seconds(lambda: rig.core.on_updates(schemas, rig.now)) < 2.0
    assert len(values(rig.lines())) == 1000


def test_losing_thousands_of_topics_with_eight_phones_is_cheap():
    rig = CoreRig()
    for link in range(1, 9):
        if link > 1:
            rig.link_up(link)
        rig.say(subscribe("/"), link=link)
    names = [f"/robot/s{n % 50}/t{n}" for n in range(1000)]
    announce = [Announced(name, "double") for name in names]
    assert seconds(lambda: rig.core.on_topics(announce, rig.now)) < 0.4
    assert seconds(lambda: rig.core.on_connection(Disconnected(), rig.now)) < 0.4


def test_a_refused_schema_is_told_once_for_each_type():
    rig = CoreRig()
    rig.schemas(A="int8 x", Bad="no such thing")
    (told,) = rig.core.fanout.take_schema_faults().items()
    assert (told[0], told[1].type_name) == ("Bad", "Bad")
    rig.update("/.schema/struct:Bad", b"worse still")
    assert rig.core.fanout.take_schema_faults() == {}
