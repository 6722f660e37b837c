"""The command line: one module per sub-command, with ``add_parser(subparsers)`` and ``run(args) -> exit status``."""

import importlib
import sys
import traceback
from collections.abc import Sequence

from aoabridge.cli.exits import CommandError, Exit
from aoabridge.cli.frame import build_parser, chosen_command, with_defaults
from aoabridge.cli.output import drop_output, printable, warn

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit status and raises nothing."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    verbose = any(word.startswith("-v") and not word.startswith("--") for word in arguments) or "--verbose" in arguments
    try:
        return _run(arguments)
    except CommandError as error:
        warn(printable(str(error)))
        if error.cure is not None:
            print(f"  fix: {printable(error.cure)}", file=sys.stderr)
        return int(error.status)
    except KeyboardInterrupt:
        return int(Exit.OK)
    except BrokenPipeError:
        drop_output()
        return int(Exit.OK)
    except Exception as error:  # noqa: BLE001 - the last stop: a user gets one line, a developer the rest with -v
        if verbose:
            traceback.print_exc()
        warn(
            f"internal error: {type(error).__name__}: {printable(str(error))}" + ("" if verbose else " (more with -v)")
        )
        return int(Exit.INTERNAL)


def _run(arguments: list[str]) -> int:
    command = chosen_command(arguments)
    try:
        parser = build_parser(command)
        args = with_defaults(parser.parse_args(arguments))
    except SystemExit as done:  # --help and --version
        return int(done.code or 0)
    if command is None:
        parser.print_help(sys.stderr)
        return int(Exit.USAGE)
    status = int(importlib.import_module(f"aoabridge.cli.{command}").run(args))
    sys.stdout.flush()  # here, where a reader that has gone is expected
    return status
