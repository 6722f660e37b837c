"""Who publishes below the robot program's tables, from what NetworkTables says."""

import pytest

from aoabridge.daemon.table_watch import SETTLE_S, TableWatch
from aoabridge.values import Announced, Connected, Disconnected, Publication, Unannounced, Update, Withdrawal

TABLE = "/FMSInfo"
OWN = f"{TABLE}/MatchNumber"


class Watched:
    def __init__(self) -> None:
        self.told: list[tuple[str, bool | None]] = []
        self.watch = TableWatch((TABLE,), lambda table, owned: self.told.append((table, owned)))

    def free(self) -> "Watched":
        self.watch.on_events([Connected("x")], 10.0)
        self.watch.on_tick(10.0 + SETTLE_S)
        return self

    def publish(self) -> "Watched":
        self.watch.on_publications([Publication(OWN, "int", 1)])
        return self


def test_a_table_is_free_only_after_the_announcements_had_their_time() -> None:
    watched = Watched()
    watched.watch.on_events([Connected("x")], 10.0)
    assert watched.told == []
    assert watched.watch.next_deadline(10.0) == 10.0 + SETTLE_S
    watched.watch.on_tick(10.0 + SETTLE_S)
    assert watched.told == [(TABLE, False)]
    assert watched.watch.next_deadline(20.0) is None


def test_an_existing_table_is_owned_at_once_and_free_when_it_is_gone() -> None:
    watched = Watched()
    watched.watch.on_events([Connected("x"), Announced(f"{TABLE}/.type", "string")], 10.0)
    assert watched.told == [(TABLE, True)]
    watched.watch.on_events([Unannounced(f"{TABLE}/.type")], 20.0)
    assert watched.told == [(TABLE, True), (TABLE, False)]


def test_our_own_topics_are_nobody_elses() -> None:
    watched = Watched().free().publish()
    watched.watch.on_events([Announced(OWN, "int")], 20.0)
    assert watched.told == [(TABLE, False)]
    watched.watch.on_publications([Withdrawal(OWN)])
    watched.watch.on_events([Announced(OWN, "int")], 21.0)
    assert watched.told[-1] == (TABLE, True)


@pytest.mark.parametrize("event", [Update(OWN, 7, 1), Announced(f"{TABLE}/EventName", "string")])
def test_another_publisher_of_the_same_topic_or_a_further_one(event: Update | Announced) -> None:
    watched = Watched().free().publish()
    watched.watch.on_events([event], 20.0)
    assert watched.told[-1] == (TABLE, True)


def test_the_echo_of_our_own_withdrawal_frees_nothing() -> None:
    watched = Watched().free().publish()
    watched.watch.on_events([Update(OWN, 7, 1)], 20.0)
    watched.watch.on_publications([Withdrawal(OWN)])
    watched.watch.on_events([Unannounced(OWN)], 20.1)
    assert watched.told == [(TABLE, False), (TABLE, True)]
    watched.watch.on_events([Disconnected(), Connected("x")], 30.0)
    watched.watch.on_tick(30.0 + SETTLE_S)
    assert watched.told[2:] == [(TABLE, None), (TABLE, False)]


def test_without_connection_nobody_can_tell() -> None:
    watched = Watched().free()
    watched.watch.on_events([Disconnected()], 20.0)
    assert watched.told == [(TABLE, False), (TABLE, None)]


@pytest.mark.parametrize("topic", ["/FMSInformation/x", "/x/FMSInfo/y", "/FMSInfo"])
def test_other_topics_say_nothing(topic: str) -> None:
    watched = Watched().free()
    watched.watch.on_events([Announced(topic, "int")], 20.0)
    assert watched.told == [(TABLE, False)]
