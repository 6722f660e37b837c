"""Every command line of the documentation is one that the program understands."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from aoabridge.cli.frame import COMMANDS, build_parser

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")
SHELLS = ("", "sh", "bash", "console")
ENDS = {"|", "||", "&&", ";", "&", ">", ">>", "2>", "<"}
BEFORE = {"sudo", "$", "exec", "nice"}
PLACEHOLDERS = {"N": "1", "HZ": "1", "S": "1", "X": "1", "PORT": "5810", "LEVEL": "info", "PROTO": "teleop"}


def shell_lines(text: str) -> Iterator[str]:
    """Lines of shell blocks, then code in running text."""
    for kind, block in FENCE.findall(text):
        if kind in SHELLS:
            yield from block.replace("\\\n", " ").splitlines()
    yield from (span.replace("\n", " ") for span in SPAN.findall(FENCE.sub("", text)))


def commands(line: str, program: str) -> Iterator[list[str]]:
    """The arguments of every call of the program on the line."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:  # a quotation mark that is an apostrophe: no shell
        return
    while words:
        end = next((place for place, word in enumerate(words) if word in ENDS), len(words))
        one, words = words[:end], words[end + 1 :]
        while one and (one[0] in BEFORE or re.fullmatch(r"[A-Z_]+=\S*", one[0])):
            one = one[1:]
        if one[:1] == [program]:
            yield one[1:]


def found(program: str) -> list[tuple[str, list[str]]]:
    return [
        (page.name, words)
        for page in PAGES
        for line in shell_lines(page.read_text())
        for words in commands(line, program)
        if words and "..." not in words and "…" not in words
    ]


CALLS = found("aoabridge")
SCRIPT = found("./dev")


@pytest.mark.parametrize(("page", "words"), CALLS, ids=[f"{page}: {' '.join(words)}" for page, words in CALLS])
def test_aoabridge_understands(page: str, words: list[str]) -> None:
    del page
    if words[0] in COMMANDS and words[1:] == []:  # often the name of a command in running text
        return
    known = [PLACEHOLDERS.get(word, word) for word in words]
    try:
        build_parser(None, everything=True).parse_args(known)
    except SystemExit as done:  # --help, --version
        assert not done.code


@pytest.mark.parametrize(("page", "words"), SCRIPT, ids=[f"{page}: {' '.join(words)}" for page, words in SCRIPT])
def test_dev_understands(page: str, words: list[str]) -> None:
    del page
    script = (ROOT / "dev").read_text()
    assert re.search(rf"^    {words[0]}\)", script, re.MULTILINE)
    for option in (word.partition("=")[0] for word in words if word.startswith("--")):
        assert re.search(rf"^\./dev {words[0]}\b.*{option}\b", script, re.MULTILINE) or said_by_its_program(
            words[0], option
        )


def said_by_its_program(command: str, option: str) -> bool:
    """True if what ``./dev`` starts for this command knows the option."""
    program = {
        "bench": "benchmarks/__main__.py",
        "fuzz": "tests/fuzz/run.py",
        "demo": "aoabridge/cli/demo.py",
        "vm": "tests/vm/run.py",
        "test": "tests/run.py",
        "faults": "tests/faults/campaign.py",
        "soak": "tests/faults/soak.py",
    }[command]
    return f'"{option}"' in (ROOT / program).read_text()


def test_there_are_commands_to_try() -> None:
    assert len(CALLS) > 30
    assert len(SCRIPT) > 5
