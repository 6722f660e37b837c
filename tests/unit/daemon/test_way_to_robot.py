"""Why the robot is not found: asked in a thread, rarely, and only while it is being looked for."""

import threading
import time
from collections.abc import Sequence

from aoabridge.adapters.reach import Answer
from aoabridge.daemon.way_to_robot import FIRST_S, PERIOD_S, WayToRobot, is_test_address

TARGETS = ("10.64.58.2:5810", "172.22.11.2:5810")


class Network:
    """Answers when it is let to; counts how often it was asked."""

    def __init__(self) -> None:
        self.asked: list[list[tuple[str, int]]] = []
        self.free = threading.Event()
        self.free.set()
        self.way = WayToRobot(self.answer, lambda team: team == 1)

    def answer(self, targets: Sequence[tuple[str, int]]) -> tuple[Answer, str]:
        self.asked.append(list(targets))
        assert self.free.wait(10)
        return Answer.REFUSED, targets[0][0]

    def tick(self, now: float, *, looking: bool = True, team: int | None = 6458) -> None:
        self.way.tick(looking, TARGETS, team, now)

    def settle(self) -> None:
        deadline = time.monotonic() + 10
        while any(thread.name == "way-to-robot" for thread in threading.enumerate()):
            assert time.monotonic() < deadline
            time.sleep(0.005)


def test_a_robot_that_is_connected_is_never_asked() -> None:
    network = Network()
    for second in range(100):
        network.tick(second, looking=False)
    network.tick(100)
    network.tick(100 + FIRST_S - 0.1)
    network.settle()
    assert network.asked == []


def test_asked_now_and_then() -> None:
    network = Network()
    for tenth in range(200):
        network.tick(tenth / 10)
        network.settle()
    assert len(network.asked) == 1 + int((19.9 - FIRST_S) / PERIOD_S)
    assert network.asked[0] == [("10.64.58.2", 5810), ("172.22.11.2", 5810)]
    assert (network.way.answer, network.way.host, network.way.is_outside) == (Answer.REFUSED, "10.64.58.2", True)


def test_one_question_at_a_time_and_no_late_answer() -> None:
    network = Network()
    network.free.clear()
    for second in range(30):
        network.tick(second)
    assert len(network.asked) == 1
    assert network.way.answer is None
    network.tick(31, looking=False)  # connected meanwhile
    network.free.set()
    network.settle()
    assert (network.way.answer, network.way.host, network.way.is_outside) == (None, "", None)


def test_another_target_is_another_question() -> None:
    network = Network()
    network.tick(0)
    network.tick(2)
    network.settle()
    assert network.way.is_outside is True
    network.tick(3, team=1)
    assert network.way.answer is None
    network.tick(5, team=1)
    network.settle()
    assert network.way.is_outside is False
    network.tick(6, team=None)
    network.tick(8, team=None)
    network.settle()
    assert network.way.is_outside is None


def test_test_addresses() -> None:
    assert is_test_address("127.0.0.1")
    assert is_test_address("[::1]:5810")
    assert is_test_address("localhost:5810")
    assert not is_test_address("")
