"""The states of a PC session: what leads where, what is sent, and that a monitor can command nothing."""

from typing import Any

import pytest

from aoabridge.codecs.j519 import TO_ROBOT, decode, encode
from aoabridge.codecs.j519.limits import table_keys
from aoabridge.codecs.j519.packets import Capability, ExtStatusV3, Request, Status, VersionResponse
from aoabridge.codecs.j519.pc_events import (
    LimitsReceived,
    PcConfig,
    PcState,
    Rejected,
    StatusLost,
    StatusReceived,
    Suspect,
    VersionKnown,
)
from aoabridge.codecs.j519.pc_session import PcSession
from aoabridge.codecs.j519.robot_model import ArmLimits
from aoabridge.errors import EncodeError
from fakes.pc_session import HOME, MS, READY, opened, sent, status


class TestOpening:
    def test_stop_first_then_silence(self) -> None:
        session = PcSession(PcConfig(request_limits=False))
        session.open(0)
        assert (session.state, sent(session)) == (PcState.DRAINING, ["stop"])
        assert session.on_datagram(status(1), 50 * MS) == [] and session.counters["received"] == 0
        session.on_tick(99 * MS)
        assert session.state is PcState.DRAINING
        session.on_tick(100 * MS)
        assert (session.state, sent(session)) == (PcState.STARTING, ["start"])

    @pytest.mark.parametrize("generation", ["classic", "driver"])
    def test_version_by_answer(self, generation: Any) -> None:
        version = 3 if generation == "driver" else 1
        session = PcSession(PcConfig(generation=generation, version=version, query=True, request_limits=False))
        session.open(0)
        session.on_tick(100 * MS)
        question = "capability" if generation == "driver" else "version_request"
        assert (session.state, sent(session)) == (PcState.QUERYING, ["stop", question])
        answer = Capability(7, 4, 1, 8, 3, 4, 0) if generation == "driver" else VersionResponse(2)
        events = session.on_datagram(encode(answer), 120 * MS)
        assert VersionKnown(4 if generation == "driver" else 2, True) in events
        assert session.state is PcState.STARTING
        start = decode(TO_ROBOT, session.take_datagrams()[0])
        assert start.version_no == session.version  # type: ignore[attr-defined]

    def test_silence_means_the_configured_version(self) -> None:
        session = PcSession(PcConfig(version=2, query=True, request_limits=False))
        session.open(0)
        session.on_tick(100 * MS)
        session.on_tick(599 * MS)
        assert sent(session) == ["stop", "version_request"]
        session.on_tick(600 * MS)
        assert sent(session) == ["version_request"]
        assert VersionKnown(2, False) in session.on_tick(1100 * MS)
        assert sent(session) == ["start"]

    @pytest.mark.parametrize(("reported", "used"), [(0, 1), (1, 1), (3, 3), (9, 3)])
    def test_only_versions_that_both_know(self, reported: int, used: int) -> None:
        session = PcSession(PcConfig(query=True, request_limits=False))
        session.open(0)
        session.on_tick(100 * MS)
        session.on_datagram(encode(VersionResponse(reported)), 110 * MS)
        assert session.version == used

    def test_limits_one_by_one(self) -> None:
        session = PcSession(PcConfig(axes=2))
        session.open(0)
        session.on_tick(100 * MS)
        requests = [decode(TO_ROBOT, data) for data in session.take_datagrams()][1:]
        assert requests == [Request(1, 1, 0)] and session.state is PcState.LIMITS
        arm = ArmLimits()
        assert session.on_datagram(encode(arm.ack(1, 2, 2)), 101 * MS) == [] and sent(session) == []  # not asked for
        events: list[Any] = []
        for axis, kind in table_keys(2):
            events += session.on_datagram(encode(arm.ack(1, axis, kind)), 105 * MS)
        assert sent(session) == ["request"] * 5 + ["start"]
        [received] = [event for event in events if isinstance(event, LimitsReceived)]
        assert received.complete and len(received.tables) == 6

    def test_an_unanswered_request_ends_the_phase(self) -> None:
        session = PcSession(PcConfig())
        session.open(0)
        session.on_tick(100 * MS)
        session.on_datagram(encode(ArmLimits().ack(1, 1, 0)), 150 * MS)
        session.take_datagrams()
        session.on_tick(1149 * MS)
        assert sent(session) == []
        session.on_tick(1150 * MS)
        assert sent(session) == ["request"]
        events = session.on_tick(2150 * MS)
        assert [event.complete for event in events if isinstance(event, LimitsReceived)] == [False]
        assert sent(session) == ["start"] and session.state is PcState.STARTING

    def test_back_off(self) -> None:
        session = opened()
        now_us, pauses = 100 * MS, []
        for _ in range(5):
            now_us += 1_000_000
            session.on_tick(now_us)
            assert (session.state, sent(session)) == (PcState.DRAINING, ["stop"])
            assert session.next_deadline_us is not None
            pauses.append(session.next_deadline_us - now_us)
            now_us = session.next_deadline_us
            session.on_tick(now_us)
            assert (session.state, sent(session)) == (PcState.STARTING, ["start"])
        assert pauses == [1_000_000, 2_000_000, 5_000_000, 5_000_000, 5_000_000]

    def test_the_driver_generation_starts_its_own_way(self) -> None:
        session = PcSession(PcConfig(generation="driver", version=4, request_limits=False))
        session.open(0)
        session.on_tick(100 * MS)
        assert sent(session) == ["stop", "ext_start"]

    def test_sending_never_guesses(self) -> None:
        with pytest.raises(EncodeError):
            PcSession(PcConfig(byte_order="auto"))
        with pytest.raises(ValueError):
            PcSession(PcConfig(control=True, passive=True))


