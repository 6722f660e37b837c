"""FANUC Stream Motion as a source: one robot's Status on NetworkTables. Receives; never sends anything that moves.

With a ``host`` it opens the stream itself (Stop, [version], [limits], Start; Stop at the end). Without one it listens
on a mirrored port and sends nothing at all. No topic is read: there is no way from NetworkTables or a phone to the arm.
"""

from collections.abc import Mapping
from typing import Literal, cast

from aoabridge.codecs.j519.packets import AnyStatus
from aoabridge.codecs.j519.pc_events import (
    Event,
    LimitsReceived,
    PcConfig,
    PcState,
    Rejected,
    StateChanged,
    StatusReceived,
    Suspect,
    VersionKnown,
)
from aoabridge.codecs.j519.pc_session import PcSession
from aoabridge.sources.base import (
    Address,
    Endpoint,
    OutgoingDatagram,
    SenderFilter,
    SourceIssue,
    SourceStatus,
)
from aoabridge.sources.board import TopicBoard
from aoabridge.sources.j519_link import LinkFigures, RefusalWindow
from aoabridge.sources.j519_topics import StatusTopics, is_finite
from aoabridge.sources.settings import J519Settings
from aoabridge.values import Publication, Withdrawal

__all__ = ["J519Source"]

ENDPOINT = "robot"
ARM = "arm"  # origin of all topics that are withdrawn after silence
LINK = "link"  # origin of those that stay
REPORT_S = 1.0
SILENT_AFTER_S = 1.0  # Start unanswered for so long is worth an issue
MAX_ERROR_TEXT = 200
MAX_SENTENCE = 60
SENT_TYPES = frozenset((0, 2, 3, 6, 7, 200))  # Start, Stop, Request, the two version questions, ExtStart
DEFAULT_VERSION = {"classic": 1, "driver": 3}
FLOWING = (PcState.STATUS, PcState.READY, PcState.STREAMING)
_US = 1_000_000

_COUNTERS = {
    "Received": "received",
    "LostStatus": "lost",
    "Duplicates": "duplicates",
    "Reordered": "reordered",
    "Restarts": "restarts",
    "Rejected": "rejected",
    "ByteOrderSuspect": "suspect",
    "Opens": "opens",
}


def _session(settings: J519Settings) -> PcSession:
    generation = cast(Literal["classic", "driver"], settings.generation)
    version = settings.version if isinstance(settings.version, int) else DEFAULT_VERSION[generation]
    return PcSession(
        PcConfig(
            control=False,
            passive=not settings.host,
            generation=generation,
            byte_order=cast(Literal["big", "little", "auto"], settings.byte_order),
            version=version,
            query=settings.version == "query",
            request_limits=settings.request_limits,
            axes=settings.axes,
        )
    )


