"""The configuration file as a table: every section, every key, what it may hold and when a change takes effect.

A new key is one row here and one field in its settings class, whose default is the file's default.
"""

from enum import Enum
from typing import TypeAlias

import msgspec

from aoabridge.config import sections
from aoabridge.config.kinds import (
    Address,
    AnyOf,
    Bool,
    Choice,
    Fault,
    Float,
    Int,
    Kind,
    ListOf,
    MapOf,
    Optional,
    Text,
    host_port,
    network,
)

__all__ = [
    "CURRENT_SCHEMA",
    "FRC_PROTOCOLS",
    "MAX_DEVICES",
    "MAX_FILE_BYTES",
    "MAX_PATTERNS",
    "ROOT",
    "Key",
    "Period",
    "Reload",
    "Servers",
    "Table",
]

CURRENT_SCHEMA = 1
MAX_FILE_BYTES = 256 * 1024  # far above any real file; bounds the time of a reload
MAX_DEVICES = 64  # more phones than a team owns
MAX_PATTERNS = 256  # all of them are tried for every new topic of a phone
MAX_LIST = 256
MAX_SOURCES = 16

FRC_PROTOCOLS = (
    "fms2ds-udp",
    "fms2ds-tcp",
    "ds2fms-udp",
    "ds2fms-tcp",
    "ds2rio-udp",
    "ds2rio-tcp",
    "rio2ds-udp",
    "rio2ds-tcp",
    "ds2dash-tcp",
)
LEVELS = ("debug", "info", "warning", "error")


class Reload(Enum):
    """When a changed value takes effect."""

    LIVE = "L"
    NEXT_CONNECTION = "D"
    RESTART = "R"


L, D, R = Reload.LIVE, Reload.NEXT_CONNECTION, Reload.RESTART


class Key(msgspec.Struct, frozen=True):
    """One key: its name (also the field of the settings class), what it holds, when a change applies."""

    name: str
    kind: Kind
    reload: Reload


class Table(msgspec.Struct, frozen=True):
    """One section. ``several``: "no", "only" ([[name]]) or "also" ([name] or [[name]])."""

    name: str
    settings: type[msgspec.Struct]
    rows: tuple["Key | Table", ...]
    several: str = "no"
    limit: int = 1


Row: TypeAlias = Key | Table


