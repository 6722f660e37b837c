from aoabridge.adapters.nt_queue import LANE_SAMPLES, Control, EventQueue
from aoabridge.values import Announced, Connected, Disconnected, NtEvent, Unannounced, Update


def update(topic: str, value: int) -> Update:
    return Update(topic, value, value)


def put(queue: EventQueue, *events: NtEvent) -> bool:
    control: list[Control] = [event for event in events if not isinstance(event, Update)]
    return queue.put(events, control)


def test_first_batch_asks_for_a_wake_and_stays_complete() -> None:
    queue = EventQueue()
    assert put(queue, Announced("a", "int"), update("a", 1), update("a", 2))
    assert queue.take() == ([Announced("a", "int"), update("a", 1), update("a", 2)], [Announced("a", "int")])
    assert queue.take() == ([], [])
    assert put(queue, update("a", 3))


def test_empty_batch_asks_for_nothing() -> None:
    assert not put(EventQueue())


def test_waiting_batch_is_merged_to_the_newest_per_topic() -> None:
    queue = EventQueue()
    assert put(queue, update("a", 1), update("b", 1), update("a", 2))
    assert not put(queue, update("b", 2), update("c", 1))
    assert not put(queue, update("a", 3))
    assert queue.take()[0] == [update("a", 3), update("b", 2), update("c", 1)]
    assert queue.coalesced == 3
    put(queue, update("a", 4), update("a", 5))
    assert queue.take()[0] == [update("a", 4), update("a", 5)]


def test_values_do_not_move_across_their_topics_events() -> None:
    queue = EventQueue()
    put(queue, Announced("a", "int"), update("a", 1))
    put(queue, Unannounced("a"), Announced("a", "double"), update("a", 2))
    put(queue, update("a", 3))
    assert queue.take() == (
        [Announced("a", "int"), update("a", 1), Unannounced("a"), Announced("a", "double"), update("a", 3)],
        [Announced("a", "int"), Unannounced("a"), Announced("a", "double")],
    )


def test_values_do_not_move_across_a_lost_connection() -> None:
    queue = EventQueue()
    put(queue, update("a", 1))
    put(queue, Disconnected(), Connected("robot"), update("a", 2))
    assert queue.take()[0] == [update("a", 1), Disconnected(), Connected("robot"), update("a", 2)]


def test_every_sample_topics_keep_a_bounded_lane() -> None:
    queue = EventQueue()
    queue.set_every_sample(["all"])
    put(queue, update("all", 0), update("a", 0))
    for value in range(1, LANE_SAMPLES + 10):
        put(queue, update("all", value), update("a", value))
    events, _ = queue.take()
    assert events == [*(update("all", v) for v in range(10, LANE_SAMPLES + 10)), update("a", LANE_SAMPLES + 9)]
    assert queue.lane_dropped == 10


def test_a_topic_may_become_every_sample_while_it_waits() -> None:
    queue = EventQueue()
    put(queue, update("a", 1))
    put(queue, update("a", 2))
    queue.set_every_sample(["a"])
    put(queue, update("a", 3), update("a", 4))
    queue.set_every_sample([])
    put(queue, update("a", 5), update("a", 6))
    assert queue.take()[0] == [update("a", 2), update("a", 3), update("a", 4), update("a", 6)]
