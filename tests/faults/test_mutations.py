"""A record of a real campaign (make_record.py) is judged right, and wrong as soon as its bridge has one defect."""

import copy
import gzip
import json
from pathlib import Path

import pytest

from faults.record import replay

RECORD = Path(__file__).with_name("recorded.jsonl.gz")
QUIET_S = 2.0  # away from whatever was done to phones and robot


@pytest.fixture(scope="module")
def original():
    with gzip.open(RECORD, "rt") as file:
        return [json.loads(line) for line in file]


@pytest.fixture
def records(original):
    return copy.deepcopy(original)


def disturbed(records):
    """(begin, end) of all that was done."""
    for name, arguments, _named in records:
        if name in ("on_break", "on_deaf"):
            yield arguments[1], arguments[2]
        elif name == "on_loss":
            yield arguments[0], arguments[1]
        elif name == "on_link_end":
            yield arguments[1], arguments[1]


def quiet(spans, at):
    return not any(begin - QUIET_S <= at <= end + QUIET_S for begin, end in spans)


def notes(records, topic):
    """Indices of what the robot heard of a topic, in quiet times."""
    spans = list(disturbed(records))
    return [
        index
        for index, (name, arguments, _named) in enumerate(records)
        if name == "on_robot"
        and arguments[0].get("topic", "").startswith(topic)
        and quiet(spans, arguments[0]["at"] / 1e6)
    ]


def lines(records, beginning):
    """(record, number, text) of what phones heard in quiet times."""
    spans = list(disturbed(records))
    return [
        (index, number, text)
        for index, (name, arguments, _named) in enumerate(records)
        if name == "on_lines"
        for number, (at, _read, text) in enumerate(arguments[1])
        if text.startswith(beginning) and quiet(spans, at)
    ]


def middle(found):
    assert len(found) >= 3
    return found[len(found) // 2]


def change_line(records, beginning, change):
    """Change one heard line; ``change`` makes the list of texts that take its place."""
    index, number, text = middle(lines(records, beginning))
    at, read, _text = records[index][1][1][number]
    records[index][1][1][number : number + 1] = [[at, read, changed] for changed in change(text)]


def parsed(text, **fields):
    return json.dumps(json.loads(text) | fields)


def older(records):
    """A topic's values change places."""
    index, number, text = middle(lines(records, '{"key":"/load/'))
    key = json.loads(text)["key"]
    later = next(
        (i, n)
        for i, n, other in lines(records, '{"key":"/load/')
        if (i, n) > (index, number) and json.loads(other)["key"] == key and records[i][1][0] == records[index][1][0]
    )
    here, there = records[index][1][1], records[later[0]][1][1]
    here[number], there[later[1]] = there[later[1]], here[number]


def wrong_layout(records):
    index, number, text = middle([line for line in lines(records, '{"key":"/load/') if '"schema"' in line[2]])
    records[index][1][1][number][2] = parsed(text, value={"t": 7, "half": 2.5e-310})


def put_twice(records):
    index = middle(notes(records, "/phone/"))
    records.insert(index + 40, copy.deepcopy(records[index]))


def put_changed(records):
    records[middle(notes(records, "/phone/"))][1][0]["value"] += 1_000_000


def put_lost(records):
    del records[middle(notes(records, "/phone/"))]


def press_doubled(records):
    index = notes(records, "/RoboRoute/RunPlan")[0]
    again = copy.deepcopy(records[index])
    again[1][0]["at"] += 1_500_000
    again[1][0]["value"] = True
    records.insert(index + 200, again)


def pulse_late(records):
    for index in notes(records, "/RoboRoute/RunPlan"):
        records[index][1][0]["at"] += 2_400_000


def never_lowered(records):
    for index in reversed(notes(records, "/RoboRoute/RunPlan")):
        if records[index][1][0]["value"] is False:
            del records[index]


def pulse_after_the_link(records):
    spans = list(disturbed(records))
    pressed = next(args[1] for name, args, _ in records if name == "on_press" and quiet(spans, args[1]))
    notes_of = (records[index][1][0] for index in notes(records, "/RoboRoute/RunPlan"))
    note = next(note for note in notes_of if note["value"] is True and note["at"] / 1e6 > pressed)
    note["at"] = round((pressed + 0.9) * 1e6)
    records.insert(0, ["on_link_end", ["p1", pressed + 0.001], {}])
    records[:] = [record for record in records if record[0] != "on_stall"]


def run_by_itself(records):
    records[:] = [record for record in records if record[0] not in ("on_press", "on_unpressed")]


def clock_followed(records):
    records[middle(notes(records, "/RoboRoute/Heartbeat"))][1][0]["value"] += 30


def clock_followed_back(records):
    records[middle(notes(records, "/RoboRoute/Heartbeat"))][1][0]["value"] -= 30


MUTATIONS = [
    (older, "went back by"),
    (wrong_layout, "wrong layout"),
    (lambda records: change_line(records, '{"key":"/load/', lambda text: [parsed(text, time=1.5)]), "was never"),
    (lambda records: change_line(records, '{"key":"/load/', lambda text: [text[:20], text]), "no line"),
    (lambda records: change_line(records, '{"ack"', lambda _text: []), "never answered"),
    (lambda records: change_line(records, '{"ack"', lambda text: [text, text]), "answered twice"),
    (lambda records: change_line(records, '{"ack"', lambda text: [text, '{"ack":999999}']), "never said"),
    (put_twice, "late or twice"),
    (put_changed, "was invented"),
    (put_lost, "not on the server"),
    (press_doubled, "no phone asked for"),
    (pulse_late, "after its press"),
    (pulse_after_the_link, "after the end of the link"),
    (never_lowered, "never taken back"),
    (run_by_itself, "began without a press"),
    (clock_followed, "heartbeat stepped"),
    (clock_followed_back, "heartbeat stepped"),
]


def test_what_the_bridge_did_was_right(records):
    judge = replay(records)
    assert judge.faults == []
    assert judge.counts["pulses arrived"]
    assert {name for name, _, _ in records} >= {"on_break", "on_deaf", "on_loss", "on_link_end", "on_daemon"}


@pytest.mark.parametrize(("defect", "text"), MUTATIONS)
def test_one_defect_is_found(records, defect, text):
    defect(records)
    faults = replay(records).faults
    assert any(text in fault for fault in faults), faults
