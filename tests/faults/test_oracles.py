"""The judge finds every kind of wrong in records that are planted; and a schedule is the same for the same seed."""

import itertools
import json
from collections import Counter

import pytest

from faults.oracles import Judge
from faults.schedule import KINDS, faults

OFFSET_US = -90_000_000


def value(true_s, *, topic="/load/0", time_s=None, **more):
    """A value line about a moment, as an app hears it 10 ms later."""
    true_us = round(true_s * 1e6)
    stamp = (true_us + OFFSET_US) / 1e6 if time_s is None else time_s
    return (true_s + 0.01, 1, json.dumps({"key": topic, "time": stamp, "value": true_us, **more}))


def answer(at, **line):
    return (at, 1, json.dumps(line))


def put(number, at, topic="/phone/p1"):
    return {"note": "got", "topic": topic, "value": number, "at": round(at * 1e6), "stamp": 0}


def run(run_id, at, state="RUNNING", *, still=False):
    return {"note": "run", "run_id": run_id, "state": state, "still": still, "at": round(at * 1e6)}


def pulse(at, *, high=True):
    return {"note": "got", "topic": "/RoboRoute/RunPlan", "value": high, "at": round(at * 1e6), "stamp": 0}


def beat(at, value):
    return {"note": "got", "topic": "/RoboRoute/Heartbeat", "value": value, "at": round(at * 1e6), "stamp": 0}


def told(judge, *records):
    """What it says at the end, after these."""
    for name, *arguments in records:
        getattr(judge, name)(*arguments)
    judge.judge_end(200.0)
    return judge


@pytest.fixture
def judge():
    """A robot since second 100, one put that went through, one press that started a run."""
    judge = Judge()
    judge.on_robot({"note": "ready", "at": 100_000_000, "offset": OFFSET_US})
    judge.on_lines("p1", [value(101.0)])
    judge.on_said("/phone/p1", 1, 101.0)
    judge.on_robot(put(1, 101.01))
    judge.on_lines("p1", [answer(101.02, ack=1)])
    judge.on_press("p1", 102.0)
    judge.on_robot(pulse(102.01))
    judge.on_robot(run(1, 102.02))
    judge.on_robot(pulse(102.5, high=False))
    judge.judge_end(200.0)
    assert judge.faults == []
    return judge


def verdict(judge, text):
    assert len(judge.faults) == 1, judge.faults
    assert text in judge.faults[0]


def test_an_older_value_after_a_newer_one(judge):
    judge.on_lines("p1", [value(100.5)])
    verdict(judge, "went back by 0.500 s")


def test_the_same_value_again_is_no_step_back(judge):
    judge.on_lines("p1", [value(101.0)])
    judge.on_lines("p2", [value(100.5)])
    assert judge.faults == []


@pytest.mark.parametrize(
    "line",
    [
        value(103.0, time_s=13.1),  # another moment than its own
        (103.0, 1, json.dumps({"key": "/load/0", "time": 14.0, "value": 104_000_000})),  # not yet true
    ],
)
def test_a_value_that_was_never_true(judge, line):
    judge.on_lines("p1", [line])
    verdict(judge, "was never")


def test_a_value_of_the_robot_before_is_judged_by_its_own_clock(judge):
    judge.on_robot({"note": "ready", "at": 110_000_000, "offset": -109_000_000})
    judge.on_lines("p1", [value(105.0), value(111.0, topic="/load/1", time_s=2.0)])
    assert judge.faults == []


def test_a_struct_that_was_read_with_the_layout_of_before(judge):
    judge.on_lines("p1", [value(103.0, schema="struct Sample {int64 t; double half;}", value={"t": 5, "half": 1e-300})])
    verdict(judge, "wrong layout")


HALF_LINE = ("on_lines", "p1", [(103.0, 1, '{"key"')])


def test_a_line_that_is_none(judge):
    told(judge, HALF_LINE, ("on_break", "p1", 102.5, 102.9))  # a transfer failed: its half line is ended by a blank
    assert judge.faults == []


@pytest.mark.parametrize("around", [[], [("on_break", "p1", 103.1, 104.0)], [("on_break", "p2", 102.5, 103.5)]])
def test_a_line_that_is_none_without_a_reason(judge, around):
    verdict(told(judge, HALF_LINE, *around), "no line")


