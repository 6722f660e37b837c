"""What a reload may take over at once, and what waits."""

import pytest

from aoabridge.config import Config, changes, effective, log_line, parse_config, restart_needed
from aoabridge.config.diff import flat
from aoabridge.config.schema import Reload


def config(text: str) -> Config:
    loaded = parse_config(text, "f", host="box").config
    assert loaded is not None
    return loaded


BASE = config("")
# one key of every line of the annotated example, with the letter that stands there
ROWS = [
    ('name = "x"', "name", "R"),
    ("relay = { max_line_bytes = 4096 }", "relay.max_line_bytes", "D"),
    ("relay = { max_subscriptions = 1 }", "relay.max_subscriptions", "D"),
    ("relay = { put_rate = 1 }", "relay.put_rate", "L"),
    ("relay = { put_burst = 1 }", "relay.put_burst", "L"),
    ("relay = { sample_lane = 1 }", "relay.sample_lane", "D"),
    ("relay = { error_lines_per_s = 1 }", "relay.error_lines_per_s", "L"),
    ('log = { level = "debug" }', "log.level", "L"),
    ('log = { format = "json" }', "log.format", "R"),
    ("log = { ring = 10 }", "log.ring", "R"),
    ('log = { levels = { a = "debug" } }', "log.levels", "L"),
    ("record = { enabled = true }", "record.enabled", "L"),
    ("nt = { team = 1 }", "nt.team", "L"),
    ('nt = { server = "a" }', "nt.server", "L"),
    ("nt = { embedded = true }", "nt.embedded", "R"),
    ("nt = { port = 1 }", "nt.port", "L"),
    ("nt = { period_ms = 5 }", "nt.period_ms", "R"),
    ("nt = { status = false }", "nt.status", "L"),
    ('nt = { alerts = "" }', "nt.alerts", "R"),
    ("nt = { elastic = false }", "nt.elastic", "L"),
    ('phone = { manufacturer = "m" }', "phone.manufacturer", "D"),
    ('phone = { serial = "m" }', "phone.serial", "D"),
    ("phone = { heartbeat = false }", "phone.heartbeat", "L"),
    ("phone = { topics_period_s = 1 }", "phone.topics_period_s", "L"),
    ("devices = { max = 1 }", "devices.max", "R"),
    ('devices = { accept = "any" }', "devices.accept", "D"),
    ('devices = { deny = ["port:1-1"] }', "devices.deny", "D"),
    ("devices = { reset_stuck = true }", "devices.reset_stuck", "L"),
    ("devices = { simulated = true }", "devices.simulated", "R"),
    ('access = { put_deny = ["/x"] }', "access.put_deny", "L"),
    ("sources = { frc = { enabled = true } }", "sources.frc[box].enabled", "R"),
    ("web = { enabled = false }", "web.enabled", "R"),
    ("web = { port = 1 }", "web.port", "R"),
    ('web = { allow_from = ["10.0.0.0/8"] }', "web.allow_from", "L"),
    ('web = { hosts = ["a"] }', "web.hosts", "L"),
    ('web = { token_file = "/a" }', "web.token_file", "R"),
]


@pytest.mark.parametrize(("text", "key", "letter"), ROWS, ids=[row[1] for row in ROWS])
def test_one_changed_key_is_one_change_with_its_class(text: str, key: str, letter: str) -> None:
    new = config(text)
    found = [change for change in changes(BASE, new) if not (key == "name" and change.key.startswith("sources."))]
    assert [(change.key, change.reload.value) for change in found] == [(key, letter)]
    assert restart_needed(found) == ([key] if letter == "R" else [])
    applied = flat(effective(BASE, new))[key]
    assert applied[0] == flat(BASE if letter == "R" else new)[key][0]


def test_a_named_device_that_comes_or_goes_applies_to_the_next_connection() -> None:
    new = config('[[device]]\nname = "p"\nserial = "s"\n')
    found = changes(BASE, new)
    assert {change.reload for change in found} == {Reload.NEXT_CONNECTION}
    assert {change.old for change in found} == {None}
    assert effective(BASE, new).device == new.device
    assert {change.new for change in changes(new, BASE)} == {None}


def test_one_log_line_names_every_changed_key_old_and_new() -> None:
    found = changes(BASE, config("[nt]\nteam = 6458\n[web]\nport = 5809"))
    assert log_line(found) == "nt.team unset -> 6458, web.port 5808 -> 5809"
    assert log_line([]) == "nothing changed"
