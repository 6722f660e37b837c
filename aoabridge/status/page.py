"""The status page as HTML: verdict, one imperative per fault, the chain from phone to robot. Complete without script.

Every text of a foreign origin passes ``escape``; the page's script only replaces the body by a newer one.
"""

import re
from collections.abc import Mapping, Sequence
from html import escape
from shlex import quote
from typing import Any, Final

__all__ = ["body", "page", "title"]

MAX_ISSUES = 3  # more than three imperatives at once help nobody
MAX_ERRORS = 4  # of a refused file; the others are below "Config"
MAX_TOPICS = 4
MAX_SECOND_CURES = 2  # with more issues than this there is no room for what to do if the first cure fails
FLOW_SECONDS = 60
STALE_S = 2.0
_WORDS: Final = {
    "ok": ("OK", "ok"),
    "waiting": ("WAITING", "warn"),
    "problem": ("PROBLEM", "bad"),
    "down": ("DOWN", "bad"),
}
_SYMBOLS: Final = {"ok": "&#10003;", "warn": "&hellip;", "bad": "X"}
_SEVERITIES: Final = {"problem": ("X", "bad"), "warn": ("!", "warn"), "info": ("i", "info")}
_BADGES: Final = {"ok": "OK", "warn": "&hellip;", "bad": "X"}
_ARROWS: Final = {
    "ok": "== OK ==&#9654;",
    "warn": "&middot; &middot; &middot; &#9654;",
    "bad": "&ndash; X &ndash;&#9654;",
}
_CONNECTED: Final = ("connected", "serving")
_GONE: Final = ("absent", "blocked", "stale")

_CABLE: Final = ("phone-lost", "phone-switch", "usb-flapping", "app-stalled")  # what another cable may cure

_COMMAND: Final = re.compile("`([^`]+)`")

Snapshot = Mapping[str, Any]


def page(snapshot: Snapshot) -> str:
    """The whole document."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{_text(title(snapshot))}</title>"
        '<link rel="icon" href="/icon.svg"><link rel="stylesheet" href="/app.css">'
        '<noscript><meta http-equiv="refresh" content="5"></noscript></head>'
        f'<body><div id="contact" role="alert" hidden></div><main id="page">{body(snapshot)}</main>'
        '<section id="panel" aria-live="off" hidden></section><script src="/app.js"></script></body></html>'
    )


def title(snapshot: Snapshot) -> str:
    """The document's title; the verdict comes first, so that a tab shows it."""
    return f"{_WORDS[snapshot['verdict']][0]} - aoabridge {snapshot['name']}"


def body(snapshot: Snapshot) -> str:
    """The part that is replaced on every update."""
    return (
        _header(snapshot)
        + _verdict(snapshot)
        + _chain(snapshot)
        + _flow(snapshot)
        + _topics(snapshot)
        + _footer(snapshot)
    )


def _text(value: object) -> str:
    return escape(str(value), quote=True)


def _commands(fix: str) -> str:
    """An imperative with its `commands` set apart."""
    return _COMMAND.sub(r"<code>\1</code>", _text(fix))


def _age(seconds: float | None) -> str:
    """An age that the script counts on; greyed once it is old."""
    if seconds is None:
        return '<span class="age">never</span>'
    old = " old" if seconds >= STALE_S else ""
    return f'<span class="age{old}" data-age="{seconds:.1f}">{_duration(seconds)}</span>'


def _since(seconds: float | None) -> str:
    """How long something has been so; nothing grows stale by it."""
    return "" if seconds is None else f'<span data-since="{seconds:.1f}">{_duration(seconds)}</span>'


def _duration(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest:02}"


def _header(snapshot: Snapshot) -> str:
    word, colour = _WORDS[snapshot["verdict"]]
    problems = [issue for issue in snapshot["issues"] if issue["severity"] == "problem"]
    badge = f"{len(problems)} PROBLEM{'S' if len(problems) > 1 else ''}" if problems else word
    team = "" if snapshot["team"] is None else f'<span class="extra">team {snapshot["team"]}</span>'
    temperature = snapshot["host"]["temp_c"]
    heat = "" if temperature is None else f'<span class="extra">{temperature:.0f} C</span>'
    not_real = '<span class="badge warn">NOT A ROBOT</span>' if snapshot["robot"]["test"] else ""
    return (
        f"<header><h1>aoabridge</h1><span>{_text(snapshot['name'])}</span>{team}"
        f'<span class="extra">v{_text(snapshot["version"])}</span>{not_real}'
        f'<span class="badge {colour}">{badge}</span>'
        f'<span class="extra end">up {_since(snapshot["uptime_s"])}</span>{heat}</header>'
    )


