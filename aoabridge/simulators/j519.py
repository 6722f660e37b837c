"""The bench robot: a Stream Motion controller without hardware, with faults on request. Sans-IO.

It answers, moves within CRX-like limits, complains like a controller, and can lose, double, delay and swap what it
sends. Times are microseconds of one monotonic clock.
"""

import math
import random
import re

import msgspec

from aoabridge.codecs.j519.packets import AXES
from aoabridge.codecs.j519.pc_events import Address
from aoabridge.codecs.j519.robot_model import RobotConfig, RobotState
from aoabridge.codecs.j519.robot_session import RobotSession

__all__ = ["FEEDBACK_DELAY_US", "BenchFaults", "BenchRobot", "BenchSettings", "parse_faults"]

FEEDBACK_DELAY_US = 60_000  # measured feedback trails the command by about so much
SINE_PERIOD_S = 8.0
SINE_DEG = 20.0  # amplitude: far below every limit at this period
REORDER_CYCLES = 1.5  # so late that the next Status overtakes
_US = 1_000_000

_SHARE = re.compile(r"(drop|dup|reorder)=([0-9.]+)")
_JITTER = re.compile(r"jitter=([0-9.]+)ms")
_MOMENT = re.compile(r"(estop|restart)@([0-9.]+)")


class BenchFaults(msgspec.Struct, frozen=True):
    """What goes wrong: shares of the datagrams sent, a random delay, and moments in seconds (negative = never)."""

    drop: float = 0.0
    dup: float = 0.0
    reorder: float = 0.0
    jitter_ms: float = 0.0
    estop_at_s: float = -1.0
    restart_at_s: float = -1.0


class BenchSettings(msgspec.Struct, frozen=True):
    """One bench robot. ``ready_after_s``: when its program waits for commands, negative = never. ``seed`` of faults."""

    robot: RobotConfig = RobotConfig(feedback_delay_us=FEEDBACK_DELAY_US)
    ready_after_s: float = 0.0
    sine: bool = False
    faults: BenchFaults = BenchFaults()
    seed: int = 1


def parse_faults(text: str) -> BenchFaults:
    """``drop=0.01,dup=0.01,reorder=0.01,jitter=2ms,estop@5,restart@8``; ValueError names what is neither."""
    values: dict[str, float] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        if match := _SHARE.fullmatch(item):
            values[match[1]] = _number(match[2], item)
            if values[match[1]] > 1:
                raise ValueError(f"fault {item!r}: a share is 0 to 1")
        elif match := _JITTER.fullmatch(item):
            values["jitter_ms"] = _number(match[1], item)
        elif match := _MOMENT.fullmatch(item):
            values[f"{match[1]}_at_s"] = _number(match[2], item)
        else:
            raise ValueError(f"unknown fault {item!r}; known: drop=, dup=, reorder=, jitter=…ms, estop@, restart@")
    return BenchFaults(**values)


def _number(text: str, item: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"fault {item!r}: {text!r} is no number") from None


class BenchRobot:
    """A RobotSession with a life of its own; ``sent`` and ``injected`` count what left and what went wrong."""

    def __init__(self, settings: BenchSettings, now_us: int) -> None:
        self.session = RobotSession(settings.robot)
        self.sent = 0
        self.injected: dict[str, int] = dict.fromkeys(("drop", "dup", "reorder"), 0)
        self._settings = settings
        self._random = random.Random(settings.seed)
        self._began_us = now_us
        self._stopped = self._restarted = False
        self._delayed: list[tuple[int, int, bytes, Address]] = []  # (due, order, octets, peer)
        self._order = 0
        self._out: list[tuple[bytes, Address]] = []

    @property
    def next_deadline_us(self) -> int | None:
        """When ``on_tick`` is due."""
        due = [entry[0] for entry in self._delayed]
        if self.session.next_deadline_us is not None:
            due.append(self.session.next_deadline_us)
        return min(due, default=None)

    def on_datagram(self, data: bytes, peer: Address, now_us: int) -> None:
        """Take one datagram."""
        self.session.on_datagram(data, peer, now_us)
        self._collect(now_us)

    def on_tick(self, now_us: int) -> None:
        """Do what is due."""
        self._live((now_us - self._began_us) / _US, now_us)
        self.session.on_tick(now_us)
        self._collect(now_us)

    def take_datagrams(self) -> list[tuple[bytes, Address]]:
        """Remove and return what is to be sent now."""
        taken, self._out = self._out, []
        self.sent += len(taken)
        return taken

    def _live(self, elapsed_s: float, now_us: int) -> None:
        settings, session = self._settings, self.session
        faults = settings.faults
        if not self._stopped and 0 <= faults.estop_at_s <= elapsed_s:
            self._stopped = True
            session.e_stop(True, now_us)
        if not self._restarted and 0 <= faults.restart_at_s <= elapsed_s:
            self._restarted = True
            session.restart()
        if session.state is RobotState.STATUS and 0 <= settings.ready_after_s <= elapsed_s:
            session.set_ready(True)
        if settings.sine and not self._stopped:
            session.jog(_sine(elapsed_s, settings.robot.axes))

    def _collect(self, now_us: int) -> None:
        for data, peer in self.session.take_datagrams():
            self._disturb(data, peer, now_us)
        due = sorted(entry for entry in self._delayed if entry[0] <= now_us)
        self._delayed = [entry for entry in self._delayed if entry[0] > now_us]
        self._out += [(data, peer) for _, _, data, peer in due]

    def _disturb(self, data: bytes, peer: Address, now_us: int) -> None:
        """Lose, double or delay one datagram; everything passes through the list of delayed ones to keep order."""
        faults = self._settings.faults
        if self._hits("drop", faults.drop):
            return
        due_us = now_us + round(self._random.uniform(0.0, faults.jitter_ms) * 1000)
        if self._hits("reorder", faults.reorder):
            due_us += round(REORDER_CYCLES * self._settings.robot.cycle_us)
        copies = 2 if self._hits("dup", faults.dup) else 1
        for _ in range(copies):
            self._order += 1
            self._delayed.append((due_us, self._order, data, peer))

    def _hits(self, name: str, share: float) -> bool:
        hit = share > 0 and self._random.random() < share
        self.injected[name] += hit
        return hit


def _sine(elapsed_s: float, axes: int) -> tuple[float, ...]:
    """Every joint swings, each a little later than the one before it."""
    turn = 2 * math.pi * elapsed_s / SINE_PERIOD_S
    return tuple(SINE_DEG * math.sin(turn - place / 2) if place < axes else 0.0 for place in range(AXES))
