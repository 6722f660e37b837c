"""The PC side of a Stream Motion session, without IO: opens, asks for limits, follows Status, commands if allowed to.

Time is an argument, in microseconds of one monotonic clock. Without ``control`` no code here can make a command.
"""

from collections.abc import Sequence

from aoabridge.codecs.j519.dispatch import FROM_ROBOT, decode, encode, fitting_order, packet_name
from aoabridge.codecs.j519.guard import Violation
from aoabridge.codecs.j519.limits import LimitTables
from aoabridge.codecs.j519.motion_stream import MotionStream
from aoabridge.codecs.j519.packets import (
    AnyStatus,
    ExtStart,
    ExtStatus,
    ExtStatusV3,
    ExtStatusV4,
    J519Packet,
    Start,
    Status,
    Stop,
)
from aoabridge.codecs.j519.pc_events import (
    Address,
    Event,
    Fault,
    PcConfig,
    PcState,
    Rejected,
    StateChanged,
    StatusLost,
    StatusReceived,
    Suspect,
)
from aoabridge.codecs.j519.pc_opening import Opening
from aoabridge.codecs.j519.sequence import Arrival, SequenceTracker, Step
from aoabridge.codecs.packets import ByteOrder
from aoabridge.errors import DecodeError, EncodeError

__all__ = ["PcSession"]

DRAIN_US = 100_000  # datagrams of an earlier session are on their way for less
START_US = 1_000_000
BACK_OFF_US = (1_000_000, 2_000_000, 5_000_000)  # the last one repeats
LOST_CYCLES = 2  # while streaming; the arm begins to stop when so many Status are missing
SILENCE_US = 1_000_000  # without Status: control is over
REOPEN_US = 3_000_000  # without Status: begin again with Stop
UNRECEIVED = 2  # further Status without the received bit are normal after a command
MAX_OUTSTANDING = 9  # commands beyond the last Status; a controller's queue holds ten
SETTLED_CYCLES = 10  # Status after the last command until a stop is believed without the ready bit falling

_COMMANDING = (PcState.READY, PcState.STREAMING, PcState.ENDING)


