"""Breaks everything around a running bridge, at random from a seed, and judges all that phones and robot saw.

    python tests/faults/campaign.py [--minutes N] [--seed S] [--kind NAME] [--write]

Exits with 1 if anything was wrong; the same seed brings the same faults. ``--write`` makes docs/reliability.md of it.
"""

import argparse
import fcntl
import random
import signal
import socket
import sys
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

from faults.oracles import Judge, Span  # noqa: E402 (below the path)
from faults.parts import RobotProcess, Traffic  # noqa: E402
from faults.report import table, write  # noqa: E402
from faults.schedule import KINDS, PHONES, Fault, faults  # noqa: E402
from rig.main_job import MainJob  # noqa: E402
from rig.nt_process import free_port  # noqa: E402

HEAL_S = 3.0
GIVE_UP_S = 20.0
REPLUG_S = 3.2  # a hand, not the phone itself: no ladder
# The known app subscribes its pose a second after the rest. If a daemon dies in between, or a stalled endpoint loses
# the first of the two, the bridge hears the pose alone and takes it for all that the app wants, until the app repeats
# everything after a minute. Neither fault is injected in that second.
SUBSCRIBED_S = 1.5
STEADY_FIRST = 3  # faults until the daemon has met everything once and its memory is what it needs
MAX_MIB, MAX_THREADS, MAX_DESCRIPTORS = 24, 2, 4
LOG_LINES_PER_FAULT = 40
PIPE_SIZE = 1031  # F_SETPIPE_SZ
CONFIG = '\n[sources]\nfrc = {{ enabled = true, listen = ["ds2rio-udp:{udp}"] }}\n'


