"""``aoabridge version``: what is installed; with ``--check`` whether it works."""

import argparse
import ctypes
import importlib
import platform
from importlib import metadata
from typing import Any

from aoabridge import __version__
from aoabridge.cli.exits import Exit
from aoabridge.cli.output import say, say_json

__all__ = ["add_parser", "run"]

SYSTEM_LIBUSB = "libusb-1.0.so.0"


class _LibusbVersion(ctypes.Structure):
    """Layout of ``struct libusb_version``; its first three fields are enough."""

    _fields_ = (("major", ctypes.c_uint16), ("minor", ctypes.c_uint16), ("micro", ctypes.c_uint16))


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "version",
        help="show versions, or check the installation",
        description="Versions of everything that matters. With --check: import, open and render all of it once.",
    )
    parser.add_argument("--check", action="store_true", help="smoke test; exit 1 if any part fails")


def run(args: argparse.Namespace) -> int:
    """0; with ``--check`` 1 if any part fails."""
    found = versions()
    checks: list[dict[str, object]] = []
    if args.check:
        checks = importlib.import_module("aoabridge.cli.smoke").smoke_test(args.config)
    good = all(check["ok"] for check in checks)
    if args.json:
        say_json({**found, **({"checks": checks, "ok": good} if args.check else {})})
    elif args.quiet:
        say(__version__)
    else:
        say("\n".join(f"{name:<10} {value or 'missing'}" for name, value in found.items()))
        for check in checks:
            say(f"{'PASS' if check['ok'] else 'FAIL'}  {check['name']}  {check['text']}")
    return int(Exit.OK if good else Exit.NEGATIVE)


def versions() -> dict[str, str | None]:
    """Name -> version, None = missing; imports none of them."""
    return {
        "aoabridge": __version__,
        "python": platform.python_version(),
        "pyntcore": _installed("pyntcore"),
        "libusb": _libusb(),
        "pyusb": _installed("pyusb"),
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _libusb() -> str | None:
    """The library that would be used: the system's, else the bundled one."""
    try:
        library = ctypes.CDLL(SYSTEM_LIBUSB)
    except OSError:
        bundled = _installed("libusb-package")
        return None if bundled is None else f"{bundled} (bundled)"
    library.libusb_get_version.restype = ctypes.POINTER(_LibusbVersion)
    found = library.libusb_get_version().contents
    return f"{found.major}.{found.minor}.{found.micro} (system)"
