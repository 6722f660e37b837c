"""The bundle: what is inside, what never is, how large it may be."""

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from aoabridge.cli.checks import bundle
from aoabridge.cli.checks.bundle import anonymous, write_bundle
from aoabridge.cli.checks.result import passed
from aoabridge.config import parse_config

CONFIG = '[[device]]\nname = "p"\nserial = "2A211FDH300ABC"\n'


def contents(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_serials_are_hashed_and_hardware_addresses_cut_everywhere(tmp_path: Path) -> None:
    answers: dict[str, dict[str, Any]] = {
        "status": {"verdict": "ok", "serial": "2A211FDH300ABC"},
        "log": {"lines": [{"text": "2A211FDH300ABC at aa:bb:cc:dd:ee:ff"}]},
    }
    names = write_bundle(tmp_path / "b.zip", tmp_path, parse_config(CONFIG, "f"), [passed("x", "fine")], answers.get)
    found = contents(tmp_path / "b.zip")
    assert list(found) == names
    assert {"checks.json", "config.toml", "usb.json", "status.json", "log.json"} <= set(found)
    whole = "".join(found.values())
    assert "2A211FDH300ABC" not in whole
    assert "aa:bb:cc:xx:xx:xx" in whole
    assert json.loads(found["checks.json"])[0]["text"] == "fine"


def test_a_flood_of_log_is_shortened_from_its_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bundle.MAX_BYTES == 5 * 1024 * 1024
    monkeypatch.setattr(bundle, "MAX_BYTES", 50_000)
    noise = os.urandom(60_000).hex()
    write_bundle(
        tmp_path / "b.zip",
        tmp_path,
        parse_config("", "f"),
        [],
        lambda name: {"noise": noise, "end": "here"} if name == "log" else None,
    )
    assert (tmp_path / "b.zip").stat().st_size <= 50_000
    assert contents(tmp_path / "b.zip")["log.json"].rstrip().endswith('"end": "here"\n}')


def test_short_serials_are_no_reason_to_rewrite_texts() -> None:
    assert anonymous("a1 in a text", {"", "a1"}) == "a1 in a text"
