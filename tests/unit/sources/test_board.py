import re
from pathlib import Path

import aoabridge.sources
from aoabridge.sources.board import UNITS, TopicBoard, cut_text
from aoabridge.values import Publication, Withdrawal

ROOT = "/X/y/"


def names(items):
    return [(item.topic.removeprefix(ROOT), getattr(item, "value", None)) for item in items]


def test_say_only_on_change():
    board = TopicBoard(ROOT, 10)
    out = board.writer("o")
    for value in (True, True, False):
        out.flag("Flag", value)
    out.text("Text", "a")
    out.text("Text", "a")
    assert names(board.take(0.0)) == [("Flag", True), ("Flag", False), ("Text", "a")]
    assert board.take(0.0) == []


def test_numbers_wait_for_their_turn_and_the_newest_wins():
    board = TopicBoard(ROOT, 10)
    out = board.writer("o", "Sub/")
    out.number("N", 1)
    assert board.next_deadline() < 0
    assert names(board.take(5.0)) == [("Sub/N", 1)]
    assert board.next_deadline() is None
    out.number("N", 2)
    out.number("N", 3)
    assert board.next_deadline() == 5.1
    assert board.take(5.05) == []
    assert names(board.take(5.1)) == [("Sub/N", 3)]
    out.number("N", 3)
    assert board.take(9.0) == []


def test_events_and_structs_leave_every_time():
    board = TopicBoard(ROOT, 10)
    out = board.writer("o")
    for _ in range(2):
        out.struct("S", "struct:S", b"\0")
        out.event("E", "int", 7)
    items = board.take(0.0)
    assert len(items) == 4
    assert all(isinstance(item, Publication) and item.keep_all for item in items)


def test_forget_withdraws_what_an_origin_set_last():
    board = TopicBoard(ROOT, 0)
    first, second = board.writer("first"), board.writer("second")
    first.flag("A", True)
    first.flag("B", True)
    first.number("N", 1)
    second.flag("B", False)
    board.take(0.0)
    assert board.has("first")
    board.forget("first")
    assert board.take(0.0) == [Withdrawal(ROOT + "A"), Withdrawal(ROOT + "N")]
    assert not board.has("first")
    first.flag("A", True)
    assert names(board.take(0.0)) == [("A", True)]


def test_a_waiting_number_does_not_survive_its_withdrawal():
    board = TopicBoard(ROOT, 1)
    out = board.writer("o")
    out.number("N", 1)
    board.take(0.0)
    out.number("N", 2)
    out.withdraw("N", "Other")
    assert board.take(5.0) == [Withdrawal(ROOT + "N")]


def test_schemas_once_and_names_outside_the_root():
    board = TopicBoard(ROOT, 0)
    for _ in range(2):
        board.schema("S", "int8 a")
    board.say("o", "/Other/.type", "string", "T", {"SmartDashboard": "T"})
    schema, other = board.take(0.0)
    assert (schema.topic, schema.type, schema.value) == ("/.schema/struct:S", "structschema", b"int8 a")
    assert (other.topic, other.properties) == ("/Other/.type", {"SmartDashboard": "T"})


def test_texts():
    board = TopicBoard(ROOT, 0)
    board.writer("o").text("T", b"\xff" + b"a" * 5000)
    (item,) = board.take(0.0)
    assert item.value == "\ufffd" + "a" * 4095
    assert board.replaced_texts == 1
    assert cut_text("a") == "a"


def test_arrays_and_units():
    board = TopicBoard(ROOT, 10)
    out = board.writer("o")
    out.array("Flags", "boolean[]", [True])
    out.array("Current_amps", "double[]", [1.0])
    out.real("Rate_hz", 2)
    items = {item.topic.removeprefix(ROOT): item for item in board.take(1.0)}
    assert items["Flags"].properties is None
    assert items["Current_amps"].properties == {"unit": "A"}
    assert (items["Rate_hz"].value, type(items["Rate_hz"].value)) == (2.0, float)


def test_every_unit_in_a_topic_name_is_known():
    text = "".join(path.read_text() for path in Path(aoabridge.sources.__file__).parent.rglob("*.py"))
    suffixes = {f"_{found}" for found in re.findall(r'"[A-Z]+[a-z][A-Za-z0-9/]*_([A-Za-z]+)"', text)}
    assert {"_A", "_degps", "_mmps", "_ms"} <= suffixes
    assert suffixes <= set(UNITS)
    assert UNITS["_mmps"] == "mm/s"
