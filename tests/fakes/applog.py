"""What the app of the emulated phone received, judged line by line."""

import json
from collections import Counter

from fakes.lines import check_bench_value

__all__ = ["AppLog", "covers"]

BENCH = "/bench/"
RESUME_SLACK_S = 0.3  # a value this much older than the moment of resuming may have been on its way


class AppLog:
    """Counters over all runs of the app on one phone."""

    def __init__(self, clock):
        self._clock = clock
        self.values = {}  # key -> [newest sequence, publish time, receive time]
        self.ages = []  # (receive time, age)
        self.receive_times = []
        self.errors = Counter()
        self.error_samples = []
        self.corrupt_by_link = Counter()
        self.samples_of_corruption = []
        self.duplicates = 0
        self.order_violations = 0
        self.disconnects = 0
        self.topic_lists = []
        self.pongs = 0
        self.hellos = 0
        self.value_lines = 0
        self.old_lines_after_hello = 0
        self.stale_after_resume = 0
        self.first_lines_ok = []
        self.last_line_at = None
        self._may_repeat = set()
        self._allowed = None
        self._resumed_at = None
        self.link = 0

    # context

    def link_opened(self):
        self.link += 1

    def subscribed(self, keys):
        """Every known topic may come once more: its newest value when the bridge reads this, not when it is said."""
        self._may_repeat |= {key for key in self.values if any(covers(pattern, key) for pattern in keys)}

    def hello_sent(self, keys):
        self._allowed = None
        self._next_allowed = list(keys)

    def resumed(self):
        self._resumed_at = self._clock.now()

    # lines

    def line(self, raw, first_full):
        """Takes one line without its LF; returns the decoded object or None. `first_full`: begins a new link."""
        text = raw.strip(b"\r")
        if not text:
            return None
        self.last_line_at = self._clock.now()
        try:
            message = json.loads(text)
        except ValueError:
            message = None
        if first_full:
            self.first_lines_ok.append(isinstance(message, dict))
        if not isinstance(message, dict):
            self._corrupt(raw)
            return None
        self._count(message, raw)
        return message

    def joined_line(self, raw):
        """A line that began on an old link and did not end with it: the host did not send an LF first."""
        self.first_lines_ok.append(False)
        self._corrupt(raw)

    def fragment(self, raw):
        """The half line of a host that died, ended by the LF of the next."""
        self._corrupt(raw)

    def _corrupt(self, raw):
        self.corrupt_by_link[self.link] += 1
        if len(self.samples_of_corruption) < 5:
            self.samples_of_corruption.append(bytes(raw[:200]).decode("utf-8", "replace"))

    def _count(self, message, raw):
        if "error" in message:
            self.errors[message["error"].get("code")] += 1
            if len(self.error_samples) < 5:
                self.error_samples.append(message["error"])
        elif "topics" in message:
            self.topic_lists.append(self._clock.now())
        elif "pong" in message:
            self.pongs += 1
        elif "hello" in message:
            self.hellos += 1
            self._allowed = getattr(self, "_next_allowed", None)
        elif message.get("disconnect") is True:
            self.disconnects += 1
        elif "key" in message:
            self._value(message["key"], message.get("value"), raw)

    def _value(self, key, value, raw):
        self.value_lines += 1
        if self._allowed is not None and not any(covers(pattern, key) for pattern in self._allowed):
            self.old_lines_after_hello += 1
        if not key.startswith(BENCH):
            return
        checked = check_bench_value(value)
        if checked is None:
            self._corrupt(raw)
            return
        sequence, published = checked
        now = self._clock.now()
        self.ages.append((now, now - published))
        self.receive_times.append(now)
        self._order(key, sequence)
        if self._resumed_at is not None and now - self._resumed_at < 2.0:
            self.stale_after_resume += published < self._resumed_at - RESUME_SLACK_S and self._newer_known(
                key, published
            )
        self.values[key] = [max(sequence, self.values.get(key, [sequence])[0]), published, now]

    def _newer_known(self, key, published):
        """Hook for the runner: whether a newer value existed at the moment of resuming (it publishes steadily)."""
        return True

    def _order(self, key, sequence):
        before = self.values.get(key)
        if before is None or sequence > before[0]:
            return
        if sequence < before[0]:
            self.order_violations += 1
        elif key in self._may_repeat:
            self._may_repeat.discard(key)
        else:
            self.duplicates += 1

    def metrics(self):
        gaps = [b - a for a, b in zip(self.receive_times, self.receive_times[1:], strict=False)]
        return {
            "lines_corrupt": max(self.corrupt_by_link.values(), default=0),
            "corrupt_samples": self.samples_of_corruption,
            "lines_duplicated": self.duplicates,
            "out_order_violations": self.order_violations,
            "old_lines_after_hello": self.old_lines_after_hello,
            "stale_values_after_resume": self.stale_after_resume,
            "app_first_full_line_ok": all(self.first_lines_ok) if self.first_lines_ok else None,
            "error_lines": dict(self.errors),
            "error_samples": self.error_samples,
            "error_lines_bad_json": self.errors["bad-json"],
            "disconnect_lines": self.disconnects,
            "topic_lists": len(self.topic_lists),
            "value_lines": self.value_lines,
            "hello_lines": self.hellos,
            "out_pause_ms": max(gaps, default=0.0) * 1000,
            "newest": {key: entry[:2] for key, entry in self.values.items()},
            "ages": self.ages,
        }


def covers(pattern, key):
    """Whether a subscribed key (a trailing / means the subtree) covers an outbound key."""
    return key.startswith(pattern) if pattern.endswith("/") else key == pattern
