"""Completion scripts: accepted by their shells, complete, live names without waiting."""

import subprocess
from pathlib import Path

import pytest

from aoabridge.cli import main
from aoabridge.cli.frame import COMMANDS
from fakes.daemon import fake_daemon


@pytest.fixture
def script(capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", "bash"]) == 0
    return capsys.readouterr().out


def completed(script: str, *words: str) -> list[str]:
    quoted = " ".join(f"'{word}'" for word in words)
    code = (
        f'{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _aoabridge; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.split()


def test_bash_completes_commands_options_and_protocols(script: str) -> None:
    assert set(COMMANDS) <= set(completed(script, "aoabridge", ""))
    assert completed(script, "aoabridge", "config", "sh") == ["show"]
    assert completed(script, "aoabridge", "config", "show", "--eff") == ["--effective"]
    assert completed(script, "aoabridge", "--quiet", "decode", "j519") == ["j519-to-robot", "j519-from-robot"]
    assert completed(script, "aoabridge", "simulate", "te") == ["teleop"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_have_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in COMMANDS)


def test_live_names_come_from_the_daemon_or_not_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers = {
        "devices": {"devices": [{"name": "pixel7"}, {"name": "e\x1bvil"}]},
        "topics": {"topics": [{"name": "/a"}]},
    }
    with fake_daemon(tmp_path / "s", answers):
        assert main(["completion", "names", "devices", "topics", "--socket", str(tmp_path / "s")]) == 0
    assert capsys.readouterr().out == "pixel7\n/a\n"
    assert main(["completion", "names", "devices", "--socket", str(tmp_path / "none")]) == 0
    assert capsys.readouterr().out.strip() == ""
