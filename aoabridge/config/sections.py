"""The settings classes of the configuration file's sections; their defaults are the file's defaults.

Frozen data without behaviour. Which values are legal stands in ``schema``.
"""

import msgspec

from aoabridge.bridge.settings import AccessSettings, RelaySettings
from aoabridge.sources.settings import FrcSettings, J519Settings, StaleFrc, StaleTeleop, TeleopSettings

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
