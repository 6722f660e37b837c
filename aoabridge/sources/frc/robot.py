"""Packets between driver station, robot and dashboard -> topics ``Command/…``, ``Robot/…`` and ``Dash/…``."""

import re
from collections.abc import Callable
from typing import Any

from aoabridge.codecs.frc_ds import DsControl, RioStatus, Tag, UnknownTag
from aoabridge.codecs.frc_ds import ds_rio as wire
from aoabridge.codecs.frc_ds.dash import DbMode, RobotIp
from aoabridge.codecs.frc_ds.joystick import Joystick, JoystickOutput
from aoabridge.sources.board import Writer
from aoabridge.sources.frc import structs
from aoabridge.sources.frc.fms import enum_text, station_id, station_text, write_clock, write_volts

__all__ = ["RobotFrames", "RobotPackets", "write_command_frame", "write_dash_frame"]

MAX_DEVICES = 64  # more than a CAN bus holds; names come from the wire and become topics
MAX_DEVICE_NAME = 64
RUMBLE_FULL = 65_535
USER_MODES = ("disabled", "autonomous", "teleop", "test")

_Writers = dict[type[Tag], Callable[[Any, Writer], None]]


class RobotPackets:
    """Datagrams of the robot link, fifty a second of each direction: what is as it was before is not written again."""

    def __init__(self, rumble_order: str) -> None:
        self._rumble_order = rumble_order
        self._command_header: tuple[int, ...] = ()
        self._robot_header: tuple[int, ...] = ()
        self._joysticks: dict[int, tuple[tuple[object, ...], bytes]] = {}  # slot -> its controls, and their struct

    def write_command(self, packet: DsControl, out: Writer) -> None:
        """Header and tags; ``out`` writes below ``Command/``."""
        out.struct("Control", "struct:FrcDsControl", structs.ds_control(packet))
        header = (packet.control, packet.request, packet.station)
        if header != self._command_header:
            _command_header(packet, out)
            self._command_header = header
        for tag in packet.tags:
            _write(_COMMAND_TAGS, tag, out)
        packed = [self._write_joystick(slot, joystick, out) for slot, joystick in _slots(packet.tags, Joystick)]
        if packed:
            out.struct("Joysticks", "struct:FrcJoystick[]", b"".join(packed))

    def _write_joystick(self, slot: int, joystick: Joystick, out: Writer) -> bytes:
        """Returns its part of the struct of all."""
        controls = (joystick.absent, joystick.axes, joystick.button_count, joystick.buttons, joystick.povs)
        before = self._joysticks.get(slot)
        if before is not None and before[0] == controls:
            return before[1]
        _joystick(joystick, out.below(f"Joystick/{slot}/"))
        packed = structs.joystick(slot, joystick)
        self._joysticks[slot] = (controls, packed)
        return packed

    def write_status(self, packet: RioStatus, out: Writer) -> None:
        """Header and tags; ``out`` writes below ``Robot/``."""
        out.struct("Status", "struct:FrcRioStatus", structs.rio_status(packet))
        header = (packet.status, packet.trace, packet.request_date)
        if header != self._robot_header:
            _robot_header(packet, out)
            self._robot_header = header
        write_volts(packet.battery_volts, packet.battery_volts != wire.STARTUP_VOLTS, out)
        for tag in packet.tags:
            _write(_ROBOT_TAGS, tag, out)
        for slot, output in _slots(packet.tags, JoystickOutput):
            _joystick_output(output, out.below(f"JoystickOutput/{slot}/"), self._rumble_order)

    def forget_command(self) -> None:
        """The topics below ``Command/`` are gone."""
        self._command_header = ()
        self._joysticks.clear()

    def forget_robot(self) -> None:
        """The topics below ``Robot/`` are gone."""
        self._robot_header = ()


def _command_header(packet: DsControl, out: Writer) -> None:
    control, request = packet.control, packet.request
    out.text("Mode", control.mode)
    out.flags({"Enabled": control.enabled, "EStop": control.estop, "FmsAttached": control.fms_attached})
    out.flags({"DsConnected": request.ds_connected, "RebootRio": request.reboot_rio})
    out.flag("RestartCode", request.restart_code)
    out.text("AllianceStation", station_text(packet.station))
    out.number("AllianceStationID", station_id(packet.station))


