from aoabridge.adapters.nt_pacing import (
    CALM_S,
    FLUSH_GAP_S,
    OVERLOAD_EVENTS,
    SET_OVERHEAD_BYTES,
    WINDOW_BYTES,
    WINDOW_S,
    WINDOW_SETS,
    FlushClock,
    OverloadWatch,
    SetWindow,
    Subscribe,
)


def admitted(window: SetWindow, size: int, now: float, tries: int = 2_000) -> int:
    return sum(window.admit(size, now) for _ in range(tries))


def test_window_admits_a_thousand_small_sets_and_opens_again() -> None:
    window = SetWindow()
    assert admitted(window, 8, 1.0) == WINDOW_SETS
    assert window.ends == 1.0 + WINDOW_S
    assert admitted(window, 8, 1.0 + WINDOW_S * 0.99) == 0
    assert admitted(window, 8, 1.0 + WINDOW_S) == WINDOW_SETS


def test_window_admits_its_bytes_fixed_part_included() -> None:
    assert admitted(SetWindow(), 1024 - SET_OVERHEAD_BYTES, 1.0) == WINDOW_BYTES // 1024


def test_large_value_has_an_empty_window_of_its_own() -> None:
    window = SetWindow()
    assert window.admit(8, 1.0)
    assert not window.admit(WINDOW_BYTES, 1.0)
    assert window.admit(WINDOW_BYTES, 1.0 + WINDOW_S)
    assert not window.admit(8, 1.0 + WINDOW_S)


def test_large_value_closes_as_many_windows_as_it_fills() -> None:
    """Whatever the sizes, what is set within five windows stays below the 2 MiB that block ntcore."""
    window = SetWindow()
    admissions: list[tuple[float, int]] = []
    now = 0.0
    while now < 1.0:
        if window.admit(1_000_000, now):
            admissions.append((now, 1_000_000 + SET_OVERHEAD_BYTES))
        now += WINDOW_S / 4
    assert len(admissions) >= 20
    for start, _ in admissions:
        within = sum(size for at, size in admissions if start <= at < start + 5 * WINDOW_S)
        assert within <= 2_010_000


def test_flush_is_due_at_once_then_after_the_gap() -> None:
    clock = FlushClock()
    assert clock.next_time() is None
    assert not clock.due(1.0)
    clock.want()
    assert clock.due(1.0)
    clock.done(1.001)
    assert not clock.due(1.1)
    clock.want()
    assert not clock.due(1.001 + FLUSH_GAP_S * 0.99)
    assert clock.next_time() == 1.001 + FLUSH_GAP_S
    assert clock.due(1.001 + FLUSH_GAP_S)


def test_two_big_drains_in_a_row_reduce_the_subscription_until_calm() -> None:
    watch = OverloadWatch()
    big = OVERLOAD_EVENTS + 1
    assert watch.on_drain(big, 1.0) is None
    assert watch.on_drain(10, 1.1) is None
    assert watch.on_drain(big, 2.0) is None
    assert watch.on_drain(0, 2.1) is None  # the waiter's timeout, not a drain
    assert watch.on_drain(big, 3.0) is Subscribe.NEWEST_ONLY
    assert watch.overloaded
    assert watch.on_drain(big, 4.0) is None
    assert watch.on_drain(0, 3.9 + CALM_S) is None
    assert watch.on_drain(0, 4.0 + CALM_S) is Subscribe.EVERY_VALUE
    assert not watch.overloaded
