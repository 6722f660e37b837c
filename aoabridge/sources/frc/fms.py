"""Packets between FMS and driver station -> topics ``Fms/…`` and ``Ds/<team>/…``."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from aoabridge.codecs.frc_ds import Date, DsStatus, FmsControl, Tag
from aoabridge.codecs.frc_ds import fms_ds as wire
from aoabridge.codecs.frc_ds.ds_rio import STARTUP_VOLTS
from aoabridge.codecs.frc_ds.enums import Station
from aoabridge.codecs.frc_ds.versions import VersionTag
from aoabridge.sources.board import Writer
from aoabridge.sources.frc import structs

__all__ = [
    "UNKNOWN",
    "clock_us",
    "enum_text",
    "station_id",
    "station_text",
    "write_clock",
    "write_ds_frame",
    "write_ds_status",
    "write_fms_control",
    "write_fms_frame",
    "write_volts",
]

UNKNOWN = "unknown"
INT64_LIMIT = 1 << 63
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def station_text(station: Station) -> str:
    """``red1`` … ``blue3``, ``unknown``."""
    return f"{station.alliance}{station.position}" if station.known else UNKNOWN


def station_id(station: int) -> int:
    """Number of WPILib: 1..6, 0 = unknown."""
    return station + 1 if 0 <= station <= 5 else 0


def enum_text(value: Any) -> str:
    """Name of an enumeration's member, ``unknown`` for a number without one."""
    name = getattr(value, "name", None)
    return UNKNOWN if name is None else str(name).lower()


def clock_us(date: Date, month_base: int) -> int | None:
    """Unix microseconds, None when that is not a date."""
    moment = date.to_datetime(month_base)
    return None if moment is None else (moment - _EPOCH) // timedelta(microseconds=1)


def write_clock(date: Date, month_base: int, out: Writer) -> None:
    """``Clock_us``; withdrawn while the octets are no date."""
    moment_us = clock_us(date, month_base)
    if moment_us is None:
        out.withdraw("Clock_us")
    else:
        out.number("Clock_us", moment_us)


def write_volts(volts: float, valid: bool, out: Writer) -> None:
    """``BatteryValid``; ``Battery_volts`` only while it is."""
    out.flag("BatteryValid", valid)
    if valid:
        out.real("Battery_volts", volts)
    else:
        out.withdraw("Battery_volts")


def write_fms_control(packet: FmsControl, out: Writer, month_base: int) -> None:
    """The header; ``out`` writes below ``Fms/``."""
    control = packet.control
    out.struct("Control", "struct:FrcFmsControl", structs.fms_control(packet))
    out.text("Mode", control.mode)
    out.flags({"Enabled": control.enabled, "EStop": control.estop, "AStop": control.astop})
    out.text("AllianceStation", station_text(packet.station))
    out.number("AllianceStationID", station_id(packet.station))
    out.text("TournamentLevel", enum_text(packet.tournament_level))
    out.number("MatchNumber", packet.match_number)
    out.number("PlayNumber", packet.play_number)
    out.number("RemainingTime_s", packet.remaining_time_s)
    write_clock(packet.date, month_base, out)


def write_ds_status(packet: DsStatus, out: Writer) -> None:
    """Header and tags; ``out`` writes below ``Ds/<team>/``."""
    status = packet.status
    out.struct("Status", "struct:FrcDsStatus", structs.ds_status(packet))
    out.text("Mode", status.mode)
    out.flags({"Enabled": status.enabled, "EStop": status.estop, "RobotComms": status.robot_comms})
    out.flags({"RadioPing": status.radio_ping, "RioPing": status.rio_ping})
    write_volts(packet.battery_volts, status.robot_comms and packet.battery_volts != STARTUP_VOLTS, out)
    for tag in packet.tags:
        _write(_DS_TAGS, tag, out)


def write_fms_frame(tag: Tag, out: Writer) -> None:
    """A frame of the FMS; ``out`` writes below ``Fms/``."""
    _write(_FMS_FRAMES, tag, out)


def write_ds_frame(tag: Tag, out: Writer) -> None:
    """A frame of a driver station; ``out`` writes below ``Ds/<team>/``."""
    _write(_DS_FRAMES, tag, out)


