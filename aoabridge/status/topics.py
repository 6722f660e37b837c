"""The snapshot as NetworkTables topics below ``/AOABridge/<name>/``: one tick of 0.5 s, only what has changed."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from aoabridge.status.snapshot import Snapshot
from aoabridge.values import NtValue, Publication, Withdrawal

__all__ = ["TICK_S", "StatusTopics", "bridge_name_topic", "segment"]

TICK_S = 0.5  # each send delays the next put's flush by up to 5 ms, so status is rare
MAX_ISSUES = 20
_SECOND = 2
"""Ticks of a row that is due once per second."""

_CONNECTED = {"live", "linked", "stale"}


class _Row(NamedTuple):
    """One topic: path below its group, type, every how many ticks, and its value (None = unknown: not published)."""

    path: str
    type: str
    ticks: int
    value: Callable[[Mapping[str, Any]], NtValue | None]


def _key(*names: str) -> Callable[[Mapping[str, Any]], Any]:
    def value(data: Mapping[str, Any]) -> Any:
        found: Any = data
        for name in names:
            found = found[name]
        return found

    return value


def _issues(snapshot: Mapping[str, Any]) -> list[str]:
    return [f"{issue['code']}:{issue['subject']}" for issue in snapshot["issues"][:MAX_ISSUES]]


def _present(snapshot: Mapping[str, Any]) -> int:
    return sum(phone["state"] in _CONNECTED for phone in snapshot["phones"])


_BRIDGE = (
    _Row("version", "string", 1, _key("version")),
    _Row("ready", "boolean", 1, lambda snapshot: snapshot["verdict"] == "ok"),
    _Row("phoneCount", "int", 1, _present),
    _Row("nt/flaps", "int", 1, _key("robot", "flaps")),
    _Row("verdict", "string", 1, _key("verdict")),
    _Row("status", "string", 1, _key("sentence")),
    _Row("issues", "string[]", 1, _issues),
    _Row("uptimeSec", "double", _SECOND, _key("uptime_s")),
    _Row("cpuPct", "double", _SECOND, _key("host", "cpu_percent")),
    _Row("rssMiB", "double", _SECOND, _key("host", "rss_mib")),
    _Row("cpuTempC", "double", _SECOND, _key("host", "temp_c")),
    _Row("throttled", "boolean", 1, _key("host", "throttled")),
    _Row("relay/toPhoneHz", "double", _SECOND, _key("relay", "robot_to_phone_hz")),
    _Row("relay/toRobotHz", "double", _SECOND, _key("relay", "phone_to_robot_hz")),
    _Row("relay/coalesced", "int", _SECOND, _key("relay", "coalesced")),
    _Row("relay/dropped", "int", _SECOND, _key("relay", "dropped")),
    _Row("relay/refusedPuts", "int", _SECOND, _key("relay", "refused_puts")),
    _Row("relay/badLines", "int", _SECOND, _key("relay", "bad_lines")),
    _Row(".timesync/offset_us", "int", _SECOND, _key("robot", "offset_us")),
    _Row(".timesync/rtt2_us", "int", _SECOND, _key("robot", "rtt2_us")),
    _Row("record/active", "boolean", 1, _key("record", "active")),
    _Row("record/file", "string", 1, _key("record", "file")),
    _Row("record/dropped", "int", 1, _key("record", "dropped")),
)

_FIGURES = {row.path: row.type for row in _BRIDGE if row.ticks == _SECOND}

_PHONE = (
    _Row("connected", "boolean", 1, lambda phone: phone["state"] in _CONNECTED),
    _Row("state", "string", 1, _key("state")),
    _Row("serial", "string", 1, lambda phone: (phone["serial"] or "").lstrip("…") or None),
    _Row("model", "string", 1, _key("model")),
    _Row("port", "string", 1, _key("port")),
    _Row("app", "string", 1, _key("app")),
    _Row("appVersion", "string", 1, _key("app_version")),
    _Row("rxHz", "double", 1, _key("rx_hz")),
    _Row("txHz", "double", 1, _key("tx_hz")),
    _Row("latencyMillis", "double", 1, _key("latency_ms")),
    _Row("lastSeenAgeSec", "double", 1, _key("last_line_age_s")),
    _Row("batteryPercent", "double", 1, _key("battery_percent")),
    _Row("coalesced", "int", 1, _key("coalesced")),
    _Row("dropped", "int", 1, _key("dropped")),
    _Row("reconnects", "int", 1, _key("reconnects")),
    _Row("subscriptions", "int", 1, _key("subscriptions")),
)

_SOURCE = (
    _Row("hz", "double", _SECOND, _key("hz")),
    _Row("ageSec", "double", _SECOND, _key("age_s")),
    _Row("bad", "int", _SECOND, _key("bad")),
    _Row("gaps", "int", _SECOND, _key("gaps")),
)


def segment(name: str) -> str:
    """A name as one segment of a topic."""
    return "".join(item if item.isprintable() and item not in "/ " else "_" for item in name) or "_"


def bridge_name_topic(instance_id: str) -> str:
    """Where the bridge with this id says its name, for the detection of two equal names."""
    return f"/AOABridge/.bridges/{instance_id}/name"


class StatusTopics:
    """Turns snapshots into publications; call ``on_tick`` every TICK_S."""

    def __init__(self, name: str, instance_id: str, build_date: str | None = None) -> None:
        self._root = f"/AOABridge/{name}/"
        self._constants: dict[str, tuple[str, NtValue]] = {
            bridge_name_topic(instance_id): ("string", name),
            f"{self._root}instanceId": ("string", instance_id),
        }
        if build_date is not None:
            self._constants[f"{self._root}buildDate"] = ("string", build_date)
        self._shown: dict[str, NtValue] = {}
        self._begin()

    def _begin(self) -> None:
        self._ticks = 0
        self._figures_due = 0  # the tick of the next figures of once per second

    def on_tick(self, snapshot: Snapshot) -> list[Publication | Withdrawal]:
        """What to publish and withdraw now."""
        out: list[Publication | Withdrawal] = []
        present: set[str] = set()
        if self._ticks == 0:
            for topic, (kind, constant) in self._constants.items():
                self._show(topic, kind, constant, out)
        self._show(f"{self._root}heartbeat", "int", self._ticks, out)
        with_figures = self._ticks >= self._figures_due
        if with_figures:
            self._figures_due = self._ticks + _SECOND
        for prefix, rows, data in self._groups(snapshot):
            for row in rows:
                topic = f"{self._root}{prefix}{row.path}"
                value = row.value(data)
                if value is None:
                    continue
                present.add(topic)
                if with_figures or row.ticks < _SECOND or topic not in self._shown:
                    self._show(topic, row.type, _as_type(row.type, value), out)
        kept = {*self._constants, f"{self._root}heartbeat", *present}
        out += [Withdrawal(topic) for topic in self._shown if topic not in kept]
        self._shown = {topic: value for topic, value in self._shown.items() if topic in kept}
        self._ticks += 1
        return out

    def on_beat(self, figures: Mapping[str, float | None]) -> list[Publication | Withdrawal]:
        """A tick instead of ``on_tick`` if nothing differs from the last one but these figures of once per second."""
        out: list[Publication | Withdrawal] = []
        self._show(f"{self._root}heartbeat", "int", self._ticks, out)
        if self._ticks >= self._figures_due:
            self._figures_due = self._ticks + _SECOND
            for path, value in figures.items():
                topic, kind = f"{self._root}{path}", _FIGURES[path]
                if value is not None and topic in self._shown:
                    self._show(topic, kind, _as_type(kind, value), out)
        self._ticks += 1
        return out

    def withdraw_all(self) -> list[Publication | Withdrawal]:
        """Take everything back; a later tick publishes all of it again."""
        out: list[Publication | Withdrawal] = [Withdrawal(topic) for topic in self._shown]
        self._shown.clear()
        self._begin()
        return out

    def _groups(self, snapshot: Snapshot) -> Iterator[tuple[str, tuple[_Row, ...], Mapping[str, Any]]]:
        yield "", _BRIDGE, snapshot
        for phone in snapshot["phones"]:
            yield f"devices/{segment(phone['name'])}/", _PHONE, phone
        for source, data in snapshot["sources"].items():
            if data["enabled"]:
                yield f"sources/{segment(source)}/", _SOURCE, data

    def _show(self, topic: str, kind: str, value: NtValue, out: list[Publication | Withdrawal]) -> None:
        if topic not in self._shown or self._shown[topic] != value:
            self._shown[topic] = value
            out.append(Publication(topic, kind, value))


def _as_type(kind: str, value: NtValue) -> NtValue:
    return float(value) if kind == "double" and isinstance(value, int) else value
