"""``aoabridge service``: the system service for installations by pipx; the Debian package brings its own."""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from aoabridge.cli.exits import CommandError, Exit
from aoabridge.cli.output import say, say_json

__all__ = ["add_parser", "run"]

COMMAND_S = 60.0
PACKAGED_PROGRAM = "/usr/bin/aoabridge"  # as the unit names it
HOMES = ("/home", "/root", "/run/user")  # what ProtectHome= hides from the service

_FILES = {
    "aoabridge.conf": ("systemd/sysusers.d", Path("/etc/sysusers.d/aoabridge.conf")),
    "70-aoabridge.rules": ("udev", Path("/etc/udev/rules.d/70-aoabridge.rules")),
    "aoabridge.service": ("systemd", Path("/etc/systemd/system/aoabridge.service")),
}


class Step(NamedTuple):
    """One command as a person would type it, or a file to write; ``required`` = its failure ends the installation."""

    shown: str
    command: tuple[str, ...] = ()
    target: Path | None = None
    text: str | None = None
    required: bool = True


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "service",
        help="install or remove the system service",
        description="Writes unit, udev rule and user entry; prints each command first.",
    )
    actions = parser.add_subparsers(dest="service_action", metavar="ACTION", title="actions", required=True)
    for name, text in (("install", "install and start"), ("remove", "stop and remove; configuration and state stay")):
        action = actions.add_parser(name, help=text, description=f"{text.capitalize()}.")
        action.add_argument("--dry-run", action="store_true", help="only print what would be done")


def run(args: argparse.Namespace) -> int:
    """0; 77 without root or with a Python that the service could not see; 70 if a command fails."""
    steps = list(_install() if args.service_action == "install" else _remove())
    if not args.dry_run and os.geteuid() != 0:
        command = f"sudo {Path(sys.argv[0]).name} service {args.service_action}"
        raise CommandError("this changes the system", Exit.PERMISSION, command)
    for step in steps:
        if not args.json:
            say(step.shown)
        if not args.dry_run:
            _do(step)
    if args.json:
        say_json({"steps": [step.shown for step in steps], "done": not args.dry_run})
    return int(Exit.OK)


def _install() -> Iterator[Step]:
    program = _program()
    for name, (folder, target) in _FILES.items():
        text = _shipped(name, folder).replace(PACKAGED_PROGRAM, program)
        yield Step(f"install -m 0644 {name} {target}", target=target, text=text)
        if name == "aoabridge.conf":
            yield _command("systemd-sysusers", str(target))
    # A container may be without a device manager; where there is one, the phones show whether it took the rule.
    yield _command("udevadm", "control", "--reload", required=False)
    yield _command("udevadm", "trigger", "--subsystem-match=usb", required=False)
    yield _command("systemctl", "daemon-reload")
    # Two commands: where no service manager runs, as while an image is built, only the second does nothing.
    yield _command("systemctl", "enable", "aoabridge.service")
    yield _command("systemctl", "start", "aoabridge.service")


def _remove() -> Iterator[Step]:
    yield _command("systemctl", "disable", "--now", "aoabridge.service", required=False)
    for _, target in _FILES.values():
        yield Step(f"rm -f {target}", target=target)
    yield _command("udevadm", "control", "--reload", required=False)
    yield _command("systemctl", "daemon-reload", required=False)


def _command(*words: str, required: bool = True) -> Step:
    return Step(shlex.join(words), words, required=required)


def _program() -> str:
    """The command that the unit will start; refused where the service cannot see it."""
    found = shutil.which("aoabridge") or str(Path(sys.executable).with_name("aoabridge"))
    seen = (found, str(Path(found).resolve()), sys.executable, str(Path(sys.executable).resolve()), sys.prefix)
    hidden = next((path for path in seen if path.startswith(tuple(f"{home}/" for home in HOMES))), None)
    if hidden is not None:
        raise CommandError(
            f"{hidden} is below a home directory, which the service cannot see",
            Exit.PERMISSION,
            "sudo env PIPX_HOME=/usr/local/lib/pipx PIPX_BIN_DIR=/usr/local/bin pipx install aoabridge",
        )
    return found


def _shipped(name: str, folder: str) -> str:
    """A file that is shipped inside the package, or stands in the source tree around it."""
    packaged = resources.files("aoabridge") / "data" / name
    if packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    beside = Path(__file__).parents[2] / folder / name
    try:
        return beside.read_text(encoding="utf-8")
    except OSError:
        raise CommandError(f"{name} is missing from this installation", Exit.INTERNAL, "reinstall aoabridge") from None


def _do(step: Step) -> None:
    try:
        if step.target is not None and step.text is None:
            step.target.unlink(missing_ok=True)
        elif step.target is not None and step.text is not None:
            step.target.parent.mkdir(parents=True, exist_ok=True)
            step.target.write_text(step.text, encoding="utf-8")
            step.target.chmod(0o644)
        elif step.command:
            subprocess.run(step.command, check=step.required, timeout=COMMAND_S)
    except FileNotFoundError as error:
        if step.required:
            raise CommandError(f"{step.shown}: {error.filename} is not there", Exit.INTERNAL) from None
    except (OSError, subprocess.SubprocessError) as error:
        raise CommandError(f"{step.shown}: {error}", Exit.INTERNAL) from None
