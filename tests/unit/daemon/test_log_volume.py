"""An hour of a phone that writes nothing but garbage, in virtual time: what the log holds of it."""

import asyncio
import logging

import pytest

from aoabridge.adapters.log_limits import LogLimiter
from aoabridge.adapters.nt import NtClient, NtSettings
from aoabridge.adapters.usb_pump import Accepted, Chunk
from aoabridge.bridge.core import BridgeCore, CoreSettings
from aoabridge.bridge.link import LinkInfo
from aoabridge.daemon.relay import Relay

LINES_PER_S = 1000
TURNS_PER_S = 4
MAX_LINES_PER_HOUR = 100
GARBAGE = (b"{", b"\xff\xfe", b"[1]", b'{"action":"put"}', b'{"action":"dance"}', b'{"action":"put","key":1,"value":2}')


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Host:
    """A phone that reads everything at once."""

    def __init__(self) -> None:
        self.taken = 0

    def ready(self, link: int) -> bool:
        del link
        return not self.taken

    def offer(self, link: int, data: bytes) -> bool:
        del link
        self.taken = len(data)
        return True


class Lines(logging.Handler):
    """Counts what is said, repeats summed up as the daemon's handlers do."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.limiter = LogLimiter(clock)
        self.addFilter(self.limiter)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())

    def sum_up(self) -> None:
        self.said += [record.getMessage() for record in self.limiter.summaries()]


def chunk_of(number: int) -> bytes:
    """Lines that are wrong in turns, each with something of its own."""
    lines = (GARBAGE[(number + place) % len(GARBAGE)] for place in range(LINES_PER_S // TURNS_PER_S))
    return b"".join(line + b" %d\n" % (number + place) for place, line in enumerate(lines))


@pytest.mark.parametrize("minutes", [3, pytest.param(60, marks=[pytest.mark.soak, pytest.mark.timeout(1200)])])
def test_a_thousand_bad_lines_a_second_are_hardly_more_than_a_log_line_a_minute(minutes: int) -> None:
    clock = Clock()
    lines = Lines(clock)
    logger = logging.getLogger("aoabridge")
    logger.addHandler(lines)

    async def run() -> int:
        relay = Relay(BridgeCore(CoreSettings()), NtClient(NtSettings("test"), wake=lambda: None), clock=clock)
        host = Host()
        relay.link_up(host, 1, LinkInfo("phone", 16_384))
        for number in range(minutes * 60 * TURNS_PER_S):
            clock.now += 1 / TURNS_PER_S
            relay.link_event(1, Chunk(chunk_of(number), clock.now))
            relay.turn_now()
            if host.taken:
                relay.link_event(1, Accepted(host.taken, error=False, t=clock.now))
                host.taken = 0
            lines.sum_up()
        bad = relay.core.totals()["bad_lines"]
        relay.close()
        return bad

    before = logger.level
    logger.setLevel(logging.INFO)
    try:
        bad = asyncio.run(run())
    finally:
        logger.removeHandler(lines)
        logger.setLevel(before)
    assert bad > 0.9 * minutes * 60 * LINES_PER_S
    assert any("line refused" in line for line in lines.said)
    assert len(lines.said) <= MAX_LINES_PER_HOUR * minutes / 60
