"""The controller side of a Stream Motion session, without IO: what a robot answers, moves and complains about.

Time is an argument, in microseconds. Cycles are due at absolute times, so that a late tick does not shift them.
"""

import math
from collections import Counter, deque

from aoabridge.codecs.j519.dispatch import TO_ROBOT, decode, encode
from aoabridge.codecs.j519.enums import DataStyle, FsType, IoClass
from aoabridge.codecs.j519.packets import (
    AXES,
    EXT_STYLE_JOINT,
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
from aoabridge.codecs.j519.pc_events import Address
from aoabridge.codecs.j519.robot_model import Alarm, MotionState, RobotConfig, RobotState, StepCheck
from aoabridge.errors import DecodeError, EncodeError, UnknownPacketError

__all__ = ["RobotSession"]

MAX_QUEUE = 10
COAST_CYCLES = 12  # the driver generation bridges so many missing commands
CMD_POS_US = 100_000  # one answer per this time
FORCE_VERSION = 4  # first version with a force sensor
ARM_LENGTH_MM = 900.0  # of the toy geometry behind the Cartesian pose
MODULUS = 1 << 32
MAX_ALARMS = 100  # kept; a peer that repeats a mistake must not grow the list


class RobotSession:
    """One controller; see RobotState. ``counters`` names what was ignored, ``alarms`` what was complained about."""

    def __init__(self, config: RobotConfig) -> None:
        self.config = config
        self.state = RobotState.IDLE
        self.alarms: deque[Alarm] = deque(maxlen=MAX_ALARMS)
        self.counters: Counter[str] = Counter()
        self.motion = MotionState((*config.home_deg, *(0.0,) * AXES)[:AXES])
        self.next_deadline_us: int | None = None
        self._check = StepCheck(config)
        self._peer: Address | None = None
        self._version = config.version
        self._driver = False
        self._sequence_no = 0
        self._datagrams: list[tuple[bytes, Address]] = []
        self._queue: deque[Motion | ExtCommand] = deque()
        self._expected: int | None = None
        self._begun = False
        self._dry = 0
        self._stopped = False  # e-stop button
        self._last_cmd_pos_us: int | None = None
        self._read_io: tuple[IoClass | int, int, int] = (IoClass.NONE, 0, 0)
        self._fs_type = FsType.UNSELECTED
        delay_cycles = max(0, math.ceil(config.feedback_delay_us / config.cycle_us))
        self._feedback: deque[tuple[float, ...]] = deque([self.motion.axes] * (delay_cycles + 1), delay_cycles + 1)

    # ---- in

    def on_datagram(self, data: bytes, peer: Address, now_us: int) -> None:
        """Take one datagram of anybody."""
        try:
            packet = decode(TO_ROBOT, data, byte_order=self.config.byte_order)
        except UnknownPacketError as error:
            self._alarm("HOST-380", f"0x19: {error}", now_us)
            return
        except DecodeError:
            self.counters["rejected"] += 1
            return
        if packet.suspect:
            self.counters["suspect"] += 1
            return
        self._on_packet(packet, peer, now_us)

    def on_tick(self, now_us: int) -> None:
        """Run every cycle that is due."""
        while self.next_deadline_us is not None and now_us >= self.next_deadline_us:
            self._cycle(self.next_deadline_us)

    def set_ready(self, ready: bool) -> None:
        """The program on the pendant reaches (or leaves) the point where it waits for commands."""
        if ready and self.state is RobotState.STATUS:
            self.state = RobotState.READY
        elif not ready and self.state is RobotState.READY:
            self.state = RobotState.STATUS

    def e_stop(self, pressed: bool, now_us: int = 0) -> None:
        """Press or release the emergency stop; ``reset`` works only when it is released."""
        self._stopped = pressed
        if pressed:
            self._fault("SRVO-001", "emergency stop", now_us)

    def reset(self) -> None:
        """The reset key: out of FAULT, without motion."""
        if self.state is RobotState.FAULT and not self._stopped:
            self.state = RobotState.STATUS

    def restart(self) -> None:
        """The program on the pendant starts anew and counts its cycles from 1; the stream goes on."""
        self._sequence_no = 0
        self._forget_commands()
        if self.state is not RobotState.IDLE:
            self.state = RobotState.FAULT if self._stopped else RobotState.STATUS

    def jog(self, axes: tuple[float, ...]) -> None:
        """Put the arm somewhere by other means than commands of the stream."""
        if self.state is not RobotState.STREAMING:
            self.motion = MotionState(axes)

    # ---- out

    def take_datagrams(self) -> list[tuple[bytes, Address]]:
        """Remove and return what is to be sent, and to whom."""
        taken, self._datagrams = self._datagrams, []
        return taken

    # ---- packets

    def _on_packet(self, packet: J519Packet, peer: Address, now_us: int) -> None:
        match packet:
            case Start() | ExtStart():
                self._on_start(packet, peer, now_us)
            case Stop():
                self._idle()
            case Motion() | ExtCommand():
                self._on_command(packet, peer, now_us)
            case Request():
                self._on_request(packet, peer)
            case VersionRequest():
                self._send(VersionResponse(self.config.version), peer)
            case CmdPosRequest():
                self._on_cmd_pos(peer, now_us)
            case _:
                self._on_driver_packet(packet, peer, now_us)

    def _on_driver_packet(self, packet: J519Packet, peer: Address, now_us: int) -> None:
        if self.config.generation != "driver":
            self._alarm("HOST-380", "0x19: packet of the driver generation", now_us)
            return
        match packet:
            case Capability():
                version = self.config.version
                rate_ms, start_move = self.config.cycle_us // 1000, self.config.start_move
                answer = Capability(
                    packet.packet_type, min(packet.version_no, version), 1, rate_ms, start_move, version, 0
                )
                self._send(answer, peer)
            case GpioConfig():
                self._send(GpioResult(0, 0), peer)
            case ForceConfig() if packet.version_no >= FORCE_VERSION:
                self._fs_type = FsType(packet.fs_type) if packet.fs_type in (0, 1, 2) else FsType.UNAVAILABLE
            case ForceConfig():
                self._alarm("HOST-380", "0x19: force sensor below version 4", now_us)
            case _:
                self.counters["ignored"] += 1

    def _on_start(self, packet: Start | ExtStart, peer: Address, now_us: int) -> None:
        driver = isinstance(packet, ExtStart)
        if driver and self.config.generation != "driver":
            self._alarm("HOST-380", "0x19: packet of the driver generation", now_us)
        elif packet.version_no > self.config.version:
            text = f"Protocol version mismatch PC {packet.version_no}, Rob {self.config.version}"
            self._alarm("MOTN-607", text, now_us)
        elif self._peer is not None and peer != self._peer:
            self._alarm("HOST-380", f"0x30: Start from {peer[0]}:{peer[1]}, the stream belongs to another", now_us)
        elif self._peer is not None:
            self._alarm("MOTN-607", "Start without Stop", now_us)
        else:
            self._peer, self._version, self._driver = peer, packet.version_no, driver
            self._sequence_no = 0
            self.state = RobotState.FAULT if self._stopped else RobotState.STATUS
            self.next_deadline_us = now_us + self.config.cycle_us

    def _idle(self) -> None:
        self._peer = None
        self.state = RobotState.IDLE
        self.next_deadline_us = None
        self._forget_commands()

    def _forget_commands(self) -> None:
        self._queue.clear()
        self._expected = None
        self._begun = False
        self._dry = 0
        self.motion = MotionState(self.motion.axes)

    def _on_request(self, packet: Request, peer: Address) -> None:
        if 1 <= packet.axis_no <= AXES and packet.threshold_type in (0, 1, 2):
            version = min(packet.version_no, self.config.version)
            self._send(self.config.limits.ack(version, packet.axis_no, packet.threshold_type), peer)
        else:
            self.counters["bad_request"] += 1

    def _on_cmd_pos(self, peer: Address, now_us: int) -> None:
        early = self._last_cmd_pos_us is not None and now_us - self._last_cmd_pos_us < CMD_POS_US
        if self.state is RobotState.IDLE or early:
            self.counters["ignored"] += 1
            return
        self._last_cmd_pos_us = now_us
        axes = self.motion.axes
        self._send(CmdPosResponse(self._version, self._clock_ms(now_us), _toy_pose(axes), axes), peer)

    def _on_command(self, packet: Motion | ExtCommand, peer: Address, now_us: int) -> None:
        if isinstance(packet, ExtCommand) != self._driver or peer != self._peer:
            self.counters["ignored"] += 1
            return
        if isinstance(packet, ExtCommand) and packet.do_motn_ctrl == 0:
            self.counters["io_only"] += 1
            return
        if self.state not in (RobotState.READY, RobotState.STREAMING):
            self.counters["ignored"] += 1
            return
        if self._expected is not None and packet.sequence_no != self._expected:
            self._fault("MOTN-601", f"sequence {packet.sequence_no} instead of {self._expected}", now_us)
            return
        if len(self._queue) >= MAX_QUEUE:
            self._fault("queue-overflow", f"more than {MAX_QUEUE} commands", now_us)
            return
        self._expected = (packet.sequence_no + 1) % MODULUS
        self.state = RobotState.STREAMING
        self._queue.append(packet)
        if isinstance(packet, Motion):
            self._read_io = (packet.read_io_type, packet.read_io_index, packet.read_io_mask)

    # ---- cycles

    def _cycle(self, due_us: int) -> None:
        self.next_deadline_us = due_us + self.config.cycle_us
        if self.state is RobotState.STREAMING:
            self._consume(due_us)
        self._feedback.append(self.motion.axes)
        if self.state is RobotState.DRAIN and not self._moving():
            self.state = RobotState.STATUS
            self._forget_commands()
        if self._peer is not None:
            self._sequence_no = (self._sequence_no + 1) % MODULUS
            self._send(self._status(due_us), self._peer)

    def _consume(self, now_us: int) -> None:
        if not self._begun:
            enough = len(self._queue) >= max(1, self.config.start_move)
            self._begun = enough or any(_is_last(command) for command in self._queue)
        if not self._begun:
            return
        if not self._queue:
            self._run_dry(now_us)
            return
        self._dry = 0
        command = self._queue.popleft()
        if isinstance(command, Motion) and command.data_style == DataStyle.CARTESIAN:
            axes = self.motion.axes  # the bench arm has no inverse kinematics: it accepts and holds
        elif isinstance(command, ExtCommand) and command.data_style != EXT_STYLE_JOINT:
            self._fault("MOTN-720", f"data style {command.data_style} reads joints as a pose", now_us)
            return
        else:
            axes = tuple(command.axes)
        problem = self._check.alarm(self.motion, axes)
        if problem is not None:
            self._fault(*problem, now_us)
            return
        self._check.advance(self.motion, axes)
        if _is_last(command):
            self.state = RobotState.DRAIN

    def _run_dry(self, now_us: int) -> None:
        self._dry += 1
        if self._driver:
            period_s = self.config.cycle_us / 1_000_000
            pairs = zip(self.motion.axes, self.motion.velocity, strict=True)
            self.motion.axes = tuple(position + velocity * period_s for position, velocity in pairs)
            if self._dry >= COAST_CYCLES:
                self.state = RobotState.DRAIN
                self._forget_commands()
        elif self._dry > self.config.late_cycles:
            self._fault("MOTN-603", f"no command for {self._dry} cycles", now_us)

    def _fault(self, code: str, text: str, now_us: int) -> None:
        self._alarm(code, text, now_us)
        self._forget_commands()
        if self.state is not RobotState.IDLE:
            self.state = RobotState.FAULT

    def _alarm(self, code: str, text: str, now_us: int) -> None:
        self.alarms.append(Alarm(code, text, now_us))

    # ---- reports

    def _moving(self) -> bool:
        return any(pose != self.motion.axes for pose in self._feedback)

    def _bits(self) -> int:
        ready = self.state in (RobotState.READY, RobotState.STREAMING)
        received = self.state is RobotState.STREAMING
        sysrdy = self.state is not RobotState.FAULT
        moving = self.state is not RobotState.FAULT and self._moving()
        return ready | received << 1 | sysrdy << 2 | moving << 3

    @staticmethod
    def _clock_ms(now_us: int) -> int:
        return now_us // 2000 * 2 % MODULUS  # 2 ms resolution

    def _status(self, now_us: int) -> J519Packet:
        joints = self._feedback[0]
        pose, current = _toy_pose(joints), tuple(velocity / 100 for velocity in self.motion.velocity)
        clock_ms, bits = self._clock_ms(now_us), self._bits()
        if not self._driver:
            head = (self._version, self._sequence_no, bits)
            return Status(*head, *self._read_io, 0, clock_ms, pose, joints, current)
        robot = (self.state is RobotState.FAULT) | self._stopped << 2
        state = (self._version, self._sequence_no, bits, robot, 0, 0, clock_ms)
        if self._version < FORCE_VERSION:
            return ExtStatusV3(*state, pose, joints, current, 1.0, bytes(256))
        no_force = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        return ExtStatusV4(*state, pose, joints, current, 1.0, *no_force, self._fs_type, bytes(256))

    def _send(self, packet: J519Packet, peer: Address) -> None:
        try:
            self._datagrams.append((encode(packet, byte_order=self.config.byte_order), peer))
        except EncodeError:
            self.counters["ignored"] += 1  # packets of later documents do not exist little-endian


def _is_last(command: Motion | ExtCommand) -> bool:
    return (command.last_data if isinstance(command, Motion) else command.is_last_command) != 0


def _toy_pose(joint_deg: tuple[float, ...]) -> tuple[float, ...]:
    """A smooth Cartesian pose of the joints; not the kinematics of any arm."""
    j1, j2 = math.radians(joint_deg[0]), math.radians(joint_deg[1])
    reach_mm = ARM_LENGTH_MM * math.cos(j2)
    place_mm = (reach_mm * math.cos(j1), reach_mm * math.sin(j1), ARM_LENGTH_MM * math.sin(j2))
    return (*place_mm, *(math.remainder(angle, 360.0) for angle in joint_deg[3:6]), 0.0, 0.0, 0.0)