def test_puts_that_nobody_said_and_that_come_again(judge):
    judge.on_robot(put(1, 103.0))
    verdict(judge, "late or twice")
    judge.faults.clear()
    judge.on_robot(put(2, 103.0))
    verdict(judge, "invented")


UNANSWERED = ("on_said", "/phone/p1", 2, 110.0)
SUMMARY = '{"error":{"code":"rate-limited","message":"1 more errors were not sent"}}'


@pytest.mark.parametrize(
    "around",
    [
        [("on_link_end", "p1", 110.2)],
        [("on_break", "p1", 109.0, 110.1)],
        [("on_lines", "p1", [(109.5, 1, '{"disconnect":true}')])],
        [("on_lines", "p1", [(110.4, 1, SUMMARY)])],
        [("on_deaf", "p1", 110.1, 115.0), ("on_link_end", "p1", 115.2)],  # its answer waited, and went with the link
        [("on_stall", 111.4, 1.3), ("on_link_end", "p1", 111.5)],
    ],
)
def test_a_put_that_was_lost_on_the_way_need_not_be_answered(judge, around):
    assert told(judge, UNANSWERED, *around).faults == []


@pytest.mark.parametrize(
    "around",
    [
        [],
        [("on_link_end", "p1", 111.0)],  # long enough to answer
        [("on_link_end", "p1", 109.5)],  # the next link
        [("on_link_end", "p2", 110.2)],
        [("on_lines", "p1", [(109.2, 1, '{"disconnect":true}')])],
        [("on_lines", "p1", [(109.9, 1, SUMMARY)])],
        [("on_lines", "p1", [(112.0, 1, SUMMARY)])],
        [("on_said", "/phone/p1", 3, 110.1), ("on_lines", "p1", [(110.4, 1, SUMMARY)])],
        [("on_break", "p1", 100.0, 109.0)],
        [("on_deaf", "p1", 110.1, 115.0)],
        [("on_loss", 110.0, 112.0)],  # without a robot it is refused
    ],
)
def test_a_put_that_nobody_answers(judge, around):
    verdict(told(judge, UNANSWERED, *around), "never answered")


def test_the_last_puts_may_still_be_answered(judge):
    judge.on_said("/phone/p1", 2, 198.0)
    assert told(judge).faults == []


ACKED = (("on_said", "/phone/p1", 2, 110.0), ("on_lines", "p1", [answer(110.1, ack=2)]))


def test_an_acked_put_may_go_with_the_robot(judge):
    assert told(judge, *ACKED, ("on_loss", 111.0, 114.0)).faults == []


@pytest.mark.parametrize("around", [[], [("on_loss", 112.0, 114.0)], [("on_loss", 105.0, 109.0)]])
def test_an_acked_put_that_is_not_there(judge, around):
    verdict(told(judge, *ACKED, *around), "not on the server")


def test_a_refused_put_need_not_be_there_but_a_second_answer_is_wrong(judge):
    told(judge, ("on_said", "/phone/p1", 2, 110.0), ("on_lines", "p1", [answer(110.1, error={"code": "x", "id": 2})]))
    assert judge.faults == []
    judge.on_lines("p1", [answer(110.2, ack=2)])
    verdict(judge, "answered twice")


@pytest.mark.parametrize(
    ("again", "around", "text"),
    [
        ({"ack": 1}, (), "answered twice, at 101.020 and 103.000"),
        ({"ack": 1}, [("on_break", "p2", 100.0, 104.0)], "answered twice"),
        ({"ack": 1}, [("on_break", "p1", 102.0, 104.0)], "answered twice"),
        ({"ack": 1}, [("on_break", "p1", 100.0, 101.4)], "answered twice"),
        ({"error": {"id": 1, "code": "not-connected", "message": ""}}, [("on_break", "p1", 100.0, 104.0)], "ack and"),
    ],
)
def test_an_answer_that_is_said_again(judge, again, around, text):
    judge.on_lines("p1", [answer(103.0, **again)])
    verdict(told(judge, *around), text)


def test_an_answer_may_be_said_again_around_a_transfer_that_broke_off(judge):
    judge.on_break("p1", 101.0, 102.0)
    judge.on_lines("p1", [answer(103.0, ack=1)])
    judge.judge_end(200.0)
    assert judge.faults == []