def _slots(tags: tuple[Tag, ...], kind: type[Tag]) -> list[tuple[int, Any]]:
    """Slot and tag, in order of appearance; a broken tag takes up its slot, but says nothing."""
    placed = [tag for tag in tags if tag.id == kind.ID][: structs.MAX_JOYSTICKS]
    return [(slot, tag) for slot, tag in enumerate(placed) if not isinstance(tag, UnknownTag)]


def _joystick(joystick: Joystick, out: Writer) -> None:
    bits = joystick.button_bits
    out.array("Axes", "double[]", [axis / 128 if axis < 0 else axis / 127 for axis in joystick.axes])
    out.array("Buttons", "boolean[]", [bits >> number & 1 == 1 for number in range(joystick.button_count)])
    out.array("Povs", "int[]", list(joystick.povs))


def _countdown(tag: wire.Countdown, out: Writer) -> None:
    seconds = tag.remaining_time_s
    if seconds.is_finite and seconds.value >= 0:
        out.real("RemainingTime_s", seconds.value)
    else:
        out.withdraw("RemainingTime_s")


_COMMAND_TAGS: _Writers = {
    wire.Countdown: _countdown,
    wire.DateTag: lambda tag, out: write_clock(tag.date, 0, out),  # proven: January = 0
    wire.Timezone: lambda tag, out: out.text("TimeZone", tag.timezone),
}


def _robot_header(packet: RioStatus, out: Writer) -> None:
    status, trace = packet.status, packet.trace
    out.text("Mode", status.mode)
    out.flags({"Enabled": status.enabled, "EStop": status.estop, "Brownout": status.brownout})
    out.flags({"CodeInitializing": status.code_initializing, "CodeAlive": trace.robot_code})
    out.flag("WantsDate", packet.request_date == 1)
    out.text("UserMode", next((mode for mode in USER_MODES if getattr(trace, mode)), "none"))


def _joystick_output(output: JoystickOutput, out: Writer, rumble_order: str) -> None:
    if output.outputs is None or output.rumble_a is None or output.rumble_b is None:
        out.withdraw("Outputs", "RumbleLeft", "RumbleRight")
        return
    rumble = (output.rumble_a, output.rumble_b)
    left, right = rumble if rumble_order == "left-right" else rumble[::-1]
    out.number("Outputs", output.outputs)
    out.real("RumbleLeft", left / RUMBLE_FULL)
    out.real("RumbleRight", right / RUMBLE_FULL)


def _cpu(tag: wire.CpuInfo, out: Writer) -> None:
    loads = [(cpu.time_critical, cpu.above_normal, cpu.normal, cpu.low) for cpu in tag.cpus]
    if all(part.is_finite for load in loads for part in load):
        out.array("Cpu_pct", "double[]", [sum(part.value for part in load) for load in loads])


def _can(tag: wire.CanMetrics, out: Writer) -> None:
    can = out.below("Can/")
    if tag.utilization.is_finite:
        can.real("Utilization", tag.utilization.value)
    can.number("BusOff", tag.bus_off)
    can.number("TxFull", tag.tx_full)
    can.number("RxErrors", tag.rx_errors)
    can.number("TxErrors", tag.tx_errors)


_ROBOT_TAGS: _Writers = {
    wire.CpuInfo: _cpu,
    wire.CanMetrics: _can,
    wire.RamInfo: lambda tag, out: out.number("RamFree_bytes", tag.free_bytes),
    wire.DiskInfo: lambda tag, out: out.number("DiskFree_bytes", tag.free_bytes),
    wire.PdpLog: lambda tag, out: out.array("Pdp/Current_amps", "double[]", list(tag.currents_amps)),
}


def _disable_faults(tag: wire.DisableFaults, out: Writer) -> None:
    out.number("Faults/Comms", tag.comms_faults)
    out.number("Faults/12V", tag.faults_12v)


def _rail_faults(tag: wire.RailFaults, out: Writer) -> None:
    out.number("Faults/6V", tag.faults_6v)
    out.number("Faults/5V", tag.faults_5v)
    out.number("Faults/3V3", tag.faults_3v3)


