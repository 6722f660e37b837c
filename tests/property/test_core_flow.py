"""Random lives of two phones and one robot: order, freshness and memory hold whatever happens and whatever fails."""

import json
from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from aoabridge.bridge.core import CoreSettings
from aoabridge.bridge.settings import RelaySettings
from aoabridge.bridge.topics import value_bytes
from aoabridge.values import Announced, PutOp, PutResult, Unannounced, Update
from fakes.core_rig import CoreRig

TOPICS = ["/a", "/b", "/r/c", "/r/d"]
LINKS = [1, 2]

links = st.sampled_from(LINKS)
update = st.tuples(st.just("update"), st.sampled_from(TOPICS), st.sampled_from([1, 1, 400, 9000, 40_000]))
take = st.tuples(st.just("take"), links, st.sampled_from(["all", "all", "some", "none", "error"]))
subscribe = st.tuples(
    st.just("subscribe"),
    links,
    st.sampled_from([*TOPICS, "/", "/r/"]),
    st.sampled_from([{}, {"period": 0.3}, {"all": True}, {"all": True, "period": 0.2}]),
)
wait = st.tuples(st.just("wait"), st.sampled_from([0.01, 0.25, 1.1]))
rare = st.one_of(
    st.tuples(st.just("unsubscribe"), links, st.sampled_from([*TOPICS, "/", "/r/"])),
    st.tuples(st.just("gone"), st.sampled_from(TOPICS)),
    st.tuples(st.just("hello"), links),
    st.tuples(st.just("put"), links, st.sampled_from(["/p", "/RoboRoute/RunX"])),
    st.tuples(st.just("replug"), links),
    st.tuples(st.just("robot")),
)
steps = st.integers(0, 11).flatmap(
    lambda n: update if n < 4 else take if n < 7 else subscribe if n < 9 else wait if n < 11 else rare
)


