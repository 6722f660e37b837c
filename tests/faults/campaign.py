"""Breaks everything around a running bridge, at random from a seed, and judges all that phones and robot saw.

    python tests/faults/campaign.py [--minutes N] [--seed S] [--kind NAME] [--json FILE] [--record FILE] [--write]
    python tests/faults/campaign.py --table FILE... [--write]

Exits with 1 if anything was wrong; the same seed brings the same faults. ``--table`` adds up the results of several
runs, ``--write`` puts them into docs/reliability.md.
"""

import argparse
import contextlib
import json
import random
import socket
import sys
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

from faults.document import put_section  # noqa: E402 (below the path)
from faults.ground import SmallDisk, WallClock  # noqa: E402
from faults.injections import Injector, NotInjectedError  # noqa: E402
from faults.lives import Figures, Lives  # noqa: E402
from faults.oracles import Judge  # noqa: E402
from faults.parts import RobotProcess, Traffic  # noqa: E402
from faults.record import keep  # noqa: E402
from faults.report import table  # noqa: E402
from faults.schedule import KINDS, PHONES, Fault, faults  # noqa: E402
from faults.stall import StallWatch  # noqa: E402
from rig.main_job import MainJob  # noqa: E402
from rig.nt_process import NtProcess, free_port  # noqa: E402

HEAL_S = 3.0
GIVE_UP_S = 20.0
# What a minute must bring: 500 unplugs and 100 server restarts in five runs of twelve minutes.
QUOTAS = {"unplugs at a random byte": 100 / 12, "server restarts": 20 / 12}
OVERTIME = 1.5  # a slow machine gets so much of the time more to bring it
CONFIG = """
[sources]
frc = {{ enabled = true, listen = ["ds2rio-udp:{udp}"] }}
[record]
enabled = true
rotate_mib = 1
keep_mib = 4
min_free_mib = 2
"""


