"""What commands print with --json keeps the schemas, which may grow within version 1 but lose and rename nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from fakes.shapes import PROMISES

SCHEMAS = Path(__file__).parents[1] / "vectors" / "schemas"
PACKET = "00" * 22  # a whole control packet of the field, whatever it says
# schema, words, exit statuses, standard input
COMMANDS: list[tuple[str, list[str], tuple[int, ...], str]] = [
    ("doctor", ["doctor"], (0, 1), ""),
    ("config-show", ["config", "show"], (0,), ""),
    ("config-show", ["config", "show", "--effective"], (0,), ""),
    ("config-path", ["config", "path"], (0,), ""),
    ("config-check", ["config", "check"], (0,), ""),
    ("service", ["service", "remove", "--dry-run"], (0,), ""),
    ("version", ["version"], (0,), ""),
    ("version-check", ["version", "--check"], (0,), ""),
    ("decode-error", ["decode", "fms2ds-udp"], (1,), "00\n"),
    ("decode", ["decode", "fms2ds-udp"], (0,), f"{PACKET}\n"),
    ("demo-summary", ["demo", "--seconds", "2"], (0,), ""),
]


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


@pytest.mark.usefixtures("address_beside_loopback")
@pytest.mark.parametrize(("name", "words", "statuses", "given"), COMMANDS, ids=[" ".join(row[1]) for row in COMMANDS])
def test_a_command_without_daemon_keeps_its_schema(
    name: str, words: list[str], statuses: tuple[int, ...], given: str, tmp_path: Path
) -> None:
    config = tmp_path / "aoabridge.toml"
    config.write_text("[nt]\nteam = 6458\n")
    command = [sys.executable, "-m", "aoabridge", "--socket", str(tmp_path / "none"), "--config", str(config)]
    done = subprocess.run(
        [*command, *words, "--json"], input=given, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode in statuses, done.stderr
    msgspec.json.decode(done.stdout.splitlines()[-1], type=PROMISES[name])
