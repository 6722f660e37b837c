"""The controller's side: who is answered, in which state, and every alarm."""

from typing import Any

import msgspec
import pytest

from aoabridge.codecs.j519 import FROM_ROBOT, decode, encode
from aoabridge.codecs.j519.packets import (
    Ack,
    Capability,
    CmdPosRequest,
    CmdPosResponse,
    ExtCommand,
    ExtStart,
    ExtStatusV3,
    ExtStatusV4,
    ForceConfig,
    GpioConfig,
    GpioResult,
    J519Packet,
    Motion,
    Request,
    Start,
    Status,
    Stop,
    VersionRequest,
    VersionResponse,
)
from aoabridge.codecs.j519.robot_model import RobotConfig, RobotState
from aoabridge.codecs.j519.robot_session import RobotSession

PC, OTHER = ("192.0.2.1", 50899), ("192.0.2.2", 50899)
CYCLE_US = 8000
HOME = (0.0,) * 9


class Bench:
    """One controller and the packets that came out of it."""

    def __init__(self, **config: Any) -> None:
        self.robot = RobotSession(RobotConfig(**config))
        self.now_us = 0
        self.order = self.robot.config.byte_order

    def send(self, packet: J519Packet, peer: tuple[str, int] = PC) -> list[J519Packet]:
        return self.send_octets(encode(packet, byte_order=self.order), peer)

    def send_octets(self, data: bytes, peer: tuple[str, int] = PC) -> list[J519Packet]:
        self.robot.on_datagram(data, peer, self.now_us)
        return self.answers()

    def answers(self) -> list[J519Packet]:
        return [decode(FROM_ROBOT, data, byte_order=self.order) for data, _ in self.robot.take_datagrams()]

    def cycle(self) -> Any:
        """One cycle; its Status, None if there is none."""
        self.now_us += CYCLE_US
        self.robot.on_tick(self.now_us)
        found = self.answers()
        assert len(found) <= 1
        return found[0] if found else None

    @property
    def alarms(self) -> list[str]:
        return [alarm.code for alarm in self.robot.alarms]


def bench(*, ready: bool = False, **config: Any) -> Bench:
    result = Bench(**config)
    result.send(Start(1))
    if ready:
        result.robot.set_ready(True)
    return result


def motion(number: int, first: float = 0.0, **values: Any) -> Motion:
    return msgspec.structs.replace(Motion(1, number, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, (first, *HOME[1:])), **values)


def drive() -> ExtCommand:
    return ExtCommand(3, 1, 0, 1, 0xFFFF, HOME, bytes(256))


def test_idle_until_start_and_sequence_from_one() -> None:
    b = Bench()
    assert b.cycle() is None and b.robot.state is RobotState.IDLE
    b.send(Start(1))
    assert b.robot.state is RobotState.STATUS
    assert [b.cycle().sequence_no for _ in range(3)] == [1, 2, 3]
    b.send(Stop(1))
    assert b.cycle() is None
    b.send(Start(1))
    assert b.cycle().sequence_no == 1 and not b.alarms


def test_bits_of_every_state() -> None:
    b = bench()
    assert b.cycle().status == 0x04
    b.robot.set_ready(True)
    assert (b.robot.state, b.cycle().status) == (RobotState.READY, 0x05)
    b.robot.set_ready(False)
    assert b.cycle().status == 0x04
    b.robot.set_ready(True)
    b.send(motion(1))
    assert (b.robot.state, b.cycle().status) == (RobotState.STREAMING, 0x07)
    b.send(motion(2, 0.0005))
    assert b.cycle().status == 0x07  # without delay the feedback is where the command is
    b.send(motion(3, 0.001, last_data=1))
    assert b.cycle().status == 0x04 and b.robot.state is RobotState.STATUS


def test_in_motion_lasts_as_long_as_the_feedback_trails() -> None:
    b = bench(ready=True, feedback_delay_us=60_000)
    b.send(motion(1))
    b.cycle()
    b.send(motion(2, 0.0005, last_data=1))
    seen = [b.cycle() for _ in range(10)]
    assert seen[0].status == 0x0C  # bit 0 falls, bit 3 stays
    assert [one.status & 0x08 for one in seen].count(0x08) == 8
    assert seen[-1].joint_pose[0] == pytest.approx(0.0005) and b.robot.state is RobotState.STATUS


def test_motion_begins_when_enough_is_queued() -> None:
    b = bench(ready=True, start_move=3)
    for number in (1, 2):
        b.send(motion(number, 0.0001 * (number - 1)))
        b.cycle()
    assert b.robot.motion.axes == HOME and not b.robot.motion.moved
    b.send(motion(3, 0.0002))
    b.cycle()
    assert b.robot.motion.moved
    for _ in range(2):
        b.cycle()
    assert b.robot.motion.axes[0] == pytest.approx(0.0002)


