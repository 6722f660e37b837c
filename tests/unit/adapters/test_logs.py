"""The log as a whole: ring, limits, formats, levels."""

import asyncio
import io
import json
import logging
import sys
from collections.abc import Iterator

import pytest

from aoabridge.adapters.log_limits import BUCKET_BURST, LogLimiter
from aoabridge.adapters.log_ring import LogRing
from aoabridge.adapters.logs import Logs


def record(text: str, level: int = logging.INFO, **extra: object) -> logging.LogRecord:
    return logging.makeLogRecord({"msg": text, "levelno": level, "levelname": logging.getLevelName(level), **extra})


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def logs() -> Iterator[Logs]:
    found = Logs(form="text", ring_lines=10, stream=io.StringIO())
    found.install("info", {})
    yield found
    found.remove()


def test_the_ring_keeps_the_newest_lines_and_their_numbers() -> None:
    ring = LogRing(3)
    for number in range(5):
        ring.handle(record(f"line {number}", device="scout" if number == 3 else None))
    found, following = ring.lines()
    assert [(line["seq"], line["text"]) for line in found] == [(2, "line 2"), (3, "line 3"), (4, "line 4")]
    assert following == 5
    assert [line["seq"] for line in ring.lines(since=4)[0]] == [4]
    assert [line["seq"] for line in ring.lines(since=99)[0]] == []
    assert [line["seq"] for line in ring.lines(count=1)[0]] == [4]
    assert ring.lines(count=0)[0] == []
    assert [line["seq"] for line in ring.lines(device="scout")[0]] == [3]
    assert set(found[0]) == {"seq", "time", "mono_s", "level", "logger", "code", "device", "text"}


def test_the_ring_filters_by_level() -> None:
    ring = LogRing(9)
    for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
        ring.handle(record(str(level), level))
    assert [line["level"] for line in ring.lines(level="warning")[0]] == ["warning", "error"]


def test_following_begins_with_what_is_kept_and_goes_on() -> None:
    async def scenario() -> list[str]:
        ring = LogRing(9)
        ring.handle(record("old"))
        seen: list[str] = []
        async for line in ring.follow():
            seen.append(line["text"])
            if len(seen) == 2:
                break
            ring.handle(record("new"))
        return seen

    assert asyncio.run(asyncio.wait_for(scenario(), 10)) == ["old", "new"]


def test_a_repeated_line_is_said_once_and_summed_up_after_a_minute() -> None:
    clock = Clock()
    limiter = LogLimiter(clock)
    assert limiter.filter(record("bad line"))
    for clock.now in (1.0, 2.0, 59.0):
        assert not limiter.filter(record("bad line"))
    assert limiter.summaries() == []
    clock.now = 60.0
    summary = limiter.summaries()
    assert [item.getMessage() for item in summary] == ["bad line (3 more in 60 s)"]
    assert summary[0].__dict__["count"] == 3
    clock.now = 121.0
    assert limiter.summaries() == []
    assert limiter.filter(record("bad line"))


def test_records_with_one_repeat_key_are_one_line() -> None:
    limiter = LogLimiter(Clock())
    assert limiter.filter(record("bad line 1", repeat="bad:scout"))
    assert not limiter.filter(record("bad line 2", repeat="bad:scout"))
    assert limiter.filter(record("bad line 3", repeat="bad:pixel"))


def test_a_flood_of_different_lines_is_cut_but_never_an_error() -> None:
    clock = Clock()
    limiter = LogLimiter(clock)
    passed = sum(limiter.filter(record(f"line {number}")) for number in range(1000))
    assert passed == BUCKET_BURST
    assert limiter.left_out == 1000 - BUCKET_BURST
    assert limiter.filter(record("worse", logging.ERROR))
    clock.now = 1.0
    assert sum(limiter.filter(record(f"later {number}")) for number in range(1000)) == 20


def test_an_hour_of_bad_lines_is_fewer_than_a_hundred_log_lines() -> None:
    clock = Clock()
    limiter = LogLimiter(clock)
    said = 0
    for second in range(3600):
        clock.now = float(second)
        said += sum(limiter.filter(record(f"bad line {n}", repeat="bad:scout")) for n in range(10))
        said += len(limiter.summaries())
    assert said < 100


def test_levels_follow_the_configuration_and_fall_back_when_a_logger_is_no_longer_named(logs: Logs) -> None:
    usb = logging.getLogger("aoabridge.adapters.usb")
    usb.debug("hidden")
    logs.apply_levels("warning", {"aoabridge.adapters.usb": "debug"})
    usb.debug("shown")
    logging.getLogger("aoabridge.daemon").info("hidden too")
    logs.apply_levels("info", {})
    usb.debug("hidden again")
    assert [line["text"] for line in logs.ring.lines()[0]] == ["shown"]


def test_text_lines_escape_foreign_characters_and_json_lines_parse() -> None:
    for form in ("text", "json"):
        stream = io.StringIO()
        logs = Logs(form=form, ring_lines=10, stream=stream)
        logs.install("info", {})
        logging.getLogger("aoabridge.daemon").warning(
            "sc\x1b[2Jout lost", extra={"device": "scout", "code": "phone-lost"}
        )
        logs.remove()
        line = stream.getvalue()
        if form == "text":
            assert line.rstrip().endswith("WARNING  daemon: sc\\x1b[2Jout lost")
        else:
            shown = json.loads(line)
            assert (shown["level"], shown["device"], shown["code"]) == ("warning", "scout", "phone-lost")


def test_nothing_reaches_the_root_logger(logs: Logs, capsys: pytest.CaptureFixture[str]) -> None:
    logging.getLogger("aoabridge.daemon").error("x")
    logs.on_tick()
    assert capsys.readouterr().err == ""


def test_a_process_without_stderr_logs_into_its_ring_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    logs = Logs(form="text")
    logs.install("info", {})
    logging.getLogger("aoabridge.x").info("still here")
    logs.remove()
    assert [line["text"] for line in logs.ring.lines()[0]] == ["still here"]
