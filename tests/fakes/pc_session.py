"""PC sessions of Stream Motion, taken to a state, and the packets of their robot."""

from typing import Any

import msgspec

from aoabridge.codecs.j519 import TO_ROBOT, decode, encode, packet_name
from aoabridge.codecs.j519.packets import Status
from aoabridge.codecs.j519.pc_events import (
    PcConfig,
    PcState,
)
from aoabridge.codecs.j519.pc_session import PcSession

MS = 1000
HOME = (0.0,) * 9
READY, STREAMING, IDLE = 0x05, 0x07, 0x04


def status(number: int, bits: int = READY, **values: Any) -> bytes:
    return encode(
        msgspec.structs.replace(Status(1, number, bits, 0, 0, 0, 0, 8 * number % (1 << 32), HOME, HOME, HOME), **values)
    )


def sent(session: PcSession) -> list[str]:
    return [packet_name(decode(TO_ROBOT, data)) for data in session.take_datagrams()]


def opened(now_us: int = 0, **settings: Any) -> PcSession:
    """A session that has sent Start."""
    session = PcSession(PcConfig(**{"request_limits": False, "max_step": 1.0, **settings}))
    session.open(now_us)
    session.on_tick(now_us + 100 * MS)
    session.take_datagrams()
    assert session.state is PcState.STARTING
    return session


def ready(**settings: Any) -> tuple[PcSession, int]:
    session = opened(control=True, **settings)
    session.on_datagram(status(1), 108 * MS)
    assert session.state is PcState.READY
    return session, 108 * MS


def streaming(**settings: Any) -> tuple[PcSession, int]:
    session, now_us = ready(**settings)
    assert session.offer_setpoint(HOME) == []
    assert session.state is PcState.STREAMING
    session.take_datagrams()
    return session, now_us


def faulted() -> PcSession:
    session, _ = streaming()
    session.on_datagram(status(2, 0), 116 * MS)
    assert session.state is PcState.FAULTED
    session.take_datagrams()
    return session
