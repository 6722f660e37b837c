from aoabridge.phone.ladders import FLAP_STEPS, FLAP_WAITS_S, SLOW_WAITS_S, Ladder, StartLog


def test_the_last_wait_repeats() -> None:
    ladder = Ladder(SLOW_WAITS_S)
    assert [ladder.climb() for _ in range(6)] == [30, 60, 120, 300, 300, 300]
    ladder.reset()
    assert ladder.climb() == 30


def test_the_flap_ladder_ends_after_eight_steps() -> None:
    ladder = Ladder(FLAP_WAITS_S, FLAP_STEPS)
    assert [ladder.climb() for _ in range(9)] == [5, 20, 60, 120, 300, 300, 300, 300, None]


def start_times(
    log: StartLog, count: int, *, replug: bool = False, good: bool = False, step: float = 1.0
) -> list[float]:
    """STARTs as early as allowed, ``step`` seconds after the one before at the earliest."""
    times, now = [], 0.0
    for _ in range(count):
        if replug:
            log.on_replug()
        if good:
            log.on_valid_line()
        now = log.allowed_at(now)
        log.on_start(now)
        times.append(now)
        now += step
    return times


def test_five_starts_without_a_reason_in_300_s() -> None:
    # The first one is preceded by the first plug, which is a replug.
    assert start_times(StartLog(), 8) == [0, 1, 2, 3, 4, 5, 301, 302]


def test_twenty_starts_in_300_s_whatever_the_hand_does() -> None:
    assert start_times(StartLog(), 22, replug=True) == [*range(20), 300, 301]


def test_links_with_a_valid_line_do_not_count() -> None:
    assert start_times(StartLog(), 50, good=True) == list(range(50))


def test_a_retry_by_hand_clears_the_five_not_the_twenty() -> None:
    log = StartLog()
    start_times(log, 6)
    assert log.allowed_at(6.0) == 301.0
    log.on_retry()
    assert log.allowed_at(6.0) == 6.0
    for second in range(6, 20):
        log.on_retry()
        log.on_start(float(second))
    log.on_retry()
    assert log.allowed_at(20.0) == 300.0