def test_requests_are_answered_in_every_state() -> None:
    b = Bench()
    [ack] = b.send(Request(1, 3, 1))
    assert isinstance(ack, Ack) and ack.threshold_no_load == (399.0,) * 20 and ack.max_cart_speed == 2000
    for axis, kind in ((0, 0), (10, 0), (1, 3)):
        assert b.send(Request(1, axis, kind)) == []
    assert b.robot.counters["bad_request"] == 3
    assert b.send(VersionRequest(3)) == [VersionResponse(3)]
    b = bench(ready=True)
    b.robot.e_stop(True)
    assert len(b.send(Request(1, 1, 0))) == 1


def test_commanded_position_ten_times_a_second() -> None:
    b = Bench()
    assert b.send(CmdPosRequest(1)) == []
    b.send(Start(1))
    assert isinstance(b.send(CmdPosRequest(1))[0], CmdPosResponse)
    assert b.send(CmdPosRequest(1)) == []
    b.now_us += 100_000
    assert len(b.send(CmdPosRequest(1))) == 1


def test_stop_of_anybody_ends_the_stream() -> None:
    b = bench(ready=True)
    b.send(Stop(1), OTHER)
    assert b.robot.state is RobotState.IDLE and b.cycle() is None


@pytest.mark.parametrize("state", ["idle", "status", "fault"])
def test_commands_at_the_wrong_time_are_ignored(state: str) -> None:
    b = Bench()
    if state != "idle":
        b.send(Start(1))
    if state == "fault":
        b.robot.e_stop(True)
    b.send(motion(1))
    assert b.robot.counters["ignored"] == 1 and b.robot.state.value == state


def test_commands_of_others_are_ignored() -> None:
    b = bench(ready=True)
    b.send(motion(1), OTHER)
    b.send(drive())
    assert b.robot.counters["ignored"] == 2 and b.robot.state is RobotState.READY


def test_io_commands_need_no_ready_bit() -> None:
    b = Bench(generation="driver", version=3)
    b.send(ExtStart(3))
    b.send(msgspec.structs.replace(drive(), do_motn_ctrl=0))
    assert b.robot.counters["io_only"] == 1 and not b.alarms


class TestAlarms:
    @pytest.mark.parametrize("number", [1, 3, 0])
    def test_601(self, number: int) -> None:
        b = bench(ready=True)
        b.send(motion(1))
        b.send(motion(number))
        assert b.alarms == ["MOTN-601"] and b.robot.state is RobotState.FAULT

    def test_603(self) -> None:
        b = bench(ready=True)
        b.send(motion(1))
        b.cycle()
        b.cycle()
        assert not b.alarms  # one late command is forgiven
        b.cycle()
        assert b.alarms == ["MOTN-603"]

    def test_607(self) -> None:
        b = Bench(version=2)
        b.send(Start(3))
        assert b.alarms == ["MOTN-607"] and b.robot.state is RobotState.IDLE
        assert b.robot.alarms[0].text == "Protocol version mismatch PC 3, Rob 2"
        b.send(Start(2))
        b.send(Start(2))
        assert b.alarms == ["MOTN-607"] * 2 and b.cycle().sequence_no == 1

    @pytest.mark.parametrize(
        ("steps", "code"),
        [
            ((1.0, 2.0), "MOTN-609"),  # 125 deg/s
            ((0.02, 0.04), "MOTN-610"),
            ((0.001, 0.002), "MOTN-611"),
            ((4.0,), "MOTN-720"),
        ],
    )
    def test_609_to_611_and_a_gross_step(self, steps: tuple[float, ...], code: str) -> None:
        limits = {"MOTN-609": {"acceleration": (1e9,), "jerk": (1e12,)}, "MOTN-610": {"jerk": (1e12,)}}.get(code, {})
        b = bench(ready=True, limits=msgspec.structs.replace(RobotConfig().limits, **limits))
        b.send(motion(1))
        for number, position in enumerate(steps, 2):
            b.cycle()
            b.send(motion(number, position))
        b.cycle()
        assert b.alarms == [code]

    @pytest.mark.parametrize("first", [0.49, 0.51])
    def test_720_at_the_start(self, first: float) -> None:
        b = bench(ready=True)
        b.send(motion(1, first))
        b.cycle()
        assert b.alarms == (["MOTN-720"] if first > 0.5 else [])

    @pytest.mark.parametrize("value", [100_001.0, float("nan"), float("inf")])
    def test_625(self, value: float) -> None:
        b = bench(ready=True)
        b.send_octets(encode(motion(1, value), allow_nonfinite=True))
        b.cycle()
        assert b.alarms == ["MOTN-625"]

    def test_too_many_commands(self) -> None:
        b = bench(ready=True)
        for number in range(1, 11):
            b.send(motion(number))
        assert not b.alarms
        b.send(motion(11))
        assert b.alarms == ["queue-overflow"] and b.robot.state is RobotState.FAULT

    def test_host_380(self) -> None:
        b = bench()
        b.send(Start(1), OTHER)
        b.send_octets(b"\0\0\0\x63" + bytes(4))
        b.send(ExtStart(3))
        b.send(ForceConfig(4, 0, 1))
        assert b.alarms == ["HOST-380"] * 4
        assert "0x30" in b.robot.alarms[0].text and all("0x19" in alarm.text for alarm in list(b.robot.alarms)[1:])
        assert b.cycle().sequence_no == 1

    def test_a_style_that_slews(self) -> None:
        b = Bench(generation="driver", version=3)
        b.send(ExtStart(3))
        b.robot.set_ready(True)
        wrong = msgspec.structs.replace(drive(), data_style=0)
        b.send_octets(encode(wrong, allow_data_style=True))
        b.cycle()
        assert b.alarms == ["MOTN-720"]

    def test_repeated_mistakes_do_not_pile_up(self) -> None:
        b = bench()
        for _ in range(1000):
            b.send(Start(1))
        assert len(b.alarms) == 100


