"""Plain data from which the snapshot is made; the daemon fills it. None = unknown, never a sentinel number."""

import msgspec

__all__ = [
    "ConfigView",
    "HostView",
    "PhoneView",
    "RecordView",
    "RelayView",
    "RobotView",
    "SnapshotInputs",
    "SourceView",
]


class RobotView(msgspec.Struct, frozen=True):
    """The connection to the robot. ``state``: unset, connecting, connected, lost, or serving (we are the server)."""

    state: str = "unset"
    address: str | None = None
    client: str | None = None
    since_s: float | None = None
    """Seconds since the state began."""
    flaps: int = 0
    offset_us: int | None = None
    rtt2_us: int | None = None
    enabled: bool | None = None
    mode: str | None = None
    match: str | None = None
    test: bool = False
    """A test address or a simulated robot."""


class PhoneView(msgspec.Struct, frozen=True):
    """One phone, present or remembered. ``serial`` is the full one here; the snapshot shows its last 4."""

    name: str
    state: str
    """A state of the port machine in lower case."""
    port: str
    serial: str | None = None
    model: str | None = None
    aoa_version: int | None = None
    app: str | None = None
    app_version: str | None = None
    rx_hz: float = 0.0
    tx_hz: float = 0.0
    latency_ms: float | None = None
    last_line_age_s: float | None = None
    dropped: int = 0
    coalesced: int = 0
    refused_puts: int = 0
    bad_lines: int = 0
    reconnects: int = 0
    battery_percent: float | None = None
    subscriptions: int = 0
    since_s: float | None = None
    blocked_s: float | None = None


class SourceView(msgspec.Struct, frozen=True):
    """One configured source. ``kind`` is frc, j519 or teleop; figures are None while it is not enabled."""

    kind: str
    name: str
    enabled: bool = False
    hz: float = 0.0
    age_s: float | None = None
    bad: int = 0
    gaps: int = 0
    relays: bool = False
    """True if it sends received commands on (teleop's downlink relay)."""


class RelayView(msgspec.Struct, frozen=True):
    """Totals of the relay since start; ``put_errors`` counts refusals by their code."""

    topics: int = 0
    robot_to_phone_hz: float = 0.0
    phone_to_robot_hz: float = 0.0
    put_errors: dict[str, int] = msgspec.field(default_factory=dict)
    coalesced: int = 0
    dropped: int = 0
    refused_puts: int = 0
    bad_lines: int = 0
    counters: dict[str, int] = msgspec.field(default_factory=dict)
    """What went by halves inside, by name: skipped values, refused schemas, text that is none; nothing that is 0."""


class HostView(msgspec.Struct, frozen=True):
    """The machine."""

    cpu_percent: float | None = None
    rss_mib: float | None = None
    temp_c: float | None = None
    throttled: bool | None = None
    disk_free_mib: int | None = None
    read_only: bool | None = None


class RecordView(msgspec.Struct, frozen=True):
    """The recorder."""

    active: bool = False
    file: str | None = None
    dropped: int = 0


class ConfigView(msgspec.Struct, frozen=True):
    """The configuration in use. ``state``: ok, defaults, last-good or rejected."""

    path: str
    state: str = "ok"
    restart_needed: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    """Why the file was refused, one line per error."""


class SnapshotInputs(msgspec.Struct, frozen=True):
    """Everything that the snapshot says, apart from the issues. ``wall`` is UTC, ``YYYY-MM-DDThh:mm:ssZ``."""

    name: str
    version: str
    team: int | None
    wall: str
    mono_s: float
    uptime_s: float
    wall_trusted: bool
    robot: RobotView
    config: ConfigView
    phones: tuple[PhoneView, ...] = ()
    sources: tuple[SourceView, ...] = ()
    relay: RelayView = RelayView()
    host: HostView = HostView()
    record: RecordView = RecordView()
