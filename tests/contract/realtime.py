"""What the rigs in real time share: the script's surface, the robot, playing, evidence."""

import threading
import time

from contract.evidence import Evidence, Observation
from contract.robot import Robot
from contract.script import Script
from fakes.recorder import percentile

__all__ = ["RealTimeRig"]

POLL_S = 0.003
NOISE_STEP_S = 0.01
HOPS = 4  # threads and processes that a value passes on its way
P99 = frozenset({"age_p99_ms", "in_latency_ms", "out_latency_ms", "age_growth_ms"})
STATES = {"linked": ("LINKED", "LIVE", "STALE"), "live": ("LIVE",), "unplugged": ("ABSENT",)}


class Noise:
    """How late this machine wakes a thread while a run is under way: what times are relaxed by."""

    def __init__(self):
        self._late = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rig-noise", daemon=True)
        self._thread.start()

    def _run(self):
        due = time.monotonic() + NOISE_STEP_S
        while not self._stopping.wait(max(0.0, due - time.monotonic())):
            now = time.monotonic()
            self._late.append(now - due)
            due = now + NOISE_STEP_S

    def stop(self):
        self._stopping.set()
        self._thread.join()

    def relaxation(self, name, speed):
        """What to add to a limit: many wake-ups at the 99th percentile, or the worst ones for a single event."""
        if not name.endswith(("_s", "_ms")) or name.endswith("per_s"):
            return 0.0
        late_s = HOPS * (percentile(self._late, 0.99) or 0.0) if name in P99 else 2 * max(self._late, default=0.0)
        return late_s * speed * (1000 if name.endswith("_ms") else 1)


class RealTimeRig:
    """A rig that plays a run against running threads or processes. A subclass adds host and phones:

    phones (names), select(phone), do(item, phone, ...), busy(), cut_hits(), host_start/stop/kill(), host_stop_link(),
    device_metrics(), host_metrics(), observe().
    """

    def __init__(self, run, shorten=None, speed=1.0):
        self.run = run
        self.speed = speed
        self.origin = time.monotonic()
        self.seen = Observation()
        self.notes = []
        self.problems = []
        self.robot = Robot(self.origin, speed)
        self.script = Script(run, self, shorten)
        self.begin = self.now()

    def now(self):
        return self.origin + (time.monotonic() - self.origin) * self.speed

    def note(self, event, phone=None, **arguments):
        self.notes.append((self.now(), event, phone, arguments))

    def condition(self, name, phone=None):
        self.observe()
        return self.host_runs() and all(self.seen.current(target) in STATES[name] for target in self.select(phone))

    def nt_publish(self, topics, rate_hz, value_bytes, seconds=10.0):
        self.robot.ask("publish", topics=topics, rate_hz=rate_hz, value_bytes=value_bytes, seconds=seconds)

    def nt_line(self, topic, length):
        self.robot.ask("line", topic=topic, length=length)

    def nt_stall(self, seconds):
        self.robot.stall(seconds / self.speed)

    def play(self):
        """Runs the script to its end, then takes the evidence, then stops the host."""
        self.begin = self.now()
        noise = Noise()
        for wait in self.script.play():
            while self.now() < wait.when and not (wait.until is not None and wait.until()):
                self.observe()
                time.sleep(max(0.0, min(POLL_S, (wait.when - self.now()) / self.speed)))
        self.observe()
        noise.stop()
        evidence = self._evidence()
        evidence.relaxation = lambda name: noise.relaxation(name, self.speed)
        return evidence

    def _evidence(self):
        end = self.now()
        self.seen.frozen = True  # what the stop of the host changes is no result
        report = self.robot.ask("report")
        device = self.device_metrics()
        host = self.host_metrics()
        return Evidence(
            device=device,
            seen=self.seen,
            notes=self.notes,
            puts=report["puts"],
            published=report["published"],
            begin=self.begin,
            end=end,
            host=host,
            problems=[*self.problems, *(f"condition {name} never came" for name in self.script.never)],
        )
