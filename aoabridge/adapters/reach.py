"""Why a server cannot be reached: asked once in a while, in a thread, only as long as there is no connection."""

import socket
import time
from collections.abc import Sequence
from enum import Enum

__all__ = ["PATIENCE_S", "Answer", "answer_of", "in_robot_network"]

PATIENCE_S = 1.0  # a robot on the same switch answers in milliseconds


class Answer(Enum):
    """What a host does with a connection."""

    OPEN = "open"
    REFUSED = "refused"
    SILENT = "silent"


def answer_of(targets: Sequence[tuple[str, int]], patience_s: float = PATIENCE_S) -> tuple[Answer, str]:
    """The best answer of any target, and its host; blocks for up to ``patience_s`` plus the time of name lookups."""
    best = (Answer.SILENT, "")
    deadline = time.monotonic() + patience_s
    for host, port in targets:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            break
        answer = _answer(host, port, left_s / 2)
        if answer is Answer.OPEN:
            return answer, host
        if answer is Answer.REFUSED:
            best = (answer, host)
    return best


def in_robot_network(team: int) -> bool:
    """True if this machine has an address in 10.TE.AM.0/24 that it would use towards the robot; sends nothing."""
    network = f"10.{team // 100}.{team % 100}."
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((network + "2", 9))
        except OSError:
            return False
        return str(probe.getsockname()[0]).startswith(network)


def _answer(host: str, port: int, patience_s: float) -> Answer:
    try:
        socket.create_connection((host, port), timeout=patience_s).close()
    except ConnectionRefusedError:
        return Answer.REFUSED
    except (OSError, UnicodeError):  # the latter: a label of the name is empty or too long
        return Answer.SILENT
    return Answer.OPEN
