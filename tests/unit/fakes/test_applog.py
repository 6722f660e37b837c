"""What the emulated app counts as a value that came twice."""

from fakes.applog import AppLog

KEY = "/bench/0"


class Stopped:
    @staticmethod
    def now():
        return 0.0


def hear(log, sequence):
    log._order(KEY, sequence)
    log.values[KEY] = [max(sequence, log.values.get(KEY, [0])[0]), 0.0, 0.0]


def test_a_value_that_comes_twice_is_counted():
    log = AppLog(Stopped())
    for sequence in (1, 2, 2):
        hear(log, sequence)
    assert log.duplicates == 1


def test_a_subscription_allows_one_repeat_of_what_is_newest_when_it_is_read():
    log = AppLog(Stopped())
    hear(log, 1)
    log.subscribed([KEY])
    for sequence in (2, 2):  # the first was under way when the app subscribed
        hear(log, sequence)
    assert log.duplicates == 0
    hear(log, 2)
    assert log.duplicates == 1
