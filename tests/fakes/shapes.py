"""The JSON that the commands promise, as types: every key required, with its type; further keys are allowed."""

from typing import Any, Literal

import msgspec

from fakes.tick_shapes import SUMMARIES, TICKS

Severity = Literal["problem", "warn", "info"]


class Time(msgspec.Struct):
    wall: str
    mono_s: float
    wall_trusted: bool


class Robot(msgspec.Struct):
    state: Literal["unset", "connecting", "connected", "lost", "serving"]
    address: str | None
    client: str | None
    since_s: float | None
    flaps: int
    offset_us: int | None
    rtt2_us: int | None
    enabled: bool | None
    mode: str | None
    match: str | None


class Phone(msgspec.Struct):
    name: str
    state: str
    port: str
    serial: str | None
    model: str | None
    app: str | None
    app_version: str | None
    rx_hz: float
    tx_hz: float
    latency_ms: float | None
    last_line_age_s: float | None
    dropped: int
    coalesced: int
    refused_puts: int
    reconnects: int
    battery_percent: float | None
    subscriptions: int


class Source(msgspec.Struct):
    enabled: bool


class Relay(msgspec.Struct):
    topics: int
    robot_to_phone_hz: float
    phone_to_robot_hz: float
    put_errors: dict[str, int]
    counters: dict[str, int]


class Host(msgspec.Struct):
    cpu_percent: float | None
    rss_mib: float | None
    temp_c: float | None
    throttled: bool | None
    disk_free_mib: int | None
    read_only: bool | None


class Record(msgspec.Struct):
    active: bool
    file: str | None
    dropped: int


class ConfigState(msgspec.Struct):
    path: str
    state: Literal["ok", "defaults", "last-good", "rejected"]
    restart_needed: list[str]


class Issue(msgspec.Struct):
    code: str
    severity: Severity
    subject: str
    sentence: str
    fix: str
    since_s: float
    count: int


class Snapshot(msgspec.Struct):
    schema: Literal[1]
    verdict: Literal["ok", "waiting", "problem"]
    sentence: str
    name: str
    version: str
    team: int | None
    stale: Literal[False]
    time: Time
    uptime_s: float
    robot: Robot
    phones: list[Phone]
    sources: dict[str, Source]
    relay: Relay
    host: Host
    record: Record
    config: ConfigState
    issues: list[Issue]


class Ignored(msgspec.Struct):
    port: str
    id: str
    reason: str


class Devices(msgspec.Struct):
    devices: list[Phone]
    ignored: list[Ignored]


class Topic(msgspec.Struct):
    name: str
    type: str
    hz: float | None
    age_s: float | None
    source: str
    subscribers: list[str]


class Topics(msgspec.Struct):
    topics: list[Topic]


class Check(msgspec.Struct):
    code: str
    result: Literal["PASS", "WARN", "FAIL"]
    text: str
    fix: str | None


class Doctor(msgspec.Struct):
    checks: list[Check]
    ok: bool


class LogLine(msgspec.Struct):
    seq: int
    time: str
    mono_s: float
    level: Literal["debug", "info", "warning", "error", "critical"]
    code: str | None
    device: str | None
    text: str


class Line(msgspec.Struct):
    time: float
    dir: Literal["rx", "tx"]
    device: str
    line: str


class Fault(msgspec.Struct):
    file: str
    line: int | None
    column: int | None
    key: str | None
    message: str
    hint: str | None


class ConfigCheck(msgspec.Struct):
    ok: bool
    errors: list[Fault]
    restart_needed: list[str]


class Version(msgspec.Struct):
    aoabridge: str
    python: str
    pyntcore: str | None
    libusb: str | None
    pyusb: str | None
    platform: str


class ConfigShow(msgspec.Struct):
    path: str
    toml: str
    origins: dict[str, str]


class ConfigPath(msgspec.Struct):
    path: str
    exists: bool
    last_good: str | None


class SmokeCheck(msgspec.Struct):
    name: str
    ok: bool
    text: str


class Smoke(Version):
    checks: list[SmokeCheck]
    ok: bool


class Steps(msgspec.Struct):
    steps: list[str]
    done: bool


class RecordStatus(msgspec.Struct):
    active: bool
    file: str | None
    size_bytes: int | None
    duration_s: float | None
    dropped: int


class TopicValue(msgspec.Struct):
    time: float
    topic: str
    type: str
    value: Any


class Quantiles(msgspec.Struct):
    p50: float | None
    p99: float | None


class DemoPhone(msgspec.Struct):
    rx_lines: int
    tx_lines: int
    errors: int


class DemoPuts(msgspec.Struct):
    accepted: int
    refused: int


class DemoLatency(msgspec.Struct):
    robot_to_phone: Quantiles
    phone_to_robot: Quantiles


class DemoSummary(msgspec.Struct):
    type: Literal["summary"]
    ok: bool
    seconds: float
    phone: DemoPhone
    puts: DemoPuts
    latency_ms: DemoLatency
    topics: int
    rss_mib: float


class DecodeError(msgspec.Struct):
    type: str
    message: str
    offset: int | None


class Undecoded(msgspec.Struct):
    protocol: str
    error: DecodeError


class Decoded(msgspec.Struct):
    protocol: str
    packet: str
    fields: dict[str, Any]


class DemoTick(msgspec.Struct):
    type: Literal["tick"]
    seconds: float
    phone: DemoPhone
    puts: DemoPuts
    latency_ms: DemoLatency
    topics: int
    sentence: str
    verdict: Literal["ok", "waiting", "problem"]
    phones: list[Phone]
    robot: Robot
    rates: dict[str, float]
    last: list[dict[str, Any]]


class DemoFailure(msgspec.Struct):
    """The summary of a demo that could not begin."""

    type: Literal["summary"]
    ok: Literal[False]
    error: str


class RunLine(msgspec.Struct):
    """A line of the log of ``run``; further keys are fields of the journal."""

    time: str
    level: Literal["debug", "info", "warning", "error", "critical"]
    logger: str
    text: str


class EncodeError(msgspec.Struct):
    type: str
    message: str
    field: str | None


class Unencoded(msgspec.Struct):
    """What ``encode`` prints in place of a line of hex."""

    protocol: str
    error: EncodeError


PROMISES: dict[str, type[msgspec.Struct]] = {
    "status": Snapshot,
    "devices": Devices,
    "topics": Topics,
    "monitor-device": Line,
    "monitor-topic": TopicValue,
    "doctor": Doctor,
    "config-check": ConfigCheck,
    "config-show": ConfigShow,
    "config-path": ConfigPath,
    "decode": Decoded,
    "decode-error": Undecoded,
    "record": RecordStatus,
    "log": LogLine,
    "service": Steps,
    "version": Version,
    "version-check": Smoke,
    "demo-summary": DemoSummary,
    "demo-tick": DemoTick,
    "demo-failure": DemoFailure,
    "encode-error": Unencoded,
    "run": RunLine,
    **{f"{name}-tick": shape for name, shape in TICKS.items()},
    **{f"{name}-summary": shape for name, shape in SUMMARIES.items()},
}
"""What each command prints with --json; tests/vectors/schemas holds the same as JSON schemas."""