class J519Source:
    """The source of one robot below ``/J519/<name>/``; see ``sources.base.Source`` for the interface."""

    def __init__(self, settings: J519Settings, bridge_name: str) -> None:
        self.settings = settings
        self.name = settings.name or bridge_name
        self._session = _session(settings)
        self._board = TopicBoard(
            f"/J519/{self.name}/", 0
        )  # the pace is kept here: all numbers of one Status leave together
        self._topics = StatusTopics(self._board, ARM, every=settings.publish_hz == 0)
        self._figures = LinkFigures()
        self._window = RefusalWindow()
        self._senders = SenderFilter(settings.allow_from)
        self._foreign = 0
        self._non_finite = 0
        self._version = 0
        self._now = 0.0
        self._connected = False
        self._last_at: float | None = None  # of a usable Status
        self._open_at: float | None = None
        self._port_taken = False
        self._forgotten = False
        self._report_at: float | None = None
        self._period_s = 1 / settings.publish_hz if settings.publish_hz else 0.0
        self._publish_at = 0.0
        self._waiting: AnyStatus | None = None
        self._outgoing: list[OutgoingDatagram] = []

    # ---- in

    def endpoints(self) -> tuple[Endpoint, ...]:
        """The one UDP socket: connected to the robot, or bound."""
        settings = self.settings
        if settings.host:
            return (Endpoint(ENDPOINT, "udp", "", settings.port, direction="connect", host=settings.host),)
        return (Endpoint(ENDPOINT, "udp", settings.bind, settings.port, settings.allow_from),)

    def on_endpoint(self, endpoint_key: str, address: Address | None, now: float) -> None:  # noqa: ARG002
        """Open the stream once there is a socket."""
        self._port_taken = address is None and not self.settings.host
        if address is not None and self._session.state is PcState.CLOSED:
            self._open_at = now
            self._take(self._session.open(_us(now)), now)

    def on_datagram(self, endpoint_key: str, data: bytes, sender: Address, now: float) -> None:  # noqa: ARG002
        """Take one datagram; with a host the kernel lets only the robot through."""
        if not self.settings.host and not self._senders.allows(sender[0]):
            self._foreign += 1
            return
        events = self._session.on_datagram(data, _us(now))
        suspect = any(isinstance(event, Suspect) for event in events)
        refused = suspect or any(isinstance(event, Rejected) for event in events)
        self._window.mark(now, refused=refused, suspect=suspect)
        self._take(events, now)

    def on_connection(self, endpoint_key: str, connection_id: int, peer: Address | None, now: float) -> None:
        """Nothing: there is no TCP here."""

    def on_stream(self, endpoint_key: str, connection_id: int, data: bytes, now: float) -> None:
        """Nothing: there is no TCP here."""

    def on_tick(self, now: float) -> None:
        """Time-outs of the session, staleness, figures."""
        self._take(self._session.on_tick(_us(now)), now)
        self._write_waiting(now)
        self._judge_silence(now)
        if self._report_at is None or now >= self._report_at:
            self._report_at = now + REPORT_S
            self._figures.roll(now)
            self._write_figures(now)

    def on_send_failed(self, endpoint_key: str, now: float) -> None:
        """Nothing: an unanswered datagram is sent again."""

    def close(self, now: float) -> None:
        """End the stream: Stop is among the next datagrams."""
        self._take(self._session.close(), now)

    # ---- out

    @property
    def counters(self) -> Mapping[str, int]:
        """Events since start, by the names of the Link topics."""
        counts = {name: self._session.counters[key] for name, key in _COUNTERS.items()}
        return {**counts, "ForeignSource": self._foreign, "NonFinite": self._non_finite}

    def take_publications(self) -> list[Publication | Withdrawal]:
        """What is to be published or withdrawn, in order."""
        return self._board.take(self._now)

    def take_datagrams(self) -> list[OutgoingDatagram]:
        """What is to be sent to the robot; only packets that cannot move it."""
        taken, self._outgoing = self._outgoing, []
        return taken

    def take_closures(self) -> list[tuple[str, int]]:
        """Nothing: there is no TCP here."""
        return []

    def status(self, now: float) -> SourceStatus:
        """Figures of the snapshot; bad = Rejected + ByteOrderSuspect, gaps = LostStatus."""
        counters = self._session.counters
        meter = self._figures.meter
        meter.roll(now)
        return SourceStatus(
            hz=meter.rate_hz,
            age_s=meter.age_s(now),
            bad=counters["rejected"] + counters["suspect"],
            gaps=counters["lost"],
            issues=tuple(self._issues(now)),
        )

    def next_deadline(self, now: float) -> float | None:
        """The nearest of time-outs, staleness, the report and what the board holds back."""
        due = [self._report_at if self._report_at is not None else now]
        if self._session.next_deadline_us is not None:
            due.append(self._session.next_deadline_us / _US)
        if self._last_at is not None and self._connected:
            due.append(self._last_at + self.settings.stale_ms / 1000)
        elif self._last_at is not None and not self._forgotten:
            due.append(self._last_at + self.settings.forget_s)
        if self._waiting is not None:
            due.append(self._publish_at)
        return min(due)

    # ---- what the session says

    def _take(self, events: list[Event], now: float) -> None:
        self._now = now
        for event in events:
            match event:
                case StatusReceived():
                    self._on_status(event, now)
                case StateChanged():
                    self._write_state()
                case LimitsReceived():
                    self._topics.write_limits(event.tables, self.settings.axes)
                case VersionKnown():
                    self._version = event.version
                case Rejected():
                    self._write_error(str(event.error))
                case Suspect():
                    self._write_error(self._swapped_text())
                case _:
                    pass
        for data in self._session.take_datagrams():
            # The session has no way to make a command; this makes sure that no later change gives it one.
            if int.from_bytes(data[:4], "little" if self.settings.byte_order == "little" else "big") in SENT_TYPES:
                self._outgoing.append((ENDPOINT, data, (self.settings.host, self.settings.port)))

    def _on_status(self, event: StatusReceived, now: float) -> None:
        status = event.packet
        self._last_at = now
        self._forgotten = False
        self._version = status.version_no
        self._figures.mark(now, status.time_stamp)
        if not is_finite(status):
            self._non_finite += 1
        self._topics.write_states(status)
        self._waiting = status
        self._write_waiting(now)
        self._set_connected(True)

    def _write_waiting(self, now: float) -> None:
        """The numbers of the newest Status, if it is time for them."""
        if self._waiting is not None and now >= self._publish_at:
            self._topics.write_values(self._waiting)
            self._waiting = None
            self._publish_at = max(self._publish_at + self._period_s, now)

    def _set_connected(self, connected: bool) -> None:
        self._connected = connected
        self._board.say(LINK, "Link/Connected", "boolean", connected)
        self._write_state()

    def _write_state(self) -> None:
        """State of the session; ``lost`` while it waits for a Status that used to come."""
        state = self._session.state
        waiting = state in FLOWING or (not self.settings.host and state is PcState.STARTING)
        text = "lost" if waiting and self._last_at is not None and not self._connected else state.value
        if not self._forgotten:
            self._board.say(ARM, "State", "string", text)

    def _judge_silence(self, now: float) -> None:
        if self._last_at is None:
            return
        silence_s = now - self._last_at
        if self._connected and silence_s >= self.settings.stale_ms / 1000:
            self._topics.forget()
            self._set_connected(False)
        if not self._forgotten and silence_s >= self.settings.forget_s:
            self._forgotten = True
            self._waiting = None
            self._board.forget(ARM)

    # ---- figures

    def _write_error(self, text: str) -> None:
        self._board.say(LINK, "Link/LastError", "string", text[:MAX_ERROR_TEXT])

    def _write_figures(self, now: float) -> None:
        say = self._board.say
        say(LINK, "Link/Connected", "boolean", self._connected)
        for name, count in self.counters.items():
            say(LINK, f"Link/{name}", "int", count)
        say(LINK, "Link/Version", "int", self._version)
        figures = self._figures
        say(LINK, "Link/Status_hz", "double", figures.meter.rate_hz)
        age_s = figures.meter.age_s(now)
        if age_s is not None:
            say(LINK, "Link/RxAge_ms", "double", age_s * 1000)
            say(LINK, "Link/Jitter_ms", "double", figures.jitter_ms)
            say(LINK, "Link/Cycle_ms", "double", figures.cycle_ms)

    def _swapped_text(self) -> str:
        other = "big" if self._session.byte_order == "little" else "little"
        return f"peer looks {other}-endian"

    def _issues(self, now: float) -> list[SourceIssue]:
        found = []
        if self._port_taken:
            found.append(SourceIssue("source-bind", f"j519: port {self.settings.port} taken"))
        unanswered = self._open_at is not None and now - self._open_at >= SILENT_AFTER_S
        if unanswered and not self._connected:
            sender = self.settings.host or f"port {self.settings.port}"
            found.append(SourceIssue("source-silent", f"j519: no Status from {sender}"[:MAX_SENTENCE]))
        if self._window.looks_swapped(now):
            found.append(SourceIssue("source-bad", f"j519: {self._swapped_text()}"))
        elif (percent := self._window.refused_percent(now)) is not None:
            found.append(SourceIssue("source-bad", f"j519: {percent} % of datagrams refused"))
        return found


def _us(now: float) -> int:
    return round(now * _US)