def _verdict(snapshot: Snapshot) -> str:
    word, colour = _WORDS[snapshot["verdict"]]
    sentence = snapshot["sentence"].upper() if colour == "ok" else snapshot["sentence"]
    rows = [_issue(issue, snapshot) for issue in snapshot["issues"][:MAX_ISSUES]]
    hidden = len(snapshot["issues"]) - len(rows)
    if 0 < len(rows) <= MAX_SECOND_CURES and snapshot["issues"][0]["severity"] == "problem":
        rows.insert(1, _second_cure(snapshot["issues"][0]))
    if hidden > 0:
        rows.append(f'<li class="more">and {hidden} more: aoabridge doctor</li>')
    crowded = " crowded" if len(rows) >= MAX_ISSUES else ""
    listed = f'<ul class="issues{crowded}">{"".join(rows)}</ul>' if rows else ""
    return (
        f'<section id="verdict" class="{colour}"><p role="status"><b>{_SYMBOLS[colour]}</b> '
        f"<strong>{word}</strong> {_text(sentence)}</p>{listed}</section>"
    )


def _issue(issue: Mapping[str, Any], snapshot: Snapshot) -> str:
    symbol, colour = _SEVERITIES[issue["severity"]]
    errors = snapshot["config"]["errors"] if issue["code"] == "config-rejected" else ()
    listed = "".join(f"<br><small>{_text(error)}</small>" for error in errors[:MAX_ERRORS])
    return (
        f'<li class="{colour}"><b>{symbol}</b> <span class="what">{_text(issue["sentence"])}</span> '
        f'{_since(issue["since_s"])} <span class="fix">&#8594; {_commands(issue["fix"])}</span>{listed}</li>'
    )


def _second_cure(issue: Mapping[str, Any]) -> str:
    """What to do when the first cure did not help."""
    known = issue["code"].startswith(("phone-", "app-", "usb-")) and issue["subject"]
    command = "aoabridge doctor" + (f" {quote(issue['subject'])}" if known else "")
    cable = "Try another cable; then run" if issue["code"] in _CABLE else "Run"
    return (
        f'<li class="second">Still red after 10 s? <span class="fix">&#8594; {cable}: '
        f"<code>{_text(command)}</code></span></li>"
    )


def _chain(snapshot: Snapshot) -> str:
    phones = [(phone, _phone_colour(phone, snapshot)) for phone in snapshot["phones"]]
    robot = _robot_colour(snapshot)
    arrows = "".join(_arrow(colour) for _, colour in phones) or _arrow("warn")
    shown = "".join(_phone(phone, colour) for phone, colour in phones) or "<p>no phone yet</p>"
    return (
        f'<section id="chain"><div class="box"><h2>Phones</h2>{shown}</div><div class="arrows">{arrows}</div>'
        f'{_bridge(snapshot)}<div class="arrows">{_arrow(robot)}</div>{_robot(snapshot, robot)}</section>'
    )


def _arrow(colour: str) -> str:
    return f'<div class="arrow {colour}">{_ARROWS[colour]}</div>'


def _phone_colour(phone: Mapping[str, Any], snapshot: Snapshot) -> str:
    troubled = any(i["severity"] == "problem" and i["subject"] == phone["name"] for i in snapshot["issues"])
    if troubled or phone["state"] in _GONE:
        return "bad"
    return "ok" if phone["state"] == "live" else "warn"


def _robot_colour(snapshot: Snapshot) -> str:
    if snapshot["robot"]["state"] in _CONNECTED:
        return "ok"
    problem = any(i["severity"] == "problem" and i["code"].startswith("nt-") for i in snapshot["issues"])
    return "bad" if problem or snapshot["robot"]["state"] == "lost" else "warn"


def _phone(phone: Mapping[str, Any], colour: str) -> str:
    battery = "" if phone["battery_percent"] is None else f" {phone['battery_percent']:.0f}%"
    latency = "" if phone["latency_ms"] is None else f" {phone['latency_ms']:.0f} ms"
    live = phone["state"] == "live"
    rates = f"rx {phone['rx_hz']:.0f}/s tx {phone['tx_hz']:.0f}/s{latency}" if live else _text(phone["state"])
    return (
        f'<p class="{colour}"><b>{_BADGES[colour]}</b> {_text(phone["name"])}'
        f" <small>{_text(phone['port'])}{battery}</small>"
        f"<br><small>{rates}, last {_age(phone['last_line_age_s'])}, dropped {phone['dropped']}</small></p>"
    )