def test_fault_keeps_status_flowing_until_reset() -> None:
    b = bench(ready=True)
    b.send(motion(1))
    first = b.cycle().sequence_no
    b.robot.e_stop(True, b.now_us)
    seen = [b.cycle() for _ in range(3)]
    assert [one.sequence_no for one in seen] == [first + 1, first + 2, first + 3]
    assert all(one.status == 0 for one in seen)
    b.robot.reset()
    assert b.robot.state is RobotState.FAULT  # the button is still pressed
    b.robot.e_stop(False)
    b.robot.reset()
    assert b.cycle().status == 0x04 and b.alarms == ["SRVO-001"]


def test_driver_generation_coasts_and_filters() -> None:
    b = Bench(generation="driver", version=4)
    b.send(ExtStart(4))
    b.robot.set_ready(True)
    for number, position in ((1, 0.0), (2, 0.5), (3, 1.0)):
        b.send(msgspec.structs.replace(drive(), sequence_no=number, axes=(position, *HOME[1:])))
        b.cycle()
    seen = [b.cycle() for _ in range(13)]
    assert [one.status & 1 for one in seen] == [1] * 11 + [0, 0]
    assert b.robot.motion.axes[0] == pytest.approx(1.0 + 12 * 0.5) and not b.alarms


@pytest.mark.parametrize(("version", "expected"), [(3, ExtStatusV3), (4, ExtStatusV4)])
def test_driver_answers(version: int, expected: type) -> None:
    b = Bench(generation="driver", version=4, start_move=5)
    [answer] = b.send(Capability(7, version, 1, 0, 0, 0, 0))
    assert answer == Capability(7, version, 1, 8, 5, 4, 0)
    assert b.send(GpioConfig(3, ((0, 0, 1, 0),) * 32)) == [GpioResult(0, 0)]
    b.send(ForceConfig(3, 0, 1))
    assert b.alarms == ["HOST-380"]
    b.send(ForceConfig(4, 0, 1))
    b.send(ExtStart(version))
    status = b.cycle()
    assert type(status) is expected
    if isinstance(status, ExtStatusV4):
        assert status.fs_type == 1
    b.robot.e_stop(True)
    assert b.cycle().e_stopped and b.cycle().in_error


def test_time_stamps_wrap_and_step_by_the_cycle() -> None:
    b = Bench()
    b.now_us = ((1 << 32) - 16) * 1000
    b.send(Start(1))
    assert [b.cycle().time_stamp for _ in range(3)] == [(1 << 32) - 8, 0, 8]


def test_cycles_do_not_drift() -> None:
    b = bench()
    b.robot.on_tick(CYCLE_US * 5 + 7999)
    assert [one.sequence_no for one in b.answers()] == [1, 2, 3, 4, 5]  # type: ignore[attr-defined]
    assert b.robot.next_deadline_us == CYCLE_US * 6


def test_little_endian_controller() -> None:
    b = Bench(byte_order="little")
    b.send(Start(1))
    assert isinstance(b.cycle(), Status)
    b.robot.on_datagram(encode(VersionRequest(3)), PC, 0)
    assert b.robot.counters["rejected"] == 0 and b.alarms == ["HOST-380"]
    b.robot.on_datagram(encode(Start(1)), PC, 0)
    assert b.robot.counters["suspect"] == 1


def test_read_io_is_echoed() -> None:
    b = bench(ready=True)
    b.send(motion(1, read_io_type=2, read_io_index=17, read_io_mask=0xFF))
    status = b.cycle()
    assert (status.read_io_type, status.read_io_index, status.read_io_mask) == (2, 17, 0xFF)


def test_restart_counts_from_one() -> None:
    b = bench(ready=True)
    for _ in range(5):
        b.cycle()
    b.robot.restart()
    assert b.cycle().sequence_no == 1 and b.robot.state is RobotState.STATUS
