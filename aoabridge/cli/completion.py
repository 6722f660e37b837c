"""``aoabridge completion``: a shell's completion script, made from the parser itself."""

import argparse
from collections.abc import Iterator
from typing import Any

from aoabridge.cli.client import connect
from aoabridge.cli.exits import CommandError, Exit
from aoabridge.cli.frame import build_parser
from aoabridge.codecs.protocols import PROTOCOLS

__all__ = ["add_parser", "run"]

PATIENCE_S = 0.2  # a person presses TAB and waits
_LIVE = {"monitor": ("devices", "topics"), "doctor": ("devices",), "topics": ("topics",)}
"""Commands whose argument is completed by asking the daemon."""


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "completion",
        help="print a shell's completion script",
        description='For bash: eval "$(aoabridge completion bash)".',
    )
    parser.add_argument("shell", choices=(*_SCRIPTS, "names"), metavar="bash|zsh|fish", help="which shell")
    parser.add_argument("kinds", nargs="*", choices=("devices", "topics", []), help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """0."""
    if args.shell == "names":
        print("\n".join(_names(args.socket, args.kinds)))
        return int(Exit.OK)
    words = dict(_words(build_parser(None, everything=True), ()))
    for command in ("decode", "encode"):
        words[command] += PROTOCOLS
    print(_SCRIPTS[args.shell](words), end="")
    return int(Exit.OK)


def _names(socket: str | None, kinds: list[str]) -> Iterator[str]:
    for kind in kinds:
        try:
            with connect(socket, PATIENCE_S) as daemon:
                found = daemon.request(kind).get(kind, ())
        except CommandError:
            continue
        yield from (str(item["name"]) for item in found if str(item.get("name", "")).isprintable())


def _words(parser: argparse.ArgumentParser, path: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
    """Command path -> the words that may follow it."""
    words: list[str] = []
    for action in parser._actions:  # argparse has no public way to its options
        if action.help is argparse.SUPPRESS:
            continue
        words += action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            words += action.choices
            for name, child in action.choices.items():
                yield from _words(child, (*path, name))
        elif not action.option_strings and action.choices:
            words += [str(choice) for choice in action.choices if choice != "names"]
    yield " ".join(path), sorted(set(words))


def _bash(words: dict[str, list[str]]) -> str:
    cases = "\n".join(f"    {path!r}) words={' '.join(found)!r};;" for path, found in words.items())
    live = "\n".join(
        f'    {name!r}) words="$words $(aoabridge completion names {" ".join(kinds)} 2>/dev/null)";;'
        for name, kinds in _LIVE.items()
    )
    return f"""# bash completion of aoabridge
_aoabridge() {{
  local path="" word words="" current="${{COMP_WORDS[COMP_CWORD]}}"
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    [[ $word == -* ]] || path="${{path:+$path }}$word"
  done
  case "$path" in
{cases}
  esac
  case "$path" in
{live}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _aoabridge aoabridge
"""


def _zsh(words: dict[str, list[str]]) -> str:
    return "#compdef aoabridge\nautoload -U +X bashcompinit && bashcompinit\n" + _bash(words)


def _fish(words: dict[str, list[str]]) -> str:
    lines = ["# fish completion of aoabridge"]
    for path, found in words.items():
        seen = "__fish_use_subcommand"
        if path:
            seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in path.split())
        lines.append(f"complete -c aoabridge -f -n '{seen}' -a '{' '.join(found)}'")
    for name, kinds in _LIVE.items():
        asked = f"(aoabridge completion names {' '.join(kinds)} 2>/dev/null)"
        lines.append(f"complete -c aoabridge -f -n '__fish_seen_subcommand_from {name}' -a '{asked}'")
    return "\n".join(lines) + "\n"


_SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