def _bridge(snapshot: Snapshot) -> str:
    relay, host = snapshot["relay"], snapshot["host"]
    cpu = "" if host["cpu_percent"] is None else f"<p>cpu {host['cpu_percent']:.0f}%</p>"
    return (
        f'<div class="box bridge"><h2>Bridge</h2><p>{relay["robot_to_phone_hz"]:.0f}/s to phones</p>'
        f"<p>{relay['phone_to_robot_hz']:.0f}/s to robot</p>"
        f"<p>dropped {relay['dropped']}, refused {relay['refused_puts']}</p>{cpu}"
        + "".join(_source(name, source) for name, source in snapshot["sources"].items() if source["enabled"])
        + "</div>"
    )


def _source(name: str, source: Mapping[str, Any]) -> str:
    return f"<p>{_text(name)} {source['hz']:.0f}/s {_age(source['age_s'])}</p>"


def _robot(snapshot: Snapshot, colour: str) -> str:
    robot = snapshot["robot"]
    clock = "" if robot["offset_us"] is None else f'<p class="extra">clock {robot["offset_us"] / 1000:+.1f} ms'
    if clock:
        clock += "</p>" if robot["rtt2_us"] is None else f" (rtt {robot['rtt2_us'] * 2 / 1000:.1f} ms)</p>"
    enabled = "" if robot["enabled"] is None else "ENABLED" if robot["enabled"] else "disabled"
    match = "" if robot["match"] is None else f"match {_text(robot['match'])}"
    mode = ": ".join(part for part in (enabled, _text(robot["mode"] or "")) if part)
    game = f"<p>{' '.join(part for part in (mode, match) if part)}</p>" if mode or match else ""
    address = "" if robot["address"] is None else _text(robot["address"])
    client = "" if robot["client"] is None else f'<p class="extra"><small>as {_text(robot["client"])}</small></p>'
    since = _since(robot["since_s"])
    state = f"<p>{_text(robot['state'])}{since and ' ' + since}, flaps {robot['flaps']}</p>"
    return (
        f'<div class="box"><h2>Robot</h2><p class="{colour}"><b>{_BADGES[colour]}</b> {address or "no address"}</p>'
        f"{client}{state}{clock}{game}</div>"
    )


def _flow(snapshot: Snapshot) -> str:
    rows = [
        f'<span>{_text(phone["name"])}</span><i aria-hidden="true">{_text(phone["flow"])}</i>'
        for phone in snapshot["phones"]
        if phone.get("flow")
    ]
    return (
        f'<section id="flow"><h2>Flow, last {FLOW_SECONDS} s</h2><div>{"".join(rows)}</div></section>' if rows else ""
    )


def _topics(snapshot: Snapshot) -> str:
    watched: Sequence[Mapping[str, Any]] = snapshot.get("watched", ())
    if not watched:
        return '<section id="topics"><h2>Topics</h2>no phone has subscribed to or put any yet</section>'
    head = f"Topics ({min(len(watched), MAX_TOPICS)} of {snapshot['relay']['topics']})"
    return f'<section id="topics"><h2>{head}</h2><table>{"".join(map(_topic, watched[:MAX_TOPICS]))}</table></section>'


def _topic(topic: Mapping[str, Any]) -> str:
    silent = not topic["hz"] and (topic["age_s"] is None or topic["age_s"] >= STALE_S)
    stale = " <strong>STALE</strong>" if silent else ""
    readers = f"{topic['readers']} reader" + ("" if topic["readers"] == 1 else "s")
    return (
        f"<tr><td>{_text(topic['name'])}<td>{topic['hz']:.0f}/s<td>age {_age(topic['age_s'])}{stale}"
        f"<td>{_text(topic['type'])}<td>&#8594; {readers}</tr>"
    )


def _footer(snapshot: Snapshot) -> str:
    read_only = '<span class="end">read-only disk: logs in RAM</span>' if snapshot["host"]["read_only"] else ""
    return (
        '<footer><a href="/#topics">Topics</a> '
        '<a href="/api/logs?count=200" data-panel="/api/logs?count=200">Log</a> '
        '<a href="/api/config" data-panel="/api/config">Config</a> '
        f'<a href="/api/status">Status</a>{read_only}</footer>'
    )
