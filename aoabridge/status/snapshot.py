"""The one snapshot that every surface renders: plain data for JSON, schema 1. Keys are added, never renamed."""

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from aoabridge.status.board import OpenIssue
from aoabridge.status.text import MAX_SHOWN, printable
from aoabridge.status.verdict import judged
from aoabridge.status.views import PhoneView, SnapshotInputs, SourceView

__all__ = ["Snapshot", "build_snapshot", "masked"]

MAX_ERRORS = 20  # of a refused file; a person mends them from the first on

Snapshot: TypeAlias = dict[str, Any]


def masked(serial: str | None) -> str | None:
    """The last 4 characters of a serial, behind an ellipsis."""
    return None if serial is None else "…" + printable(serial)[-4:]


def build_snapshot(inputs: SnapshotInputs, issues: Sequence[OpenIssue]) -> Snapshot:
    """The snapshot; ``issues`` in the order of the board."""
    judgement = judged(inputs, issues)
    return {
        "schema": 1,
        "verdict": judgement.verdict,
        "sentence": judgement.sentence,
        "name": inputs.name,
        "version": inputs.version,
        "team": inputs.team,
        "stale": False,
        "time": {"wall": inputs.wall, "mono_s": round(inputs.mono_s, 3), "wall_trusted": inputs.wall_trusted},
        "uptime_s": round(inputs.uptime_s, 1),
        "robot": _robot(inputs),
        "phones": [_phone(view) for view in inputs.phones],
        "sources": _sources(inputs.sources),
        "relay": _relay(inputs),
        "host": _host(inputs),
        "record": {"active": inputs.record.active, "file": inputs.record.file, "dropped": inputs.record.dropped},
        "config": {
            "path": inputs.config.path,
            "state": inputs.config.state,
            "restart_needed": list(inputs.config.restart_needed),
            "errors": [printable(error, MAX_SHOWN) for error in inputs.config.errors[:MAX_ERRORS]],
        },
        "issues": [_issue(issue, inputs.mono_s) for issue in issues],
    }


def _robot(inputs: SnapshotInputs) -> dict[str, Any]:
    robot = inputs.robot
    return {
        "state": robot.state,
        "address": _text(robot.address),
        "client": _text(robot.client),
        "since_s": _rounded(robot.since_s, 1),
        "flaps": robot.flaps,
        "offset_us": robot.offset_us,
        "rtt2_us": robot.rtt2_us,
        "enabled": robot.enabled,
        "mode": robot.mode,
        "match": robot.match,
        "test": robot.test,
    }


def _phone(view: PhoneView) -> dict[str, Any]:
    return {
        "name": printable(view.name),
        "state": view.state,
        "port": printable(view.port),
        "serial": masked(view.serial),
        "model": _text(view.model),
        "aoa_version": view.aoa_version,
        "app": _text(view.app),
        "app_version": _text(view.app_version),
        "rx_hz": _rounded(view.rx_hz, 1),
        "tx_hz": _rounded(view.tx_hz, 1),
        "latency_ms": _rounded(view.latency_ms, 1),
        "last_line_age_s": _rounded(view.last_line_age_s, 1),
        "dropped": view.dropped,
        "coalesced": view.coalesced,
        "refused_puts": view.refused_puts,
        "bad_lines": view.bad_lines,
        "reconnects": view.reconnects,
        "battery_percent": _rounded(view.battery_percent, 0),
        "subscriptions": view.subscriptions,
        "since_s": _rounded(view.since_s, 1),
        "blocked_s": _rounded(view.blocked_s, 1),
    }


def _sources(views: Sequence[SourceView]) -> dict[str, Any]:
    kinds = [view.kind for view in views]
    found: dict[str, Any] = {}
    for view in views:
        key = view.kind if kinds.count(view.kind) == 1 else f"{view.kind}:{view.name}"
        if view.enabled:
            found[key] = {
                "enabled": True,
                "name": view.name,
                "hz": _rounded(view.hz, 1),
                "age_s": _rounded(view.age_s, 2),
                "bad": view.bad,
                "gaps": view.gaps,
                "relays": view.relays,
            }
        else:
            found[key] = {"enabled": False}
    return found


def _relay(inputs: SnapshotInputs) -> dict[str, Any]:
    relay = inputs.relay
    return {
        "topics": relay.topics,
        "robot_to_phone_hz": _rounded(relay.robot_to_phone_hz, 1),
        "phone_to_robot_hz": _rounded(relay.phone_to_robot_hz, 1),
        "put_errors": dict(relay.put_errors),
        "coalesced": relay.coalesced,
        "dropped": relay.dropped,
        "refused_puts": relay.refused_puts,
        "bad_lines": relay.bad_lines,
        "counters": dict(relay.counters),
    }


def _host(inputs: SnapshotInputs) -> dict[str, Any]:
    host = inputs.host
    return {
        "cpu_percent": _rounded(host.cpu_percent, 1),
        "rss_mib": _rounded(host.rss_mib, 1),
        "temp_c": _rounded(host.temp_c, 1),
        "throttled": host.throttled,
        "disk_free_mib": host.disk_free_mib,
        "read_only": host.read_only,
    }


def _issue(issue: OpenIssue, now: float) -> dict[str, Any]:
    return {
        "code": issue.code,
        "severity": issue.severity.value,
        "subject": issue.subject,
        "sentence": issue.sentence,
        "fix": issue.fix,
        "since_s": round(max(now - issue.since, 0.0), 1),
        "count": issue.count,
    }


def _text(value: str | None) -> str | None:
    return None if value is None else printable(value)


def _rounded(value: float | None, digits: int) -> float | None:
    """Rounded; NaN and infinities are unknown too."""
    return None if value is None or not math.isfinite(value) else round(float(value), digits)
