"""What must hold whatever breaks: judges the records of phones, robot and faults. Pure; times in monotonic seconds."""

import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from faults.pulses import Pulses
from faults.spans import Span, StallLog

__all__ = ["Judge"]

LOST_BEFORE_S = 1.5  # an acked put this shortly before the robot was lost may have gone with it
DEAD_S = 1.2  # until ntcore takes a silent robot for lost
DEAD_MAN_S = 1.0  # a press may be this old when it starts something (the gate's 0.75 s, and one busy loop)
ANSWER_S = 0.5  # from a put to its answer, if nothing is in the way
AFTER_LINK_S = 0.1  # an app may write this long after its link was cut, since the rig tells it a moment later
REOPENED_S = 0.7  # after it was asked to: the known app is closed for half a second
SUMMED_S = 1.5  # a summary stands for the errors since the one before it: a second, and a busy loop
HALF_S = 1.5  # after a broken transfer its half line is ended by the next one
PUT_S = 3.0  # of the end of a run, whose puts are still under way
HALF = 0.5
MORE = re.compile(r"(\d+) more errors were not sent")


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
        self._stalls = StallLog()
        self._pulses = Pulses(self._stalls)
        self._again: list[tuple[str, int, float, float]] = []  # answers heard twice: (phone, id, when, when again)
        self._halves: list[tuple[str, float, str]] = []  # what is left of a transfer whose end nobody knows
        self._robots: list[tuple[int, int]] = []  # (since, offset) in microseconds
        self._said: dict[tuple[str, Any], float] = {}
        self._newest_put: dict[str, int] = {}
        self._presses: list[float] = []
        self._runs: list[tuple[int, int]] = []  # (robot, run)
        self._beat: tuple[float, float, float] | None = None  # of this daemon: wall clock over ours, newest, when
        self._breaks: dict[str, list[Span]] = defaultdict(list)
        self._deaf: dict[str, list[Span]] = defaultdict(list)
        self._summed: dict[str, list[tuple[float, int]]] = defaultdict(list)  # when a summary came, how many are open
        self._link_ends: dict[str, list[float]] = defaultdict(list)
        self._losses: list[Span] = []

    def _bad(self, text: str) -> None:
        self.faults.append(text)

    def stall(self, begin: float, end: float) -> float:
        """Seconds that the machine held us up between two moments."""
        return self._stalls.within(begin, end)

    # What was done to them.

    def on_wrong(self, text: str) -> None:
        """Somebody else has found a fault."""
        self._bad(text)

    def on_stall(self, end: float, seconds: float) -> None:
        """The machine held us up."""
        self._stalls.add(end, seconds)

    def on_break(self, phone: str, begin: float, end: float) -> None:
        """Bytes of a phone may have been lost, either way."""
        self._breaks[phone].append(Span(begin, end))

    def on_deaf(self, phone: str, begin: float, end: float) -> None:
        """The app did not read."""
        self._deaf[phone].append(Span(begin, end))

    def on_link_end(self, phone: str, at: float) -> None:
        """A link was cut, released or lost."""
        self._link_ends[phone].append(at)

    def on_loss(self, begin: float, end: float, *, frozen: bool = False) -> None:
        """The robot, or a daemon that could not say good-bye, was away."""
        self._losses.append(Span(begin, begin + DEAD_S if frozen else begin))
        (self._pulses.on_pause if frozen else self._pulses.on_loss)(Span(begin, end))

    def on_daemon(self, at: float) -> None:
        """A daemon starts."""
        self._beat = None
        self._pulses.on_daemon(at)

    # What phones say and hear.

    def on_said(self, topic: str, value: Any, at: float) -> None:
        """An app is about to write a put."""
        self._said[topic, value] = at
        self.counts["puts said"] += 1

    def on_unsaid(self, topic: str, value: Any) -> None:
        """It could not: it has no accessory open."""
        del self._said[topic, value]
        self.counts["puts said"] -= 1

    def on_press(self, phone: str, at: float) -> None:
        """An app is about to write a run pulse."""
        self._presses.append(at)
        self._pulses.on_press(phone, at)
        self.counts["presses"] += 1

    def on_unpressed(self) -> None:
        """The last press was none: the app has no accessory open."""
        self._presses.pop()
        self._pulses.on_unpressed()
        self.counts["presses"] -= 1

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
            elif "disconnect" in line:  # what the app says or is told while it opens again is lost
                self._breaks[phone].append(Span(at, at + REOPENED_S))
            elif "ack" in line:
                self._on_answer(phone, line["ack"], "ack", at)
            elif "error" in line and "id" in line["error"]:
                self._on_answer(phone, line["error"]["id"], line["error"]["code"], at)
            elif "error" in line and (more := MORE.match(line["error"]["message"])):
                self._summed[phone].append((at, int(more[1])))

    def _on_value(self, phone: str, line: Mapping[str, Any], at: float) -> None:
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

    def _on_answer(self, phone: str, number: int | str, what: str, at: float) -> None:
        if not isinstance(number, int):  # one of a fault's own puts
            return
        first = self.answered.get((phone, number))
        if first is not None and first[0] == what:
            self._again.append((phone, number, first[1], at))
        elif first is not None:
            self._bad(f"{phone}: put {number} was answered twice, {first[0]} and {what}")
        if (f"/phone/{phone}", number) not in self._said:
            self._bad(f"{phone}: put {number} was answered and never said")
        self.answered[phone, number] = what, at
        if what == "ack":
            said_at = self._said.get((f"/phone/{phone}", number), 0.0)
            self.put_s[phone] = max(self.put_s[phone], said_at)
        self.counts["puts acked" if what == "ack" else f"puts refused: {what}"] += 1

    # What the robot says and hears.

    def on_robot(self, note: Mapping[str, Any]) -> None:
        """A note of the robot process."""
        at = note["at"] / 1e6
        if note["note"] == "ready":
            self._robots.append((note["at"], note["offset"]))
            self._pulses.on_robot(at)
        elif note["note"] == "run":
            self._on_run(note)
        elif note["topic"].startswith("/phone/"):
            self._on_put(note["topic"], note["value"], at)
        elif note["topic"].startswith("/RoboRoute/Run"):
            self.counts["pulses arrived"] += note["value"] is True
            self._pulses.on_value(at, high=note["value"])
        elif note["topic"] == "/RoboRoute/Heartbeat":
            self._on_beat(note["value"], at)

    def _on_put(self, topic: str, value: int, at: float) -> None:
        self.counts["puts arrived"] += 1
        if (topic, value) not in self._said:
            self._bad(f"robot: {topic} {value} was invented")
        if value <= self._newest_put.get(topic, -1):
            self._bad(f"robot: {topic} {value} came late or twice, after {self._newest_put[topic]}")
        self._newest_put[topic] = max(value, self._newest_put.get(topic, -1))
        self.arrived.setdefault((topic, value), at)

    def _on_beat(self, value: float, at: float) -> None:
        """Counts seconds whatever the wall clock does: never ahead of the first, never back."""
        self.counts["heartbeats"] += 1
        if self._beat is None:
            self._beat = value - at, value, at
            return
        ahead, newest, _when = self._beat
        if value - at > ahead + ANSWER_S + self.stall(at - 1, at) or value < newest:
            self._bad(
                f"robot: the heartbeat stepped to {value - at - ahead:+.1f} s, {value - newest:+.1f} s at {at:.3f}"
            )
        # The first one may have been under way for a while.
        self._beat = max(ahead, value - at), max(newest, value), at

    def _on_run(self, note: Mapping[str, Any]) -> None:
        run = (len(self._robots), note["run_id"])
        if not note["run_id"] or run in self._runs:
            if not note["still"] and note["state"] != "RUNNING":
                self._bad(f"robot: moves in state {note['state']}")
            return
        self._runs.append(run)
        self.counts["runs"] += 1
        at = note["at"] / 1e6
        if not any(press <= at <= press + DEAD_MAN_S + self.stall(press, at) for press in self._presses):
            self._bad(f"robot: run {note['run_id']} began without a press at {at:.3f}")

    # At the end.

    def judge_end(self, until: float) -> None:
        """Every put was answered, once, save those around a break; every acked one that nothing swallowed is on the
        server; lines were only cut, and answers only said again, where a transfer was cut; every run pulse was asked
        for on its own link, and taken back."""
        for phone, at, text in self._halves:
            if not self._is_broken(phone, at, at):
                self._bad(f"{phone}: no line at {at:.3f}: {text}")
        for phone, number, at, again in self._again:
            if not self._is_broken(phone, at, again):
                self._bad(f"{phone}: put {number} was answered twice, at {at:.3f} and {again:.3f}")
        for (topic, value), at in self._said.items():
            phone = topic.rpartition("/")[2]
            answer = self.answered.get((phone, value))
            if at > until - PUT_S:
                continue
            if answer is None and not self._may_be_lost(phone, at) and not self._summed_up(phone, at):
                self._bad(f"{phone}: put {value} of {at:.3f} was never answered")
            lost = answer is not None and answer[0] == "ack" and (topic, value) not in self.arrived
            if lost and not any(self._swallows(loss, answer[1]) for loss in self._losses):
                self._bad(f"{phone}: put {value} was acked at {answer[1]:.3f} and is not on the server")
        self.faults += self._pulses.verdicts(self._link_ends, self._breaks, until)

    def _is_broken(self, phone: str, begin: float, end: float) -> bool:
        """Whether one break covers both moments: what the phone got of its transfers, nobody knows."""
        return any(
            span.begin <= begin and end <= span.end + HALF_S + self.stall(span.end, end) for span in self._breaks[phone]
        )

    def _swallows(self, loss: Span, at: float) -> bool:
        return loss.begin - LOST_BEFORE_S - self.stall(loss.begin - 3, loss.begin) <= at <= loss.end + ANSWER_S

    def _summed_up(self, phone: str, at: float) -> bool:
        """Whether the refusal of a put is one of those that a summary counts instead: at most 20 a second are sent."""
        for index, (told, left) in enumerate(self._summed[phone]):
            if left and at <= told <= at + SUMMED_S + self.stall(at, told):
                self._summed[phone][index] = told, left - 1
                return True
        return False

    def _may_be_lost(self, phone: str, at: float) -> bool:
        """Whether the way of a put, or that of its answer, was cut."""
        due = at + ANSWER_S
        for deaf in self._deaf[phone]:
            if deaf.begin - ANSWER_S <= at <= deaf.end:
                due = max(due, deaf.end + ANSWER_S)
        due += self.stall(at, due + 1)
        return any(at - AFTER_LINK_S <= end <= due for end in self._link_ends[phone]) or any(
            span.begin <= due and at <= span.end for span in self._breaks[phone]
        )
