"""Packets of the remote-driving centre -> topics; their wire layout is WPILib's, so the octets go out as they are."""

from collections.abc import Mapping

from aoabridge.codecs.teleop import Downlink, HomeCtrl, HomeTrigger, Uplink, label
from aoabridge.sources.board import Writer

__all__ = ["SCHEMAS", "write_downlink", "write_home_ctrl", "write_trigger", "write_uplink"]

SCHEMAS = {
    "TeleopUplink": "int16 gram_header;int16 gram_id;int16 vehicle_id;"
    "enum {normal=0, fault=1} int16 vehicle_state;uint32 longitude;uint32 latitude;uint16 heading;int16 speed;"
    "int32 steering;enum {auto=0, remote=1} int16 ctrl_sign;"
    "enum {none=0, takeover_request=1, vehicle_fault=2} int16 ctrl_info;int16 rpm;int16 unused0",
    "TeleopDownlink": "int16 gram_header;int16 gram_id;int16 vehicle_id;int16 rc_speed;int16 rc_acc_pedal;"
    "int16 rc_brake_pedal;enum {auto=0, remote=1} int16 ctrl_sign;int16 unused;int32 rc_steer",
    "TeleopHomeCtrl": "int16 gram_header;int16 gram_id;int16 vehicle_id;int32 rc_steering;int16 rc_speed;"
    "int16 rc_acc_pedal;int16 rc_brk_pedal;int16 ping_time",
    "TeleopHomeTrigger": "int16 gram_header;int16 gram_id;enum {nothing=0, remote=1, sync=2} int16 ctrl_state",
}
SIGN_BIT = 1 << 31


def write_uplink(
    packet: Uplink, data: bytes, out: Writer, scale: Mapping[str, float], *, signed_position: bool
) -> None:
    """A vehicle's report; ``out`` writes below its subtree. Physical values only for the factors in ``scale``."""
    _struct("Uplink", "TeleopUplink", data, out)
    out.text("VehicleState", label("vehicle_state", packet.vehicle_state))
    out.text("Control", label("ctrl_sign", packet.ctrl_sign))
    out.text("ControlInfo", label("ctrl_info", packet.ctrl_info))
    out.flag("Fault", packet.vehicle_state == 1)
    out.flag("RemoteControlled", packet.ctrl_sign == 1)
    out.flag("TakeoverRequested", packet.ctrl_info == 1)
    raw = out.below("Raw/")
    raw.number("Longitude", packet.longitude)
    raw.number("Latitude", packet.latitude)
    raw.number("Heading", packet.heading)
    raw.number("Speed", packet.speed)
    raw.number("Steering", packet.steering)
    raw.number("Rpm", packet.rpm)
    _scaled(out, "Speed_kmh", packet.speed, scale, "speed_kmh")
    _scaled(out, "Steering_deg", packet.steering, scale, "steering_deg")
    _scaled(out, "Heading_deg", packet.heading, scale, "heading_deg")
    for name, value in (("Longitude_deg", packet.longitude), ("Latitude_deg", packet.latitude)):
        _scaled(out, name, _signed(value) if signed_position else value, scale, "position_deg")


def write_downlink(packet: Downlink, data: bytes, out: Writer, scale: Mapping[str, float]) -> None:
    """A driving command that was seen; ``out`` writes below the vehicle's subtree."""
    _struct("Downlink", "TeleopDownlink", data, out)
    command = out.below("Command/")
    command.number("Speed", packet.rc_speed)
    command.number("Steer", packet.rc_steer)
    command.number("AccPedal_pct", packet.rc_acc_pedal)
    command.number("BrakePedal_pct", packet.rc_brake_pedal)
    command.flag("Remote", packet.ctrl_sign == 1)
    _scaled(command, "Speed_kmh", packet.rc_speed, scale, "speed_kmh")
    _scaled(command, "Steer_deg", packet.rc_steer, scale, "steering_deg")


def write_home_ctrl(packet: HomeCtrl, data: bytes, out: Writer, scale: Mapping[str, float], observed: str) -> None:
    """The cockpit's state; ``out`` writes below ``Cockpit/``, ``observed`` names the vehicle it looks at."""
    _struct("Ctrl", "TeleopHomeCtrl", data, out)
    out.number("Steering", packet.rc_steering)
    out.number("Speed", packet.rc_speed)
    out.number("AccPedal_pct", packet.rc_acc_pedal)
    out.number("BrakePedal_pct", packet.rc_brk_pedal)
    out.number("PingTime", packet.ping_time)
    _scaled(out, "Speed_kmh", packet.rc_speed, scale, "speed_kmh")
    _scaled(out, "Steering_deg", packet.rc_steering, scale, "steering_deg")
    out.text("ObservedVehicle", observed)


def write_trigger(packet: HomeTrigger, data: bytes, out: Writer, count: int) -> None:
    """A key event of the cockpit; ``out`` writes below ``Cockpit/``."""
    _struct("Trigger", "TeleopHomeTrigger", data, out)
    out.text("TriggerState", label("ctrl_state", packet.ctrl_state))
    out.number("TriggerCount", count)


def _struct(name: str, struct_name: str, data: bytes, out: Writer) -> None:
    out.board.schema(struct_name, SCHEMAS[struct_name])
    out.struct(name, f"struct:{struct_name}", data)


def _scaled(out: Writer, name: str, value: int, scale: Mapping[str, float], factor: str) -> None:
    if factor in scale:
        out.real(name, value * scale[factor])


def _signed(value: int) -> int:
    """The same 32 bits as two's complement."""
    return value - (1 << 32) if value & SIGN_BIT else value
