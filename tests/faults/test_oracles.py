"""The judge finds every kind of wrong in records that are planted; and a schedule is the same for the same seed."""

import itertools
import json

import pytest

from faults.oracles import Judge, Said, Span
from faults.schedule import KINDS, faults

OFFSET_US = -90_000_000
QUIET = {"p1": [], "p2": []}


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


def pulse(at):
    return {"note": "got", "topic": "/RoboRoute/RunPlan", "value": True, "at": round(at * 1e6), "stamp": 0}


@pytest.fixture
def judge():
    """A robot since second 100, one put that went through, one press that started a run."""
    judge = Judge()
    judge.on_robot({"note": "ready", "at": 100_000_000, "offset": OFFSET_US})
    judge.on_lines("p1", [value(101.0)])
    judge.on_said(Said("/phone/p1", 1, 101.0))
    judge.on_robot(put(1, 101.01))
    judge.on_lines("p1", [answer(101.02, ack=1)])
    judge.on_press(102.0)
    judge.on_robot(pulse(102.01))
    judge.on_robot(run(1, 102.02))
    judge.judge_end([], QUIET, 200.0)
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


def test_a_line_that_is_none(judge):
    judge.on_lines("p1", [(103.0, 1, '{"key"')])
    judge.judge_end([], {"p1": [Span(102.5, 103.5)]}, 200.0)  # a transfer failed: its half line is ended by a blank
    assert judge.faults == []
    judge.judge_end([], {"p1": [Span(103.5, 104.0)]}, 200.0)
    verdict(judge, "no line")


def test_puts_that_nobody_said_and_that_come_again(judge):
    judge.on_robot(put(1, 103.0))
    verdict(judge, "late or twice")
    judge.faults.clear()
    judge.on_robot(put(2, 103.0))
    verdict(judge, "invented")


def test_a_put_that_nobody_answers(judge):
    judge.on_said(Said("/phone/p1", 2, 110.0))
    judge.judge_end([], {"p1": [Span(111.0, 112.0)]}, 200.0)
    judge.judge_end([], {"p1": []}, 111.0)  # may still come
    assert judge.faults == []
    judge.judge_end([], {"p1": [Span(100.0, 109.0)]}, 200.0)
    verdict(judge, "never answered")


def test_an_acked_put_that_is_not_there(judge):
    judge.on_said(Said("/phone/p1", 2, 110.0))
    judge.on_lines("p1", [answer(110.1, ack=2)])
    judge.judge_end([Span(111.0, 114.0)], QUIET, 200.0)
    assert judge.faults == []
    judge.judge_end([Span(112.0, 114.0)], QUIET, 200.0)
    verdict(judge, "not on the server")


def test_a_refused_put_need_not_be_there_but_a_second_answer_is_wrong(judge):
    judge.on_said(Said("/phone/p1", 2, 110.0))
    judge.on_lines("p1", [answer(110.1, error={"code": "not-connected", "id": 2})])
    judge.judge_end([], QUIET, 200.0)
    assert judge.faults == []
    judge.on_lines("p1", [answer(110.2, ack=2)])
    verdict(judge, "answered twice")


def test_pulses_and_runs_without_a_press(judge):
    judge.on_robot(pulse(103.0))
    verdict(judge, "no phone asked for")
    judge.faults.clear()
    judge.on_robot(run(2, 104.0))
    verdict(judge, "without a press")


def test_motion_without_a_run(judge):
    judge.on_robot(run(1, 103.0, "CANCELLED"))
    verdict(judge, "moves in state CANCELLED")


def test_a_schedule_comes_again_and_knows_every_kind():
    def first(seed):
        return list(itertools.islice(faults(seed), 400))

    assert first(1) == first(1) != first(2)
    assert {fault.kind for fault in first(1)} == set(KINDS)
    assert {fault.kind for fault in itertools.islice(faults(1, ["stall"]), 20)} == {"stall"}
