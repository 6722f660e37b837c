"""The command line's frame: options anywhere, exit statuses of their own, modules only when asked for."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from aoabridge import __version__
from aoabridge.cli import main
from aoabridge.cli.frame import COMMANDS, build_parser, chosen_command, with_defaults

FORBIDDEN = ("ntcore", "usb", "websockets", "rich", "pyudev")


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        ([], 64, "usage: aoabridge"),
        (["staus"], 64, 'did you mean "status"?'),
        (["zzz"], 64, "aoabridge --help"),
        (["status", "--nonsense"], 64, "--nonsense"),
        (["status", "--wat"], 64, "--wat"),  # no abbreviations
        (["--color", "pink", "status"], 64, "pink"),
        (["config"], 64, "ACTION"),
        (["monitor"], 64, "DEVICE|TOPIC"),
        (["monitor", "/x", "--count", "0"], 64, "--count"),
        (["demo", "--phones", "9"], 64, "number from 1 to 8"),
        (["run", "--team", "1", "--server", "x"], 64, "not allowed with"),
        (["run", "--team", "30000"], 64, "1..25599"),
        (["run", "--log-level", "loud"], 64, "debug, info"),
        (["run", "--simulate", "9"], 64, "0 to 8"),
        (["simulate", "fms", "--to", "10.0.0.1"], 64, "--force"),
        (["simulate", "fms", "--copy", "fms2ds-udp@10.0.0.1:1"], 64, "--force"),
        (["simulate", "j519", "--bind", "0.0.0.0:60015"], 64, "--force"),
        (["log", "--level", "loud"], 64, "loud"),
    ],
)
def test_usage_errors_are_64_and_name_the_mistake(
    arguments: list[str], status: int, text: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["--config", str(tmp_path / "none"), *arguments]) == status
    captured = capsys.readouterr()
    assert text in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    "arguments",
    [["-v", "--json", "config", "check"], ["config", "check", "--json", "-v"], ["config", "--json", "check", "-v"]],
)
def test_global_options_stand_before_or_after_the_command(arguments: list[str]) -> None:
    args = with_defaults(build_parser("config").parse_args(arguments))
    assert (args.json, args.verbose, args.quiet, args.color) == (True, 1, False, "auto")


def test_the_command_is_the_first_word_that_is_no_option_and_no_value() -> None:
    assert chosen_command(["--socket", "status", "-q", "devices", "x"]) == "devices"
    assert chosen_command(["--socket=/s", "devices"]) == "devices"
    assert chosen_command(["-V"]) is None


@pytest.mark.parametrize("arguments", [["--version"], ["-V"], ["status", "--version"]])
def test_the_version_is_shown(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert capsys.readouterr().out == f"aoabridge {__version__}\n"


def test_the_overview_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"    {name} " in shown for name in COMMANDS)


def test_a_defect_is_70_with_a_traceback_only_on_demand(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("bo\x1bom")

    monkeypatch.setattr("aoabridge.cli.topics.connect", broken)
    assert main(["topics"]) == 70
    shown = capsys.readouterr().err
    assert "internal error: RuntimeError: bo\\x1bom" in shown
    assert "Traceback" not in shown
    assert main(["topics", "-v"]) == 70
    assert "Traceback" in capsys.readouterr().err


LIGHT = (
    "status",
    "devices",
    "topics",
    "log",
    "version",
    "config check",
    "config show",
    "config path",
    "decode teleop",
    "decode j519-to-robot",
    "encode teleop",
    "encode fms2ds-udp",
    "completion bash",
    "completion zsh",
    "completion fish",
)


@pytest.mark.parametrize("arguments", [line.split() for line in LIGHT], ids=LIGHT)
def test_light_commands_import_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    code = (
        "import json, sys\nfrom aoabridge.cli import main\n"
        f"status = main({arguments!r} + ['--socket', {str(tmp_path / 's')!r}, '--config', {str(tmp_path / 'c')!r}])\n"
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=60
    )
    loaded = json.loads(done.stderr.splitlines()[-1])
    assert not set(loaded) & set(FORBIDDEN)


def test_a_closed_pipe_ends_quietly(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "aoabridge", "config", "show", "--effective"],
        env={**os.environ, "AOABRIDGE_CONFIG": str(tmp_path / "none")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait(60) == 0
