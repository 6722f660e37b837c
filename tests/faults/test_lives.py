"""What counts as growth of a daemon within a life and over lives; and the time that a machine takes away."""

import os
import subprocess
import sys
import threading
import time

import pytest

from faults.lives import LOG_LINES, LOG_LINES_PER_FAULT, Figures, Lives
from faults.spans import Span, StallLog
from faults.stall import StallWatch


def figures(age, *, threads=14, descriptors=30, mib=60.0, log_lines=20, robots=0):
    return Figures(age, threads, descriptors, mib, log_lines, robots)


def life(lives, count=10, start=0, **more):
    lives.begin()
    for age in range(start, count):
        lives.look(figures(age, **more))


def test_daemons_that_stay_what_they_were():
    lives = Lives()
    for extra in (0, 1, 0, 2):
        life(lives, descriptors=30 + extra)
    assert lives.faults == []


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"threads": 17}, "threads grew in this life from 14 to 17"),
        ({"descriptors": 35}, "descriptors grew in this life from 30 to 35"),
        ({"mib": 77.0}, "MiB grew in this life from 60 to 77"),
        ({"log_lines": LOG_LINES + 9 * LOG_LINES_PER_FAULT + 1}, "log lines for 9 faults"),
    ],
)
def test_growth_within_a_life(more, text):
    lives = Lives()
    life(lives, 9)
    lives.look(figures(9, **more))
    assert lives.faults == [text] or text in lives.faults[0]


def test_what_a_daemon_needs_for_its_first_faults_is_no_growth_and_a_lost_robot_may_cost_a_descriptor():
    lives = Lives()
    lives.begin()
    lives.look(figures(0, mib=40.0, threads=8))
    lives.look(figures(3))
    lives.look(figures(9, descriptors=36, robots=2))
    assert lives.faults == []


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"threads": 17}, "threads grew over lives from 14 to 17"),
        ({"descriptors": 35}, "descriptors grew over lives from 30 to 35"),
        ({"mib": 73.0}, "MiB grew over lives from 60 to 73"),
    ],
)
def test_a_daemon_that_begins_with_more_than_the_ones_before(more, text):
    lives = Lives()
    life(lives)
    life(lives)
    lives.begin()
    lives.look(figures(1, **more))
    assert lives.faults == [text]


def test_stall_within_a_time():
    log = StallLog()
    log.add(10.0, 0.5)
    log.add(11.0, 0.25)
    assert log.within(9.0, 12.0) == 0.75
    assert log.within(10.0, 11.0) == 0.25
    assert log.within(11.0, 99.0) == 0.0
    assert Span(1.0, 3.0).overlap(2.0, 9.0) == 1.0
    assert Span(1.0, 3.0).overlap(4.0, 9.0) == 0.0


def test_a_process_that_has_to_wait_for_its_core_is_told():
    """Two busy processes on one core: each waits about half of the time."""
    core = {min(os.sched_getaffinity(0))}
    command = [sys.executable, "-c", "while True: pass"]
    children = [subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command]) for _ in range(2)]
    for child in children:
        os.sched_setaffinity(child.pid, core)
    stalls, seen = [], threading.Event()

    def told(end, seconds):
        stalls.append(seconds)
        if sum(stalls) > 0.5:
            seen.set()

    watch = StallWatch(lambda: [children[0].pid], told)
    began = time.monotonic()
    watch.start()
    try:
        assert seen.wait(20)
    finally:
        watch.stop()
        for child in children:
            child.kill()
            child.wait()
    assert sum(stalls) < time.monotonic() - began