class TestMonitor:
    @pytest.mark.parametrize(
        ("bits", "state"),
        [(0, PcState.STATUS), (0x04, PcState.STATUS), (0x01, PcState.STATUS), (0x05, PcState.READY),
         (0x07, PcState.STREAMING), (0x0F, PcState.STREAMING), (0x06, PcState.STREAMING)],
    )  # fmt: skip
    def test_state_follows_the_bits(self, bits: int, state: PcState) -> None:
        session = opened()
        session.on_datagram(status(1, bits), 108 * MS)
        assert session.state is state

    def test_has_no_way_to_command(self) -> None:
        session = opened()
        session.on_datagram(status(1), 108 * MS)
        assert [violation.code for violation in session.offer_setpoint(HOME)] == ["not-armed"]
        session.finish()
        session.rearm()
        assert session._stream is None and sent(session) == []

    def test_counts_and_goes_on(self) -> None:
        session = opened()
        gaps = []
        for number in (7, 8, 8, 11, 9, 2000, 1, 2, 3, 4, 5):
            for event in session.on_datagram(status(number), 108 * MS):
                if isinstance(event, StatusReceived):
                    gaps.append((event.packet.sequence_no, event.gap))
        assert gaps == [(7, 0), (8, 0), (11, 2), (2000, 1988), (4, 0), (5, 0)]
        counters = session.counters
        assert (counters["lost"], counters["duplicates"], counters["reordered"], counters["restarts"]) == (
            1990,
            1,
            4,
            1,
        )
        assert session.state is PcState.READY

    def test_begins_again_after_three_seconds(self) -> None:
        session = opened()
        session.on_datagram(status(900), 108 * MS)
        session.on_tick(3107 * MS)
        assert sent(session) == []
        events = session.on_tick(3108 * MS)
        assert any(isinstance(event, StatusLost) for event in events)
        assert (session.state, sent(session)) == (PcState.DRAINING, ["stop"])
        session.on_tick(4108 * MS)
        session.on_datagram(status(1), 4120 * MS)  # any first number after Start
        assert session.counters["restarts"] == 0 and session.state is PcState.READY

    def test_passive_never_sends(self) -> None:
        session = PcSession(PcConfig(passive=True, byte_order="auto"))
        session.open(0)
        session.on_datagram(status(5), MS)
        assert session.state is PcState.READY
        session.on_tick(4_000_000)
        assert session.state is PcState.STARTING
        session.close()
        assert sent(session) == [] and session.state is PcState.CLOSED

    def test_auto_keeps_the_order_of_the_first_packet_that_fits(self) -> None:
        session = PcSession(PcConfig(passive=True, byte_order="auto"))
        session.open(0)
        little = encode(Status(1, 5, READY, 0, 0, 0, 0, 0, HOME, HOME, HOME), byte_order="little")
        session.on_datagram(little, MS)
        assert session.byte_order == "little" and session.state is PcState.READY
        events = session.on_datagram(status(6), 2 * MS)
        assert [type(event) for event in events] == [Suspect]

    def test_what_is_not_used(self) -> None:
        session = opened(peer=("192.0.2.9", 60015))
        assert session.on_datagram(status(1), 108 * MS, ("192.0.2.8", 60015)) == []
        assert session.on_datagram(b"junk", 108 * MS, ("192.0.2.9", 1)) == []
        assert session.counters["foreign"] == 2 and session.counters["rejected"] == 0
        [rejected] = session.on_datagram(b"junk", 108 * MS, ("192.0.2.9", 60015))
        assert isinstance(rejected, Rejected)
        ext = encode(ExtStatusV3(3, 1, 5, 0, 0, 0, 0, HOME, HOME, HOME, 1.0, bytes(256)))
        [other] = session.on_datagram(ext, 108 * MS)
        assert isinstance(other, Rejected) and "classic" in str(other.error)
        swapped = encode(Status(1, 1, READY, 0, 0, 0, 0, 0, HOME, HOME, HOME), byte_order="little")
        assert isinstance(session.on_datagram(swapped, 108 * MS)[0], Suspect)
        assert session.counters["suspect"] == 1 and session.state is PcState.STARTING

    def test_answers_nobody_asked_for(self) -> None:
        session = opened()
        for packet in (VersionResponse(2), ArmLimits().ack(1, 1, 0), Capability(7, 3, 1, 8, 0, 3, 0)):
            assert session.on_datagram(encode(packet), 108 * MS) == []
        assert session.state is PcState.STARTING and len(session.limits) == 0
