"""Looks at every part of the bridge while anything happens: rates, conditions of the issue table, the one snapshot."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from aoabridge import __version__
from aoabridge.adapters.nt_targets import has_address
from aoabridge.adapters.reach import Answer
from aoabridge.bridge.link import Link
from aoabridge.codecs.host_port import host_of
from aoabridge.config import Config
from aoabridge.daemon.match_info import match_info
from aoabridge.daemon.rates import RateMeter
from aoabridge.daemon.relay import Relay
from aoabridge.daemon.way_to_robot import WayToRobot, is_test_address
from aoabridge.status import IssueBoard, build_snapshot
from aoabridge.status.views import (
    ConfigView,
    HostView,
    PhoneView,
    RecordView,
    RelayView,
    RobotView,
    SnapshotInputs,
    SourceView,
)
from aoabridge.values import LinkId

__all__ = ["PERIOD_S", "Observer", "PhoneFacts"]

PERIOD_S = 0.5
CONNECT_GRACE_S = 3.0  # ntcore tries once a second; a robot that boots is no problem yet
REASON_S = 12.0  # name lookups may keep the reason secret for this long
TOPIC_RATE_S = 1.0
FLOW_SECONDS = 60
WATCHED = 8
GARBAGE = "bad_lines"


class PhoneFacts:
    """What a host of links knows of one phone beside the link: where it is plugged and in which state."""

    def __init__(
        self,
        name: str,
        state: str,
        port: str,
        *,
        link: LinkId | None = None,
        serial: str | None = None,
        model: str | None = None,
        aoa_version: int | None = None,
        reconnects: int = 0,
        since: float | None = None,
    ) -> None:
        self.name = name
        self.state = state
        self.port = port
        self.link = link
        self.serial = serial
        self.model = model
        self.aoa_version = aoa_version
        self.reconnects = reconnects
        self.since = since


class Observer:
    """Builds the snapshot and keeps the board. Times are monotonic seconds."""

    def __init__(
        self,
        config: Config,
        relay: Relay,
        phones: Callable[[], Sequence[PhoneFacts]],
        sources: Callable[[float], Sequence[SourceView]],
        *,
        started: float,
        way: WayToRobot | None = None,
        has_network: Callable[[], bool] = has_address,
    ) -> None:
        self.config = config
        self.config_view = ConfigView("")
        self.origins: dict[str, str] = {}  # configuration key -> file, default or flag
        self.host = HostView()
        self.record = RecordView()
        self.board = IssueBoard()
        self._relay = relay
        self._phones = phones
        self._sources = sources
        self._started = started
        self._way = way or WayToRobot()
        self._has_network = has_network
        self._rates = RateMeter()
        self._counted: dict[tuple[LinkId, str], int] = {}
        self._rated: set[LinkId] = set()  # links with rates
        self._was_connected = False
        self.is_looking = False  # for the robot
        self._was_looking = False
        self._refusing: str | None = None
        self._losses = 0
        self.topic_hz: dict[str, float] = {}  # of topics that had a value within the last second
        self.periodic: set[str] = set()  # topics that have been updated at a rate, so that silence means something
        self._topic_marks: dict[str, int] = {}
        self._flows: dict[str, deque[str]] = {}
        self._flow_marks: dict[str, int] = {}
        self._marked_at = started

    def inputs(self, now: float) -> SnapshotInputs:
        """Everything the snapshot says."""
        return SnapshotInputs(
            name=self.config.name,
            version=__version__,
            team=self.config.nt.team,
            wall=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            mono_s=now,
            uptime_s=self.uptime_s(now),
            wall_trusted=_wall_trusted(),
            robot=self._robot(now),
            config=self.config_view,
            phones=tuple(self._phone(facts, now) for facts in self._phones()),
            sources=tuple(self._sources(now)),
            relay=self._relay_view(now),
            host=self.host,
            record=self.record,
        )

    def uptime_s(self, now: float) -> float:
        """Since the start."""
        return now - self._started

    def snapshot(self, now: float) -> dict[str, Any]:
        """The one snapshot of all surfaces."""
        return build_snapshot(self.inputs(now), self.board.open_issues())

    def tick(self, now: float) -> None:
        """Note the conditions that are seen from outside."""
        self._watch_robot(now)
        core = self._relay.core
        phones = self._phones()
        for facts in phones:
            link = core.links.get(facts.link) if facts.link is not None else None
            self._watch_phone(facts, link, now)
        self._forget_gone({facts.name for facts in phones}, now)
        unresolved = {
            topic.key: topic.unresolved_since
            for topic in core.topics
            if topic.unresolved_since is not None and topic.slots and topic.struct is not None
        }
        for key in unresolved:
            self.board.set("schema-missing", key, active=True, now=now)
        for issue in self.board.open_issues():
            if issue.code == "schema-missing" and issue.subject not in unresolved:
                self.board.clear("schema-missing", now, issue.subject)
        self.board.on_tick(now)
        elapsed_s = now - self._marked_at
        if elapsed_s >= TOPIC_RATE_S:
            self._measure_topics(now)
            self._note_flows(phones, min(FLOW_SECONDS, int(elapsed_s / TOPIC_RATE_S)))

    def _note_flows(self, phones: Sequence[PhoneFacts], seconds: int) -> None:
        """One mark per second and phone: whether anything passed. Looks are rare only while nothing does."""
        for facts in phones:
            link = self._relay.core.links.get(facts.link) if facts.link is not None else None
            total = 0 if link is None else link.counters["rx_lines"] + link.counters["tx_values"]
            moved = total > self._flow_marks.get(facts.name, 0)
            self._flow_marks[facts.name] = total
            self._flows.setdefault(facts.name, deque(maxlen=FLOW_SECONDS)).extend(("#" if moved else ".") * seconds)
        for gone in self._flows.keys() - {facts.name for facts in phones}:
            del self._flows[gone], self._flow_marks[gone]

    def flow(self, name: str) -> str:
        """The last minute of a phone, one character per second: # = something passed."""
        return "".join(self._flows.get(name, ()))

    def watched(self, now: float) -> list[dict[str, Any]]:
        """Topics that phones get, those that have fallen silent first, then the busiest."""
        wanted = [topic for topic in self._relay.core.topics if topic.slots]
        silent = {topic.name for topic in wanted if topic.name in self.periodic and not self.topic_hz.get(topic.name)}
        wanted.sort(key=lambda topic: (topic.name not in silent, -self.topic_hz.get(topic.name, 0.0)))
        return [
            {
                "name": topic.key,
                "type": topic.type,
                "hz": self.topic_hz.get(topic.name, 0.0),
                "age_s": None if topic.seen_at is None else now - topic.seen_at,
                "readers": len(topic.slots),
            }
            for topic in wanted[:WATCHED]
        ]

    def _measure_topics(self, now: float) -> None:
        elapsed_s, self._marked_at = now - self._marked_at, now
        before, marks, hz = self._topic_marks, dict[str, int](), dict[str, float]()
        for topic in self._relay.core.topics:
            name, count = topic.name, topic.count
            marks[name] = count
            if count > before.get(name, count):
                hz[name] = (count - before[name]) / elapsed_s
        self.periodic = (self.periodic & marks.keys()) | {name for name, rate in hz.items() if rate >= 1}
        self.topic_hz, self._topic_marks = hz, marks

    # The robot.

    def _robot(self, now: float) -> RobotView:
        relay = self._relay
        info = match_info(relay.core.topics)
        nt = self.config.nt
        connected = relay.connected_at is not None
        if nt.embedded:
            state = "serving"
        elif connected:
            state = "connected"
        elif nt.team is None and not nt.server:
            state = "unset"
        else:
            state = "lost" if self._was_connected else "connecting"
        sync = relay.clock_sync
        since = relay.connected_at if connected else (relay.lost_at or self._started)
        return RobotView(
            state=state,
            address=relay.nt.address,
            client=f"aoabridge-{self.config.name}",
            since_s=now - (since or self._started),
            flaps=relay.losses,
            offset_us=sync.offset_us if sync.valid else None,
            rtt2_us=sync.rtt2_us if sync.valid else None,
            enabled=info.enabled,
            mode=info.mode,
            match=info.match,
            test=nt.embedded or (connected and is_test_address(relay.nt.address or "")),
        )

    def _watch_robot(self, now: float) -> None:
        relay, board, nt = self._relay, self.board, self.config.nt
        connected = relay.connected_at is not None
        self._was_connected |= connected or relay.losses > 0  # a short one may lie between two looks
        for _ in range(relay.losses - self._losses):
            board.happened("nt-flapping", "robot", now)
        self._losses = relay.losses
        unset = nt.team is None and not nt.server and not nt.embedded
        looking = not connected and not unset and not nt.embedded
        no_link = looking and not self._has_network()
        self.is_looking = looking
        looking = looking and not no_link
        self._way.tick(looking, relay.nt.targets, nt.team, now)
        board.set("nt-unset", "robot", unset, now)
        board.set("nt-no-link", "robot", no_link, now)
        board.set("nt-lost", "robot", looking and self._was_connected, now)
        self._watch_way(looking, now)
        if relay.nt.blocked:
            board.happened("nt-blocked", "robot", now)

    def _watch_way(self, looking: bool, now: float) -> None:
        """Why a robot that is looked for is not found."""
        if not looking and not self._was_looking:
            return  # nothing is open
        self._was_looking = looking
        way, board, passed_s = self._way, self.board, now - self._started
        refused = looking and way.answer is Answer.REFUSED
        if not refused or (self._refusing is not None and self._refusing != way.host):
            board.clear("nt-refused", now)
        self._refusing = way.host if refused else None
        if refused:
            board.set("nt-refused", way.host, active=True, now=now)
        late = looking and passed_s > CONNECT_GRACE_S
        known = way.answer is not None or passed_s > REASON_S
        host = host_of(self._relay.nt.targets[0]) if self._relay.nt.targets else "?"
        silent = late and known and not refused and not self._was_connected
        board.set("nt-timeout", "robot", silent, now, data={"host": host})
        team = self.config.nt.team or 0
        outside = late and way.is_outside is True
        board.set("nt-subnet", "robot", outside, now, data={"TE": team // 100, "AM": team % 100})

    # Phones.

    def _phone(self, facts: PhoneFacts, now: float) -> PhoneView:
        link = self._relay.core.links.get(facts.link) if facts.link is not None else None
        view = PhoneView(
            name=facts.name,
            state=facts.state,
            port=facts.port,
            serial=facts.serial,
            model=facts.model,
            aoa_version=facts.aoa_version,
            reconnects=facts.reconnects,
            since_s=None if facts.since is None else now - facts.since,
        )
        return view if link is None else self._linked(view, link, now)

    def _linked(self, view: PhoneView, link: Link, now: float) -> PhoneView:
        counters = link.counters
        self._rated.add(link.ident)
        rtt_s = None if link.pings is None else link.pings.rtt_s
        return msgspec.structs.replace(
            view,
            app=link.app,
            app_version=link.app_version,
            rx_hz=self._rates.note(f"{link.ident}:rx", counters["rx_lines"], now),
            tx_hz=self._rates.note(f"{link.ident}:tx", counters["tx_lines"], now),
            latency_ms=None if rtt_s is None else rtt_s * 1000,
            last_line_age_s=None if link.last_line_at is None else now - link.last_line_at,
            dropped=counters["dropped"],
            coalesced=counters["coalesced"],
            refused_puts=counters["refused_puts"],
            bad_lines=counters[GARBAGE],
            subscriptions=len(link.subscriptions),
            blocked_s=None if link.blocked_since is None else now - link.blocked_since,
        )

    def _watch_phone(self, facts: PhoneFacts, link: Link | None, now: float) -> None:
        board, name = self.board, facts.name
        if link is None:
            board.set("app-stalled", name, active=False, now=now)
            return
        stalled = link.stale(now) or link.blocked_since is not None
        board.set("app-stalled", name, stalled, now)
        for _ in range(self._increase(link.ident, GARBAGE, link.counters[GARBAGE])):
            board.happened("app-garbage", name, now)
        if self._increase(link.ident, "refused_puts", link.counters["refused_puts"]):
            data = {"code": link.refused_code, "topic": link.refused_topic}
            board.happened("put-refused", name, now, data=data)

    def _forget_gone(self, names: set[str], now: float) -> None:
        """A phone that nobody knows any more has no issue, and a link that is over no figures."""
        for issue in self.board.open_issues():
            if issue.code == "app-stalled" and issue.subject not in names:
                self.board.clear(issue.code, now, issue.subject)
        links = self._relay.core.links
        for key in [key for key in self._counted if key[0] not in links]:
            del self._counted[key]
        for ident in self._rated - links.keys():
            self._rated.discard(ident)
            self._rates.forget(f"{ident}:rx")
            self._rates.forget(f"{ident}:tx")

    def _increase(self, ident: LinkId, counter: str, total: int) -> int:
        """How much a counter of a link grew since the last look."""
        before = self._counted.get((ident, counter), 0)
        self._counted[ident, counter] = total
        return min(64, total - before)

    # The relay.

    def _relay_view(self, now: float) -> RelayView:
        core = self._relay.core
        totals = core.totals()
        return RelayView(
            topics=len(core.topics.keys()),
            robot_to_phone_hz=self._rates.note("values", totals["tx_values"], now),
            phone_to_robot_hz=self._rates.note("puts", core.desk.counters["puts"], now),
            put_errors={code: count for code, count in core.put_errors.items() if count},
            coalesced=totals["coalesced"],
            dropped=totals["dropped"],
            refused_puts=totals["refused_puts"],
            bad_lines=totals[GARBAGE],
            counters=self._inner_counters(),
        )

    def _inner_counters(self) -> dict[str, int]:
        core, nt = self._relay.core, self._relay.nt
        late = {"puts_refused_late": core.desk.counters["puts_refused_late"]}
        found = {**core.fanout.counters, **late, **nt.counters}
        return {name: count for name, count in found.items() if count and name not in USUAL}


def _wall_trusted() -> bool:
    """True unless the clock stands where boards without a clock chip begin."""
    return time.time() > MIN_WALL_S


# What counts in every healthy run; the losses are the robot's flaps.
USUAL = frozenset({"nt_sets", "nt_flushes", "nt_own_echoes", "nt_coalesced", "nt_merged", "nt_losses"})
MIN_WALL_S = 1_735_689_600  # 2025-01-01: this program is younger
