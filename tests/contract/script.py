"""Plays the script of a case against a rig. A generator of waits, so that virtual and real time share it.

A rig offers: now(), do(item, phone, **arguments), busy(), cut_hits(), condition(name, phone), phones,
host_start/stop/kill(), host_stop_link(), nt_publish/nt_lines/nt_stall(...), note(event, phone).
"""

import random
from dataclasses import dataclass

__all__ = ["Script", "Wait"]

CONDITION_LIMIT_S = 60.0  # a condition that never comes true must not hang the run; the expectations then tell
LEVEL_S = 3.0  # a condition that simply stays true counts as met after this time
SETTLE_LIMIT_S = 15.0
HOST_ITEMS = frozenset({"host_start", "host_stop", "host_kill"})
TRAFFIC = {"topics": 2, "rate_hz": 10, "value_bytes": 40, "bytes_per_s": 600}
LINE_BYTES = (50, 90, 500)


@dataclass(frozen=True)
class Wait:
    """Until `when` (rig seconds), or earlier once `until()` is true."""

    when: float
    until: object = None


class Script:
    """One playing of the items; `ended_early` tells that a condition never came."""

    def __init__(self, run, rig, shorten=None):
        self.items = run.script
        self.rig = rig
        self.shorten = shorten  # seconds after which long repetitions end, None = all of them
        self.never = []
        self._every = []

    @property
    def host_runs_from_start(self):
        first = next((item["do"] for item in self.items if item["do"].startswith("host_")), None)
        return first != "host_start"

    def play(self):
        """Yields Waits; returns when the script has ended."""
        rig = self.rig
        if self.host_runs_from_start:
            rig.host_start()
        origin = ended = rig.now()  # the host runs from here on, it does not begin to start here
        for item in self.items:
            if isinstance(item.get("every"), str):
                self._every.append({"item": item, "was": False, "due": []})
                continue
            phone = item.get("phone")
            if "at" in item:
                yield from self._until(origin + item["at"])
            elif "when" in item:
                yield from self._condition(item["when"], phone, ended)
                yield from self._until(rig.now() + item.get("plus", 0))
            else:
                yield from self._until(ended + item.get("after", 0))
            if item["do"] == "end":
                return
            yield from self._run(item, phone)
            ended = rig.now()

    # waiting

    def _until(self, when, until=None):
        """Waits, watching the `every` rules meanwhile."""
        if not self._every:
            if self.rig.now() < when:
                yield Wait(when, until)
            return
        while self.rig.now() < when and not (until and until()):
            self._watch_every()
            due = [at for rule in self._every for at in rule["due"]]
            yield Wait(min([when, self.rig.now() + 0.05, *due]), until)
        self._watch_every()

    def _watch_every(self):
        for rule in self._every:
            item = rule["item"]
            now, true = self.rig.now(), self.rig.condition(item["every"], item.get("phone"))
            if true and not rule["was"]:
                rule["due"].append(now + item.get("plus", 0))
            rule["was"] = true
            for at in [at for at in rule["due"] if at <= now]:
                rule["due"].remove(at)
                self._do(item, item.get("phone"))

    def _condition(self, name, phone, since):
        """The next time it becomes true; one that stays true all along counts after a while."""
        rig = self.rig
        limit = rig.now() + CONDITION_LIMIT_S
        if rig.condition(name, phone):
            level = since + LEVEL_S
            yield from self._until(level, lambda: not rig.condition(name, phone))
            if rig.condition(name, phone):
                return
        yield from self._until(limit, lambda: rig.condition(name, phone))
        if not rig.condition(name, phone):
            self.never.append(name)

    def _settled(self, predicate, limit=SETTLE_LIMIT_S):
        yield from self._until(self.rig.now() + limit, predicate)

    # items

    def _run(self, item, phone):
        name, arguments = item["do"], self._arguments(item)
        composite = getattr(self, f"_{name}", None)
        if composite is not None:
            yield from composite(phone, **arguments)
            return
        self._do(item, phone)
        if name in ("app_lines", "app_bytes", "app_chunks", "app_flood") and "seconds" not in arguments:
            yield from self._settled(lambda: not self.rig.busy(), limit=120.0)

    @staticmethod
    def _arguments(item):
        """What is not timing; `every` is timing only if it names a condition."""
        timing = ("at", "when", "plus", "after", "do", "phone")
        named = {key: value for key, value in item.items() if key not in timing}
        if isinstance(named.get("every"), str):
            del named["every"]
        return named

    def _do(self, item, phone):
        name, arguments = item["do"], self._arguments(item)
        rig = self.rig
        if name in HOST_ITEMS:
            getattr(rig, name)()
        elif name in ("nt_publish", "nt_stall"):
            getattr(rig, name)(**arguments)
        elif name == "traffic":
            seconds = arguments.get("seconds", 10.0)
            rig.do("app_stream", phone, bytes_per_s=TRAFFIC["bytes_per_s"], seconds=seconds)
            rig.nt_publish(TRAFFIC["topics"], TRAFFIC["rate_hz"], TRAFFIC["value_bytes"], seconds)
        else:
            rig.note(name, phone, **arguments)
            rig.do(name, phone, **arguments)

    def _nt_lines(self, phone, lengths, gap_s=0.1, repeat=1, **_):
        for _round in range(repeat):
            for index, length in enumerate(lengths):
                self.rig.nt_line(f"/bench/{index}", length)
                yield from self._until(self.rig.now() + gap_s)

    def _replug(self, phone, gap_s):
        """Unplug, absent for gap_s, plug."""
        self._do({"do": "unplug"}, phone)
        yield from self._until(self.rig.now() + gap_s)
        self._do({"do": "plug"}, phone)

    def _host_stop_link(self, phone, cycles, **_):
        """Orderly ends of the link with traffic running, each followed by a new link."""
        rig, begin = self.rig, self.rig.now()
        rig.nt_publish(5, 20, 40, 99999)
        for _cycle in range(cycles):
            rig.do("app_stream", phone, bytes_per_s=600, seconds=0.5)
            rig.host_stop_link()
            yield from self._settled(lambda: rig.condition("linked", phone))
            yield from self._until(rig.now() + 0.05)
            if self.shorten is not None and rig.now() - begin > self.shorten:
                return

    def _host_kill_at_out_byte(self, phone, every, line_bytes, **_):
        """Kills the host after k bytes of a line, for k in 1 to n; between two kills a new host runs."""
        rig, begin = self.rig, self.rig.now()
        for count in range(1, line_bytes, every):
            if count > 1:
                yield from self._until(rig.now() + 0.3)
                rig.host_start()
                yield from self._settled(lambda: rig.condition("live", phone))
                yield from self._until(rig.now() + 0.2)
            yield from self._kill_once(phone, count, line_bytes)
            if self.shorten is not None and rig.now() - begin > self.shorten:
                return

    def _kill_once(self, phone, count, line_bytes):
        rig = self.rig
        hits = rig.cut_hits()
        rig.do("cut_out", phone, count=count, min_length=line_bytes)
        rig.nt_line("/bench/0", line_bytes)
        yield from self._settled(lambda: rig.cut_hits() > hits, limit=5.0)
        rig.host_kill()
        rig.do("resume_out", phone)

    def _shuffle_replug(self, phone, times, gap_s, seed):
        """All phones leave and come back in random order."""
        rig, rng, begin = self.rig, random.Random(seed), self.rig.now()
        names = list(rig.phones)
        for _round in range(times):
            for name in rng.sample(names, len(names)):
                self._do({"do": "unplug"}, name)
                yield from self._until(rig.now() + rng.uniform(0, 0.3))
            yield from self._until(rig.now() + gap_s)
            for name in rng.sample(names, len(names)):
                self._do({"do": "plug"}, name)
                yield from self._until(rig.now() + rng.uniform(0, 0.3))
            yield from self._settled(lambda: all(rig.condition("live", name) for name in names), limit=5.0)
            if self.shorten is not None and rig.now() - begin > self.shorten:
                return

    def _random_replug(self, phone, times, gap_s, seed):
        """Unplugged at random moments, absent for a random time."""
        rig, rng, begin = self.rig, random.Random(seed), self.rig.now()
        low, high = gap_s if isinstance(gap_s, list | tuple) else (gap_s, gap_s)
        for _round in range(times):
            yield from self._until(rig.now() + rng.uniform(0.05, 1.0))
            self._do({"do": "unplug"}, phone)
            yield from self._until(rig.now() + rng.uniform(low, high))
            self._do({"do": "plug"}, phone)
            yield from self._settled(lambda: rig.condition("live", phone))
            if self.shorten is not None and rig.now() - begin > self.shorten:
                return
