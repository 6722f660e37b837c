"""The snapshot for a terminal: verdict first, broken links next, one imperative per red line."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from aoabridge.status.text import clipped

__all__ = ["age_text", "changed", "status_lines", "without_daemon"]

_MARKS = {"problem": "X", "warn": "!", "info": "i", "ok": "OK", "off": "--"}
_ORDER = list(_MARKS)
_MAX_NAME = 20


class _Row(NamedTuple):
    """One line: how bad, what, its figures, and what to do."""

    mark: str
    name: str
    detail: str
    fix: str | None = None


def age_text(seconds: float | None) -> str:
    """An age for people: ``12 s``, ``3 min``, ``2 h``, ``5 d``."""
    if seconds is None:
        return "?"
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 100 * 3600 else f"{seconds / 86400:.0f} d"


def status_lines(snapshot: Mapping[str, Any], width: int = 80) -> list[str]:
    """The whole status, no line longer than ``width`` characters."""
    rows = [*_phone_rows(snapshot), _robot_row(snapshot), *_source_rows(snapshot), *_issue_rows(snapshot)]
    rows.sort(key=lambda row: _ORDER.index(row.mark))
    names = max((len(row.name) for row in rows), default=0)
    lines = _head(snapshot, width)
    for row in rows:
        lines += _lines(row, min(names, _MAX_NAME), width)
    return lines


def without_daemon(last: Mapping[str, Any] | None, age_s: float | None) -> dict[str, Any]:
    """The snapshot to show when no daemon answers: the last one written, marked stale with its age, or an empty one."""
    known = {} if last is None else dict(last)
    sentence = "no daemon runs" if last is None else f"no daemon runs; last seen {age_text(age_s)} ago"
    return {**known, "schema": 1, "verdict": "down", "sentence": sentence, "stale": True, "stale_age_s": age_s}


def _head(snapshot: Mapping[str, Any], width: int) -> list[str]:
    left = f"{str(snapshot['verdict']).upper()}  {snapshot['sentence']}"
    team = snapshot.get("team")
    parts = [snapshot.get("name"), f"team {team}" if team else None]
    parts.append(f"v{snapshot['version']}" if snapshot.get("version") else None)
    right = "  ".join(str(part) for part in parts if part)
    if not right:
        return [clipped(left, width)]
    if len(left) + 2 + len(right) <= width:
        return [left + right.rjust(width - len(left))]
    return [clipped(left, width), clipped(right, width).rjust(width)]


def _lines(row: _Row, names: int, width: int) -> list[str]:
    text = f" {_MARKS[row.mark]:<3} {clipped(row.name, _MAX_NAME):<{names}}  {row.detail}".rstrip()
    if row.fix is None:
        return [clipped(text, width)]
    fix = f"fix: {_lower(row.fix)}"
    if len(text) + 3 + len(fix) <= width:
        return [f"{text}   {fix}"]
    return [clipped(text, width), *_wrapped(fix, width, "     ")]


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    lines, line = [], indent
    for word in text.split(" "):
        if len(line) + len(word) + 1 > width and line.strip():
            lines.append(line)
            line = indent + "     "
        line += word if line.endswith(" ") else f" {word}"
    return [clipped(item, width) for item in (*lines, line)]


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def _about(snapshot: Mapping[str, Any], subject: str) -> Mapping[str, Any] | None:
    """The worst issue about a phone."""
    return next((issue for issue in snapshot.get("issues", ()) if issue["subject"] == subject), None)


def _phone_rows(snapshot: Mapping[str, Any]) -> Iterator[_Row]:
    for phone in snapshot.get("phones", ()):
        issue = _about(snapshot, phone["name"])
        port = f"usb {phone['port']}" if phone["port"][:1].isdecimal() else phone["port"]
        if issue is not None and issue["severity"] != "info":
            word = "lost" if issue["code"] == "phone-lost" else phone["state"]
            detail = _flow(phone) if word == "live" else f"{word} {age_text(issue['since_s'])}"
            yield _Row(issue["severity"], phone["name"], f"{port}  {detail}", issue["fix"])
        elif phone["state"] == "live":
            yield _Row("ok", phone["name"], f"{port}  {_flow(phone)}")
        else:
            yield _Row("off", phone["name"], f"{port}  {phone['state']}")


def _flow(phone: Mapping[str, Any]) -> str:
    battery, latency = phone.get("battery_percent"), phone.get("latency_ms")
    parts = [
        None if battery is None else f"{battery:.0f}%",
        f"rx {phone['rx_hz'] or 0:.0f}/s tx {phone['tx_hz'] or 0:.0f}/s",
        None if latency is None else f"{latency:.0f} ms",
    ]
    return "  ".join(part for part in parts if part)


def _robot_row(snapshot: Mapping[str, Any]) -> _Row:
    robot = snapshot.get("robot")
    if robot is None:
        return _Row("off", "robot", "unknown")
    if robot["state"] in {"connected", "serving"}:
        offset = robot.get("offset_us")
        parts = [
            " as ".join(str(part) for part in (robot.get("address"), robot.get("client")) if part) or robot["state"],
            f"flaps {robot['flaps']}",
            None if offset is None else f"clock {offset / 1000:+.1f} ms",
            "NOT A ROBOT" if robot.get("test") else None,
        ]
        return _Row("ok", "robot", "  ".join(part for part in parts if part))
    issue = next((item for item in snapshot.get("issues", ()) if _robots(item)), None)
    since = "" if robot.get("since_s") is None else f" {age_text(robot['since_s'])}"
    if issue is None:
        return _Row("off", "robot", f"{robot['state']}{since}")
    return _Row(issue["severity"], "robot", f"{issue['sentence']}{since}", issue["fix"])


def _robots(issue: Mapping[str, Any]) -> bool:
    return str(issue["code"]).startswith("nt-")


def _source_rows(snapshot: Mapping[str, Any]) -> Iterator[_Row]:
    for name, source in snapshot.get("sources", {}).items():
        if source.get("enabled"):
            age = source.get("age_s")
            shown = "nothing yet" if age is None else f"{source['hz']:.0f}/s  age {age:.2f} s"
            relays = "  RELAYS DRIVING COMMANDS" if source.get("relays") else ""
            yield _Row("ok" if age is not None else "off", name, f"{shown}  bad {source['bad']}{relays}")


def _issue_rows(snapshot: Mapping[str, Any]) -> Iterator[_Row]:
    """What no phone row and no robot row has said."""
    names = {phone["name"] for phone in snapshot.get("phones", ())}
    said: set[str] = set()
    robot_said = (snapshot.get("robot") or {}).get("state") in {"connected", "serving"}
    for issue in snapshot.get("issues", ()):
        subject = issue["subject"]
        if subject in names and subject not in said and issue["severity"] != "info":
            said.add(subject)
        elif _robots(issue) and not robot_said:
            robot_said = True
        else:
            yield _Row(issue["severity"], _short(issue), issue["sentence"], issue["fix"])


def _short(issue: Mapping[str, Any]) -> str:
    return str(issue["code"]).split("-", maxsplit=1)[0]


def changed(before: Mapping[str, Any], after: Mapping[str, Any], ignored: Sequence[str] = ("time", "uptime_s")) -> bool:
    """True if two snapshots differ in more than the passing of time."""
    keys = {*before, *after} - set(ignored)
    return any(before.get(key) != after.get(key) for key in keys)