def test_an_answer_to_nothing(judge):
    judge.on_lines("p1", [answer(110.2, ack=77)])
    verdict(judge, "never said")


PRESS, LOWERED = ("on_press", "p1", 110.0), ("on_robot", pulse(111.9, high=False))


def pulsed(at):
    return ("on_robot", pulse(at))


@pytest.mark.parametrize(
    ("records", "text"),
    [
        ([pulsed(110.0), LOWERED], "no phone asked for"),
        ([PRESS, pulsed(110.1), LOWERED, pulsed(112.0), ("on_robot", pulse(112.1, high=False))], "no phone asked for"),
        ([PRESS, pulsed(111.5), LOWERED], "1.50 s after its press"),
        ([PRESS, ("on_link_end", "p1", 110.1), pulsed(110.6), LOWERED], "0.50 s after the end of the link of p1"),
        (
            [PRESS, ("on_robot", {"note": "ready", "at": 110_200_000, "offset": 0}), pulsed(110.5), LOWERED],
            "before this",
        ),
        ([PRESS, ("on_daemon", 110.2), pulsed(110.5), LOWERED], "before this daemon"),
        ([PRESS, pulsed(110.1)], "never taken back"),
        ([PRESS, pulsed(110.1), ("on_robot", pulse(115.0, high=False))], "never taken back"),
        ([PRESS, pulsed(110.1), ("on_link_end", "p1", 110.2)], "never taken back"),
    ],
)
def test_pulses_that_are_wrong(judge, records, text):
    verdict(told(judge, *records), text)


@pytest.mark.parametrize(
    "records",
    [
        [PRESS, pulsed(110.1), LOWERED],
        [PRESS, ("on_link_end", "p1", 110.2), pulsed(110.3), LOWERED],  # was on its way
        [PRESS, ("on_link_end", "p2", 110.1), pulsed(110.9), LOWERED],
        [PRESS, ("on_stall", 111.4, 0.8), pulsed(111.5), LOWERED],
        [PRESS, ("on_loss", 110.0, 114.0, True), pulsed(114.1), ("on_robot", pulse(114.2, high=False))],
        [PRESS, pulsed(110.1), ("on_loss", 110.3, 114.0)],
        [PRESS],
    ],
)
def test_pulses_that_are_right(judge, records):
    for name, *arguments in records:
        if name == "on_loss" and len(arguments) == 3:
            judge.on_loss(*arguments[:2], frozen=True)
        else:
            getattr(judge, name)(*arguments)
    judge.judge_end(200.0)
    assert judge.faults == []


def test_a_run_without_a_press(judge):
    judge.on_robot(run(2, 104.0))
    verdict(judge, "without a press")
    judge.on_press("p1", 110.0)
    judge.on_stall(112.0, 1.5)
    judge.on_robot(run(3, 112.0))
    verdict(judge, "run 2")


def test_a_heartbeat_follows_no_wall_clock(judge):
    judge.on_robot(beat(110.0, 5000.0))
    judge.on_robot(beat(111.0, 5001.1))
    judge.on_robot(beat(112.5, 5001.6))  # was held up
    assert judge.faults == []
    judge.on_robot(beat(113.0, 5004.0))
    verdict(judge, "heartbeat stepped to +0.9 s")


def test_a_heartbeat_that_goes_back_and_one_of_another_daemon(judge):
    judge.on_robot(beat(110.0, 5000.0))
    judge.on_daemon(111.0)
    judge.on_robot(beat(112.0, 3000.0))
    assert judge.faults == []
    judge.on_robot(beat(113.0, 2999.0))
    verdict(judge, "heartbeat stepped")


def test_motion_without_a_run(judge):
    judge.on_robot(run(1, 103.0, "CANCELLED"))
    verdict(judge, "moves in state CANCELLED")


def test_a_schedule_comes_again_and_knows_every_kind():
    def first(seed):
        return list(itertools.islice(faults(seed), 2 * sum(KINDS.values())))

    assert first(1) == first(1) != first(2)
    assert Counter(fault.kind for fault in first(1)) == {kind: 2 * number for kind, number in KINDS.items()}
    assert {fault.kind for fault in itertools.islice(faults(1, ["stall"]), 20)} == {"stall"}
