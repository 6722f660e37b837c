"""The settings classes of the configuration file's sections; their defaults are the file's defaults.

Frozen data without behaviour. Which values are legal stands in ``schema``.
"""

import msgspec

from aoabridge.bridge.settings import AccessSettings, RelaySettings

__all__ = [
    "AccessSettings",
    "Config",
    "DeviceSettings",
    "DevicesSettings",
    "FrcSettings",
    "J519Settings",
    "LogSettings",
    "NtSection",
    "PhoneSettings",
    "RecordSettings",
    "RelaySettings",
    "SourcesSettings",
    "StaleFrc",
    "StaleTeleop",
    "TeleopSettings",
    "WebSettings",
]


class LogSettings(msgspec.Struct, frozen=True):
    """What is logged and how; ``ring`` lines stay in memory."""

    level: str = "info"
    format: str = "auto"
    ring: int = 2_000
    levels: dict[str, str] = msgspec.field(default_factory=dict)


class RecordSettings(msgspec.Struct, frozen=True):
    """Recording to WPILOG files; ``dir`` empty = below the state directory."""

    enabled: bool = False
    dir: str = ""
    topics: tuple[str, ...] = ("*",)
    phone_lines: bool = False
    rotate_mib: int = 100
    keep_mib: int = 500
    min_free_mib: int = 200


class NtSection(msgspec.Struct, frozen=True):
    """The robot's server: at most one of team, servers, embedded; none = wait."""

    team: int | None = None
    server: tuple[str, ...] = ()
    embedded: bool = False
    listen: str = "127.0.0.1"
    port: int = 5810
    period_ms: int = 10
    status: bool = True
    alerts: str = "AOABridge Alerts"
    elastic: bool = True


class PhoneSettings(msgspec.Struct, frozen=True):
    """Identity strings of the handshake, and what every phone is told."""

    manufacturer: str = "NTOverAOA"
    model: str = "Adapter"
    version: str = "1.2"
    description: str = "NetworkTables bridge"
    uri: str = ""
    serial: str = ""
    heartbeat: bool = True
    topics_period_s: float = 10.0


class DevicesSettings(msgspec.Struct, frozen=True):
    """Which USB devices are taken."""

    max: int = 4
    accept: str = "known-makers"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    reset_stuck: bool = False
    simulated: bool = False


class DeviceSettings(msgspec.Struct, frozen=True):
    """One named phone, known by serial, port or both; its access patterns are added to those of everybody."""

    name: str
    serial: str = ""
    port: str = ""
    put_allow: tuple[str, ...] = ()
    put_deny: tuple[str, ...] = ()
    subscribe_allow: tuple[str, ...] = ()
    subscribe_deny: tuple[str, ...] = ()


class StaleFrc(msgspec.Struct, frozen=True):
    """Silence after which an origin counts as not connected, milliseconds."""

    fms: int = 1000
    robot: int = 250


class FrcSettings(msgspec.Struct, frozen=True):
    """The FMS, driver station and robot protocols as a source."""

    enabled: bool = False
    name: str = ""
    bind: str = "127.0.0.1"
    listen: tuple[str, ...] = ("ds2rio-udp:1110", "rio2ds-udp:1150")
    connect: tuple[str, ...] = ()
    replay: str = ""
    replay_speed: float = 1.0
    replay_loop: bool = False
    allow_from: tuple[str, ...] = ()
    text: str = "exact"
    month_base: int = 0
    rumble_order: str = "left-right"
    publish_hz: int = 20
    stale_ms: StaleFrc = StaleFrc()
    forget_s: float = 5.0
    max_rate: int = 500
    max_teams: int = 16
    write_fms_info: bool = False
    write_driver_station: bool = False
    info_from: str = "ds2rio"


class J519Settings(msgspec.Struct, frozen=True):
    """Stream Motion of one robot arm as a source; ``host`` empty = passive."""

    enabled: bool = False
    name: str = ""
    host: str = ""
    port: int = 60015
    bind: str = "127.0.0.1"
    allow_from: tuple[str, ...] = ()
    generation: str = "classic"
    byte_order: str = "big"
    version: int | str = 1
    request_limits: bool = True
    axes: int = 6
    publish_hz: int = 50
    stale_ms: int = 250
    forget_s: float = 5.0


class StaleTeleop(msgspec.Struct, frozen=True):
    """Silence after which a kind of datagram counts as not connected, milliseconds."""

    uplink: int = 500
    downlink: int = 300
    ctrl: int = 100


class TeleopSettings(msgspec.Struct, frozen=True):
    """The remote driving protocol as a source; nothing is forwarded or relayed unless an address stands here."""

    enabled: bool = False
    name: str = ""
    bind: str = "127.0.0.1"
    allow_from: tuple[str, ...] = ()
    port: int = 0
    vehicle_ports: tuple[int, ...] = ()
    ctrl_port: int = 10015
    trigger_port: int = 10013
    downlink_ports: tuple[int, ...] = ()
    vehicles: tuple[int, ...] = (0x00A, 0x00B, 0x00C)
    vehicle_names: dict[str, str] = msgspec.field(default_factory=dict)
    forward_ui: str = ""
    forward_panosim: str = ""
    publish_hz: int = 50
    stale_ms: StaleTeleop = StaleTeleop()
    forget_s: float = 5.0
    scale: dict[str, float] = msgspec.field(default_factory=dict)
    signed_position: bool = False
    downlink_relay: str = ""


class SourcesSettings(msgspec.Struct, frozen=True):
    """Every configured source, enabled or not."""

    frc: tuple[FrcSettings, ...] = (FrcSettings(),)
    j519: tuple[J519Settings, ...] = (J519Settings(),)
    teleop: tuple[TeleopSettings, ...] = (TeleopSettings(),)


class WebSettings(msgspec.Struct, frozen=True):
    """The status page."""

    enabled: bool = True
    port: int = 5808
    bind: str = "0.0.0.0"
    allow_from: tuple[str, ...] = ("private",)
    hosts: tuple[str, ...] = ()
    control: bool = False
    token_file: str = ""


class Config(msgspec.Struct, frozen=True):
    """The whole file. ``name`` and the names of sources are filled in: never empty once loaded."""

    name: str
    schema: int = 1
    relay: RelaySettings = RelaySettings()
    log: LogSettings = LogSettings()
    record: RecordSettings = RecordSettings()
    nt: NtSection = NtSection()
    phone: PhoneSettings = PhoneSettings()
    devices: DevicesSettings = DevicesSettings()
    device: tuple[DeviceSettings, ...] = ()
    access: AccessSettings = AccessSettings()
    sources: SourcesSettings = SourcesSettings()
    web: WebSettings = WebSettings()
