"""Threads, descriptors, memory and log of the daemon over all its lives. Pure."""

from statistics import median
from typing import NamedTuple

__all__ = ["Figures", "Lives"]

STEADY_AGE = 3  # faults until a daemon has met the usual things once
MAX_THREADS, MAX_DESCRIPTORS, MAX_MIB = 2, 4, 16
MAX_MIB_OVER_LIVES = 12
LOG_LINES, LOG_LINES_PER_FAULT = 50, 30
EARLIER_LIVES = 2  # make a median


class Figures(NamedTuple):
    """What a daemon is after ``age`` faults; ``robots``: connections that it lost, of which each may cost ntcore a
    descriptor."""

    age: int
    threads: int
    descriptors: int
    mib: float
    log_lines: int
    robots: int


class Lives:
    """``faults`` says what grew within a life, or from life to life."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.lives: list[dict[int, Figures]] = []

    def begin(self) -> None:
        """A daemon starts."""
        self.lives.append({})

    def look(self, now: Figures) -> None:
        """Figures of the running daemon, when all is well again after a fault."""
        life = self.lives[-1]
        life[now.age] = now
        steady = next((figures for age, figures in life.items() if age >= STEADY_AGE), None)
        if steady is not None:
            self._compare("in this life", now, steady, MAX_MIB)
        earlier = [other[now.age] for other in self.lives[:-1] if now.age in other]
        if len(earlier) >= EARLIER_LIVES:
            usual = Figures(*(median(column) for column in zip(*earlier, strict=True)))
            self._compare("over lives", now, usual, MAX_MIB_OVER_LIVES)
        if now.log_lines > LOG_LINES + LOG_LINES_PER_FAULT * now.age:
            self.faults.append(f"{now.log_lines} log lines for {now.age} faults")

    def _compare(self, where: str, now: Figures, then: Figures, mib: float) -> None:
        lost = max(0.0, now.robots - then.robots)
        for name, value, usual, more in (
            ("threads", now.threads, then.threads, MAX_THREADS),
            ("descriptors", now.descriptors, then.descriptors, MAX_DESCRIPTORS + lost),
            ("MiB", now.mib, then.mib, mib),
        ):
            if value > usual + more:
                self.faults.append(f"{name} grew {where} from {usual:.0f} to {value:.0f}")
