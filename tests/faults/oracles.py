"""What must hold whatever breaks: judges the records of phones, robot and faults. Pure; times in monotonic seconds."""

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

__all__ = ["Judge", "Said"]

LOST_BEFORE_S = 1.5  # an acked put this shortly before the robot was lost may have gone with it
DEAD_MAN_S = 1.0  # a press may be this old when it starts something (the gate's 0.75 s, and one busy loop)
ANSWER_S = 3.0
HALF = 0.5


class Said(NamedTuple):
    """A put that an app wrote: what, when, and whether it had the accessory open."""

    topic: str
    value: Any
    at: float


class Span(NamedTuple):
    """A time in which something could not be expected."""

    begin: float
    end: float


class Judge:
    """Takes what happened, in order within each source; ``faults`` collects verdicts."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.counts: dict[str, int] = defaultdict(int)
        self.newest_us: dict[tuple[str, str], int] = {}  # (phone, topic) -> newest time that a line proved
        self.answered: dict[tuple[str, int], tuple[str, float]] = {}  # (phone, id) -> "ack" or a code, when
        self.arrived: dict[tuple[str, Any], float] = {}
        self.value_s: dict[str, float] = defaultdict(float)  # per phone: the newest moment that a line proved
        self.put_s: dict[str, float] = defaultdict(float)  # per phone: when the newest put was said that was acked
        self._halves: list[tuple[str, float, str]] = []  # what is left of a transfer whose end nobody knows
        self._robots: list[tuple[int, int]] = []  # (since, offset) in microseconds
        self._said: dict[tuple[str, Any], float] = {}
        self._newest_put: dict[str, int] = {}
        self._presses: list[float] = []
        self._pulses_due: list[float] = []
        self._runs: list[tuple[int, int]] = []  # (robot, run)

    def _bad(self, text: str) -> None:
        self.faults.append(text)

    # What phones say and hear.

    def on_said(self, said: Said) -> None:
        """An app wrote a put."""
        self._said[said.topic, said.value] = said.at
        self.counts["puts said"] += 1

    def on_press(self, at: float) -> None:
        """An app wrote a run pulse."""
        self._presses.append(at)
        self._pulses_due.append(at)
        self.counts["presses"] += 1

    def on_lines(self, phone: str, lines: Iterable[tuple[float, int, str]]) -> None:
        """An app heard lines: (when, read, text)."""
        for at, _read, text in lines:
            try:
                line = json.loads(text)
            except ValueError:
                self._halves.append((phone, at, text[:80]))
                continue
            if line.get("key", "").startswith("/load/"):
                self._on_value(phone, line, at)
            elif "ack" in line:
                self._on_answer(phone, line["ack"], "ack", at)
            elif "error" in line and "id" in line["error"]:
                self._on_answer(phone, line["error"]["id"], line["error"]["code"], at)

    def _on_value(self, phone: str, line: dict[str, Any], at: float) -> None:
        self.counts["values heard"] += 1
        value = line["value"]
        key = line["key"]
        if isinstance(value, dict):
            if value.get("half") != HALF or "struct Sample" not in line.get("schema", ""):
                self._bad(f"{phone}: {key} was read with a wrong layout: {value}")
                return
            value = value["t"]
        true_us = int(value)
        index = bisect_right(self._robots, (true_us, 1 << 62)) - 1
        if index < 0 or true_us > at * 1e6 or round(line["time"] * 1e6) != true_us + self._robots[index][1]:
            self._bad(f"{phone}: {key} was never {line['value']} at {line['time']}")
        if true_us < self.newest_us.get((phone, key), 0):
            self._bad(f"{phone}: {key} went back by {(self.newest_us[phone, key] - true_us) / 1e6:.3f} s")
        self.newest_us[phone, key] = max(true_us, self.newest_us.get((phone, key), 0))
        self.value_s[phone] = max(self.value_s[phone], true_us / 1e6)

    def _on_answer(self, phone: str, number: int, what: str, at: float) -> None:
        if (phone, number) in self.answered:
            self._bad(f"{phone}: put {number} was answered twice")
        self.answered[phone, number] = what, at
        if what == "ack":
            said_at = self._said.get((f"/phone/{phone}", number), 0.0)
            self.put_s[phone] = max(self.put_s[phone], said_at)
        self.counts["puts acked" if what == "ack" else f"puts refused: {what}"] += 1

    # What the robot says and hears.

    def on_robot(self, note: dict[str, Any]) -> None:
        """A note of the robot process."""
        if note["note"] == "ready":
            self._robots.append((note["at"], note["offset"]))
        elif note["note"] == "run":
            self._on_run(note)
        elif note["topic"].startswith("/phone/"):
            self._on_put(note["topic"], note["value"], note["at"] / 1e6)
        elif note["topic"].startswith("/RoboRoute/Run") and note["value"] is True:
            self._on_pulse(note["at"] / 1e6)

    def _on_put(self, topic: str, value: int, at: float) -> None:
        self.counts["puts arrived"] += 1
        if (topic, value) not in self._said:
            self._bad(f"robot: {topic} {value} was invented")
        if value <= self._newest_put.get(topic, -1):
            self._bad(f"robot: {topic} {value} came late or twice, after {self._newest_put[topic]}")
        self._newest_put[topic] = max(value, self._newest_put.get(topic, -1))
        self.arrived.setdefault((topic, value), at)

    def _on_pulse(self, at: float) -> None:
        """Every pulse uses up a press of its own; the robot may have been frozen in between, the press may be lost."""
        self.counts["pulses arrived"] += 1
        older = [press for press in self._pulses_due if press <= at]
        if not older:
            self._bad(f"robot: a run pulse that no phone asked for at {at:.3f}")
            return
        self._pulses_due = [press for press in self._pulses_due if press > older[-1]]

    def _on_run(self, note: dict[str, Any]) -> None:
        run = (len(self._robots), note["run_id"])
        if not note["run_id"] or run in self._runs:
            if not note["still"] and note["state"] != "RUNNING":
                self._bad(f"robot: moves in state {note['state']}")
            return
        self._runs.append(run)
        self.counts["runs"] += 1
        at = note["at"] / 1e6
        if not any(at - DEAD_MAN_S <= press <= at for press in self._presses):
            self._bad(f"robot: run {note['run_id']} began without a press at {at:.3f}")

    # At the end.

    def judge_end(self, losses: list[Span], breaks: dict[str, list[Span]], until: float) -> None:
        """Every put of a quiet time was answered, every acked one that nothing swallowed is on the server, and lines
        were only cut where a transfer was.

        ``losses``: times without a robot or daemon; ``breaks``: per phone, times in which its bytes could be lost.
        """
        for phone, at, text in self._halves:
            if not any(span.begin <= at <= span.end for span in breaks[phone]):
                self._bad(f"{phone}: no line: {text}")
        for (topic, value), at in self._said.items():
            phone = topic.rpartition("/")[2]
            answer = self.answered.get((phone, value))
            if answer is None:
                broken = any(span.begin - ANSWER_S <= at <= span.end for span in breaks[phone])
                if not broken and at < until - ANSWER_S:
                    self._bad(f"{phone}: put {value} was never answered")
            elif answer[0] == "ack" and (topic, value) not in self.arrived:
                swallowed = any(span.begin - LOST_BEFORE_S <= answer[1] <= span.end for span in losses)
                if not swallowed and at < until - ANSWER_S:
                    self._bad(f"{phone}: put {value} was acked and is not on the server")
