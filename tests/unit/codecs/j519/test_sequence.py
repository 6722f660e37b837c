"""Every way in which a number can follow another."""

import pytest

from aoabridge.codecs.j519.sequence import Arrival, SequenceTracker, Step, signed_distance

TOP = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("numbers", "last"),
    [
        ([500], Arrival(Step.FIRST)),
        ([1, 2], Arrival(Step.NEXT)),
        ([TOP, 0], Arrival(Step.NEXT)),
        ([5, 5], Arrival(Step.DUPLICATE)),
        ([5, 7], Arrival(Step.GAP, 1)),
        ([TOP - 1, 1], Arrival(Step.GAP, 2)),
        ([5, 15], Arrival(Step.GAP, 9)),
        ([5, 16], Arrival(Step.JUMP, 10)),
        ([5, 5 + (1 << 31)], Arrival(Step.JUMP, (1 << 31) - 1)),
        ([5, 6 + (1 << 31)], Arrival(Step.REORDERED)),
        ([5, 4], Arrival(Step.REORDERED)),
        ([500, 1, 2, 3], Arrival(Step.REORDERED)),
        ([500, 1, 2, 3, 4], Arrival(Step.RESTART)),
        ([500, 1, 2, 3, 4, 5], Arrival(Step.NEXT)),
        ([500, 4, 3, 2, 1], Arrival(Step.REORDERED)),  # not ascending
        ([500, 1, 2, 3, 501, 4], Arrival(Step.REORDERED)),  # not consecutive
        ([500, 1, 2, 2, 3, 4], Arrival(Step.REORDERED)),
        ([0, TOP], Arrival(Step.REORDERED)),
    ],
)
def test_arrivals(numbers: list[int], last: Arrival) -> None:
    tracker = SequenceTracker()
    *_, result = [tracker.observe(number) for number in numbers]
    assert result == last
    assert result.usable == (last.step not in (Step.DUPLICATE, Step.REORDERED))


def test_late_numbers_do_not_move_the_count_back() -> None:
    tracker = SequenceTracker()
    for number in (10, 9, 8):
        tracker.observe(number)
    assert tracker.observe(11) == Arrival(Step.NEXT)


@pytest.mark.parametrize(("new", "old", "distance"), [(1, 0, 1), (0, 1, -1), (0, TOP, 1), (TOP, 0, -1)])
def test_signed_distance(new: int, old: int, distance: int) -> None:
    assert signed_distance(new, old) == distance