def _match_info(tag: wire.MatchInfo, out: Writer) -> None:
    out.text("EventName", tag.event_name)
    out.text("MatchType", enum_text(tag.match_type))
    out.number("MatchNumber", tag.match_number)
    out.number("ReplayNumber", tag.replay_number)


def _joystick_descriptor(tag: wire.JoystickDescriptor, out: Writer) -> None:
    if tag.index < structs.MAX_JOYSTICKS:
        below = out.below(f"Joystick/{tag.index}/")
        below.text("Name", tag.device_name)
        below.number("Type", tag.joystick_type)
        below.flag("IsXbox", tag.is_xbox != 0)
        below.array("AxisTypes", "int[]", list(tag.axis_types))


def _db_mode(tag: DbMode, out: Writer) -> None:
    out.flags({"Docked": tag.flags.docked, "Simulated": tag.flags.simulated})


_COMMAND_FRAMES: _Writers = {
    wire.JoystickDescriptor: _joystick_descriptor,
    wire.MatchInfo: _match_info,
    wire.GameData: lambda tag, out: out.text("GameData", tag.game_data),
}
_DASH_FRAMES: _Writers = {
    wire.Message: lambda tag, out: out.event("Message", "string", tag.text),
    wire.DisableFaults: _disable_faults,
    wire.RailFaults: _rail_faults,
    wire.MatchInfo: _match_info,
    RobotIp: lambda tag, out: out.text("RobotIp", str(tag.ip)),
    DbMode: _db_mode,
}


def write_command_frame(tag: Tag, out: Writer) -> None:
    """A frame of the driver station to the robot; ``out`` writes below ``Command/``."""
    _write(_COMMAND_FRAMES, tag, out)


def write_dash_frame(tag: Tag, out: Writer) -> None:
    """A frame of the driver station to the dashboard; ``out`` writes below ``Dash/``."""
    _write(_DASH_FRAMES, tag, out)


def _write(table: _Writers, tag: Tag, out: Writer) -> None:
    write = table.get(type(tag))
    if write is not None:
        write(tag, out)


class RobotFrames:
    """Frames of the robot; counts errors and warnings, and the devices that became topics."""

    def __init__(self) -> None:
        self.errors = self.warnings = 0
        self._devices: set[str] = set()
        self._writers: _Writers = {
            wire.Message: lambda tag, out: out.event("Console/Message", "string", tag.text),
            wire.StandardOutput: lambda tag, out: out.event("Console/Output", "string", tag.text),
            wire.ErrorMessage: self._error,
            wire.VersionInfo: self._version,
            wire.RobotUsageReport: lambda tag, out: out.text("UsageReport", tag.entries),
            wire.DisableFaults: _disable_faults,
            wire.RailFaults: _rail_faults,
        }

    def write(self, tag: Tag, out: Writer) -> None:
        """One frame; ``out`` writes below ``Robot/``."""
        _write(self._writers, tag, out)

    def forget(self) -> None:
        """The topics are gone: other devices may take the places."""
        self._devices.clear()

    def _error(self, tag: wire.ErrorMessage, out: Writer) -> None:
        console = out.below("Console/")
        console.event("Error", "string", tag.details)
        console.event("ErrorCode", "int", tag.code)
        console.event("ErrorIsError", "boolean", tag.flags.is_error)
        console.event("ErrorLocation", "string", tag.location)
        console.event("ErrorStack", "string", tag.call_stack)
        if tag.flags.is_error:
            self.errors += max(tag.occurrences, 1)
        else:
            self.warnings += max(tag.occurrences, 1)
        console.number("Errors", self.errors)
        console.number("Warnings", self.warnings)

    def _version(self, tag: wire.VersionInfo, out: Writer) -> None:
        name = tag.device_name if isinstance(tag.device_name, str) else tag.device_name.decode(errors="replace")
        device = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:MAX_DEVICE_NAME]
        if not device or (device not in self._devices and len(self._devices) >= MAX_DEVICES):
            return
        self._devices.add(device)
        out.text(f"Versions/{device}", tag.version)
