"""Our lines of the journal, for the command line; through ``journalctl``, which every machine with a journal has."""

import json
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

__all__ = ["JournalMissingError", "lines"]

UNIT = "aoabridge"
NEWEST = 500  # as many as a person scrolls through
_PRIORITIES = {"debug": 7, "info": 6, "warning": 4, "error": 3}
_LEVELS = ("error", "error", "error", "error", "warning", "info", "info", "debug")


class JournalMissingError(Exception):
    """This machine has no journal that we may read."""


def lines(*, level: str, device: str | None, follow: bool) -> Iterator[dict[str, Any]]:
    """The lines of the unit in this boot, oldest first; ``follow`` goes on for ever. Raises JournalMissingError."""
    command = ["journalctl", "-u", UNIT, "-b", "-n", str(NEWEST), "-o", "json", "-p", str(_PRIORITIES[level]), "-q"]
    command += [f"AOABRIDGE_DEVICE={device}"] if device else []
    command += ["-f"] if follow else []
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except OSError as error:
        raise JournalMissingError(str(error)) from error
    with process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                yield parsed(line)
        finally:
            process.terminate()
    if process.returncode not in (0, -15):
        raise JournalMissingError(f"journalctl ended with {process.returncode}")


def parsed(line: str) -> dict[str, Any]:
    """One record of ``journalctl -o json`` as a line of the log."""
    record: dict[str, Any] = json.loads(line)
    stamp = datetime.fromtimestamp(int(record.get("__REALTIME_TIMESTAMP", 0)) / 1e6, UTC)
    priority = int(record.get("PRIORITY", 6))
    return {
        "time": stamp.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z",
        "level": _LEVELS[priority] if 0 <= priority < len(_LEVELS) else "debug",
        "code": record.get("AOABRIDGE_CODE"),
        "device": record.get("AOABRIDGE_DEVICE"),
        "text": _text(record.get("MESSAGE")),
    }


def _text(message: object) -> str:
    """A text; journalctl gives one with odd bytes as a list of numbers."""
    return bytes(message).decode("utf-8", "replace") if isinstance(message, list) else str(message)
