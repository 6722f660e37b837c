"""The help of every command, word by word. A changed text is written anew with GOLDEN=write."""

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from aoabridge.cli import main
from aoabridge.cli.frame import COMMANDS, build_parser

GOLDEN = Path(__file__).parents[2] / "vectors" / "help"
WIDTH = 80


def paths(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command and every action below it."""
    yield path
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, child in action.choices.items():
                yield from paths(child, (*path, name))


ALL = list(paths(build_parser(None, everything=True)))


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_help_is_the_reviewed_text(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setenv("NO_COLOR", "1")
    assert main([*path, "--help"]) == 0
    shown = capsys.readouterr().out
    golden = GOLDEN / ("-".join(("aoabridge", *path)) + ".txt")
    if os.environ.get("GOLDEN") == "write":
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(shown)
    assert shown == golden.read_text()
    assert max(map(len, shown.splitlines())) <= WIDTH


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == {"-".join(("aoabridge", *path)) for path in ALL}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_overview_says_what_the_command_says(command: str) -> None:
    parser = build_parser(command)
    action = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    helps = {choice.dest: choice.help for choice in action._choices_actions}
    assert helps[command] == COMMANDS[command]