def _write(table: dict[type[Tag], Callable[[Any, Writer], None]], tag: Tag, out: Writer) -> None:
    if isinstance(tag, VersionTag):
        _version(tag, out)
        return
    write = table.get(type(tag))
    if write is not None:
        write(tag, out)


def _version(tag: VersionTag, out: Writer) -> None:
    status, version = tag.version_status, tag.version
    if status is not None and version is not None:
        out.text(f"Versions/{tag.device}/Status", status)
        out.text(f"Versions/{tag.device}/Version", version)


def _station_info(tag: wire.StationInfo | wire.StationInfo2027, out: Writer) -> None:
    out.text("AssignedStation", station_text(tag.station))
    out.text("StationStatus", enum_text(tag.status))
    if isinstance(tag, wire.StationInfo2027):
        out.flag("Lite", tag.flags.fms_lite)
        out.number("Team", tag.team)


def _challenge(tag: wire.ChallengeQuestion, out: Writer) -> None:
    out.text("ChallengeQuestion", tag.question)
    out.number("ChallengeRandom", tag.random_value)


def _comms(tag: wire.CommsMetrics, out: Writer) -> None:
    out.number("LostPackets", tag.lost_packets)
    out.number("SentPackets", tag.sent_packets)
    out.number("TripTime_ms", tag.average_trip_time_ms)


def _laptop(tag: wire.LaptopMetrics, out: Writer) -> None:
    out.number("LaptopBattery_pct", tag.battery_percent)
    out.number("LaptopCpu_pct", tag.cpu_percent)


def _radio(tag: wire.RadioMetrics, out: Writer) -> None:
    out.number("Signal", tag.signal_strength)
    out.number("Bandwidth", tag.bandwidth_utilization)


def _log(tag: wire.LogData, out: Writer) -> None:
    log, status = out.below("Log/"), tag.status
    log.real("TripTime_ms", tag.trip_time_ms)
    log.real("Battery_volts", tag.battery_volts)
    log.real("Bandwidth_mbps", tag.bandwidth_mbps)
    log.number("LostPackets", tag.lost_packets)
    log.number("CanRaw", tag.can_raw)
    log.number("SignalRaw", tag.signal_db_raw)
    log.flags({"Brownout": status.brownout, "Watchdog": status.watchdog})
    log.flags({"DsTeleop": status.ds_teleop, "DsAuto": status.ds_auto, "DsDisabled": status.ds_disable})
    log.flags({"RobotTeleop": status.robot_teleop, "RobotAuto": status.robot_auto})
    log.flag("RobotDisabled", status.robot_disable)


def _events(tag: wire.ErrorAndEvent, out: Writer) -> None:
    for message in tag.messages:
        out.event("Event", "string", message.text)
        moment_us = message.unix_us
        if -INT64_LIMIT <= moment_us < INT64_LIMIT:  # NetworkTables has no longer integers
            out.event("EventTime_us", "int", moment_us)


def _hello(tag: wire.DsHello2027, out: Writer) -> None:
    out.text("Generation", "2027")
    out.number("UdpPort", tag.udp_port)


_FMS_FRAMES: dict[type[Tag], Callable[[Any, Writer], None]] = {
    wire.EventCode: lambda tag, out: out.text("EventCode", tag.event_code),
    wire.StationInfo: _station_info,
    wire.StationInfo2027: _station_info,
    wire.ChallengeQuestion: _challenge,
    wire.FmsGameData: lambda tag, out: out.text("GameData", tag.game_data),
}
_DS_TAGS: dict[type[Tag], Callable[[Any, Writer], None]] = {
    wire.CommsMetrics: _comms,
    wire.LaptopMetrics: _laptop,
    wire.FieldRadioMetrics: lambda tag, out: _radio(tag, out.below("FieldRadio/")),
    wire.RobotRadioMetrics: lambda tag, out: _radio(tag, out.below("RobotRadio/")),
}
_DS_FRAMES: dict[type[Tag], Callable[[Any, Writer], None]] = {
    wire.LogData: _log,
    wire.ErrorAndEvent: _events,
    wire.TeamNumber: lambda _, out: out.text("Generation", "ni"),
    wire.DsHello2027: _hello,
    wire.UsageReport: lambda tag, out: out.text("UsageReport", tag.entries),
    wire.ChallengeResponse: lambda tag, out: out.text("ChallengeResponse", tag.response),
}