class PcSession:
    """One session with one controller; see the states of PcState.

    In: ``open``, ``on_datagram``, ``on_tick``, ``offer_setpoint``, ``finish``, ``rearm``, ``close``. Out:
    ``take_datagrams``, the returned events, ``next_deadline_us``, ``counters``.
    """

    def __init__(self, config: PcConfig) -> None:
        if config.byte_order == "auto" and not config.passive:
            raise EncodeError("byte order auto: what is sent is never guessed, choose big or little")
        if config.control and config.passive:
            raise ValueError("a passive session controls nothing")
        self.config = config
        self.state = PcState.CLOSED
        self.version = config.version
        self.limits = LimitTables()
        self.byte_order: ByteOrder | None = None if config.byte_order == "auto" else config.byte_order
        self.next_deadline_us: int | None = None
        self.counters: dict[str, int] = dict.fromkeys(
            ("received", "lost", "duplicates", "reordered", "restarts", "rejected", "foreign", "suspect", "opens"), 0
        )
        self._events: list[Event] = []
        self._datagrams: list[bytes] = []
        self._tracker = SequenceTracker()
        self._stream: MotionStream | None = None
        self._last_status: AnyStatus | None = None
        self._last_status_us = 0
        self._opening = Opening(config)
        self._failures = 0
        self._unreceived = 0
        self._settling = 0
        self._closing = False
        self._lost_told = False

    def open(self, now_us: int) -> list[Event]:
        """Begin; only from CLOSED."""
        if self.state is PcState.CLOSED:
            self.counters["opens"] += 1
            self._closing = False
            self._failures = 0
            if self.config.passive:
                self._enter(PcState.STARTING, "listening", None)
            else:
                self._drain(now_us, DRAIN_US, "opened")
        return self._take_events()

    def on_datagram(self, data: bytes, now_us: int, peer: Address | None = None) -> list[Event]:
        """Take one datagram; ``peer`` None = the socket is connected and the kernel has checked it."""
        if peer is not None and self.config.peer is not None and peer != self.config.peer:
            self.counters["foreign"] += 1
        elif self.state not in (PcState.CLOSED, PcState.DRAINING):
            packet = self._decode(data)
            if packet is not None:
                self._on_packet(packet, now_us)
        return self._take_events()

    def on_tick(self, now_us: int) -> list[Event]:
        """Do what is due."""
        while self.next_deadline_us is not None and now_us >= self.next_deadline_us:
            self._on_deadline(now_us)
        return self._take_events()

    def offer_setpoint(self, axes: Sequence[float], tcp_speed_mm_s: float | None = None) -> list[Violation]:
        """The setpoint that answers the newest Status, as many values as axes or nine; [] = it is on its way.

        The first one begins the motion and must be the pose that the arm holds.
        """
        stream, status = self._stream, self._last_status
        if stream is None or status is None or self.state not in (PcState.READY, PcState.STREAMING):
            return [Violation("not-armed")]
        violations = stream.offer(axes, tcp_speed_mm_s, status.sequence_no)
        if not violations:
            self._datagrams += stream.take_commands()
            if self.state is PcState.READY:
                self._unreceived = 0
                self._enter(PcState.STREAMING, "first command", self._lost_deadline())
        return violations

    def finish(self) -> None:
        """End the motion in order: decelerate, hold, last command."""
        if self.state is PcState.STREAMING:
            self._begin_ending("finished by the caller")

    def rearm(self) -> None:
        """Leave FAULTED; commands are possible again once the controller is ready."""
        if self.state is PcState.FAULTED:
            self._enter(PcState.STATUS, "re-armed", self._last_status_us + REOPEN_US)

    def close(self) -> list[Event]:
        """End the session; a motion under way is stopped in order first, then Stop leaves."""
        if self.state in (PcState.STREAMING, PcState.ENDING):
            self._closing = True
            self.finish()
        elif self.state is not PcState.CLOSED:
            self._finish_closing()
        return self._take_events()

    def take_datagrams(self) -> list[bytes]:
        """Remove and return what is to be sent, in order."""
        taken, self._datagrams = self._datagrams, []
        return taken

    def _take_events(self) -> list[Event]:
        taken, self._events = self._events, []
        return taken

    def _enter(self, state: PcState, reason: str, deadline_us: int | None) -> None:
        self.next_deadline_us = deadline_us
        if state is not self.state:
            self._events.append(StateChanged(self.state, state, reason))
            self.state = state

    def _send(self, packet: J519Packet) -> None:
        if not self.config.passive and self.byte_order is not None:
            self._datagrams.append(encode(packet, byte_order=self.byte_order))

    def _drain(self, now_us: int, duration_us: int, reason: str) -> None:
        self._disarm()
        self._send(Stop(self.version))
        self._enter(PcState.DRAINING, reason, now_us + duration_us)

    def _finish_closing(self) -> None:
        if self.state is not PcState.DRAINING:
            self._send(Stop(self.version))
        self._disarm()
        self._closing = False
        self._enter(PcState.CLOSED, "closed", None)

    def _disarm(self) -> None:
        if self._stream is not None:
            self._stream.disarm()
        self._stream = None

    def _on_deadline(self, now_us: int) -> None:
        match self.state:
            case PcState.DRAINING:
                self._tracker = SequenceTracker()
                self._last_status = None
                self._opening = Opening(self.config)
                self._ask(now_us)
            case PcState.QUERYING | PcState.LIMITS:
                self._ask(now_us)
            case PcState.STARTING:
                self._reopen(now_us, "Start was not answered")
            case PcState.STREAMING | PcState.ENDING:
                self._on_silence(now_us)
            case _:
                self._on_quiet(now_us)

    def _reopen(self, now_us: int, reason: str) -> None:
        pause_us = BACK_OFF_US[min(self._failures, len(BACK_OFF_US) - 1)]
        self._failures += 1
        self.counters["opens"] += 1
        self._drain(now_us, pause_us, reason)

    def _ask(self, now_us: int) -> None:
        """The next question, or Start when there is none left."""
        question = self._opening.next_question()
        self.version, self.limits = self._opening.version, self._opening.limits
        self._events += self._opening.take_events()
        if question is not None:
            self._send(question.packet)
            self._enter(question.state, "asking", now_us + question.wait_us)
            return
        driver = self.config.generation == "driver"
        self._send(ExtStart(self.version) if driver else Start(self.version))
        self._enter(PcState.STARTING, "Start sent", now_us + START_US)

    def _decode(self, data: bytes) -> J519Packet | None:
        order = self.byte_order or fitting_order(FROM_ROBOT, data)
        try:
            packet = decode(FROM_ROBOT, data, byte_order=order)
            self._refuse_other_generation(packet)
        except DecodeError as error:
            self.counters["rejected"] += 1
            self._events.append(Rejected(error))
            return None
        if packet.suspect:
            self.counters["suspect"] += 1
            self._events.append(Suspect(packet))
            return None
        self.byte_order = order
        return packet

    def _refuse_other_generation(self, packet: J519Packet) -> None:
        other = Status if self.config.generation == "driver" else ExtStatus
        if isinstance(packet, other):
            raise DecodeError(f"{packet_name(packet)} is not of the {self.config.generation} generation", 0)

    def _on_packet(self, packet: J519Packet, now_us: int) -> None:
        if isinstance(packet, Status | ExtStatusV3 | ExtStatusV4):
            self._on_status(packet, now_us)
        elif self.state in (PcState.QUERYING, PcState.LIMITS) and self._opening.accepts(packet):
            self._ask(now_us)

    def _on_status(self, status: AnyStatus, now_us: int) -> None:
        if self.state in (PcState.QUERYING, PcState.LIMITS):
            return  # not our Start: left over, or another master's
        arrival = self._tracker.observe(status.sequence_no)
        self._count(arrival)
        if not arrival.usable:
            return
        self._last_status, self._last_status_us = status, now_us
        self._lost_told = False
        self._failures = 0
        self._events.append(StatusReceived(status, arrival))
        if self.state is PcState.STARTING:
            self._enter(PcState.STATUS, "first Status", now_us + REOPEN_US)
        if self.state is PcState.FAULTED:
            self.next_deadline_us = now_us + REOPEN_US
        elif self.config.control and self.state in _COMMANDING and arrival.step in (Step.JUMP, Step.RESTART):
            self._fault(arrival.step.value, f"Status {status.sequence_no} does not follow, {arrival.lost} lost")
        elif self.config.control:
            self._follow(status, now_us)
        else:
            self._watch(status, now_us)

    def _count(self, arrival: Arrival) -> None:
        self.counters["received"] += 1
        self.counters["lost"] += arrival.lost
        name = {Step.DUPLICATE: "duplicates", Step.REORDERED: "reordered", Step.RESTART: "restarts"}.get(arrival.step)
        if name is not None:
            self.counters[name] += 1

    def _watch(self, status: AnyStatus, now_us: int) -> None:
        """State of a controller that somebody else may command."""
        if status.command_received:
            state, reason = PcState.STREAMING, "commands arrive"
        elif status.ready and status.sysrdy:
            state, reason = PcState.READY, "waits for commands"
        else:
            state, reason = PcState.STATUS, "not ready"
        self._enter(state, reason, now_us + REOPEN_US)

    def _follow(self, status: AnyStatus, now_us: int) -> None:
        """One Status of the controller that we command."""
        if self.state is PcState.STREAMING:
            self._follow_streaming(status)
        elif self.state is PcState.ENDING:
            self._follow_ending(status)
        elif status.ready and status.sysrdy:
            if self._arm(status):
                self._enter(PcState.READY, "controller waits for commands", now_us + SILENCE_US)
            else:
                self._enter(PcState.STATUS, "guard cannot be armed", now_us + REOPEN_US)
        else:
            self._disarm()
            self._enter(PcState.STATUS, "not ready", now_us + REOPEN_US)

    def _arm(self, status: AnyStatus) -> bool:
        if self._stream is None:
            self._stream = MotionStream.of(self.config, self.version, self.limits, self.byte_order or "big")
        return self._stream.arm(status)

    def _lost_deadline(self) -> int:
        return self._last_status_us + LOST_CYCLES * self.config.cycle_us + self.config.cycle_us // 2

    def _follow_streaming(self, status: AnyStatus) -> None:
        self._unreceived = 0 if status.command_received else self._unreceived + 1
        if not (status.ready and status.sysrdy):
            self._fault("not-ready", "the controller left the ready state while streaming")
        elif self._unreceived > UNRECEIVED:
            self._fault("not-received", "the controller does not see our commands")
        else:
            self.next_deadline_us = self._lost_deadline()

    def _begin_ending(self, reason: str) -> None:
        if self._stream is not None:
            self._stream.begin_stop()
        self._settling = 0
        self._enter(PcState.ENDING, reason, self._lost_deadline())

    def _follow_ending(self, status: AnyStatus) -> None:
        stream = self._stream
        if stream is None or not stream.ended:
            if not (status.ready and status.sysrdy):
                self._fault("not-ready", "the controller left the ready state before the last command")
                return
            self._continue_stop(status.sequence_no)
            if self.state is PcState.ENDING:
                self.next_deadline_us = self._lost_deadline()
            return
        self._settling += 1
        self.next_deadline_us = self._last_status_us + SILENCE_US
        if not status.in_motion and (not status.ready or self._settling >= SETTLED_CYCLES):
            self._disarm()
            if self._closing:
                self._finish_closing()
            else:
                self._enter(PcState.STATUS, "at rest", self._last_status_us + REOPEN_US)

    def _continue_stop(self, status_no: int) -> None:
        stream = self._stream
        if stream is None:
            return
        if not stream.continue_stop(status_no):
            self._fault("stop-refused", "the guard refuses the planned stop")
            return
        self._datagrams += stream.take_commands()

    def _on_silence(self, now_us: int) -> None:
        """STREAMING or ENDING without Status: brake ahead of the controller's counter, then give up."""
        if not self.config.control:
            self._on_quiet(now_us)
            return
        silence_us = now_us - self._last_status_us
        if silence_us >= SILENCE_US:
            self._fault("status-lost", f"no Status for {silence_us // 1000} ms")
            return
        if not self._lost_told:
            self._lost_told = True
            self._events.append(StatusLost(silence_us))
        if self.state is PcState.STREAMING:
            self._begin_ending("Status is lost")
        missing = silence_us // self.config.cycle_us
        if self._last_status is not None and missing <= MAX_OUTSTANDING:
            self._continue_stop(self._last_status.sequence_no + missing)
        if self.state is PcState.ENDING:
            self.next_deadline_us = min(now_us + self.config.cycle_us, self._last_status_us + SILENCE_US)

    def _on_quiet(self, now_us: int) -> None:
        """No Status while nothing is commanded."""
        silence_us = now_us - self._last_status_us
        if self.state is PcState.READY and self.config.control and silence_us < REOPEN_US:
            self._fault("status-lost", f"no Status for {silence_us // 1000} ms")
            return
        self._events.append(StatusLost(silence_us))
        if self.config.passive:
            self._tracker = SequenceTracker()
            self._enter(PcState.STARTING, "Status is lost", None)
        elif self.state is PcState.FAULTED:
            self.next_deadline_us = None  # sends nothing, not even Stop, until rearm()
        else:
            self._reopen(now_us, "Status is lost")

    def _fault(self, code: str, text: str) -> None:
        self._disarm()
        self._events.append(Fault(code, text))
        if self._closing:
            self._finish_closing()
        else:
            self._enter(PcState.FAULTED, text, self._last_status_us + REOPEN_US)
