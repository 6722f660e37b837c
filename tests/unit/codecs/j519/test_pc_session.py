"""The states of a PC session: what leads where, what is sent, and that a monitor can command nothing."""

from typing import Any

import msgspec
import pytest

from aoabridge.codecs.j519 import TO_ROBOT, decode, encode, packet_name
from aoabridge.codecs.j519.limits import table_keys
from aoabridge.codecs.j519.packets import Capability, ExtStatusV3, Motion, Request, Status, VersionResponse
from aoabridge.codecs.j519.pc_events import (
    Fault,
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
from aoabridge.codecs.j519.robot_model import ArmLimits, RobotState
from aoabridge.errors import EncodeError
from fakes.j519 import QuinticMove, wire

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


class TestControl:
    def test_ready_needs_both_bits_and_a_guard(self) -> None:
        session = opened(control=True)
        for number, bits, state in ((1, 0x01, PcState.STATUS), (2, 0x04, PcState.STATUS), (3, 0x05, PcState.READY),
                                    (4, 0x04, PcState.STATUS)):  # fmt: skip
            session.on_datagram(status(number, bits), 108 * MS)
            assert session.state is state
        blind = opened(control=True, max_step=None)
        blind.on_datagram(status(1), 108 * MS)
        assert blind.state is PcState.STATUS

    def test_first_command_answers_the_last_status(self) -> None:
        session, _ = ready()
        session.on_datagram(status(2), 116 * MS)
        assert session.offer_setpoint((1.0,) * 6)[0].code == "start"
        assert session.state is PcState.READY and sent(session) == []
        assert session.offer_setpoint((0.0,) * 6) == []
        [data] = session.take_datagrams()
        command = decode(TO_ROBOT, data)
        assert isinstance(command, Motion) and (command.sequence_no, command.last_data) == (2, 0)
        assert session.state is PcState.STREAMING

    def test_one_command_per_status(self) -> None:
        session, _ = streaming()
        assert session.offer_setpoint(HOME)[0].code == "not-due"
        session.on_datagram(status(2, STREAMING), 116 * MS)
        assert session.offer_setpoint(HOME) == [] and len(session.take_datagrams()) == 1
        assert session.offer_setpoint(HOME)[0].code == "not-due"

    @pytest.mark.parametrize("lost", [1, 2, 9])
    def test_lost_cycles_are_interpolated(self, lost: int) -> None:
        session, _ = streaming()
        session.on_datagram(status(2 + lost, STREAMING), 116 * MS)
        assert session.offer_setpoint((0.5, *HOME[1:])) == []
        commands = [decode(TO_ROBOT, data) for data in session.take_datagrams()]
        assert [command.sequence_no for command in commands] == list(range(2, 3 + lost))  # type: ignore[attr-defined]
        values = [command.axes[0] for command in commands]  # type: ignore[attr-defined]
        assert values == sorted(values) and values[0] > 0 and values[-1] == 0.5

    @pytest.mark.parametrize(("numbers", "code"), [((12,), "jump"), ((1 << 31,), "jump")])
    def test_too_many_lost_cycles(self, numbers: tuple[int, ...], code: str) -> None:
        session, _ = streaming()
        events = [event for number in numbers for event in session.on_datagram(status(number, STREAMING), 116 * MS)]
        assert [event.code for event in events if isinstance(event, Fault)] == [code]
        assert session.state is PcState.FAULTED

    def test_controller_restart(self) -> None:
        session, _ = ready()
        session.on_datagram(status(500), 112 * MS)
        session.on_datagram(status(501), 116 * MS)
        session._tracker.last = 500
        session.offer_setpoint(HOME)
        for number in (1, 2, 3, 4):
            session.on_datagram(status(number, STREAMING), 120 * MS)
        assert session.state is PcState.FAULTED and session.counters["restarts"] == 1

    @pytest.mark.parametrize("bits", [0x02, 0x03, 0x06, 0x00])
    def test_losing_ready_or_sysrdy(self, bits: int) -> None:
        session, _ = streaming()
        events = session.on_datagram(status(2, bits), 116 * MS)
        assert any(isinstance(event, Fault) for event in events) and session.state is PcState.FAULTED
        assert session.offer_setpoint(HOME)[0].code == "not-armed"

    def test_the_received_bit_may_lag_by_two(self) -> None:
        session, _ = streaming()
        for number, state in ((2, PcState.STREAMING), (3, PcState.STREAMING), (4, PcState.FAULTED)):
            session.on_datagram(status(number, READY), (100 + 8 * number) * MS)
            session.offer_setpoint(HOME)
            assert session.state is state

    def test_faulted_sends_nothing_until_rearmed(self) -> None:
        session, _ = streaming()
        session.on_datagram(status(2, 0), 116 * MS)
        session.take_datagrams()
        for number in range(3, 500):
            session.on_datagram(status(number), (100 + 8 * number) * MS)
            session.on_tick((101 + 8 * number) * MS)
            session.offer_setpoint(HOME)
        session.on_tick(60_000_000)
        assert session.state is PcState.FAULTED and sent(session) == []
        session.rearm()
        assert session.state is PcState.STATUS
        session.on_datagram(status(500), 60_008 * MS)
        assert session.state is PcState.READY
        assert session.offer_setpoint(HOME) == [] and len(session.take_datagrams()) == 1

    def test_silence_brakes_ahead_then_faults(self) -> None:
        session, now_us = streaming()
        position, now_number = 0.0, 1
        for number in range(2, 20):
            now_us += 8 * MS
            session.on_datagram(status(number, STREAMING), now_us)
            position += 0.01 * (number - 1)
            assert session.offer_setpoint((position, *HOME[1:])) == []
            now_number = number
        session.take_datagrams()
        assert session.on_tick(now_us + 19 * MS) == []
        events = session.on_tick(now_us + 20 * MS)
        assert any(isinstance(event, StatusLost) for event in events) and session.state is PcState.ENDING
        numbers, last = [], position
        for tick in range(20, 1000):
            session.on_tick(now_us + tick * MS)
            for data in session.take_datagrams():
                command = decode(TO_ROBOT, data)
                assert isinstance(command, Motion) and command.last_data == 0
                assert command.axes[0] > last  # still moving on, slower and slower
                numbers.append(command.sequence_no)
                last = command.axes[0]
        assert numbers == list(range(now_number + 1, now_number + 10))  # nine beyond the last Status
        assert session.offer_setpoint(HOME)[0].code == "not-armed"
        session.on_tick(now_us + 1000 * MS)
        assert session.state is PcState.FAULTED and sent(session) == []

    def test_silence_while_ready(self) -> None:
        session, now_us = ready()
        session.on_tick(now_us + 999 * MS)
        assert session.state is PcState.READY
        session.on_tick(now_us + 1000 * MS)
        assert session.state is PcState.FAULTED

    def test_ending_holds_then_marks_the_last(self) -> None:
        session, now_us = streaming()
        session.finish()
        assert session.state is PcState.ENDING
        commands = []
        for number in range(2, 40):
            now_us += 8 * MS
            bits = STREAMING if len(commands) < 21 else IDLE
            session.on_datagram(status(number, bits), now_us)
            commands += [decode(TO_ROBOT, data) for data in session.take_datagrams()]
        assert [command.last_data for command in commands] == [0] * 20 + [1]  # type: ignore[attr-defined]
        assert session.state is PcState.STATUS

    def test_ending_waits_for_rest(self) -> None:
        session, now_us = streaming()
        session.finish()
        for number in range(2, 60):
            now_us += 8 * MS
            session.on_datagram(status(number, STREAMING | 0x08 if number < 23 else IDLE | 0x08), now_us)
        assert session.state is PcState.ENDING
        session.on_datagram(status(60, IDLE), now_us + 8 * MS)
        assert session.state is PcState.STATUS


class TestClose:
    @pytest.mark.parametrize("setup", [opened, lambda: ready()[0], faulted])
    def test_stop_leaves_from_everywhere(self, setup: Any) -> None:
        session = setup()
        session.close()
        assert (session.state, sent(session)) == (PcState.CLOSED, ["stop"])
        assert session.on_datagram(status(9), 10**9) == [] and session.next_deadline_us is None

    def test_while_draining_stop_has_left_already(self) -> None:
        session = PcSession(PcConfig())
        session.close()
        assert sent(session) == []
        session.open(0)
        session.take_datagrams()
        session.close()
        assert (session.state, sent(session)) == (PcState.CLOSED, [])

    def test_a_motion_is_ended_first(self) -> None:
        pair = wire()
        pair.make_ready()
        move = QuinticMove(pair, 30.0, 4.0)
        pair.run(2.0, move.on_status)
        assert pair.pc.state is PcState.STREAMING
        pair.pc.close()
        pair.run(3.0)
        assert pair.pc.state is PcState.CLOSED and not pair.robot.alarms
        assert pair.robot.state is RobotState.IDLE
        assert packet_name(decode(TO_ROBOT, pair.commands[-1])) == "stop"


@pytest.mark.parametrize("cycle_us", [8000, 4000, 2000])
@pytest.mark.parametrize("generation", ["classic", "driver"])
class TestMove:
    def test_ten_seconds_without_alarm(self, cycle_us: int, generation: str) -> None:
        pair = wire(cycle_us, generation=generation)
        pair.make_ready()
        move = QuinticMove(pair, 60.0, 10.0)
        pair.run(10.5, move.on_status)
        pair.run_until(PcState.STATUS)
        assert not pair.robot.alarms and not move.violations and move.done
        assert pair.pc.counters["lost"] == 0
        assert max(abs(angle - 60.0) for angle in pair.robot.motion.axes[:6]) < 0.001
        assert not [event for event in pair.events if isinstance(event, Fault)]


@pytest.mark.parametrize("cycle_us", [8000, 4000, 2000])
def test_lost_status_is_made_good(cycle_us: int) -> None:
    """Single lost Status cost nothing; two in a row may end the motion, but in order."""
    pair = wire(cycle_us, drop_status=0.01)
    pair.make_ready()
    move = QuinticMove(pair, 60.0, 10.0)
    pair.run(11.0, move.on_status)
    assert pair.pc.counters["lost"] > 5
    assert not [alarm for alarm in pair.robot.alarms if alarm.code.startswith(("MOTN-609", "MOTN-61", "MOTN-72"))]
    assert pair.pc.state in (PcState.STATUS, PcState.READY)


def test_losses_in_both_directions_end_in_a_known_state() -> None:
    pair = wire(drop=0.01)
    pair.open()
    move = QuinticMove(pair, 60.0, 10.0)
    for _ in range(30):
        pair.run(1.0, move.on_status)
        pair.robot.set_ready(True)
        if pair.pc.state is PcState.FAULTED:
            assert pair.robot.state in (RobotState.FAULT, RobotState.READY, RobotState.STATUS)
            pair.robot.reset()
            pair.pc.rearm()
    assert pair.pc.counters["received"] > 2000


def test_emergency_stop_and_rearm() -> None:
    pair = wire()
    pair.make_ready()
    move = QuinticMove(pair, 30.0, 4.0)
    pair.run(2.0, move.on_status)
    pair.robot.e_stop(True, pair.now_us)
    pair.run(0.1, move.on_status)
    assert pair.pc.state is PcState.FAULTED
    pair.commands.clear()
    pair.robot.e_stop(False)
    pair.robot.reset()
    pair.robot.set_ready(True)
    pair.run(2.0, QuinticMove(pair, 1.0, 1.0).on_status)
    assert pair.commands == [] and pair.pc.state is PcState.FAULTED
    pair.pc.rearm()
    again = QuinticMove(pair, 20.0, 3.0)
    pair.run(4.0, again.on_status)
    assert again.done and not again.violations
    assert [alarm.code for alarm in pair.robot.alarms] == ["SRVO-001"]


def test_a_cut_cable_stops_the_arm_and_needs_rearming() -> None:
    pair = wire()
    pair.make_ready()
    move = QuinticMove(pair, 60.0, 4.0)
    pair.run(2.0, move.on_status)
    pair.mute = True
    pair.run(1.1, move.on_status)
    assert pair.pc.state is PcState.FAULTED
    pair.mute = False
    pair.commands.clear()
    pair.run(1.0, move.on_status)
    assert pair.commands == []


def test_sequence_wraps_in_the_middle_of_a_move() -> None:
    pair = wire()
    pair.open()
    pair.run_until(PcState.STARTING)
    pair.run_until(PcState.STATUS)
    pair.robot._sequence_no = 0xFFFFFFFF - 100
    pair.pc._tracker.last = 0xFFFFFFFF - 101
    pair.robot.set_ready(True)
    pair.run_until(PcState.READY)
    first: list[int] = []
    path = [0.0]

    def follow(packet: Any) -> None:
        if pair.pc.state in (PcState.READY, PcState.STREAMING):
            first.append(packet.sequence_no)
            assert pair.pc.offer_setpoint((path[0], *HOME[1:])) == []

    pair.run(2.0, follow)
    assert max(first) == 0xFFFFFFFF and first[-1] < 200 and not pair.robot.alarms
