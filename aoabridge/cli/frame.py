"""The argument parser: one table of commands, modules imported only when asked for, options before or after."""

import argparse
import difflib
import importlib
from collections.abc import Sequence
from typing import Any, NoReturn

from aoabridge import __version__
from aoabridge.cli.exits import CommandError, Exit

__all__ = ["COMMANDS", "build_parser", "chosen_command", "with_defaults"]

COMMANDS = {
    "run": "run the bridge in the foreground",
    "demo": "show the bridge at work, without phone, robot or root",
    "status": "say in one line whether it works, and what to do if not",
    "devices": "list the phones, and USB devices that are not taken and why",
    "topics": "list the topics the bridge sees",
    "monitor": "show the messages of a phone or the values of a topic",
    "doctor": "check this machine and print the command that cures each fault",
    "config": "check or show the configuration",
    "decode": "packets in hex to JSON lines",
    "encode": "JSON lines to packets in hex",
    "simulate": "play a phone, a robot or one of the UDP programs",
    "record": "start or stop recording to a WPILOG file",
    "replay": "publish a recording again",
    "log": "show the daemon's log",
    "service": "install or remove the system service",
    "version": "show versions, or check the installation",
    "completion": "print a shell's completion script",
}
"""Name (also of the module in this package) -> one line of help."""

_DEFAULTS: dict[str, object] = {
    "quiet": False,
    "verbose": 0,
    "config": None,
    "socket": None,
    "color": "auto",
    "json": False,
}
_WITH_VALUE = ("--config", "--socket", "--color")


class CommandParser(argparse.ArgumentParser):
    """argparse with exit status 64, and without abbreviated options: a later option must not change their meaning."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Raise instead of exiting with argparse's 2, which means "no daemon" here."""
        raise CommandError(message, Exit.USAGE, f"{self.prog} --help")


def chosen_command(arguments: Sequence[str]) -> str | None:
    """The first word that is neither a global option nor its value."""
    words = iter(arguments)
    for word in words:
        if word in _WITH_VALUE:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return None


def build_parser(command: str | None, *, everything: bool = False) -> argparse.ArgumentParser:
    """The parser for one command (its module is imported), or for the overview, or with ``everything`` in it.

    Raises CommandError for a command that does not exist.
    """
    if command is not None and command not in COMMANDS:
        near = difflib.get_close_matches(command, COMMANDS, n=1)
        hint = f'did you mean "{near[0]}"?' if near else "aoabridge --help"
        raise CommandError(f"there is no command {command!r}", Exit.USAGE, hint)
    parser = CommandParser(prog="aoabridge", description="Android phones on USB, joined to FRC NetworkTables.")
    _add_globals(parser)
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", parser_class=CommandParser)
    for name, text in COMMANDS.items():
        if everything or name == command:
            importlib.import_module(f"aoabridge.cli.{name}").add_parser(subparsers)
            _add_globals_below(subparsers.choices[name])
        else:
            subparsers.add_parser(name, help=text)
    return parser


def with_defaults(args: argparse.Namespace) -> argparse.Namespace:
    """Give every global option that was not said its default."""
    for name, value in _DEFAULTS.items():
        if not hasattr(args, name):
            setattr(args, name, value)
    return args


def _add_globals_below(parser: argparse.ArgumentParser) -> None:
    _add_globals(parser)
    for action in parser._actions:  # argparse has no public way to its sub-parsers
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                _add_globals_below(child)


def _add_globals(parser: argparse.ArgumentParser) -> None:
    """Options without defaults: said before the command, they must not be overwritten by those after it."""
    group = parser.add_argument_group("global options")
    taken = parser._option_string_actions

    def add(*flags: str, **options: Any) -> None:
        free = [flag for flag in flags if flag not in taken]
        if free and flags[-1] in free:
            group.add_argument(*free, **options)

    unset = argparse.SUPPRESS
    add("-V", "--version", action="version", version=f"aoabridge {__version__}", help="show the version and exit")
    add("-q", "--quiet", action="store_true", default=unset, help="say only what is wrong")
    add("-v", "--verbose", action="count", default=unset, help="say more; also tracebacks; repeatable")
    add("--config", metavar="FILE", default=unset, help="configuration file")
    add("--socket", metavar="PATH", default=unset, help="control socket of the daemon")
    add("--color", choices=("auto", "always", "never"), default=unset, help="colour in the output")
    add("--json", action="store_true", default=unset, help="one JSON object, or JSON Lines for streams")