class Life:
    """Applies steps; keeps what each phone read and what the robot last said."""

    def __init__(self):
        self.rig = CoreRig(CoreSettings(relay=RelaySettings(sample_lane=20)), link=False)
        self.number = 0
        self.newest = {}
        self.read = defaultdict(bytes)
        self.ident = {}
        self.idents = 0
        for place in LINKS:
            self.plug(place)

    def plug(self, place):
        self.idents += 1
        self.ident[place] = self.idents
        self.rig.link_up(self.idents)

    def apply(self, step):
        getattr(self, "do_" + step[0])(*step[1:])
        self.rig.core.on_tick(self.rig.now)
        self.exchange()
        self.check_memory()

    def exchange(self):
        orders = self.rig.orders()
        results = [PutResult(put) for put in orders if put.op is PutOp.SET]
        self.rig.core.on_put_results(results, self.rig.now, self.rig.time_us)
        self.rig.core.take_publications()

    def do_update(self, topic, size):
        self.number += 1
        if self.rig.core.topics.find(topic) is None:
            self.rig.core.on_topics([Announced(topic, "string")], self.rig.now)
        self.newest[topic] = self.number
        self.rig.core.on_updates([Update(topic, f"{self.number} " + "x" * size, self.number * 1000)], self.rig.now)

    def do_subscribe(self, place, key, more):
        self.rig.say({"action": "subscribe", "keys": [key], **more}, link=self.ident[place])

    def do_unsubscribe(self, place, key):
        self.rig.say({"action": "unsubscribe", "keys": [key]}, link=self.ident[place])

    def do_gone(self, topic):
        self.newest.pop(topic, None)
        self.rig.core.on_topics([Unannounced(topic)], self.rig.now)

    def do_hello(self, place):
        self.rig.say({"action": "hello"}, link=self.ident[place])

    def do_put(self, place, key):
        self.rig.say({"key": key, "value": True}, link=self.ident[place])

    def do_replug(self, place):
        self.rig.core.on_link_down(self.ident[place], self.rig.now)
        self.plug(place)

    def do_robot(self):
        self.rig.disconnect()
        self.newest.clear()
        assert all(put.op is PutOp.UNPUBLISH for put in self.rig.orders())
        self.rig.connect()

    def do_take(self, place, how):
        ident = self.ident[place]
        data = self.rig.core.take_bytes(ident, self.rig.now)
        if not data:
            return
        assert len(data) <= 16_383
        assert len(data) % 512
        count = {"all": len(data), "some": len(data) // 1024 * 512, "none": 0, "error": 0}[how]
        self.read[ident] += data[:count]
        if how == "error":
            self.read[ident] += b"\x00lost"  # an unknown part of the transfer
        self.rig.core.on_bytes_accepted(ident, count, self.rig.now, error=how == "error")

    def do_wait(self, seconds):
        self.rig.wait(seconds)

    def check_memory(self):
        core = self.rig.core
        lanes = sum(s.held for link in core.links.values() for slot in link.slots.values() for s in slot.lane or ())
        held = sum(value_bytes(topic.value) for topic in core.topics if topic.value is not None)
        lines = sum(len(topic._line) for topic in core.topics if isinstance(topic._line, bytes))
        assert core.budget.used == lanes + held + lines
        for link in core.links.values():
            assert link.outbox.waiting <= len(link.slots)

    def drain(self):
        """Both phones read again, and answer; time passes."""
        for _ in range(30):
            self.rig.wait(0.35)
            self.exchange()
            for place in LINKS:
                if self.rig.core.links[self.ident[place]].pings is not None:
                    self.rig.say({"action": "pong", "id": 1_000_000}, link=self.ident[place])
                for _ in range(6):
                    self.do_take(place, "all")

    def values(self, place):
        """(key, number) of every value line that arrived whole."""
        found = []
        for line in self.read[self.ident[place]].split(b"\n"):
            if line and b"\x00" not in line:
                message = json.loads(line)
                if "key" in message and isinstance(message["value"], str):
                    found.append((message["key"], int(message["value"].split()[0])))
        return found


@settings(deadline=None, max_examples=200)
@given(st.lists(steps, min_size=40, max_size=80))
def test_a_phone_gets_every_topic_in_order_and_at_last_its_newest_value(plan):
    life = Life()
    for step in plan:
        life.apply(step)
    wanted = {
        place: {key: life.newest[key] for key in TOPICS if key in life.newest and key in slots}
        for place in LINKS
        if (slots := life.rig.core.links[life.ident[place]].slots) is not None
    }
    life.drain()
    for place in LINKS:
        last = {}
        for key, number in life.values(place):
            assert number >= last.get(key, 0), f"{key} went back"
            last[key] = number
        for key, number in wanted[place].items():
            assert last.get(key) == number


SCRIPT = [
    {"action": "subscribe", "keys": ["/robot/pose", "FMSInfo/IsRedAlliance", " //x "]},
    {"subscribe": ["/robot/pose", "/robot/", "$no", ""]},
    {"action": "put", "key": "/RoboRoute/foo", "value": 42, "id": 17},
    {"key": "/legacy", "value": [1, 2.5]},
    {"action": "put", "key": "/t", "schema": "struct T {int8 a; struct U {double b;} u[2];}", "value": {"a": 1}},
    {"action": "put", "key": "/t", "schema": "struct T {int8 a;}", "value": [{"a": 1}, {"a": 2}], "id": "ä€😀"},
    {"action": "unsubscribe", "keys": ["/robot/", "/none"]},
    {"action": "topics", "types": True},
    {"action": "ping", "id": "x"},
    {"action": "hello", "app": "A", "nonce": "1"},
    {"action": "pong", "id": 1},
    {"action": "dance"},
    [],
    {"action": "subscribe", "keys": ["/robot/pose"], "all": True, "period": 0.5, "prefix": False},
]


def outcome(chunks):
    rig = CoreRig()
    rig.announce("/robot/pose", "double[]", [1.0, 2.0])
    rig.announce("FMSInfo/IsRedAlliance", "boolean", True)
    for chunk in chunks:
        rig.core.on_link_bytes(1, chunk, rig.now)
    return rig.raw(), rig.orders(), rig.core.links[1].counters["rx_lines"]


def test_a_script_means_the_same_however_it_is_cut():
    lines = [json.dumps(message, ensure_ascii=False).encode() + b"\r\n" for message in SCRIPT]
    lines[3:3] = [b"\n", b"not json\n", b"\xff\xfe\n", b"  \n"]
    stream = b"\xef\xbb\xbf" + b"".join(lines)
    whole = outcome([stream])
    assert whole[1]
    assert outcome(stream[i : i + 1] for i in range(len(stream))) == whole
    assert outcome([stream[:3], *(b"".join(lines[i : i + 2]) for i in range(0, len(lines), 2))]) == whole
    for cut in range(len(stream)):
        assert outcome([stream[:cut], stream[cut:]]) == whole
