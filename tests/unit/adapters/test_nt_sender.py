"""The sender with its publishers: order, coalescing, refusals, ends; ntcore replaced by a list of what it was told."""

from collections.abc import Mapping
from typing import Any

import pytest

from aoabridge.adapters.nt_events import OwnValues
from aoabridge.adapters.nt_pacing import FLUSH_GAP_S, WINDOW_S, WINDOW_SETS
from aoabridge.adapters.nt_publishers import DROP_DELAY_S, PERIOD_S, Publishers, Setter, payload_bytes
from aoabridge.adapters.nt_sender import LEISURELY_PERIOD_S, Sender
from aoabridge.values import MAX_VALUE_BYTES, NtValue, Publication, Put, PutOp, Withdrawal


class Ntcore:
    """Keeps ``("publish" | "set" | "drop" | "flush", ...)`` in order; a publisher drops when its setter dies."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.announced: dict[str, str] = {}
        self.periods_s: dict[str, float] = {}

    def make(self, topic: str, type_string: str, properties: Mapping[str, object] | None, period_s: float) -> Setter:
        self.periods_s[topic] = period_s
        self.told.append(("publish", topic, type_string, *([dict(properties)] if properties else [])))
        return _Setter(self, topic, type_string)

    def sets(self, topic: str | None = None) -> list[Any]:
        return [entry[2] for entry in self.told if entry[0] == "set" and topic in (None, entry[1])]

    def kinds(self) -> list[str]:
        return [entry[0] for entry in self.told]


class _Setter:
    def __init__(self, ntcore: Ntcore, topic: str, type_string: str) -> None:
        self.ntcore, self.topic, self.type = ntcore, topic, type_string

    def __call__(self, value: Any) -> bool:
        if self.ntcore.announced.get(self.topic, self.type) != self.type:
            return False
        self.ntcore.told.append(("set", self.topic, value))
        return True

    def __del__(self) -> None:
        self.ntcore.told.append(("drop", self.topic))


class Bench:
    def __init__(self) -> None:
        self.ntcore = Ntcore()
        self.own_values = OwnValues()
        self.phone = Publishers(self.ntcore.make, self.own_values)
        self.own = Publishers(self.ntcore.make, self.own_values)
        self.now = 100.0
        self.sender = Sender(self.phone, self.own, self.flush)
        self.serial = 0

    def flush(self) -> float:
        self.ntcore.told.append(("flush",))
        return self.now

    def put(self, topic: str, type_string: str, value: NtValue | None) -> None:
        self.serial += 1
        self.sender.offer_puts([Put(self.serial, 1, PutOp.SET, topic, type_string, value)])

    def unpublish(self, topic: str) -> None:
        self.sender.offer_puts([Put(0, 1, PutOp.UNPUBLISH, topic)])

    def send(self, after_s: float = 0.0, *, online: bool = True) -> None:
        self.now += after_s
        self.sender.send(self.now, online=online)

    def settle(self) -> None:
        """Send whenever the sender asks for it."""
        while (again := self.sender.next_time(self.now, online=True)) is not None:
            self.now = again
            self.send()

    def codes(self) -> list[str | None]:
        return [result.code for result in self.sender.take_results()]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_put_is_set_flushed_and_accepted_in_one_turn(bench: Bench) -> None:
    bench.put("/t", "int", 1)
    bench.send()
    assert bench.ntcore.told == [("publish", "/t", "int"), ("set", "/t", 1), ("flush",)]
    assert bench.codes() == [None]
    assert bench.sender.next_time(bench.now, online=True) is None


def test_put_is_accepted_only_once_flushed(bench: Bench) -> None:
    bench.put("/t", "int", 1)
    bench.send()
    bench.put("/t", "int", 2)
    bench.send(0.001)
    assert bench.ntcore.sets() == [1, 2]
    assert bench.codes() == [None]
    assert bench.sender.next_time(bench.now, online=True) == pytest.approx(100.0 + FLUSH_GAP_S)
    bench.send(FLUSH_GAP_S - 0.0009)
    assert bench.codes() == [None]
    assert bench.ntcore.kinds().count("flush") == 2


def test_puts_beyond_the_window_wait_in_order(bench: Bench) -> None:
    for value in range(2_500):
        bench.put("/t", "int", value)
    bench.send()
    assert bench.ntcore.sets() == list(range(WINDOW_SETS))
    assert bench.sender.next_time(bench.now, online=True) == pytest.approx(bench.now + WINDOW_S)
    bench.settle()
    assert bench.ntcore.sets() == list(range(2_500))
    assert bench.codes() == [None] * 2_500
    assert bench.now >= 100.0 + 2 * WINDOW_S


def test_own_values_wait_for_puts_and_coalesce(bench: Bench) -> None:
    for value in range(WINDOW_SETS):
        bench.put("/t", "int", value)
    bench.sender.publish([Publication("/own", "int", -1), Publication("/other", "int", -2)])
    bench.send()
    assert bench.ntcore.sets("/own") == []
    bench.sender.publish([Publication("/own", "int", -3)])
    bench.settle()
    assert bench.ntcore.sets()[-2:] == [-3, -2]
    assert bench.sender.coalesced == 1


def test_own_values_that_can_wait_go_with_the_flush_of_a_put(bench: Bench) -> None:
    bench.sender.publish([Publication("/own", "int", 1)], bench.now + 0.025)
    bench.send()
    assert bench.ntcore.told == []
    assert bench.sender.next_time(bench.now, online=True) == pytest.approx(bench.now + 0.025)
    bench.put("/t", "int", 2)
    bench.send(0.010)
    assert bench.ntcore.sets() == [2, 1]
    assert bench.ntcore.kinds().count("flush") == 1
    assert bench.sender.next_time(bench.now, online=True) is None


def test_own_values_that_can_wait_go_alone_in_time(bench: Bench) -> None:
    bench.sender.publish([Publication("/own", "int", 1)], bench.now + 0.025)
    bench.settle()
    assert bench.ntcore.sets() == [1]
    assert bench.now == pytest.approx(100.025)


def test_an_own_value_that_cannot_wait_takes_the_others_along(bench: Bench) -> None:
    bench.sender.publish([Publication("/own", "int", 1)], bench.now + 0.025)
    bench.sender.publish([Publication("/soon", "int", 2)])
    bench.send()
    assert bench.ntcore.sets() == [1, 2]


def test_keep_all_values_stay_in_order_with_their_withdrawal(bench: Bench) -> None:
    bench.sender.publish([Publication("/e", "string", text, keep_all=True) for text in "abc"])
    bench.sender.publish([Withdrawal("/e"), Publication("/e", "string", "d")])
    bench.settle()
    assert bench.ntcore.sets("/e") == ["a", "b", "c", "d"]


def test_offline_refuses_puts_and_holds_the_newest_own_value(bench: Bench) -> None:
    bench.put("/t", "int", 1)
    bench.sender.publish([Publication("/own", "int", value) for value in (1, 2)])
    bench.sender.publish([Publication("/e", "string", "x", keep_all=True)])
    bench.sender.publish([Publication("/.schema/struct:P", "structschema", "double x")])
    bench.send(online=False)
    assert bench.codes() == ["not-connected"]
    assert bench.ntcore.told == []
    assert bench.sender.next_time(bench.now, online=False) is None
    assert bench.sender.discarded_offline == 1
    bench.send(1.0)
    assert bench.ntcore.sets() == ["double x", 2]


def test_offline_withdrawal_drops_at_once(bench: Bench) -> None:
    bench.sender.publish([Publication("/own", "int", 1)])
    bench.settle()
    bench.now += 1.0
    bench.sender.publish([Publication("/own", "int", 2), Withdrawal("/own")])
    bench.send(online=False)
    assert bench.ntcore.told[-2:] == [("drop", "/own"), ("flush",)]
    assert bench.ntcore.sets() == [1]


def test_lost_connection_refuses_what_was_not_flushed_and_drops_phones_only(bench: Bench) -> None:
    bench.sender.publish([Publication("/own", "int", 1)])
    bench.put("/t", "boolean", True)
    bench.send()
    bench.put("/t", "boolean", False)
    bench.send(0.001)
    bench.put("/u", "boolean", True)
    bench.sender.abandon_puts("robot connection lost")
    assert bench.codes() == [None, "not-connected", "not-connected"]
    assert bench.ntcore.told[-1] == ("drop", "/t")
    assert ("drop", "/own") not in bench.ntcore.told
    assert "/t" not in bench.phone


def test_raised_run_topics_are_known(bench: Bench) -> None:
    for topic, value in (("/RoboRoute/RunPose", True), ("/RoboRoute/RunRoute", False), ("/RoboRoute/CancelPlan", True)):
        bench.put(topic, "boolean", value)
    bench.settle()
    assert bench.phone.raised("/RoboRoute/Run") == ["/RoboRoute/RunPose"]
    bench.phone.drop_all()
    assert bench.phone.raised("/RoboRoute/Run") == []


def test_unpublish_waits_until_the_last_value_is_safe(bench: Bench) -> None:
    bench.put("/t", "boolean", False)
    bench.unpublish("/t")
    bench.send()
    assert "drop" not in bench.ntcore.kinds()
    bench.send(DROP_DELAY_S - 0.001)
    assert "drop" not in bench.ntcore.kinds()
    assert bench.sender.next_time(bench.now, online=True) == pytest.approx(100.0 + DROP_DELAY_S)
    bench.send(0.0011)
    assert bench.ntcore.told[-2:] == [("drop", "/t"), ("flush",)]


def test_unpublish_of_an_old_value_is_immediate(bench: Bench) -> None:
    bench.put("/t", "int", 1)
    bench.send()
    bench.unpublish("/t")
    bench.send(DROP_DELAY_S)
    assert bench.ntcore.told[-2:] == [("drop", "/t"), ("flush",)]


def test_put_takes_a_dying_publisher_back(bench: Bench) -> None:
    bench.put("/t", "int", 1)
    bench.unpublish("/t")
    bench.put("/t", "int", 2)
    bench.settle()
    assert bench.ntcore.told.count(("publish", "/t", "int")) == 1
    assert "drop" not in bench.ntcore.kinds()


def test_another_type_drops_the_old_publisher_first(bench: Bench) -> None:
    bench.put("/t", "int", 1)
    bench.put("/t", "double", 1.5)
    bench.unpublish("/t")
    bench.put("/t", "string", "x")
    bench.settle()
    published = [entry for entry in bench.ntcore.told if entry[0] in ("publish", "drop")]
    assert published == [
        ("publish", "/t", "int"),
        ("drop", "/t"),
        ("publish", "/t", "double"),
        ("drop", "/t"),
        ("publish", "/t", "string"),
    ]


def test_setter_that_says_no_is_a_mismatch_and_its_publisher_goes(bench: Bench) -> None:
    bench.ntcore.announced["/t"] = "double"
    bench.put("/t", "int", 1)
    bench.send()
    assert bench.codes() == ["type-mismatch"]
    assert bench.ntcore.told == [("publish", "/t", "int"), ("drop", "/t")]
    bench.put("/t", "double", 1.0)
    bench.send()
    assert bench.codes() == [None]


def test_announced_type_drops_a_publisher_of_another_one(bench: Bench) -> None:
    bench.put("/t", "int", 1)
    bench.settle()
    bench.phone.on_announced("/t", "int")
    assert "/t" in bench.phone
    bench.phone.on_announced("/t", "double")
    assert "/t" not in bench.phone
    assert bench.ntcore.told[-1] == ("drop", "/t")


@pytest.mark.parametrize(
    ("type_string", "value", "code"),
    [
        ("int", True, "type-mismatch"),
        ("int", 1.0, "type-mismatch"),
        ("boolean", 1, "type-mismatch"),
        ("double", True, "type-mismatch"),
        ("string", b"x", "type-mismatch"),
        ("raw", "x", "type-mismatch"),
        ("int[]", [1, True], "type-mismatch"),
        ("string[]", "abc", "type-mismatch"),
        ("int", None, "bad-value"),
        ("raw", bytes(MAX_VALUE_BYTES + 1), "too-large"),
        ("double", 1, None),
        ("raw", bytes(MAX_VALUE_BYTES), None),
        ("int[]", [], None),
        ("struct:P[]", b"", None),
    ],
)
def test_outcome_by_value(bench: Bench, type_string: str, value: NtValue | None, code: str | None) -> None:
    bench.put("/t", type_string, value)
    bench.settle()
    assert bench.codes() == [code]
    assert bool(bench.ntcore.sets()) is (code is None)


def test_setter_that_raises_is_a_bad_value(bench: Bench) -> None:
    def refuse(*_: object) -> Setter:
        raise TypeError("incompatible function arguments")

    bench.phone._make = refuse
    bench.put("/t", "int", 2**63)
    bench.send()
    assert bench.codes() == ["bad-value"]
    assert "/t" not in bench.phone


def test_refused_value_leaves_no_topic_behind(bench: Bench) -> None:
    class Picky(_Setter):
        def __call__(self, value: Any) -> bool:
            raise OverflowError("beyond int64")

    bench.phone._make = lambda topic, type_string, *_: Picky(bench.ntcore, topic, type_string)
    bench.put("/t", "int", 2**63)
    bench.send()
    assert bench.codes() == ["bad-value"]
    assert bench.ntcore.told == [("drop", "/t")]


def test_own_value_that_is_refused_is_counted_and_not_repeated(bench: Bench) -> None:
    bench.ntcore.announced["/own"] = "string"
    bench.sender.publish([Publication("/own", "int", 1), Publication("/big", "raw", bytes(MAX_VALUE_BYTES + 1))])
    bench.settle()
    assert bench.sender.publish_refused == 2
    assert bench.ntcore.sets() == []


def test_properties_are_given_when_first_published(bench: Bench) -> None:
    bench.sender.publish([Publication("/v", "double", 1.0, {"unit": "V"})])
    bench.settle()
    assert bench.ntcore.told[0] == ("publish", "/v", "double", {"unit": "V"})


def test_echoes_are_known_by_what_a_reader_gets(bench: Bench) -> None:
    bench.put("/f", "float", 0.1)
    bench.put("/fa", "float[]", [0.1, 1e300])
    bench.sender.publish([Publication("/.schema/struct:P", "structschema", "double x")])
    bench.settle()
    assert bench.own_values.is_echo("/.schema/struct:P", b"double x")
    assert bench.own_values.is_echo("/f", 0.10000000149011612)
    assert bench.own_values.is_echo("/fa", [0.10000000149011612, float("inf")])
    bench.phone.drop_all()
    assert not bench.own_values.is_echo("/f", 0.10000000149011612)


@pytest.mark.parametrize(
    ("value", "size"),
    [(1, 8), (True, 8), (0.5, 8), ("abc", 3), ("ä", 2), ("\ud800", 3), (b"abcd", 4), ([1, 2], 32), (["a", "bc"], 19)],
)
def test_payload_bytes(value: NtValue, size: int) -> None:
    assert payload_bytes(value) == size


def test_a_released_link_loses_what_waits_of_it_but_a_false(bench: Bench) -> None:
    def order(serial: int, link: int, op: PutOp, topic: str = "", value: NtValue | None = None) -> Put:
        return Put(serial, link, op, topic, "boolean", value)

    bench.sender.offer_puts(
        [
            order(1, 7, PutOp.SET, "/RoboRoute/RunPose", True),
            order(2, 8, PutOp.SET, "/other", True),
            order(3, 7, PutOp.SET, "/RoboRoute/RunPlan", False),
        ]
    )
    bench.sender.offer_puts([order(4, 7, PutOp.RELEASE), order(5, 0, PutOp.SET, "/RoboRoute/RunPose", False)])
    bench.sender.send(bench.now, online=True)
    assert bench.ntcore.sets("/RoboRoute/RunPose") == [False]
    assert bench.ntcore.sets("/RoboRoute/RunPlan") == [False]
    assert bench.ntcore.sets("/other") == [True]
    assert [(r.put.serial, r.code) for r in bench.sender.take_results() if r.code] == [(1, "not-connected")]


def test_only_topics_that_may_wait_let_the_thread_of_ntcore_sleep(bench: Bench) -> None:
    bench.sender.publish([Publication("/status", "int", 1)], bench.now + 0.025)
    bench.sender.publish([Publication("/source", "int", 1)])
    bench.sender.publish([Publication("/stream", "int", 1)], steady=True)
    bench.put("/phone", "int", 1)
    bench.settle()
    leisurely = {"/status": LEISURELY_PERIOD_S, "/stream": LEISURELY_PERIOD_S}
    assert bench.ntcore.periods_s == leisurely | {"/source": PERIOD_S, "/phone": PERIOD_S}


def test_values_of_which_more_will_come_soon_do_not_wait_for_them(bench: Bench) -> None:
    bench.sender.publish([Publication("/stream", "int", 1)], steady=True)
    bench.sender.send(bench.now, online=True)
    assert bench.ntcore.sets("/stream") == [1]
    assert bench.sender.flushes == 1


def test_a_withdrawn_topic_comes_back_without_its_patience(bench: Bench) -> None:
    bench.sender.publish([Publication("/own", "int", 1)], bench.now + 0.025)
    bench.settle()
    bench.sender.publish([Withdrawal("/own")], bench.now + 0.025)
    bench.settle()
    bench.now += DROP_DELAY_S
    bench.settle()
    bench.sender.publish([Publication("/own", "int", 2)])
    bench.settle()
    assert bench.ntcore.periods_s == {"/own": PERIOD_S}