class Campaign:
    """One run. ``judge`` holds what was wrong, ``healed`` the recovery times per kind."""

    def __init__(self, seed: int, kinds: list[str] | None = None) -> None:
        self.began = time.monotonic()
        self.rng = random.Random(seed)
        self.plan = faults(seed, kinds)
        self.judge = Judge()
        self.lock = threading.Lock()
        self.udp = free_port()
        self.job = MainJob(
            {"switch_s": 0.3},
            {"name": "p2", "at": "1-2", "switch_s": 0.3},
            robot=False,
            program=HERE / "rig_phones.py",
            keys=["/load/"],
        )
        self.robot = RobotProcess(self.job.robot.port, self.judge, self.lock)
        self.traffic = Traffic(self.job.phones.root / "rig.sock", PHONES, self.judge, self.lock)
        self.injected: Counter[str] = Counter()
        self.healed: dict[str, list[float]] = defaultdict(list)
        self.losses: list[Span] = []
        self.sockets = {"p1": "1-1", "p2": "1-2"}
        self.steady: tuple[int, int, float] | None = None
        self.of_daemon = Counter[str]()

    # The run.

    def run(self, minutes: float) -> None:
        with self.job:
            self.start()
            end = time.monotonic() + minutes * 60
            while time.monotonic() < end and not self.judge.faults:
                self.round()
            self.finish()

    def start(self) -> None:
        self.robot.start()
        self.job.start_daemon(config=CONFIG.format(udp=self.udp))
        for name in PHONES:
            self.job.phones.do("plug", name)
        self.traffic.start()
        self.until_live("start", time.monotonic(), 2 * GIVE_UP_S)

    def round(self) -> None:
        """One fault, or several of which the next comes before the last has healed; then all must be well."""
        began = time.monotonic()
        kinds = []
        while True:
            fault = next(self.plan)
            kinds.append(fault.kind)
            self.injected[fault.kind] += 1
            self.of_daemon["faults"] += 1
            print(f"{time.monotonic() - self.began:6.1f} {fault.kind} {fault.phone} {fault.size:.2f}", file=sys.stderr)
            getattr(self, "do_" + fault.kind.replace("-", "_"))(fault)
            if not fault.together:
                break
        ended = time.monotonic()
        name = kinds[0] if len(kinds) == 1 else "several at once"
        took = self.until_live(name, ended, GIVE_UP_S)
        now = time.monotonic()
        for phone in PHONES:
            self.traffic.breaks[phone].append(Span(began, now))
        if any(kind.startswith(("robot", "daemon")) for kind in kinds):
            self.losses.append(Span(began, now))
        if took is None or took > HEAL_S:
            self.wrong(
                f"{' + '.join(kinds)}: {'never' if took is None else f'{took:.2f} s'} until all was live{self.shown()}"
            )
        else:
            self.healed[name].append(took)
        self.look_at_daemon()
        time.sleep(fault.after_s)

    def until_live(self, what: str, since: float, seconds: float) -> float | None:
        """Seconds from a moment until every phone heard a value and got a put through that are younger."""
        while time.monotonic() < since + seconds:
            if self.traffic.error is not None:
                raise self.traffic.error
            with self.lock:
                fresh = [min(self.judge.value_s[name], self.judge.put_s[name]) for name in PHONES]
            if min(fresh) > since:
                return time.monotonic() - since
            if self.job.daemon.process.poll() is not None:
                self.wrong(f"{what}: the daemon has ended: {self.job.daemon.log[-3:]}")
                return None
            time.sleep(0.02)
        return None

    def until_subscribed(self) -> None:
        """Waits until every app has said all that it wants."""
        self.until_live("before", time.monotonic(), GIVE_UP_S)
        time.sleep(SUBSCRIBED_S)

    def shown(self) -> str:
        """What the daemon itself says of its phones; whether each hears too little, or is not heard."""
        with self.lock:
            ages = {name: (self.judge.value_s[name], self.judge.put_s[name]) for name in PHONES}
        now = time.monotonic()
        phones = [(view["name"], view["state"], view["subscriptions"]) for view in self.job.daemon.status()["phones"]]
        return f"; {phones}; ages {[(name, *(round(now - at, 1) for at in pair)) for name, pair in ages.items()]}"

    def wrong(self, text: str) -> None:
        with self.lock:
            self.judge.faults.append(text)

    def look_at_daemon(self) -> None:
        """Threads, descriptors, memory and log of this daemon must stay what they were."""
        figures = self.job.figures()
        if self.of_daemon["faults"] == STEADY_FIRST or self.steady is None:
            self.steady = figures
            return
        for name, now, then, more in zip(
            ("threads", "descriptors", "MiB"),
            figures,
            self.steady,
            (MAX_THREADS, MAX_DESCRIPTORS + self.of_daemon["robots"], MAX_MIB),
            strict=True,
        ):
            if now > then + more:
                self.wrong(f"{name} grew from {then:.0f} to {now:.0f}")
        if len(self.job.daemon.log) > 50 + LOG_LINES_PER_FAULT * self.of_daemon["faults"]:
            self.wrong(f"{len(self.job.daemon.log)} log lines for {self.of_daemon['faults']} faults")

    def finish(self) -> None:
        self.traffic.stop()
        until = time.monotonic()
        with self.lock:
            self.judge.judge_end(self.losses, self.traffic.breaks, until)
        self.robot.kill()
        self.job.stop_daemon()

    # Faults. Each returns when its cause is gone.

    def do_unplug(self, fault: Fault) -> None:
        before = self.job.phones.last_event("unplug", fault.phone) or 0.0
        step = self.rng.choice(("read", "write"))
        bytes_in = self.rng.randrange(1, 58 if step == "read" else 600)
        self.job.phones.do("cut", fault.phone, step=step, byte=bytes_in, gap_s=REPLUG_S)
        self.job.daemon.until(lambda: (self.job.phones.last_event("unplug", fault.phone) or 0.0) > before)
        time.sleep(REPLUG_S)

    def do_phone_reboot(self, fault: Fault) -> None:
        self.job.phones.do("unplug", fault.phone)
        time.sleep(REPLUG_S + 3 * fault.size)
        self.job.phones.do("plug", fault.phone)

    def do_swap(self, fault: Fault) -> None:
        for name in PHONES:
            self.job.phones.do("unplug", name)
        time.sleep(REPLUG_S)
        self.sockets = {"p1": self.sockets["p2"], "p2": self.sockets["p1"]}
        for name in PHONES:
            self.job.phones.do("move", name, at=self.sockets[name])
            self.job.phones.do("plug", name)

    def do_app_restart(self, fault: Fault) -> None:
        gap_s = 0.2 + 2 * fault.size
        self.job.phones.do("app_restart", fault.phone, gap_s=gap_s)
        time.sleep(gap_s)

    def do_app_deaf(self, fault: Fault) -> None:
        self.job.phones.do("app_stop_reading", fault.phone)
        time.sleep(0.2 + 2.5 * fault.size)
        self.job.phones.do("app_read", fault.phone)

    def do_stutter(self, fault: Fault) -> None:
        self.job.phones.do("accept_out", fault.phone, sweep="every_split", nak_ms=5)

    def do_stall(self, fault: Fault) -> None:
        self.until_subscribed()
        self.job.phones.do("halt", fault.phone)

    def do_robot_restart(self, fault: Fault) -> None:
        self.robot.kill()
        time.sleep(0.1 + 2 * fault.size)
        self.robot.variant += 1
        self.robot.start()
        self.of_daemon["robots"] += 1

    def do_robot_frozen(self, fault: Fault) -> None:
        self.robot.send(signal.SIGSTOP)
        time.sleep(0.2 + 4 * fault.size)
        self.robot.send(signal.SIGCONT)
        self.of_daemon["robots"] += 1

    def do_daemon_killed(self, fault: Fault) -> None:
        self._restart(fault, signal.SIGKILL)

    def do_daemon_restart(self, fault: Fault) -> None:
        self._restart(fault, signal.SIGTERM)

    def _restart(self, fault: Fault, how: signal.Signals) -> None:
        self.until_subscribed()
        self.job.stop_daemon(how)
        time.sleep(fault.size)
        self.job.start_daemon(config=CONFIG.format(udp=self.udp))
        self.steady = None
        self.of_daemon.clear()

    def _reload(self, text: str, *, good: bool) -> None:
        """A changed file, then the old one again; the daemon says of each whether it took it."""
        daemon = self.job.daemon
        before = daemon.config.read_text()
        for content, taken in ((before + text, good), (before, True)):
            draft = daemon.config.with_suffix(".new")
            draft.write_text(content)
            draft.replace(daemon.config)
            daemon.process.send_signal(signal.SIGHUP)
            daemon.until(lambda taken=taken: (not daemon.status()["config"]["errors"]) is taken)

    def do_reload_good(self, fault: Fault) -> None:
        self._reload(f"\n[relay]\nput_rate = {501 + round(fault.size * 100)}\n", good=True)

    def do_reload_bad(self, fault: Fault) -> None:
        self._reload("\n[relay]\nput_rate = 'fast'\n", good=False)

    def do_udp_flood(self, fault: Fault) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(2000 + round(8000 * fault.size)):
                sender.sendto(self.rng.randbytes(self.rng.randrange(1, 200)), ("127.0.0.1", self.udp))

    def do_log_blocked(self, fault: Fault) -> None:
        """The smallest pipe, and a reader that waits: what is written must not hold the daemon up."""
        daemon = self.job.daemon
        assert daemon.process.stderr is not None
        fcntl.fcntl(daemon.process.stderr, PIPE_SIZE, 4096)
        plain, gate = daemon.log, threading.Event()

        class Blocked(list):
            def append(self, line: str) -> None:
                gate.wait()
                super().append(line)

        daemon.log = Blocked(plain)
        garbage = 'no json at all\n{"action":"put","key":"$x","value":1}\n' * 20
        end = time.monotonic() + 1 + 2 * fault.size
        while time.monotonic() < end:
            self.job.phones.do("say", fault.phone, text=garbage)
            time.sleep(0.1)
        gate.set()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev faults")
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--kind", action="append", choices=list(KINDS), help="only faults of this kind (again for more)"
    )
    parser.add_argument("--write", action="store_true", help="make docs/reliability.md of the run")
    options = parser.parse_args(arguments)
    campaign = Campaign(options.seed, options.kind)
    campaign.run(options.minutes)
    text = table(campaign.injected, campaign.healed, campaign.judge.counts)
    print(text)
    for fault in campaign.judge.faults[:20]:
        print("WRONG:", fault)
    print(f"seed {options.seed}, {sum(campaign.injected.values())} faults, {len(campaign.judge.faults)} wrong")
    if options.write and not campaign.judge.faults:
        write(text, options.minutes, options.seed)
    return 1 if campaign.judge.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