def _server_wrong(text: str) -> str | None:
    host = text
    if (parts := host_port(text)) is not None:
        host = parts[0]
    if isinstance(Address().check(host), str):
        return None
    if isinstance(Text(253, r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", "a name").check(host), Fault):
        return "is not a host name, an address, or one of them with :port"
    return None


class Servers(msgspec.Struct, frozen=True):
    """A server or a list of them; becomes a tuple."""

    def check(self, value: object) -> object:
        """A tuple of 1 to 8 hosts, each with an optional port."""
        several = value if isinstance(value, list) else [value]
        if not several:
            return Fault("the list is empty")
        for element in several:
            if isinstance(element, int) or (isinstance(element, str) and element.isdecimal()):
                return Fault(f'"{element}" is not a server', "that is a team number: use nt.team")
        return ListOf(Text(260, accepts=_server_wrong), 8, unique=True).check(several)


class Period(msgspec.Struct, frozen=True):
    """A subscription period that ntcore keeps exactly."""

    def check(self, value: object) -> object:
        """5 or a multiple of 10, up to 1000 milliseconds."""
        checked = Int(5, 1000).check(value)
        if isinstance(checked, int) and checked != 5 and checked % 10:
            return Fault(f"{checked} is neither 5 nor a multiple of 10")
        return checked


def _alerts_wrong(text: str) -> str | None:
    if text == "Alerts":
        return "is the robot program's own group"
    return "holds a slash" if "/" in text else None


def _listen_wrong(text: str) -> str | None:
    protocol, _, port = text.partition(":")
    if protocol not in FRC_PROTOCOLS:
        return f"does not begin with one of {', '.join(FRC_PROTOCOLS)}"
    if not port.isascii() or not port.isdecimal() or not 1 <= int(port) <= 65535:
        return 'is not "protocol:port" with a port from 1 to 65535'
    return None


def _connect_wrong(text: str) -> str | None:
    protocol, _, target = text.partition("@")
    if protocol != "rio2ds-tcp":
        return 'is refused: only "rio2ds-tcp@host:port" may be read, everything else a driver station alone may ask for'
    return None if host_port(target) else 'is not "rio2ds-tcp@host:port"'


def _allowed_wrong(text: str) -> str | None:
    return None if text == "private" else network(text)


def _target_wrong(text: str) -> str | None:
    return None if not text or host_port(text) else 'is not "host:port"'


_PATH = Text(4096, r"(/.*)?", "an absolute path")
_PATTERNS = ListOf(Text(1024, r".+", "a pattern"), MAX_PATTERNS)
_USB_ID = r"[0-9A-Fa-f?*]{1,4}:[0-9A-Fa-f?*]{1,4}"
_NETWORKS = ListOf(Text(64, accepts=network), MAX_LIST)
_PORT = Int(1, 65535)
_PORT_OR_OFF = Int(0, 65535)
_PORT_LIST = ListOf(_PORT, 64, unique=True)
_IDENTITY = Text(255)
_SOURCE_NAME = Text(32, r"[a-z0-9_-]{0,32}", "made of a-z, 0-9, _ and -, at most 32")
_STALE_MS = Int(10, 60_000)
_FORGET_S = Float(0.5, 60)
_PUBLISH_HZ = Int(0, 500)

_ACCESS = ("put_allow", "put_deny", "subscribe_allow", "subscribe_deny")

_FRC = Table(
    "frc",
    sections.FrcSettings,
    (
        Key("enabled", Bool(), R),
        Key("name", _SOURCE_NAME, R),
        Key("bind", Address(), R),
        Key("listen", ListOf(Text(64, accepts=_listen_wrong), 64), R),
        Key("connect", ListOf(Text(300, accepts=_connect_wrong), 16, unique=True), R),
        Key("replay", Text(4096), R),
        Key("replay_speed", Float(0, 1000), R),
        Key("replay_loop", Bool(), R),
        Key("allow_from", _NETWORKS, R),
        Key("text", Choice(("exact", "replace")), R),
        Key("month_base", Int(0, 1), R),
        Key("rumble_order", Choice(("left-right", "right-left")), R),
        Key("publish_hz", _PUBLISH_HZ, R),
        Table("stale_ms", sections.StaleFrc, (Key("fms", _STALE_MS, R), Key("robot", _STALE_MS, R))),
        Key("forget_s", _FORGET_S, R),
        Key("max_rate", Int(1, 5000), R),
        Key("max_teams", Int(1, 64), R),
        Key("write_fms_info", Bool(), R),
        Key("write_driver_station", Bool(), R),
        Key("info_from", Choice(("ds2rio", "fms2ds")), R),
    ),
    several="also",
    limit=MAX_SOURCES,
)

_J519 = Table(
    "j519",
    sections.J519Settings,
    (
        Key("enabled", Bool(), R),
        Key("name", _SOURCE_NAME, R),
        Key("host", Text(253, r"[A-Za-z0-9._:-]*", "a host name or address"), R),
        Key("port", _PORT, R),
        Key("bind", Address(), R),
        Key("allow_from", _NETWORKS, R),
        Key("generation", Choice(("classic", "driver")), R),
        Key("byte_order", Choice(("big", "little", "auto")), R),
        Key("version", AnyOf(((int, Int(0, 0xFFFF)), (str, Choice(("query",)))), 'a number or "query"'), R),
        Key("request_limits", Bool(), R),
        Key("axes", Int(1, 9), R),
        Key("publish_hz", _PUBLISH_HZ, R),
        Key("stale_ms", _STALE_MS, R),
        Key("forget_s", _FORGET_S, R),
    ),
    several="also",
    limit=MAX_SOURCES,
)

_SCALES = ("speed_kmh", "steering_deg", "heading_deg", "position_deg")
_TELEOP = Table(
    "teleop",
    sections.TeleopSettings,
    (
        Key("enabled", Bool(), R),
        Key("name", _SOURCE_NAME, R),
        Key("bind", Address(), R),
        Key("allow_from", _NETWORKS, R),
        Key("port", _PORT_OR_OFF, R),
        Key("vehicle_ports", _PORT_LIST, R),
        Key("ctrl_port", _PORT_OR_OFF, R),
        Key("trigger_port", _PORT_OR_OFF, R),
        Key("downlink_ports", _PORT_LIST, R),
        Key("vehicles", ListOf(Int(1, 32767), 64, unique=True), R),
        Key(
            "vehicle_names",
            MapOf(
                Text(4, r"[0-9A-F]{3,4}", "a vehicle id in upper-case hex digits"),
                Text(32, r"(?!(?:Cockpit|Link)$)[A-Za-z0-9_-]{1,32}", "a free name of A-Z, a-z, 0-9, _ and -"),
                64,
            ),
            R,
        ),
        Key("forward_ui", Text(260, accepts=_target_wrong), R),
        Key("forward_panosim", Text(260, accepts=_target_wrong), R),
        Key("publish_hz", _PUBLISH_HZ, R),
        Table(
            "stale_ms",
            sections.StaleTeleop,
            (Key("uplink", _STALE_MS, R), Key("downlink", _STALE_MS, R), Key("ctrl", _STALE_MS, R)),
        ),
        Key("forget_s", _FORGET_S, R),
        Key("scale", MapOf(Text(), Float(0, 1e9, zero=False), 4, names=_SCALES), R),
        Key("signed_position", Bool(), R),
        Key("downlink_relay", Text(260, accepts=_target_wrong), R),
    ),
    several="also",
    limit=MAX_SOURCES,
)

ROOT = Table(
    "",
    sections.Config,
    (
        Key("schema", Int(1, CURRENT_SCHEMA), R),
        Key("name", Text(32, r"[a-z0-9-]{1,32}", "made of a-z, 0-9 and -, 1 to 32 long"), R),
        Table(
            "relay",
            sections.RelaySettings,
            (
                Key("max_line_bytes", Int(4096, 16_777_216), D),
                Key("max_subscriptions", Int(1, 20_000), D),
                Key("put_rate", Int(1, 5000), L),
                Key("put_burst", Int(1, 50_000), L),
                Key("sample_lane", Int(1, 100_000), D),
                Key("error_lines_per_s", Int(1, 1000), L),
            ),
        ),
        Table(
            "log",
            sections.LogSettings,
            (
                Key("level", Choice(LEVELS), L),
                Key("format", Choice(("auto", "text", "json")), R),
                Key("ring", Int(10, 100_000), R),
                Key("levels", MapOf(Text(128, r"[A-Za-z0-9_.]+", "a logger's name"), Choice(LEVELS), 64), L),
            ),
        ),
        Table(
            "record",
            sections.RecordSettings,
            (
                Key("enabled", Bool(), L),
                Key("dir", _PATH, L),
                Key("topics", _PATTERNS, L),
                Key("phone_lines", Bool(), L),
                Key("rotate_mib", Int(1, 4096), L),
                Key("keep_mib", Int(1, 1_048_576), L),
                Key("min_free_mib", Int(0, 1_048_576), L),
            ),
        ),
        Table(
            "nt",
            sections.NtSection,
            (
                Key("team", Optional(Int(1, 25_599)), L),
                Key("server", Servers(), L),
                Key("embedded", Bool(), R),
                Key("listen", Address(), R),
                Key("port", _PORT, L),
                Key("period_ms", Period(), R),
                Key("status", Bool(), L),
                Key("alerts", Text(64, accepts=_alerts_wrong), R),
                Key("elastic", Bool(), L),
            ),
        ),
        Table(
            "phone",
            sections.PhoneSettings,
            (
                *(Key(name, _IDENTITY, D) for name in ("manufacturer", "model", "version", "description")),
                *(Key(name, _IDENTITY, D) for name in ("uri", "serial")),
                Key("heartbeat", Bool(), L),
                Key("topics_period_s", Float(1, 11), L),
            ),
        ),
        Table(
            "devices",
            sections.DevicesSettings,
            (
                Key("max", Int(1, 8), R),
                Key("accept", Choice(("known-makers", "listed", "any")), D),
                Key("allow", ListOf(Text(9, _USB_ID, '"vid:pid" in hex digits, * or ?'), MAX_LIST), D),
                Key(
                    "deny",
                    ListOf(
                        Text(128, f"{_USB_ID}|serial:.+|port:.+", '"vid:pid", "serial:..." or "port:..."'), MAX_LIST
                    ),
                    D,
                ),
                Key("reset_stuck", Bool(), L),
                Key("simulated", Bool(), R),
            ),
        ),
        Table(
            "device",
            sections.DeviceSettings,
            (
                Key("name", Text(32, r"[a-z0-9_-]{1,32}", "made of a-z, 0-9, _ and -, 1 to 32 long"), D),
                Key("serial", Text(126, r".+", "a serial number"), D),
                Key("port", Text(64, r"[0-9]+-[0-9]+(\.[0-9]+)*", 'a port such as "1-1.3"'), D),
                *(Key(name, _PATTERNS, D) for name in _ACCESS),
            ),
            several="only",
            limit=MAX_DEVICES,
        ),
        Table("access", sections.AccessSettings, tuple(Key(name, _PATTERNS, L) for name in _ACCESS)),
        Table("sources", sections.SourcesSettings, (_FRC, _J519, _TELEOP)),
        Table(
            "web",
            sections.WebSettings,
            (
                Key("enabled", Bool(), R),
                Key("port", _PORT, R),
                Key("bind", Address(), R),
                Key("allow_from", ListOf(Text(64, accepts=_allowed_wrong), MAX_LIST), L),
                Key("hosts", ListOf(Text(253, r"[A-Za-z0-9._-]+", "a host name"), MAX_LIST), L),
                Key("control", Bool(), R),
                Key("token_file", _PATH, R),
            ),
        ),
    ),
)
