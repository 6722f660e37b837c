"""What counts as growth, by planted samples; and the soak in small."""

import json

import pytest

from faults.document import put_section
from faults.growth import Sample, growth, slope_per_h, steady
from faults.soak import TOPICS, main

HOUR_S = 3600


def samples(seconds=HOUR_S, every_s=10, **changes):
    """A run without growth; ``changes`` are functions of the time that replace a figure."""
    plain = {
        "rss_mib": lambda at_s: 50 + (at_s % 70) / 500,
        "descriptors": lambda at_s: 27 + (at_s % 200 == 0),  # one that is open just while we look
        "threads": lambda at_s: 12,
        "cpu_s": lambda at_s: at_s / 5,
        "log_lines": lambda at_s: 7,
        "heard": lambda at_s: round(at_s * 15000),
        "page_messages": lambda at_s: round(at_s * 2),
    }
    figures = plain | changes
    return [
        Sample(at_s, **{name: figure(at_s) for name, figure in figures.items()})
        for at_s in range(0, seconds + every_s, every_s)
    ]


def test_a_run_that_stays_what_it_was():
    result = growth(samples())
    assert result.faults == []
    assert result.figures["values_per_s"] == 15000
    assert result.figures["cpu_percent"] == pytest.approx(20)
    assert abs(result.figures["rss_mib_per_h"]) < 0.05


def test_memory_that_is_taken_while_it_warms_up_is_no_growth():
    assert growth(samples(rss_mib=lambda at_s: 40 + min(at_s, 290) / 10)).faults == []


@pytest.mark.parametrize(
    ("figure", "course", "text"),
    [
        ("rss_mib", lambda at_s: 50 + 1.1 * at_s / HOUR_S, "memory grows by 1.10 MiB/h"),
        ("descriptors", lambda at_s: 27 + at_s // 3000, "descriptors grew from 27 to 28"),
        ("threads", lambda at_s: 12 + at_s // 1000, "threads grew from 12 to 15"),
        ("log_lines", lambda at_s: at_s // 50, "log lines"),
        ("heard", lambda at_s: min(at_s, 3000) * 15000, "no value reached the phone in the time before 3010 s"),
    ],
)
def test_each_growth_is_found(figure, course, text):
    faults = growth(samples(**{figure: course})).faults
    assert len(faults) == 1, faults
    assert text in faults[0]


def test_a_short_run_may_not_grow_by_megabytes_either():
    assert growth(samples(120, rss_mib=lambda at_s: 50 + at_s / 60)).faults == []
    assert growth(samples(120, rss_mib=lambda at_s: 50 + at_s / 12)).faults != []


def test_the_warm_up_and_the_line():
    assert steady(samples())[0].at_s == 300
    assert steady(samples(600))[0].at_s == 60
    assert slope_per_h(samples(), lambda sample: 2 * sample.at_s / HOUR_S) == pytest.approx(2)


def test_a_section_replaces_its_own_text_alone(tmp_path):
    document = tmp_path / "page.md"
    document.write_text("a\n<!-- one -->\nold\n<!-- end of one -->\nb\n<!-- two -->\n<!-- end of two -->\n")
    put_section("one", "new\n", document)
    assert document.read_text() == "a\n<!-- one -->\nnew\n<!-- end of one -->\nb\n<!-- two -->\n<!-- end of two -->\n"


@pytest.mark.usbfs
def test_a_soak_of_seconds(tmp_path, capsys):
    assert main(["--hours", str(6 / HOUR_S), "--json", str(tmp_path / "out.json")]) == 0
    report = json.loads((tmp_path / "out.json").read_text())
    assert report["values_per_s"] > TOPICS
    assert report["page_messages_per_s"] > 0
    assert "| memory growth" in capsys.readouterr().out
