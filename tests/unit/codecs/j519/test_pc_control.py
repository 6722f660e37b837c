"""A PC session that may move the robot: setpoints, faults, the end, and what happens on the way there."""

from typing import Any

import pytest

from aoabridge.codecs.j519 import TO_ROBOT, decode, packet_name
from aoabridge.codecs.j519.packets import Motion
from aoabridge.codecs.j519.pc_events import (
    Fault,
    PcConfig,
    PcState,
    StatusLost,
)
from aoabridge.codecs.j519.pc_session import PcSession
from aoabridge.codecs.j519.robot_model import RobotState
from fakes.j519 import QuinticMove, wire
from fakes.pc_session import HOME, IDLE, MS, READY, STREAMING, faulted, opened, ready, sent, status, streaming


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