def kept_port() -> int:
    """A port that no connection of anybody gets while the robot is down: below those that the kernel deals out."""
    for port in random.SystemRandom().sample(range(15_000, 32_000), 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError("no free port")


class Campaign:
    """One run. ``judge`` holds what was wrong, ``healed`` the recovery times per kind."""

    def __init__(self, seed: int, kinds: list[str] | None = None, record: Path | None = None) -> None:
        self.began = time.monotonic()
        self.seed = seed
        self.plan = faults(seed, kinds)
        self.judge = Judge()
        self.lives = Lives()
        self.lock = threading.Lock()
        self.injected: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()
        self.healed: dict[str, list[float]] = defaultdict(list)
        self._kinds = kinds
        self._record = record

    # The run.

    def run(self, minutes: float) -> None:
        """Break things for so long; the judge knows the rest."""
        with contextlib.ExitStack() as stack:
            if self._record is not None:
                keep(self.judge, stack.enter_context(self._record.open("w")))
            self._build(stack)
            self._start(stack)
            end = time.monotonic() + minutes * 60
            latest = end + (OVERTIME - 1) * minutes * 60
            while not self.judge.faults and time.monotonic() < (end if self._enough(minutes) else latest):
                if (fault := next(self.plan, None)) is None:
                    break
                self._round(fault)
            self._finish()

    def _enough(self, minutes: float) -> bool:
        return self._kinds is not None or all(
            self.injector.counts[name] >= rate * minutes for name, rate in QUOTAS.items()
        )

    def _build(self, stack: contextlib.ExitStack) -> None:
        self.job = MainJob(
            {"switch_s": 0.3},
            {"name": "p2", "at": "1-2", "switch_s": 0.3},
            robot=False,
            program=HERE / "rig_phones.py",
            keys=["/load/"],
        )
        stack.enter_context(self.job)
        self.job.robot = NtProcess.server(kept_port())
        self.robot = RobotProcess(self.job.robot.port, self.judge, self.lock)
        stack.callback(self.robot.kill)
        self.injector = Injector(self.job, self.robot, self.judge, self.lock, self.seed)
        self.injector.on_daemon = self.lives.begin
        self.injector.udp = free_port()
        self.injector.config = CONFIG.format(udp=self.injector.udp)
        directory = self.job.phones.directory
        disk = None
        try:
            disk = SmallDisk(directory / "disk")
        except PermissionError as error:
            print(f"no disk-full: {error}", file=sys.stderr)
        else:
            stack.callback(disk.close)
        self.injector.surround(WallClock(directory), disk)
        stack.callback(self._stop_daemon)  # before its disk goes

    def _start(self, stack: contextlib.ExitStack) -> None:
        self.robot.start()
        self.injector.start_daemon()
        for name in PHONES:
            self.job.phones.do("plug", name)
        self.traffic = Traffic(self.job.phones.root / "rig.sock", PHONES, self.judge, self.lock)
        self.traffic.start()
        self.stall = StallWatch(self._pids, lambda end, seconds: self._tell("on_stall", end, seconds))
        self.stall.start()
        stack.callback(self.stall.stop)
        self._until_live("start", time.monotonic(), 2 * GIVE_UP_S)

    def _stop_daemon(self) -> None:
        if self.job.daemon is not None and self.job.daemon.process.poll() is None:
            self.job.stop_daemon()

    def _pids(self) -> list[int]:
        """Everybody on the way of a message; a daemon that is just being started is none."""
        processes = [getattr(self.job.daemon, "process", None), self.robot.process]
        return [self.job.phones.pid, *(process.pid for process in processes if process is not None)]

    def _tell(self, name: str, *arguments: object) -> None:
        with self.lock:
            getattr(self.judge, name)(*arguments)

    def _round(self, fault: Fault) -> None:
        """One fault, or several of which the next comes before the last has healed; then all must be well."""
        kinds = []
        injector = self.injector
        injector.over_at = 0.0
        while True:
            print(f"{time.monotonic() - self.began:6.1f} {fault.kind} {fault.phone} {fault.size:.2f}", file=sys.stderr)
            try:
                injector.do(fault)
            except NotInjectedError as error:
                self.missed[f"{fault.kind}: {error}"] += 1
            except (OSError, ValueError, AssertionError):
                time.sleep(0.5)
                if not self._ended(fault.kind):
                    raise
                return
            else:
                kinds.append(fault.kind)
                self.injected[fault.kind] += 1
            injector.of_daemon["faults"] += 1
            if not fault.together:
                break
            fault = next(self.plan)
        time.sleep(max(0.0, injector.over_at - time.monotonic()))
        if kinds:
            self._until_well(kinds, injector.over_at)
        if self.job.daemon.process.poll() is None:
            self._look_at_daemon()
        time.sleep(fault.after_s)

    def _until_well(self, kinds: list[str], over_at: float) -> None:
        name = kinds[0] if len(kinds) == 1 else "several at once"
        took = self._until_live(name, over_at, GIVE_UP_S)
        if self.job.daemon.process.poll() is not None:
            return
        if took is None or took - self.judge.stall(over_at, over_at + took) > HEAL_S:
            waited = "never" if took is None else f"{took:.2f} s"
            self._wrong(f"{' + '.join(kinds)}: {waited} until all was live{self._shown()}")
        else:
            self.healed[name].append(took)

    def _until_live(self, what: str, since: float, seconds: float) -> float | None:
        """Seconds from a moment until every phone heard a value and got a put through that are younger."""
        while time.monotonic() < since + seconds:
            if self.traffic.error is not None:
                raise self.traffic.error
            with self.lock:
                fresh = [min(self.judge.value_s[name], self.judge.put_s[name]) for name in PHONES]
            if min(fresh) > since:
                return time.monotonic() - since
            if self._ended(what):
                return None
            time.sleep(0.02)
        return None

    def _ended(self, what: str) -> bool:
        """Whether the daemon has, which is wrong."""
        status = self.job.daemon.process.poll()
        if status is None:
            return False
        time.sleep(0.5)  # its last words
        self._wrong(f"{what}: the daemon has ended with {status}: {self.job.daemon.log[-30:]}")
        return True

    def _shown(self) -> str:
        """What the daemon itself says of its phones; whether each hears too little, or is not heard."""
        with self.lock:
            ages = {name: (self.judge.value_s[name], self.judge.put_s[name]) for name in PHONES}
        now = time.monotonic()
        phones = [(view["name"], view["state"], view["subscriptions"]) for view in self.job.daemon.status()["phones"]]
        shown = [(name, *(round(now - at, 1) for at in pair)) for name, pair in ages.items()]
        return f"; {phones}; ages {shown}; robot {self.job.daemon.status()['robot']}; log {self.job.daemon.log[-30:]}"

    def _wrong(self, text: str) -> None:
        self._tell("on_wrong", f"at {time.monotonic() - self.began:.1f}: {text}")

    def _look_at_daemon(self) -> None:
        """Threads, descriptors, memory and log of this daemon must stay what they were, and what they always are."""
        age, robots = self.injector.of_daemon["faults"], self.injector.of_daemon["robots"]
        threads, descriptors, mib = self.job.figures()
        self.lives.look(Figures(age, threads, descriptors, mib, len(self.job.daemon.log), robots))
        for text in self.lives.faults:
            self._wrong(text)
        self.lives.faults.clear()

    def _finish(self) -> None:
        self.traffic.stop()
        until = time.monotonic()
        for phone in PHONES:
            for event in self.job.phones.do("events", phone):
                if event["event"] in ("link end", "unplug"):
                    self._tell("on_link_end", phone, event["t"])
        self.robot.kill()
        self.stall.stop()
        self._tell("judge_end", until)
        self._stop_daemon()

    def result(self) -> dict[str, object]:
        """Everything that a report needs."""
        with self.lock:
            return {
                "seed": self.seed,
                "minutes": (time.monotonic() - self.began) / 60,
                "injected": dict(self.injected),
                "without_effect": dict(self.missed),
                "healed": dict(self.healed),
                "counts": {**self.judge.counts, **self.injector.counts},
                "daemons": len(self.lives.lives),
                "stall_s": self.judge.stall(0.0, time.monotonic()),
                "faults": list(self.judge.faults),
            }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--kind", action="append", choices=list(KINDS), help="only faults of this kind (again for more)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="the result for --table")
    parser.add_argument("--record", type=Path, metavar="FILE", help="all that was judged, as JSON lines")
    parser.add_argument("--table", type=Path, nargs="+", metavar="FILE", help="no run: add up the results of runs")
    parser.add_argument("--write", action="store_true", help="put the table into docs/reliability.md")
    options = parser.parse_args(arguments)
    if options.table:
        results = [json.loads(path.read_text()) for path in options.table]
    else:
        campaign = Campaign(options.seed, options.kind, options.record)
        campaign.run(options.minutes)
        results = [campaign.result()]
        if options.json is not None:
            options.json.write_text(json.dumps(results[0], indent=1) + "\n")
    text = table(results)
    print(text)
    wrong = [f"seed {result['seed']}: {fault}" for result in results for fault in result["faults"]]
    for fault in wrong[:20]:
        print("WRONG:", fault)
    if options.write and not wrong:
        put_section("campaign", text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
