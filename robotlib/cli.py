"""`python -m robotlib`: check a plan file and draw it."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from ._version import __version__
from .actions import Actions
from .binding import bind
from .dryrun import IdealDrive
from .errors import PlanError, sentence
from .extensions import EXTENSIONS
from .leaves import DriveLeaves
from .model import FIELD_2026, ActionNode, Field, Limits, Node, PathNode, Plan, PlanWarning, Pose2
from .parse import parse
from .pathfile import PathFolder
from .timeline import Estimates, TimelineEntry, build_timeline

__all__ = ["main"]

OK, REJECTED, USAGE = 0, 1, 2
INTERRUPTED = 130
_T = TypeVar("_T")


class _CannotRead(Exception):  # noqa: N818  (ends a command, is no bug)
    pass


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # absent on replaced streams
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone; the interpreter must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        return INTERRUPTED
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m robotlib", description="Check and draw RoboRoute plans.")
    parser.add_argument("--version", action="version", version=f"robotlib {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    check = commands.add_parser("check", help="check a plan and estimate its time")
    check.add_argument("--json", action="store_true", help="one line of JSON on stdout")
    check.add_argument("--actions", type=_typed(_ids, "1,2"), help="ids of the robot's actions, like 1,2")
    check.set_defaults(run=_check)
    preview = commands.add_parser("preview", help="draw a plan as SVG")
    preview.add_argument("--out", required=True, help="file to write, - for stdout")
    preview.set_defaults(run=_preview)
    for command in (check, preview):
        command.add_argument("file", help="plan file, - for stdin")
        command.add_argument("--field", type=_typed(_field, "16.54x8.07"), default=FIELD_2026, help="metres, LxW")
        command.add_argument("--start", type=_typed(_pose, "X,Y,ROT"), help="start pose in metres and radians")
        command.add_argument("--paths", type=Path, help="folder with .path files")
        command.add_argument("--extensions", action="store_true", help="accept WAIT, RACE and DEADLINE")
    return parser


def _typed(convert: Callable[[str], _T], example: str) -> Callable[[str], _T]:
    def checked(text: str) -> _T:
        try:
            return convert(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not like {example}") from None

    return checked


def _ids(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part.strip()]


def _numbers(text: str, separator: str, count: int) -> list[float]:
    numbers = [float(part) for part in text.split(separator)]
    if len(numbers) != count or not all(map(math.isfinite, numbers)):
        raise ValueError(text)
    return numbers


def _field(text: str) -> Field:
    length, width = _numbers(text.lower(), "x", 2)
    if length <= 0 or width <= 0:
        raise ValueError(text)
    return Field(length, width)


def _pose(text: str) -> Pose2:
    return Pose2(*_numbers(text, ",", 3))


def _read_plan(options: argparse.Namespace) -> Plan:
    limits = Limits()
    try:
        if options.file == "-":
            data = sys.stdin.buffer.read(limits.max_bytes + 1)
        else:
            with Path(options.file).open("rb") as stream:
                data = stream.read(limits.max_bytes + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _CannotRead(f"Cannot read the plan: {reason}.") from None
    if len(data) > limits.max_bytes:
        try:  # cut within a character is no encoding error
            codecs.getincrementaldecoder("utf-8")().decode(data)
        except UnicodeDecodeError:
            return parse(data)
        kilobytes = limits.max_bytes // 1024
        raise PlanError("too-large", "$", f"Plan is larger than the limit of {kilobytes} KB.")
    return parse(data, limits, options.field, extra_types=EXTENSIONS if options.extensions else None)


class _CheckLeaves(DriveLeaves):
    """Any path name is fine as long as no folder was named."""

    def check(self, node: Node, alliance: str | None) -> list[PlanWarning]:
        if isinstance(node, PathNode) and self.paths is None:
            return []
        return super().check(node, alliance)

    def end_pose(self, node: Node, alliance: str | None) -> Pose2 | None:
        return None if isinstance(node, PathNode) else super().end_pose(node, alliance)


def _bind_warnings(plan: Plan, options: argparse.Namespace, paths: PathFolder | None) -> tuple[PlanWarning, ...]:
    """Check against the named actions and paths, if any were named."""
    if options.actions is None and paths is None:
        return ()
    known = options.actions
    if known is None:
        known = [node.action_id for node in plan.leaves() if isinstance(node, ActionNode)]
    actions = Actions()
    for number in sorted(set(known)):
        actions.register(number, f"action {number}", lambda: None)
    leaves = _CheckLeaves(IdealDrive(Pose2(0.0, 0.0, 0.0)), paths=paths, field=options.field)
    return bind(plan, actions, leaves=leaves, paths=paths, field=options.field, extra_types=EXTENSIONS).warnings


def _check(options: argparse.Namespace) -> int:
    paths = PathFolder(options.paths) if options.paths is not None else None
    try:
        plan = _read_plan(options)
        warnings = plan.warnings + _bind_warnings(plan, options, paths)
    except PlanError as error:
        return _report_error(options, error, REJECTED)
    except _CannotRead as error:
        return _report_error(options, PlanError("cannot-read", "$", sentence(str(error))), USAGE)
    entries = build_timeline(plan, Estimates(), options.start, paths)
    if options.json:
        answer = {
            "ok": True,
            "tree": plan.to_dict(),
            "warnings": [warning.to_dict() for warning in warnings],
            "timeline": [entry.to_dict() for entry in entries],
        }
        print(json.dumps(answer, separators=(",", ":")))
    else:
        _print_plan(plan, entries, warnings)
    return OK


def _report_error(options: argparse.Namespace, error: PlanError, status: int) -> int:
    if options.json:
        print(json.dumps({"ok": False, "error": error.to_dict()}, separators=(",", ":")))
    else:
        print(error, file=sys.stderr)
    return status


def _print_plan(plan: Plan, entries: Sequence[TimelineEntry], warnings: Sequence[PlanWarning]) -> None:
    poses = len(plan.poses())
    print(f"OK  {plan.node_count} steps, {poses} poses, about {entries[0].end_s:.1f} s")
    for entry in entries:
        indent = "  " * (entry.path.count(".children[") + 1)
        print(f"{indent}{entry.type} {entry.label}  {entry.start_s:.1f} to {entry.end_s:.1f} s")
    for warning in warnings:
        print(f"warning {warning.path}: {warning.message} [{warning.code}]")


def _preview(options: argparse.Namespace) -> int:
    from .preview import svg  # noqa: PLC0415  (the XML modules are not needed to check)

    paths = PathFolder(options.paths) if options.paths is not None else None
    try:
        plan = _read_plan(options)
    except PlanError as error:
        print(error, file=sys.stderr)
        return REJECTED
    except _CannotRead as error:
        print(error, file=sys.stderr)
        return USAGE
    data = svg(plan, options.field, start=options.start, paths=paths).encode("utf-8")
    if options.out == "-":
        sys.stdout.buffer.write(data)
        return OK
    try:
        _write_whole(Path(options.out), data)
    except OSError as error:
        print(f"Cannot write {options.out}: {error.strerror}", file=sys.stderr)
        return USAGE
    return OK


def _write_whole(target: Path, data: bytes) -> None:
    """Write through a temporary file, so that the target is never half a picture."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with open(handle, "wb") as stream:  # noqa: PTH123  (a descriptor)
            stream.write(data)
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(target)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
