"""What the lines of a phone do: one table from the kind of message to the method that answers it."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from aoabridge import __version__
from aoabridge.bridge.announcer import Announcer
from aoabridge.bridge.fanout import Fanout
from aoabridge.bridge.link import Link
from aoabridge.bridge.put_desk import PutDesk
from aoabridge.bridge.puts import PutRules
from aoabridge.bridge.refusals import Refusals
from aoabridge.bridge.robot import RobotConnection
from aoabridge.bridge.settings import RelaySettings
from aoabridge.bridge.topics import TopicTable
from aoabridge.errors import LinkError
from aoabridge.phone.keys import is_reserved
from aoabridge.phone.lines import InboundLine
from aoabridge.phone.messages import (
    Hello,
    Message,
    Ping,
    Pong,
    PutMessage,
    Subscribe,
    TopicsRequest,
    Unsubscribe,
    hello_line,
    parse_line,
    pong_line,
)
from aoabridge.values import RUN_PREFIX

__all__ = ["Dialog"]

# A busy machine delays a press by less; after more, the driver no longer expects the robot to move.
MAX_PRESS_AGE_S = 1.0


class Dialog:
    """Reads lines and acts on them. ``own`` matches the keys that only the bridge itself publishes."""

    def __init__(
        self,
        *,
        topics: TopicTable,
        rules: PutRules,
        fanout: Fanout,
        desk: PutDesk,
        robot: RobotConnection,
        announcer: Announcer,
        refusals: Refusals,
    ) -> None:
        self.settings = RelaySettings()
        self.own: re.Pattern[str] | None = None
        self._topics = topics
        self._rules = rules
        self._fanout = fanout
        self._desk = desk
        self._robot = robot
        self._announcer = announcer
        self._refusals = refusals

    def read(self, link: Link, line: InboundLine, now: float) -> None:
        """Do what a line says, or tell the phone what is wrong with it."""
        link.counters["rx_lines"] += 1
        try:
            if line.oversize:
                raise LinkError(f"the line is longer than {self.settings.max_line_bytes} bytes", "too-large")
            message = parse_line(line.data)
        except LinkError as error:
            if not link.swallow():
                link.counters["bad_lines"] += 1
                self._refusals.refuse(link, error, now, line.data)
            return
        link.note_line(line, now)
        try:
            self._ACTIONS[type(message)](self, link, message, line, now)
        except LinkError as error:
            self._refusals.refuse(link, error, now, line.data)

    def _on_subscribe(self, link: Link, message: Subscribe, line: InboundLine, now: float) -> None:
        link.reopening.on_subscribe(now, early=line.early, legacy=message.legacy)
        for error in self._fanout.subscribe(link, message):
            self._refusals.refuse(link, error, now, line.data)

    def _on_unsubscribe(self, link: Link, message: Unsubscribe, line: InboundLine, now: float) -> None:
        del line, now
        self._fanout.unsubscribe(link, message)

    def _on_put(self, link: Link, message: PutMessage, line: InboundLine, now: float) -> None:
        try:
            self._check_put(link, message, line, now)
            self._desk.put(link, message)
        except LinkError as error:
            error.topic, error.ident = message.key, message.ident
            self._refusals.count_put(link, error)
            raise
        finally:
            if changed := self._rules.take_changed():
                self._fanout.schemas_changed(changed, now)

    def _check_put(self, link: Link, message: PutMessage, line: InboundLine, now: float) -> None:
        if is_reserved(message.key) or (self.own is not None and self.own.match(message.key)):
            raise LinkError("this topic is not for phones to write", "forbidden")
        topic = self._topics.by_key(message.key)
        if not link.may_put.permits(message.key) or (topic is not None and topic.own):
            raise LinkError("this topic may not be put", "forbidden")
        if line.early:
            link.counters["backlog_puts_refused"] += 1
            raise LinkError("written before the bridge was there: put it again", "not-connected")
        if link.chunk_age_s > MAX_PRESS_AGE_S and message.value is True and message.key.startswith(RUN_PREFIX):
            link.counters["late_presses_refused"] += 1
            raise LinkError(f"read {link.chunk_age_s:.1f} s ago, too long for a press: put it again", "not-connected")
        if not self._robot.settled or link.closing:
            raise LinkError("no robot is connected", "not-connected")
        if not link.puts.take(now):
            raise LinkError(f"more than {self.settings.put_rate} puts per second", "rate-limited")

    def _on_topics_request(self, link: Link, message: TopicsRequest, line: InboundLine, now: float) -> None:
        del line
        self._announcer.send_topics(link, now, types=message.types)

    def _on_hello(self, link: Link, message: Hello, line: InboundLine, now: float) -> None:
        del line
        again = link.pings is not None
        if again:
            self._fanout.detach_all(link)
            link.start_over()
            self._desk.mute(link.ident)
            self._desk.release(link.ident, now)
        link.greet(message, now)
        link.outbox.put_control(hello_line(__version__, message.nonce, self._robot.state))
        if again:
            self._announcer.welcome(link, now)
            self.lower_pulses(link, now)

    def lower_pulses(self, link: Link, now: float) -> None:
        """Once per run of an app and before its first put: foreign run pulses that stand high are lowered."""
        if self._robot.settled and link.must_lower:
            link.must_lower = False
            self._desk.lower_foreign(link, now)

    def _on_ping(self, link: Link, message: Ping, line: InboundLine, now: float) -> None:
        del line, now
        link.outbox.put_control(pong_line(message.ident))

    def _on_pong(self, link: Link, message: Pong, line: InboundLine, now: float) -> None:
        del line
        if link.pings is not None:
            link.pings.pong(message.ident, now)

    _ACTIONS: Final[Mapping[type[Message], Callable[..., None]]] = {
        Subscribe: _on_subscribe,
        Unsubscribe: _on_unsubscribe,
        PutMessage: _on_put,
        TopicsRequest: _on_topics_request,
        Hello: _on_hello,
        Ping: _on_ping,
        Pong: _on_pong,
    }
