"""The figures of docs/performance.md: each says what limits it, and each suite of the benchmarks has its table."""

import re

import pytest

from benchmarks.__main__ import SUITES
from benchmarks.limits import BY_NAME, limited_by
from benchmarks.report import BEGIN, DOCUMENT, END, TITLES, rendered, with_tables

ROW = re.compile(r"^\| (?!what |---)(?P<name>[^|]+) \|.*\| (?P<limited>[^|]*) \|$", re.MULTILINE)


def figures() -> str:
    return DOCUMENT.read_text().partition(BEGIN)[2].partition(END)[0]


def test_every_figure_says_what_limits_it() -> None:
    found = [(row["name"], row["limited"].strip()) for row in ROW.finditer(figures())]
    assert len(found) > 100
    assert [name for name, limited in found if not limited] == []
    assert [name for name, limited in found if limited != limited_by(name)] == []


def test_every_suite_has_a_title() -> None:
    assert set(TITLES) == set(SUITES)


@pytest.mark.parametrize("beginning", BY_NAME)
def test_what_limits_is_one_short_line(beginning: str) -> None:
    assert "\n" not in BY_NAME[beginning]
    assert len(BY_NAME[beginning]) <= 110


def test_the_median_decides_and_every_run_is_in_the_span() -> None:
    runs = [[["exec to READY=1", value, 1.0, "s"]] for value in (0.5, 3.0, 0.7)]
    table, missed = rendered("startup", runs)
    assert missed == 0
    assert "| exec to READY=1 | 0.7 s | 0.5 ... 3 | <= 1 | importing ntcore" in table
    assert rendered("startup", [[["exec to READY=1", 2.0, 1.0, "s"]]])[1] == 1


def test_one_suite_alone_renews_its_table_and_leaves_the_others() -> None:
    before = "\nMedians.\n\n### Load\n\n| a |\n\n### Start and memory\n\n| b |\n"
    assert with_tables(before, {"sources": "### Sources\n\n| new |\n", "load": "### Load\n\n| c |\n"}) == (
        "### Load\n\n| c |\n\n### Sources\n\n| new |\n\n### Start and memory\n\n| b |\n"
    )
