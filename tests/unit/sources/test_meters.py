import pytest

from aoabridge.sources.meters import Meter, Order, RateLimit, SequenceTracker


def test_rate_and_gap_of_the_last_full_second():
    meter = Meter()
    assert (meter.age_s(5.0), meter.is_fresh(5.0, 9.0)) == (None, False)
    for index in range(4):
        meter.mark(10 + index * 0.25)
    assert meter.rate_hz == 0.0
    meter.roll(11.0)
    assert (meter.rate_hz, meter.max_gap_s) == (4.0, 0.25)
    meter.mark(11.5)
    meter.roll(12.0)
    assert (meter.rate_hz, meter.max_gap_s) == (1.0, 0.75)
    meter.roll(14.5)
    assert (meter.rate_hz, meter.max_gap_s) == (0.0, 0.0)
    assert (meter.total, meter.age_s(12.0)) == (5, 0.5)
    assert meter.is_fresh(11.9, 0.5)
    assert not meter.is_fresh(12.0, 0.5)


def test_rate_limit_newest_wins():
    limit = RateLimit(2)
    assert [limit.offer(item, 1.0) for item in "abcd"] == [True, True, False, False]
    assert (limit.dropped, limit.due()) == (1, 2.0)
    assert limit.take(1.9) is None
    assert limit.take(2.0) == "d"
    assert limit.take(2.0) is None
    assert [limit.offer(item, 2.1) for item in "ef"] == [True, False]
    assert limit.offer("g", 3.5)  # a new second: what waited is older
    assert limit.dropped == 2
    assert limit.due() is None


@pytest.mark.parametrize(
    ("last", "number", "after_s", "order"),
    [
        (5, 5, 0, Order.DUPLICATE),
        (5, 6, 0, Order.NEXT),
        (65535, 0, 0, Order.NEXT),
        (0, 32767, 0, Order.NEXT),
        (0, 32768, 0, Order.RESTART),
        (0, 65532, 0, Order.RESTART),
        (0, 65533, 0, Order.LATE),
        (0, 65535, 1.0, Order.LATE),
        (0, 65535, 1.1, Order.RESTART),
    ],
)
def test_order(last, number, after_s, order):
    tracker = SequenceTracker()
    assert tracker.judge("pair", last, 1.0) is Order.RESTART
    assert tracker.judge("pair", number, 1.0 + after_s) is order


def test_pairs_are_bounded():
    tracker = SequenceTracker()
    for pair in range(1000):
        tracker.judge(pair, 1, 1.0)
    assert tracker.judge(999, 1, 1.0) is Order.DUPLICATE
    assert tracker.judge(0, 1, 1.0) is Order.RESTART
