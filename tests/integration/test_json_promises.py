"""What commands print with --json keeps the schemas, which may grow within version 1 but lose and rename nothing."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aoabridge.cli import main
from aoabridge.cli.frame import build_parser
from fakes.shapes import PROMISES
from rig.daemon_process import DaemonProcess
from rig.nt_process import free_port

SCHEMAS = Path(__file__).parents[1] / "vectors" / "schemas"
PACKET = "00" * 22  # a whole control packet of the field, whatever it says
TIMEOUT_S = 30
NEVER_JSON = {"completion"}  # a script for a shell

# command, further words, exit statuses, standard input, schemas of its lines
Row = tuple[str, list[str], tuple[int, ...], str, set[str]]


def ticking(kind: str, *words: str, statuses: tuple[int, ...] = (0, 1)) -> Row:
    return (f"simulate {kind}", ["--seconds", "1.3", *words], statuses, "", ticks(f"simulate-{kind}"))


def ticks(name: str) -> set[str]:
    return {f"{name}-tick", f"{name}-summary"}


ALONE: list[Row] = [
    ("doctor", [], (0, 1), "", {"doctor"}),
    ("config show", [], (0,), "", {"config-show"}),
    ("config show", ["--effective"], (0,), "", {"config-show"}),
    ("config path", [], (0,), "", {"config-path"}),
    ("config check", [], (0,), "", {"config-check"}),
    ("service remove", ["--dry-run"], (0,), "", {"service"}),
    ("version", [], (0,), "", {"version"}),
    ("version", ["--check"], (0,), "", {"version-check"}),
    ("decode", ["fms2ds-udp"], (1,), "00\n", {"decode-error"}),
    ("decode", ["fms2ds-udp"], (0,), f"{PACKET}\n", {"decode"}),
    ("encode", ["fms2ds-udp"], (1,), '{"packet":"ControlPacket"}\n[]\n', {"encode-error"}),
    ("demo", ["--seconds", "2"], (0,), "", ticks("demo")),
    ticking("robot", "--port", "0", statuses=(1,)),
    ticking("fms", statuses=(0,)),
    ticking("ds", statuses=(0,)),
    ticking("ds", "--robot", statuses=(0,)),
    ticking("j519", "--bind", "127.0.0.1:PORT", statuses=(1,)),
    ticking("teleop", "--role", "both", statuses=(0,)),
]

CONFIG = """
[nt]
embedded = true
port = {port}
[devices]
simulated = true
[record]
min_free_mib = 0
[web]
enabled = false
"""
# In this order, with a running daemon.
ASKING: list[Row] = [
    ("record start", [], (0,), "", {"record"}),
    ticking("phone", statuses=(0,)),
    ("status", [], (0, 1), "", {"status"}),
    ("devices", [], (0,), "", {"devices"}),
    ("topics", [], (0,), "", {"topics"}),
    ("monitor", ["phone", "--count", "1", "--timeout", "20"], (0,), "", {"monitor-device"}),
    ("monitor", ["/AOABridge/pit/heartbeat", "--count", "1", "--timeout", "20"], (0,), "", {"monitor-topic"}),
    ("log", [], (0,), "", {"log"}),
    ("record status", [], (0,), "", {"record"}),
    ("record stop", [], (0,), "", {"record"}),
]


def leaves(parser: Any, path: str = "") -> Iterator[str]:
    """Every command that has no commands below it."""
    below = [action for action in parser._actions if type(action).__name__ == "_SubParsersAction"]
    if not below:
        yield path
    for action in below:
        for name, child in action.choices.items():
            yield from leaves(child, f"{path} {name}".strip())


def test_every_command_has_a_schema_that_is_checked_here() -> None:
    checked = {row[0] for row in [*ALONE, *ASKING]} | {"run", "replay", "service install"}
    assert checked == set(leaves(build_parser(None, everything=True))) - NEVER_JSON
    schemas = {"run", "demo-failure", *ticks("replay")}.union(*(row[4] for row in [*ALONE, *ASKING]))
    assert schemas == set(PROMISES)


@pytest.mark.parametrize("name", PROMISES)
def test_the_schema_is_the_promised_one(name: str) -> None:
    schema = json.dumps(msgspec.json.schema(PROMISES[name]), indent=1, sort_keys=True) + "\n"
    path = SCHEMAS / f"{name}.json"
    if os.environ.get("GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(schema)
    assert path.read_text() == schema


def test_every_schema_file_is_used() -> None:
    assert {path.stem for path in SCHEMAS.glob("*.json")} == set(PROMISES)


def check_lines(text: str, schemas: set[str]) -> None:
    """Each line keeps the schema of its kind, and each kind was said."""
    said = set()
    for line in text.splitlines():
        kind = json.loads(line).get("type")
        (name,) = schemas if len(schemas) == 1 else (found for found in schemas if found.endswith(f"-{kind}"))
        msgspec.json.decode(line, type=PROMISES[name])
        said.add(name)
    assert said == schemas


def ask(command: list[str], row: Row) -> str:
    name, words, statuses, given, schemas = row
    done = subprocess.run(
        [*command, *name.split(), *(word.replace("PORT", str(free_port())) for word in words), "--json"],
        input=given,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode in statuses, (done.returncode, done.stderr)
    check_lines(done.stdout, schemas)
    return done.stdout


@pytest.mark.usefixtures("address_beside_loopback")
@pytest.mark.parametrize("row", ALONE, ids=[" ".join([row[0], *row[1]]) for row in ALONE])
def test_a_command_without_daemon_keeps_its_schema(row: Row, tmp_path: Path) -> None:
    config = tmp_path / "aoabridge.toml"
    config.write_text("[nt]\nteam = 6458\n")
    ask([sys.executable, "-m", "aoabridge", "--socket", str(tmp_path / "none"), "--config", str(config)], row)


def test_the_steps_of_an_installation_keep_their_schema(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where = "/usr/local/lib/pipx/venvs/aoabridge"  # one below a home directory is refused
    monkeypatch.setattr(sys, "executable", f"{where}/bin/python")
    monkeypatch.setattr(sys, "prefix", where)
    monkeypatch.setattr("shutil.which", lambda _: "/usr/local/bin/aoabridge")
    assert main(["service", "install", "--dry-run", "--json"]) == 0
    check_lines(capsys.readouterr().out, {"service"})


def test_a_demo_that_cannot_begin_says_so_as_promised(tmp_path: Path) -> None:
    alone = ("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
    command = [*alone, sys.executable, "-m", "aoabridge", "--socket", str(tmp_path / "none")]
    ask(command, ("demo", ["--seconds", "2"], (1,), "", {"demo-failure"}))


def test_the_daemon_and_all_that_ask_it_keep_their_schemas(tmp_path: Path) -> None:
    config = 'name = "pit"\n' + CONFIG.format(port=free_port())
    with DaemonProcess(tmp_path, config, "--json") as daemon:
        command = [sys.executable, "-m", "aoabridge", "--socket", str(daemon.socket), "--config", str(daemon.config)]
        phone = daemon.plug_in()
        phone.say(*({"action": "put", "key": "/x", "value": number} for number in range(3)))
        answers = [ask(command, row) for row in ASKING]
        daemon.stop()
    check_lines("\n".join(daemon.log), {"run"})
    file = json.loads(answers[-1])["file"]
    words = [file, "--listen", str(free_port()), "--loop", "--json"]
    with subprocess.Popen([*command, "replay", *words], stdout=subprocess.PIPE, text=True) as replay:
        assert replay.stdout is not None
        first = replay.stdout.readline()
        replay.send_signal(signal.SIGINT)
        rest, _ = replay.communicate(timeout=TIMEOUT_S)
    check_lines(first + rest, ticks("replay"))
