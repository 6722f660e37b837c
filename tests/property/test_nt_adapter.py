"""Whatever comes in whatever batches: no last value, no event and no put is lost, and the window holds."""

from hypothesis import given
from hypothesis import strategies as st

from aoabridge.adapters.nt_events import OwnValues
from aoabridge.adapters.nt_pacing import WINDOW_BYTES, WINDOW_S, WINDOW_SETS, SetWindow
from aoabridge.adapters.nt_publishers import Publishers
from aoabridge.adapters.nt_queue import Control, EventQueue
from aoabridge.adapters.nt_sender import Sender
from aoabridge.values import (
    MAX_VALUE_BYTES,
    Announced,
    Connected,
    Disconnected,
    NtEvent,
    Put,
    PutOp,
    Unannounced,
    Update,
)

TOPICS = st.sampled_from("abc")
EVENTS: st.SearchStrategy[NtEvent] = st.one_of(
    st.builds(Update, TOPICS, st.integers(0, 99), st.just(5)),
    st.builds(Announced, TOPICS, st.sampled_from(["int", "double"])),
    st.builds(Unannounced, TOPICS),
    st.just(Disconnected()),
    st.just(Connected("robot")),
)
BATCHES = st.lists(st.tuples(st.lists(EVENTS, max_size=8), st.booleans()), max_size=12)


def state(events: list[NtEvent]) -> dict[str, object]:
    """What a reader knows at the end: the last value of each topic since its last event, and its type."""
    known: dict[str, object] = {}
    for event in events:
        if isinstance(event, Update):
            known[f"value {event.topic}"] = event.value
        elif isinstance(event, Announced):
            known[f"type {event.topic}"] = event.type
        elif isinstance(event, Unannounced):
            known.pop(f"type {event.topic}", None)
            known.pop(f"value {event.topic}", None)
        elif isinstance(event, Disconnected):
            known.clear()
    return known


@given(BATCHES, st.sets(TOPICS))
def test_queue_keeps_the_last_state_and_every_event_but_values(
    batches: list[tuple[list[NtEvent], bool]], every_sample: set[str]
) -> None:
    queue = EventQueue()
    queue.set_every_sample(every_sample)
    given_events: list[NtEvent] = []
    taken: list[NtEvent] = []
    waiting = False
    for events, take in batches:
        control: list[Control] = [event for event in events if not isinstance(event, Update)]
        woken = queue.put(events, control)
        assert woken is (bool(events) and not waiting)
        waiting = waiting or bool(events)
        given_events += events
        if take:
            got, got_control = queue.take()
            assert got_control == [event for event in got if not isinstance(event, Update)]
            taken += got
            waiting = False
    taken += queue.take()[0]
    assert state(taken) == state(given_events)
    others = [event for event in given_events if not isinstance(event, Update)]
    assert [event for event in taken if not isinstance(event, Update)] == others
    for topic in every_sample:
        samples = [event for event in given_events if isinstance(event, Update) and event.topic == topic]
        assert [event for event in taken if isinstance(event, Update) and event.topic == topic] == samples


@given(st.lists(st.tuples(st.integers(0, MAX_VALUE_BYTES), st.floats(0, 0.02)), max_size=60))
def test_window_never_admits_more_than_its_share(tries: list[tuple[int, float]]) -> None:
    window = SetWindow()
    now = 1.0
    admitted: list[tuple[float, int]] = []
    for size, pause_s in tries:
        now += pause_s
        if window.admit(size, now):
            admitted.append((now, size + 136))
    for start, _ in admitted:
        within = [size for at, size in admitted if start <= at < start + WINDOW_S]
        assert len(within) <= 2 * WINDOW_SETS
        small = [size for size in within if size <= WINDOW_BYTES]
        assert sum(small) <= 2 * WINDOW_BYTES
        five = sum(size for at, size in admitted if start <= at < start + 5 * WINDOW_S)
        assert five <= 2 * 1024 * 1024


ORDERS = st.lists(st.tuples(st.sampled_from(["set", "unpublish", "turn"]), TOPICS), max_size=60)


@given(ORDERS)
def test_sender_sets_every_put_in_order_and_answers_each_once(orders: list[tuple[str, str]]) -> None:
    told: list[tuple[str, object]] = []
    own = OwnValues()
    phone = Publishers(lambda topic, *_: lambda value: told.append((topic, value)) is None, own)
    now = 1.0
    sender = Sender(phone, Publishers(lambda *_: lambda value: True, own), lambda: now)
    expected = []
    results = []
    for number, (order, topic) in enumerate(orders):
        if order == "turn":
            now += 0.003
            sender.send(now, online=True)
            results += sender.take_results()
            continue
        op = PutOp.SET if order == "set" else PutOp.UNPUBLISH
        sender.offer_puts([Put(number, 1, op, topic, "int", number if order == "set" else None)])
        if order == "set":
            expected.append((topic, number))
    for _ in range(1_000):
        again = sender.next_time(now, online=True)
        if again is None:
            break
        now = again
        sender.send(now, online=True)
    results += sender.take_results()
    assert sender.next_time(now, online=True) is None
    assert told == expected
    assert [result.put.serial for result in results] == [number for _, number in expected]
    assert all(result.accepted for result in results)
    last = {topic: order for order, topic in orders if order != "turn"}
    assert {topic for topic in "abc" if topic in phone} == {topic for topic, order in last.items() if order == "set"}
