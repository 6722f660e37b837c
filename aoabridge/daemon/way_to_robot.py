"""Why the robot is not reached: asked in a thread of its own, only while it is being looked for."""

import ipaddress
import threading
from collections.abc import Callable, Sequence

from aoabridge.adapters.reach import Answer, answer_of, in_robot_network
from aoabridge.codecs.host_port import host_of, split_host_port

__all__ = ["WayToRobot", "is_test_address"]

FIRST_S = 1.5  # a healthy robot is connected by then, and never asked
PERIOD_S = 5.0

Ask = Callable[[Sequence[tuple[str, int]]], tuple[Answer, str]]


class WayToRobot:
    """``tick`` asks now and then; ``answer`` and ``is_outside`` hold what was found, None as long as nothing is known.

    The thread is one that the end of the process does not wait for: a name lookup may take many seconds.
    """

    def __init__(self, ask: Ask = answer_of, inside: Callable[[int], bool] = in_robot_network) -> None:
        self.answer: Answer | None = None
        self.host = ""
        self.is_outside: bool | None = None
        self._ask = ask
        self._inside = inside
        self._question: tuple[tuple[str, ...], int | None] | None = None
        self._due = 0.0
        self._thread: threading.Thread | None = None

    def tick(self, looking: bool, targets: Sequence[str], team: int | None, now: float) -> None:
        """``looking``: the robot is wanted, there is a network, and no connection."""
        question = (tuple(targets), team) if looking else None
        if question != self._question:
            self._question, self._due = question, now + FIRST_S
            self.answer, self.host, self.is_outside = None, "", None
        if question is None or now < self._due or (self._thread is not None and self._thread.is_alive()):
            return
        self._due = now + PERIOD_S
        self._thread = threading.Thread(target=self._run, args=question, name="way-to-robot", daemon=True)
        self._thread.start()

    def _run(self, targets: tuple[str, ...], team: int | None) -> None:
        question = (targets, team)
        outside = None if team is None else not self._inside(team)
        answer, host = self._ask([split_host_port(target, 0) for target in targets])
        if self._question == question:
            self.is_outside, self.host, self.answer = outside, host, answer


def is_test_address(address: str) -> bool:
    """True for a server on this machine: a simulation or a bench, no robot."""
    host = host_of(address)
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
